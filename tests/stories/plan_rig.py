"""What stories with a plan share: the request, the plans, and who answers for which step."""

import asyncio
import json

from tests.fakes.model_server import Json, Say
from tests.stories.rig import PERSON, Rig

ASK = "First find the three cheapest hosts, then compare their limits, finally write a table of it."


GOOD = Say('{"ok": true}')


def plan(*steps: str | Json) -> Say:
    """A model's plan: 'id < need need: what to do', or whole steps."""
    rows = []
    for step in steps:
        if isinstance(step, dict):
            rows.append(step)
            continue
        head, _, text = step.partition(": ")
        name, _, needs = head.partition(" < ")
        row = {"id": name, "description": text, "outcome": f"{name} is right"}
        rows.append(row | {"needs": needs.split()})
    return Say(f"Here is my plan:\n```json\n{json.dumps({'steps': rows})}\n```", words=50)


CHAIN = plan("find: Find the hosts", "compare < find: Compare them", "table < compare: Write it")


def step_of(body: Json) -> str:
    """What a request of the scripted model is for: the step, or what comes beside the steps."""
    last = next(m for m in reversed(body["messages"]) if m["role"] == "user")["content"]
    for mark in ("[Planning again]", "[Planning]", "[Finishing]"):
        if mark in last:
            return mark
    if last.startswith("Step: "):
        return "check"
    return last.partition("nothing else:\n")[2].partition(":")[0]


def asked(rig: Rig) -> list[str]:
    return [step_of(request.body) for request in rig.model.requests]


async def hold(rig: Rig, text: str) -> None:
    """Say `text`; every answer of the model from now on waits for `pass_on`."""
    rig.model.gate = asyncio.Event()
    rig.telegram.say(PERSON, text)
    await rig.model.wait_inflight(1)


def pass_on(rig: Rig) -> None:
    """Let the answers go that wait now; those after them wait."""
    old, rig.model.gate = rig.model.gate, asyncio.Event()
    assert old is not None
    old.set()
