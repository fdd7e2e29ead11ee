"""Words of an answer that grew where people saw it, and whose turn then failed or was stopped: the
message is ended, so that no button to stop it stays there."""

import asyncio
from pathlib import Path

import pytest

from agent_core.errors import ModelFailed
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta
from gateway.views import Notice, ReplyView
from tests.fakes.lives import life
from tests.fakes.waiting import PATIENCE
from tests.fakes.world import Ledger, Life, ScriptedAgent

HALF = "Half of an ans"


class FailingAgent(ScriptedAgent):
    """Its provider breaks off in the middle of an answer, once the person has seen the half; from
    the second time on before it says a word. `dies`: the process does, in place of the first time."""

    dies = False

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        first = not self._ledger.all("model")
        self._ledger.note("model")
        if first:
            on_delta(TextDelta(text=HALF))
            async with asyncio.timeout(PATIENCE):
                while not self._is_on_record():
                    await asyncio.sleep(0.005)
            if self.dies:
                self._points.kill_at = {self._points.count + 1}
                self._points.hit("dies")
        raise ModelFailed("It is down.")

    def _is_on_record(self) -> bool:
        """The message was sent, and a commit that began behind it stands."""
        names = iter(self._points.names)
        return all(wanted in names for wanted in ("sent", "commit", "committed"))


def prepare(one: Life, *, dies: bool = False) -> None:
    one.agent = FailingAgent(one.ledger, one.points, one.folder)
    one.agent.dies = dies


async def story(one: Life) -> None:
    await one.say("m1", "hello")
    await one.until(lambda: any(isinstance(v, Notice) for v in one.screen().values()))
    await one.quiet()


def read_answers(folder: Path) -> list[ReplyView]:
    screen = Ledger(folder / "ledger.jsonl").read_screen().values()
    return [one for one in screen if isinstance(one, ReplyView)]


def test_the_half_that_was_seen_is_ended_where_the_turn_fails(tmp_path: Path) -> None:
    life(tmp_path, story, prepare)
    (answer,) = read_answers(tmp_path)
    assert (answer.text, answer.state) == (HALF, "stopped")


@pytest.mark.parametrize("stops", [False, True])
def test_what_another_life_showed_goes_where_this_one_has_no_words(
    tmp_path: Path, stops: bool
) -> None:
    assert life(tmp_path, story, lambda one: prepare(one, dies=True)) is None
    assert read_answers(tmp_path)[0].state == "streaming"

    async def stop_and_look(one: Life) -> None:
        if stops:
            await one.command("c1", "stop")
        await story(one)

    life(tmp_path, stop_and_look, prepare)
    assert not [one for one in read_answers(tmp_path) if one.state == "streaming" and one.text]
