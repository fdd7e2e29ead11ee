"""`turnkeeper init` and the checks that `doctor` shares with it, against fakes on loopback."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.settings import TIERS as ALL_TIERS
from agent_core.settings import ModelSettings
from gateway.accounts.telegram import Telegram
from gateway.cli.env_file import write_settings
from gateway.cli.init import prepare, set_up
from gateway.cli.probes import (
    Platforms,
    ProbeResult,
    find_unused_addresses,
    has_fault,
    probe_models,
)
from gateway.settings import Settings
from tests.fakes.discord_server import DiscordServer
from tests.fakes.model_server import Fail, ModelServer, Ollama, Say
from tests.fakes.slack_server import APP_TOKEN, SlackServer
from tests.fakes.slack_server import TOKEN as SLACK
from tests.fakes.telegram_server import TelegramServer
from tests.fakes.waiting import until
from tests.gateway.process import KEY, ROOT, START, TOKEN, Run, World

TIERS = {f"{tier}_MODEL": "openai/fake-model" for tier in ("MAX", "PRO", "FLASH")}


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    server = ModelServer(KEY)
    server.url = await server.start()  # type: ignore[attr-defined]
    yield server
    await server.close()


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


class Person:
    """Types the answers in their order, and reads what is said."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.said: list[str] = []
        self.hidden: list[str] = []

    def ask(self, what: str, hidden: bool) -> str:
        self.asked.append(what)
        if not self.answers:
            raise EOFError
        answer = self.answers.pop(0)
        if hidden:
            self.hidden.append(answer)
        return answer

    @property
    def told(self) -> str:
        return "\n".join(self.said)


async def run(folder: Path, person: Person, **env: str) -> None:
    await prepare(folder, env, person.ask, person.said.append)


async def test_model_platform_and_people_are_checked_and_written(
    tmp_path: Path, model: ModelServer, stack: AsyncExitStack
) -> None:
    telegram = TelegramServer(TOKEN)
    await stack.enter_async_context(telegram)
    telegram.chats[11].append({"text": "hello", "message_id": 1})
    (tmp_path / ".env").write_text("# mine\nTHEIRS=x\nTELEGRAM_BOT_TOKEN=1:old\n")
    person = Person("openai", "sk-wrong", "", "openai", KEY, "", "telegram", TOKEN, "11", "12 13")
    env = {"OPENAI_BASE_URL": f"{model.url}/v1", **TIERS}  # type: ignore[attr-defined]
    env["TELEGRAM_API_BASE_URL"] = telegram.base_url
    await run(tmp_path, person, **env)
    assert "wrong    models: openai/fake-model (MAX, PRO, FLASH)" in person.told
    assert "rejected the API key (401)" in person.told
    assert "ok       models: openai/fake-model (MAX, PRO, FLASH) answers" in person.told
    assert "ok       telegram: @" in person.told and "ok       telegram: 11 is U11" in person.told
    assert "note     telegram: 12 has not written to the bot yet" in person.told
    assert person.hidden == ["sk-wrong", KEY, TOKEN], "secrets are not shown while typed"
    assert KEY not in person.told and TOKEN not in person.told
    written = (tmp_path / ".env").read_text()
    assert written.splitlines() == [
        "# mine",
        "THEIRS=x",
        f"TELEGRAM_BOT_TOKEN={TOKEN}",
        f"OPENAI_API_KEY={KEY}",
        "TELEGRAM_ADMIN_USERS=11",
        "TELEGRAM_ALLOWED_USERS=12,13",
    ]
    assert (tmp_path / ".env").stat().st_mode & 0o777 == 0o600
    settings = Settings.read({}, tmp_path)
    assert settings.people["telegram"].allowed == {"12", "13"}


