"""`turnkeeper init` and the checks that `doctor` shares with it, against fakes on loopback."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent_core.settings import ModelSettings
from gateway.accounts.telegram import Telegram
from gateway.cli.init import prepare
from gateway.cli.probes import Platforms, ProbeResult, has_fault, probe_models
from gateway.settings import Settings
from tests.fakes.discord_server import DiscordServer
from tests.fakes.model_server import ModelServer, Ollama
from tests.fakes.slack_server import APP_TOKEN, SlackServer
from tests.fakes.slack_server import TOKEN as SLACK
from tests.fakes.telegram_server import TelegramServer
from tests.gateway.process import KEY, TOKEN, World

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


async def run(folder: Path, person: Person, **env: str) -> int:
    return await prepare(folder, env, person.ask, person.said.append)


async def test_model_platform_and_people_are_checked_and_written(
    tmp_path: Path, model: ModelServer, stack: AsyncExitStack
) -> None:
    telegram = TelegramServer(TOKEN)
    await stack.enter_async_context(telegram)
    telegram.chats[11].append({"text": "hello", "message_id": 1})
    (tmp_path / ".env").write_text("# mine\nTHEIRS=x\nTELEGRAM_BOT_TOKEN=1:old\n")
    person = Person("openai", "sk-wrong", "openai", KEY, "telegram", TOKEN, "11", "12 13")
    env = {"OPENAI_BASE_URL": f"{model.url}/v1", **TIERS}  # type: ignore[attr-defined]
    env["TELEGRAM_API_BASE_URL"] = telegram.base_url
    assert await run(tmp_path, person, **env) == 0
    assert "wrong    models: openai/fake-model (MAX, PRO, FLASH)" in person.told
    assert "refused the key (401)" in person.told
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
    assert await run(tmp_path, person, **env) == 0
    assert f"wrong    {platform}: refuses {platform.upper()}_" in person.told
    assert named in person.told
    written = (tmp_path / ".env").read_text()
    assert f"{platform.upper()}_ADMIN_USERS={known}\n" in written and "wrong" not in written


async def test_what_ends_early_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(EOFError):
        await run(tmp_path, Person("none", "telegram"))
    person = Person("nonsense", "none", "none")
    assert await run(tmp_path, person) == 0
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
    assert clock.mark == "wrong" and "ahead" in clock.text


async def test_a_platform_that_is_not_there_is_wrong() -> None:
    async with aiohttp.ClientSession() as session:
        platforms = Platforms(session)
        found = await platforms.probe_telegram(
            Telegram(token="1:A", api_base_url="http://127.0.0.1:1")
        )
    assert found == [
        ProbeResult("wrong", "telegram", "cannot be reached: check the network, and the proxy if "
                "there is one")
    ]  # fmt: skip
    assert has_fault(found) and not platforms.check_clock()


@pytest.mark.pick("a doctor in a process", 2)
async def test_doctor_does_the_same_checks(world: World) -> None:
    code, said = await world.command("doctor", TELEGRAM_TOKEN="1:A", **TIERS)
    assert code == 0, said
    for line in (
        "ok       models: openai/fake-model (MAX, PRO, FLASH) answers",
        "ok       telegram: @",
        "note     telegram: 11 has not written to the bot yet",
        "ok       clock: ",
        "ok       page: 127.0.0.1:0 is free",
        "note     TELEGRAM_TOKEN is set and is no setting; did you mean TELEGRAM_BOT_TOKEN?",
    ):
        assert line in said
    code, said = await world.command("doctor", TELEGRAM_BOT_TOKEN="123456789:wrong")
    assert code == 1 and "wrong    telegram: refuses TELEGRAM_BOT_TOKEN" in said
    assert "123456789:wrong" not in said
