"""A provider fails in the middle of a turn: the turn goes on with the next one, and people see one
answer. Both ways, through the real gateway and both SDKs."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.model_settings import read_models
from gateway.settings import Settings
from tests.fakes.model_server import (
    Call,
    Cut,
    Empty,
    Events,
    Fail,
    Hang,
    ModelServer,
    Say,
    Step,
    Think,
)
from tests.gateway.process import KEY
from tests.stories.rig import ADMIN, PATIENCE, Rig, living, quick, write

FAULTS: dict[str, Step] = {
    "429": Fail(429, retry_after=30.0),
    "500": Fail(500),
    "529": Fail(529),
    "401": Fail(401),
    "time-out": Hang(),
    "cut stream": Cut(after_chars=20),
    "malformed stream": Events(("{nope",)),
    "empty answer": Empty(),
}
OTHER = "sk-other-1234567890"
WAYS = (("openai/first", "anthropic/second"), ("anthropic/first", "openai/second"))


@contextlib.asynccontextmanager
async def pair(
    folder: Path, way: tuple[str, str]
) -> AsyncIterator[tuple[Rig, ModelServer, dict[str, str]]]:
    """A rig whose model server is the first of the two providers; the other one is
    beside it."""
    async with living(folder) as rig:
        second = ModelServer(OTHER)
        url = await second.start()
        first, other = (name.partition("/")[0].upper() for name in way)
        addresses = {"OPENAI": "/v1", "ANTHROPIC": ""}
        env = {
            f"{first}_API_KEY": KEY,
            f"{first}_BASE_URL": rig.model_url + addresses[first],
            f"{other}_API_KEY": OTHER,
            f"{other}_BASE_URL": url + addresses[other],
            "PRO_MODEL": way[0],
            "FALLBACK_PROVIDERS": way[1],
        }
        try:
            yield rig, second, env
        finally:
            await second.close()


@pytest.mark.pick("the next provider", 6)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[0].partition("/")[0])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_turn_goes_on_with_the_next_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, way: tuple[str, str]
) -> None:
    quick(monkeypatch)
    async with pair(tmp_path, way) as (rig, second, env):
        if fault == "time-out":
            env["MODEL_TIMEOUT"] = "1"
        rig.model.script(Think("unheard thoughts", write("a.txt", "one")), FAULTS[fault])
        second.script(Say("All is written."))
        await rig.start(**env)
        rig.telegram.say(ADMIN, "write it")
        await rig.shows("All is written.", ADMIN)
        await rig.quiet()
        assert (rig.workspace(ADMIN) / "a.txt").read_text() == "one"
        assert [text for text in rig.said(ADMIN) if "This answer" in text] == []
        assert [text for text in rig.said(ADMIN) if "All is written." in text] == [
            "All is written."
        ]
        assert (len(rig.model.requests), len(second.requests)) == (2, 1)
        assert b"unheard thoughts" in rig.model.requests[1].raw
        assert b"unheard thoughts" not in second.requests[0].raw
        assert b"a.txt" in second.requests[0].raw
        (said,) = rig.log.named("model_fell_back")
        assert (said.__dict__["model"], said.__dict__["next"]) == way


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[0].partition("/")[0])
async def test_what_is_no_fault_of_the_provider_stays_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: tuple[str, str]
) -> None:
    """Arguments that are no JSON are told to the model; a request that is refused is told to
    people."""
    quick(monkeypatch)
    async with pair(tmp_path, way) as (rig, second, env):
        rig.model.script(Call("write_file", '{"path": '), Say("Then not."), Fail(400))
        await rig.start(**env)
        rig.telegram.say(ADMIN, "write it")
        await rig.shows("Then not.", ADMIN)
        rig.telegram.say(ADMIN, "again")
        await rig.shows("rejected the request", ADMIN)
        assert second.requests == []
        assert rig.log.named("model_fell_back") == []


async def test_a_turn_by_openais_responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reasoning goes back encrypted with the tool's result, and into the next turn."""
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        rig.model.script(Think("why", write("a.txt", "one"), signature="enc"), Say("Written."))
        await rig.start(OPENAI_API_MODE="codex_responses")
        rig.telegram.say(ADMIN, "write it")
        await rig.shows("Written.", ADMIN)
        rig.telegram.say(ADMIN, "thanks")
        await rig.shows("ack thanks", ADMIN)
        await rig.quiet()
        assert (rig.workspace(ADMIN) / "a.txt").read_text() == "one"
        assert {one.path for one in rig.model.requests} == {"/v1/responses"}
        bodies = [one.raw for one in rig.model.requests]
        assert b'"encrypted_content":"enc"' in bodies[1]
        for before, after in zip(bodies, bodies[1:], strict=False):
            assert after.startswith(before[: before.rindex(b"]")])


def test_chains_as_they_stand_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "turnkeeper.toml").write_text(
        'fallback_providers = ["openai/a", "gemini/b"]\n[auxiliary]\nvision = ["gemini/c"]\n'
    )
    env = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "TURNKEEPER_HOME": str(tmp_path)}
    models = read_models(Settings.read(env, tmp_path))
    assert models.fallbacks == ("openai/a", "gemini/b")
    assert models.auxiliary == {"vision": ("gemini/c",)}


def test_no_log_may_show_a_key_of_a_list(tmp_path: Path) -> None:
    entry = '[{"name": "a", "base_url": "http://h", "api_key": ["sk-list-1", "sk-list-2"]},'
    entry += ' {"name": "b", "base_url": "http://h", "api_key": "sk-text-1, sk-text-2"}]'
    env = {"OPENAI_COMPATIBLE_PROVIDERS": entry, "FALLBACK_PROVIDERS": "a/model"}
    secrets = set(Settings.read(env, tmp_path).secrets)
    assert secrets == {"sk-list-1", "sk-list-2", "sk-text-1", "sk-text-2"}


async def test_a_key_that_was_changed_in_the_settings_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider no longer takes the old key; the new one stands in `.env` and nothing was
    restarted."""
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        env = rig.env()
        del env["OPENAI_API_KEY"]
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-old-1234567890\n")
        rig.model.key = "sk-old-1234567890"
        await rig.start(OPENAI_API_KEY="")
        rig.telegram.say(ADMIN, "hello")
        await rig.shows("ack hello", ADMIN)
        rig.model.key = "sk-new-1234567890"
        (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-new-1234567890\n")
        rig.telegram.say(ADMIN, "and now")
        await rig.shows("ack and now", ADMIN)
        await rig.telegram.wait(lambda: len(rig.model.requests) == 2, PATIENCE)