@pytest.fixture
async def env(model: ModelServer) -> dict[str, str]:
    """Each provider's address, with nothing else set."""
    at = model.url  # type: ignore[attr-defined]
    model.window = 100_000
    return {
        "OPENAI_BASE_URL": f"{at}/v1",
        "ANTHROPIC_BASE_URL": at,
        "GEMINI_BASE_URL": f"{at}/v1",
    }


async def test_the_chosen_provider_is_the_one_that_is_asked_and_answers(
    tmp_path: Path, env: dict[str, str], model: ModelServer
) -> None:
    """Whatever else has a key already, or is named for a tier."""
    kept = {"OPENAI_API_KEY": KEY, "PRO_MODEL": "openai/old", "LITE_MODEL_PROVIDER": "openai"}
    kept["FALLBACK_PROVIDERS"] = "openai/old"
    person = Person("anthropic", "sk-bad", "", "anthropic", KEY, "", "none")
    await run(tmp_path, person, **env, **kept)
    assert {one.path for one in model.requests} == {"/v1/messages"}
    assert "wrong    models: anthropic/" in person.told, "what stands in for it does not count"
    assert "ok       models: anthropic/" in person.told
    settings = ModelSettings.read(Settings.read(env | {"OPENAI_API_KEY": KEY}, tmp_path).env)
    assert {(settings.choice(tier) or ("",))[0] for tier in ALL_TIERS} == {"anthropic"}
    written = (tmp_path / ".env").read_text()
    assert "PRO_MODEL=\n" in written and "OPENAI_API_KEY" not in written


async def test_what_is_set_is_kept_by_enter(tmp_path: Path, env: dict[str, str]) -> None:
    kept = env | TIERS | {"OPENAI_API_KEY": KEY}
    person = Person("", "none")
    await run(tmp_path, person, **kept)
    assert "keep [keep]" in person.asked[0]
    assert "ok       models: openai/fake-model" in person.told, "it is tried out all the same"
    person = Person("openai", "", "", "none")
    await run(tmp_path, person, **kept)
    assert "ok       models: openai/fake-model" in person.told
    assert "Nothing is changed" in person.told and not (tmp_path / ".env").exists()
    person = Person("openai", "", "none", "none")
    await run(tmp_path, person, **env)
    assert "wrong    OPENAI_API_KEY: it is needed." in person.told


async def test_another_address_is_found_below_v1_with_its_models(
    tmp_path: Path, env: dict[str, str], model: ModelServer
) -> None:
    at = env["ANTHROPIC_BASE_URL"]
    model.models = ["an-embedder", "big", "small"]
    person = Person(
        *("other", "ftp://localhost", "other", "http://127.0.0.1:1", "", "m"),
        *("other", f"{at.removeprefix('http://')}/", KEY, "", "none"),
    )
    await run(tmp_path, person)
    assert "wrong    OPENAI_BASE_URL=ftp://localhost: must be an http or https URL." in person.told
    assert "most addresses end in /v1" in person.told and "cannot be reached" in person.told
    assert f"ok       {at}/v1 has: big, small" in person.told
    settings = ModelSettings.read(Settings.read({}, tmp_path).env)
    assert settings.choice("flash") == ("openai", "big")
    assert settings.base_urls["openai"] == f"{at}/v1"
    person = Person("openai", "", "-", "keep", "none")
    await run(tmp_path, person, **Settings.read({}, tmp_path).env)
    assert "[http" in person.asked[2] and "- for https://api.openai.com/v1" in person.asked[2]
    assert "wrong    models: openai/gpt-" in person.told, "its own models, at its own address"


async def test_what_is_no_id_is_asked_for_again(tmp_path: Path, stack: AsyncExitStack) -> None:
    telegram = TelegramServer(TOKEN)
    await stack.enter_async_context(telegram)
    env = {"TELEGRAM_API_BASE_URL": telegram.base_url}
    person = Person("none", "telegram", TOKEN, "@ann", "", "11", "ann, ٣", "11", "")
    await run(tmp_path, person, **env)
    assert "wrong    telegram: @ann is no id (numbers; @userinfobot tells yours)" in person.told
    assert "wrong    telegram: ann is no id" in person.told
    assert "wrong    telegram: ٣ is no id" in person.told, "a digit, but none of an id's"
    people = Settings.read({}, tmp_path).people["telegram"]
    assert people.admins == {"11"} and not people.allowed


