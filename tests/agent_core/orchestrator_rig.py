"""An agent whose model is a script, over records in memory."""

import json
from pathlib import Path

from agent_core.journal import Emitted, Journal
from agent_core.messages import Message, Text, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta
from agent_core.orchestration.brief import Brief, Hands, TurnResult
from agent_core.orchestration.drive import drive
from agent_core.orchestration.orchestrator import work
from agent_core.policy import Verdict
from agent_core.scope import Scope, Turn
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.scope_rig import Disk

STEPS = [
    {"id": "a", "description": "find", "outcome": "found"},
    {"id": "b", "description": "look", "outcome": "seen", "needs": ["a"]},
    {"id": "c", "description": "count", "outcome": "counted", "needs": ["a"]},
]


YES = '{"ok": true}'


def plan(steps: object = STEPS) -> str:
    return json.dumps({"steps": steps})


class TurnRig:
    """One life: a model that answers from a table, and who watches."""

    def __init__(self, folder: Path, **answers: str | Exception) -> None:
        self.answers: dict[str, str | Exception] = {"plan": plan(), "check": YES} | answers
        self.asked: list[str] = []
        self.requests: list[ModelRequest] = []
        self.streamed = ""
        self.brief = Brief(
            text="first this, then that", system="s", model="pro", tools=(),
            workspace=str(folder), route="planned", cache_key="k",
        )  # fmt: skip
        self.hands = Hands(
            complete=self.complete, toolbox=Toolbox(()), live=lambda event: None,
            judge=lambda item: Verdict(ruling="allow", rule="", reason=""),
        )  # fmt: skip

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        what = purpose(request)
        self.asked.append(what)
        self.requests.append(request)
        answer = self.answers.get(what, self.answers.get(what.partition(" ")[0], f"{what} done"))
        if isinstance(answer, Exception):
            raise answer
        on_delta(TextDelta(text=answer))
        return ModelReply(parts=(Text(text=answer),), model="m", provider="p")

    def live(self, event: object) -> None:
        self.streamed += getattr(event, "text", "")

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return ()

    async def run(self, disk: Disk) -> TurnResult:
        turn = Turn("t", Journal(list(disk.records), disk.write), self)

        async def code(scope: Scope, past: tuple[Message, ...]) -> TurnResult:
            return await work(scope, self.brief, self.hands, (), past)

        result = await drive(turn, code)
        await turn.journal.barrier()
        return result


def purpose(request: ModelRequest) -> str:
    last = text_of(request.messages[-1])
    if last.startswith("Step: "):
        return f"check {last.splitlines()[0][6:]}"
    marks = {"[Planning]": "plan", "[Planning again]": "replan", "[Finishing]": "final"}
    found = [name for mark, name in marks.items() if mark in last]
    return found[0] if found else last.partition("nothing else:\n")[2].partition(":")[0] or last


def events(disk: Disk, kind: type) -> list[object]:
    return [r.event for r in disk.records if isinstance(r, Emitted) and isinstance(r.event, kind)]
