"""A planned turn that lives through kills: its agent, its story, and what is looked at."""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.messages import Message, Text, ToolCall, ToolResult, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from tests.fakes.world import Life, ScriptedAgent
from tests.stories.kills_rig import approve_and_wait

FIRST = {
    "s1": ("note", ()),
    "s2": ("look add", ("s1",)),
    "s3": ("deploy", ("s1",)),
    "s4": ("look", ("s2", "s3")),
}


SECOND = {"s5": ("add", ("s1",)), "s4": ("look", ("s5", "s3"))}


def written(steps: dict[str, tuple[str, tuple[str, ...]]]) -> str:
    rows = [
        {"id": name, "description": words, "outcome": f"{name} is right", "needs": needs}
        for name, (words, needs) in steps.items()
    ]
    return json.dumps({"steps": rows})


class PlannedAgent(ScriptedAgent):
    """Plans every turn. Step s2 fails its check; its tools' names are the steps' words."""

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), route="planned")

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self._ledger.note("thought", of=purpose(request.messages), n=len(request.messages))
        return await super().complete(name, request, on_delta)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        match purpose(messages).split("/"):
            case ["plan"]:
                return [Text(text=written(FIRST))]
            case ["replan"]:
                return [Text(text=written(SECOND))]
            case ["check", words]:
                return [Text(text=json.dumps({"ok": words != "look add", "why": "wrong"}))]
            case ["final"]:
                return [Text(text="all is done")]
            case [step, "0"]:
                words = (FIRST | SECOND)[step][0].split()
                return [
                    ToolCall(id=f"{step}-{n}", name=word, arguments=json.dumps({"text": word}))
                    for n, word in enumerate(words)
                ]
            case [step, _]:
                gave = [p.content for p in messages[-1].parts if isinstance(p, ToolResult)]
                return [Text(text=f"{step} gave {'; '.join(gave)}")]
        raise AssertionError(messages[-1])


def purpose(messages: Sequence[Message]) -> str:
    """What a call of the model is for: `plan`, `check/…`, `s1/0` (its round), `final`."""
    at = max(n for n, m in enumerate(messages) if m.role == "user")
    last = text_of(messages[at])
    for mark, name in (
        ("[Planning again]", "replan"), ("[Planning]", "plan"), ("[Finishing]", "final"),
    ):  # fmt: skip
        if mark in last:
            return name
    if last.startswith("Step: "):
        return f"check/{last.splitlines()[0][6:]}"
    return f"{last.partition('nothing else:')[2].split(':')[0].strip()}/{len(messages) - 1 - at}"


async def story(life: Life, rows: int = 1) -> None:
    await approve_and_wait(life, "plan this", rows)