@pytest.mark.parametrize(
    ("below", "status", "said"),
    [
        ("", 404, "No models are listed at OPENAI_BASE_URL=http://127.0.0.1:"),
        ("/v1", 404, "It lists no model gtp-big; did you mean openai/gpt-big?"),
        ("/v1", 400, "It lists no model gtp-big; did you mean openai/gpt-big?"),
    ],
)
async def test_a_model_that_is_not_there_is_told_with_the_nearest(
    model: ModelServer, env: dict[str, str], below: str, status: int, said: str
) -> None:
    model.models = ["tiny", "gpt-big"]
    model.script(*[Fail(status)] * 3)
    given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": env["ANTHROPIC_BASE_URL"] + below}
    given |= {f"{tier}_MODEL": "openai/gtp-big" for tier in ("MAX", "PRO", "FLASH")}
    (answer,) = await probe_models(ModelSettings.read(given | {"OLLAMA_NUM_CTX": "0"}))
    assert answer.mark == "wrong" and f"({status})" in answer.text and said in answer.text


async def test_what_is_missing_or_unreachable_is_told_with_setting_and_mend(
    model: ModelServer, env: dict[str, str]
) -> None:
    model.ollama, model.models = Ollama(given=40_960, tells=True), ["small:1b"]
    given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": env["OPENAI_BASE_URL"]}
    model.script(*[Fail(404, message="no such model")] * 9)
    found = await probe_models(ModelSettings.read(given | {"PRO_MODEL": "openai/qqq"}))
    chosen = next(one.text for one in found if "(PRO)" in one.text)
    assert "(404): no such model. It lists no model qqq, but small:1b." in chosen
    assert chosen.endswith("To have Ollama fetch it: ollama pull qqq")
    usual = next(one.text for one in found if "(MAX)" in one.text)
    assert "MAX_MODEL is not set: name a model" in usual and "pull" not in usual
    given["OPENAI_BASE_URL"] = env["ANTHROPIC_BASE_URL"]
    (below,) = await probe_models(ModelSettings.read(given | TIERS | {"OLLAMA_NUM_CTX": "0"}))
    assert f"they are at {env['OPENAI_BASE_URL']}." in below.text
    given["OPENAI_BASE_URL"] = "http://127.0.0.1:1/v1"
    (there,) = await probe_models(ModelSettings.read(given | TIERS))
    assert there.text.endswith("It is asked at OPENAI_BASE_URL=http://127.0.0.1:1/v1.")


def test_an_address_without_a_key_is_told() -> None:
    given = {"OPENAI_BASE_URL": "http://me:pass@127.0.0.1:1/v1", "ANTHROPIC_API_KEY": KEY}
    (note,) = find_unused_addresses(ModelSettings.read(given))
    assert note.mark == "note" and "pass" not in note.text
    assert "OPENAI_BASE_URL=http://[secret]@127.0.0.1:1/v1 is not used" in note.text
    assert "write OPENAI_API_KEY=none" in note.text
    assert find_unused_addresses(ModelSettings.read(given | {"OPENAI_API_KEY": "none"})) == []


async def test_a_model_that_only_stands_in_is_noted(env: dict[str, str]) -> None:
    given = env | TIERS | {"OPENAI_API_KEY": "sk-bad", "ANTHROPIC_API_KEY": KEY}
    given["FALLBACK_PROVIDERS"] = "anthropic/spare"
    (answers,) = (
        one for one in await probe_models(ModelSettings.read(given)) if "holds" not in one.text
    )
    assert answers.mark == "note"
    assert "gives no answer; anthropic/spare stands in for it" in answers.text


