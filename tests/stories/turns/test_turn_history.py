"""The last turns of a conversation, as an operator lists them."""

import json

from gateway.ops import turn_history
from gateway.ops.control import ControlRequest, Operations
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig


async def test_the_last_turns_with_how_they_ended_and_what_they_did(rig: Rig) -> None:
    await rig.start()
    operations = Operations(store=rig.store, pairing=None)

    async def ask() -> tuple[list[str], bool]:
        question = ControlRequest(command="turns", words=(rig.where(PERSON).id,))
        answer = await operations.answer(question)
        return answer.text.splitlines(), answer.ok

    assert await ask() == (["No turn ended there."], False)
    rig.model.script(Call("read_file", json.dumps({"path": "none"})), Call("list_files"), Say("ok"))
    rig.telegram.say(PERSON, "look around")
    await rig.shows("ok")
    await rig.quiet()
    rig.telegram.say(PERSON, "again")
    await rig.shows("ack again")
    await rig.quiet()
    (first, second, both), there = await ask()
    assert there and "  done  " in first and first.endswith("2 calls, 1 failed  look around")
    assert second.endswith("0 calls, 0 failed  again")
    assert both.startswith("2 turns (2 done), median ") and both.endswith(
        "2 calls of tools, 1 failed"
    )


def test_nothing_is_an_answer_too() -> None:
    assert turn_history.describe_turns(()) == "No turn ended there."