def test_settings_are_written_in_their_places_and_read_back(tmp_path: Path) -> None:
    real, link = tmp_path / "real.env", tmp_path / ".env"
    real.write_text("# mine\nexport PRO_MODEL=a/b # old\nX=1\nPRO_MODEL=c/d\n")
    real.chmod(0o644)
    link.symlink_to(real)
    odd = {"OPENAI_API_KEY": "a #b$c", "PRO_MODEL": "it's", "TURNKEEPER_HOME": "/home/x y",
           "FLASH_MODEL": """it's "x" """.strip()}  # fmt: skip
    write_settings(link, odd)
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    assert real.read_text().splitlines()[:3] == ["# mine", 'PRO_MODEL="it\'s"', "X=1"]
    found = Settings.read({}, tmp_path).env
    assert {name: found[name] for name in odd} == odd, "the last line of a name counts"


AT_TERMINAL = (
    "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "from gateway.cli.main import main; sys.exit(main(['init']))"
)


FIND_AT = (
    "from agent_core.models import discovery as d;"
    "d.discover.__defaults__ = (None, (d.Port('ollama', {port}),));"
)
"""Before the others: a model server is looked for at this port alone."""


async def type_at_terminal(
    folder: Path, env: dict[str, str], lines: list[tuple[str, bytes]], before: str = ""
) -> tuple[int, str]:
    """The exit code and the screen of `init`, where each line is typed once its prompt is there."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", before + AT_TERMINAL), cwd=folder, env=env,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = ""

    def read() -> str:
        nonlocal shown
        try:
            shown += os.read(ours, 65_536).decode()
        except OSError:  # nothing new, or it has ended
            pass
        return shown

    try:
        for prompt, line in lines:
            await until(lambda prompt=prompt: read().rstrip().endswith(prompt), START)
            os.write(ours, line)
        async with asyncio.timeout(START):
            code = await process.wait()
        return code, read()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


PROVIDER, KEY_OF, ADDRESS = "[openai]:", "API key of openai:", "/v1:"
IGNORES = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);"
"""Before the others: started as a shell starts what is to run behind."""


@pytest.mark.pick("init at a terminal", 1)
@pytest.mark.parametrize(
    "lines",
    [
        [(PROVIDER, b"\x03")],
        [
            (PROVIDER, b"openai\n"),
            (KEY_OF, b"sk-x\xff\xe4\n"),
            (ADDRESS, b"\n"),
            ("[openai]:", b"\x03"),
        ],
        [(PROVIDER, b"openai\n"), (KEY_OF, b"\x03")],
        [(PROVIDER, b"openai\n"), (KEY_OF, b"sk-x\n"), (ADDRESS, b"\n"), ("word …", b"\x03")],
    ],
)
@pytest.mark.parametrize("before", ["", IGNORES], ids=["in front", "behind"])
async def test_ctrl_c_ends_it_at_once_and_writes_nothing(
    tmp_path: Path, lines: list[tuple[str, bytes]], before: str
) -> None:
    """Where a line is waited for, shown or not, and while a model is asked."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TURNKEEPER_HOME": str(tmp_path),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{deaf.getsockname()[1]}/v1",
            "OPENAI_API_MODE": "chat_completions", "LOCAL_MODEL_DISCOVERY": "off",
        }  # fmt: skip
        code, shown = await type_at_terminal(tmp_path, env, lines, before)
    assert code == 1 and "Nothing was written." in shown, shown
    assert "Traceback" not in shown and "sk-x" not in shown
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "cp437"])
async def test_a_terminal_of_another_encoding_is_asked_all_the_same(
    tmp_path: Path, encoding: str
) -> None:
    """Our signs that it does not have are question marks there."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TURNKEEPER_HOME": str(tmp_path),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{deaf.getsockname()[1]}/v1",
            "OPENAI_API_MODE": "chat_completions", "LOCAL_MODEL_DISCOVERY": "off",
            "PYTHONIOENCODING": encoding,
        }  # fmt: skip
        lines = [
            (PROVIDER, b"openai\n"), (KEY_OF, b"sk-x\n"), (ADDRESS, b"\n"), ("word ?", b"\x03")
        ]  # fmt: skip
        code, shown = await type_at_terminal(tmp_path, env, lines)
    assert code == 1 and "Nothing was written." in shown and "Traceback" not in shown, shown


@pytest.mark.slow
@pytest.mark.pick("init at a terminal", 1)
async def test_an_ollama_that_is_found_is_set_up_and_answers_on_the_page(
    tmp_path: Path, stack: AsyncExitStack
) -> None:
    server = ModelServer()
    port = int((await server.start()).rpartition(":")[2])
    stack.push_async_callback(server.close)
    server.ollama = Ollama(given=4096, tells=True)
    server.models = ["bge-m3:latest", "llama3.1:8b", "qwen3:8b"]
    server.steps = [Fail(500, message="model requires more system memory (5.6 GiB)")]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TURNKEEPER_HOME": str(tmp_path)}
    found, first = ("[ollama]:", b"\n"), "[llama3.1:8b]:"
    lines = [found, (first, b"\n"), found, (first, b"qwen3:8b\n"), ("[none]:", b"\n")]
    code, shown = await type_at_terminal(tmp_path, env, lines, FIND_AT.format(port=port))
    assert code == 0 and f"ok       http://127.0.0.1:{port}/v1 has: llama3.1:8b, qwen3:8b" in shown
    assert "openai/llama3.1:8b" in shown and "requires more system memory (5.6 GiB)" in shown
    assert f"It is asked at OPENAI_BASE_URL=http://127.0.0.1:{port}/v1." in shown
    assert "ok       models: openai/qwen3:8b (MAX, PRO, FLASH) answers" in shown
    server.steps = [Say("hello from here")]
    with (tmp_path / "out.txt").open("w") as out, (tmp_path / "log.txt").open("w") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway.cli.main", "run"), cwd=tmp_path,
            env=env | {"TURNKEEPER_PORT": "0"}, stdout=out, stderr=log,
        )  # fmt: skip
    gateway = Run(process, tmp_path)
    stack.push_async_callback(gateway.end, signal.SIGKILL)
    async with asyncio.timeout(START):
        await gateway.ready()
    page = await stack.enter_async_context(
        aiohttp.ClientSession(gateway.url, headers={"Origin": gateway.url.rstrip("/")})
    )
    async with page.get(gateway.link) as signed:
        page.headers["Cookie"] = signed.headers["Set-Cookie"].partition(";")[0]
    async with page.post("/api/conversations/one/messages", json={"text": "hello"}) as kept:
        assert kept.status == 202
    async with asyncio.timeout(START), page.get("/api/conversations/one/events") as events:
        async for line in events.content:
            if b"hello from here" in line:
                break
    asked = server.requests[-1]
    assert (asked.path, asked.body["model"]) == ("/api/chat", "qwen3:8b")
    assert asked.body["options"]["num_ctx"] == 16_384


async def test_where_nothing_can_be_written_nothing_is_asked(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to(tmp_path / "gone" / ".env")
    person = Person()
    with pytest.raises(OSError, match=r"\.env cannot be written \(.*a folder that is yours"):
        await prepare(tmp_path, {}, person.ask, person.said.append)
    assert person.said == []


async def test_a_setting_that_the_environment_overrides_is_noted(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outer = env | TIERS | {"OPENAI_API_KEY": "sk-outer"}
    person = Person("openai", KEY, "", "none")
    code = await asyncio.to_thread(
        set_up, lambda: Settings.read(outer, tmp_path), person.said.append, person.ask
    )
    assert code == 0
    assert "note     OPENAI_API_KEY is set in the environment too" in person.told
    (tmp_path / "turnkeeper.toml").write_text('lite_model_provider = "openai"\n')
    person = Person("anthropic", KEY, "", "none")
    await asyncio.to_thread(
        set_up, lambda: Settings.read(env, tmp_path), person.said.append, person.ask
    )
    assert "LITE_MODEL_PROVIDER is set in the environment or in turnkeeper.toml" in person.told


async def test_more_platforms_are_offered_and_what_is_set_is_kept(
    tmp_path: Path, env: dict[str, str], stack: AsyncExitStack
) -> None:
    telegram, discord, slack = TelegramServer(TOKEN), DiscordServer(), SlackServer()
    for server in (telegram, discord, slack):
        await stack.enter_async_context(server)
    env |= TIERS | {
        "TELEGRAM_API_BASE_URL": telegram.base_url, "DISCORD_API_BASE_URL": discord.api_url,
        "SLACK_API_BASE_URL": slack.base_url,
    }  # fmt: skip
    person = Person(
        *("openai", KEY, "", "telegram", TOKEN, "11", ""), *("discord", discord.token, "", "", "")
    )
    await run(tmp_path, person, **env)
    assert "Another platform: discord, slack, none [none]" in person.asked
    assert "Another platform: slack, none [none]" in person.asked
    first = Settings.read(env, tmp_path).env
    assert first["TELEGRAM_BOT_TOKEN"] == TOKEN and first["DISCORD_BOT_TOKEN"] == discord.token

    person = Person("", "")
    written = (tmp_path / ".env").read_text()
    await run(tmp_path, person, **first)
    for name in ("telegram", "discord"):
        assert f"ok       {name}: " in person.told, "tried anew"
        assert f"note     {name} is set already and kept as it is" in person.told
    assert "slack is set" not in person.told and not person.hidden, "no token is asked for again"
    assert "Nothing is changed" in person.told and "demo" not in person.told
    assert (tmp_path / ".env").read_text() == written

    person = Person("", "slack", SLACK, APP_TOKEN, "", "")  # nobody answers for another one
    await run(tmp_path, person, **first)
    added = (tmp_path / ".env").read_text()
    assert added.startswith(written) and SLACK in added
    person = Person("", "")
    await run(tmp_path, person, **first, SLACK_BOT_TOKEN="xoxb-old", SLACK_APP_TOKEN=APP_TOKEN)
    assert "slack is set already and does not work" in person.told


@pytest.mark.parametrize("platform", ["discord", "slack"])
async def test_each_platform_is_checked_by_its_tokens(
    tmp_path: Path, platform: str, stack: AsyncExitStack
) -> None:
    if platform == "discord":
        discord = DiscordServer()
        await stack.enter_async_context(discord)
        env = {"DISCORD_API_BASE_URL": discord.api_url}
        tokens, wrong = [discord.token], ["a.b.c"]
        known, named = "4711", "ok       discord: 4711 is u4711"
    else:
        slack = SlackServer()
        await stack.enter_async_context(slack)
        env = {"SLACK_API_BASE_URL": slack.base_url}
        tokens, wrong = [SLACK, APP_TOKEN], [SLACK, "xapp-wrong"]
        known, named = "U0ANN", "ok       slack: U0ANN is "
    person = Person("none", platform, *wrong, *tokens, known, "")
    await run(tmp_path, person, **env)
    assert f"wrong    {platform}: refuses {platform.upper()}_" in person.told
    assert named in person.told
    written = (tmp_path / ".env").read_text()
    assert f"{platform.upper()}_ADMIN_USERS={known}\n" in written and "wrong" not in written


async def test_what_ends_early_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(EOFError):
        await run(tmp_path, Person("none", "telegram"))
    person = Person("nonsense", "none", "none")
    await run(tmp_path, person)
    assert "There is no 'nonsense' here." in person.told
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize(
    ("more", "mend"),
    [
        ({"OPENAI_API_MODE": "chat_completions"}, "OLLAMA_CONTEXT_LENGTH=16384"),
        ({"OLLAMA_NUM_CTX": "4096"}, "set OLLAMA_NUM_CTX=16384"),
    ],
)
async def test_a_small_window_is_told_with_the_mend(
    model: ModelServer, more: dict[str, str], mend: str
) -> None:
    model.ollama = Ollama(given=4096, tells=True, loaded=True)
    env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{model.url}/v1"} | more  # type: ignore[attr-defined]
    answers, window = await probe_models(ModelSettings.read(env | TIERS))
    assert answers.mark == "ok"
    assert window.mark == "note" and "holds 4,096 tokens" in window.text
    assert mend in window.text


def webhook(**info: object) -> Callable[[web.Request], web.Response]:
    def answer(request: web.Request) -> web.Response:
        got = {"username": "bot"} if request.path.endswith("getMe") else info
        date = {"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}
        return web.json_response({"ok": True, "result": got}, headers=date)

    return answer


@pytest.mark.parametrize(
    ("info", "set_to", "said"),
    [
        ({"url": "https://other.example/x?key=s"}, "", "note     telegram: a webhook is set at "
         "https://other.example/x."),
        ({"url": "https://me.example/telegram/webhook", "last_error_message": "SSL error"},
         "https://me.example/telegram/webhook", "wrong    telegram: Telegram could not deliver"),
    ],
)  # fmt: skip
async def test_the_webhook_and_the_clock_are_looked_at(
    info: dict[str, object], set_to: str, said: str
) -> None:
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        return webhook(**info)(request)

    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        platforms = Platforms(session)
        bot = Telegram(token="1:A", api_base_url=str(server.make_url("")).rstrip("/"))
        bot = Telegram(token="1:A", api_base_url=bot.api_base_url, webhook_url=set_to)
        found = await platforms.probe_telegram(bot)
        (clock,) = platforms.check_clock()
    assert any(str(one).startswith(said) for one in found) and "key=s" not in str(found)
    assert clock.mark == "wrong" and "ahead" in clock.text and "set it by" in clock.text


async def test_a_platform_that_is_not_there_is_wrong() -> None:
    async with aiohttp.ClientSession() as session:
        platforms = Platforms(session)
        found = await platforms.probe_telegram(
            Telegram(token="1:A", api_base_url="http://127.0.0.1:1")
        )
    assert found == [
        ProbeResult("wrong", "telegram", "cannot be reached at TELEGRAM_API_BASE_URL="
            "http://127.0.0.1:1: check it, the network, and the proxy if there is one")
    ]  # fmt: skip
    assert has_fault(found) and not platforms.check_clock()


@pytest.mark.pick("a doctor in a process", 2)
async def test_doctor_does_the_same_checks(world: World) -> None:
    unused = {"GEMINI_BASE_URL": "http://127.0.0.1:1"}
    code, said = await world.command("doctor", TELEGRAM_TOKEN="1:A", **unused, **TIERS)
    assert code == 0, said
    for line in (
        "ok       models: openai/fake-model (MAX, PRO, FLASH) answers",
        "ok       telegram: @",
        "GEMINI_BASE_URL=http://127.0.0.1:1 is not used",
        "note     telegram: 11 has not written to the bot yet",
        "ok       clock: ",
        "ok       page: 127.0.0.1:0 is free",
        "note     TELEGRAM_TOKEN is set and is no setting; did you mean TELEGRAM_BOT_TOKEN?",
    ):
        assert line in said
    code, said = await world.command("doctor", TELEGRAM_BOT_TOKEN="123456789:wrong")
    assert code == 1 and "wrong    telegram: refuses TELEGRAM_BOT_TOKEN" in said
    assert "123456789:wrong" not in said
