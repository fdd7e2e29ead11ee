"""A LangGraph graph as a skill, through the whole gateway: its calls are lines and cards as all are, and
it goes on where it was after a crash."""

import json

from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig, write

REACTS = "tests.fakes.graphs:load_react"


async def test_a_graph_waits_for_a_person_and_goes_on_after_a_crash(rig: Rig) -> None:
    invoke = Call("invoke_skill", json.dumps({"skill_id": "reacts", "params": {"what": "Note it"}}))
    rig.model.script(
        invoke,
        write("note.txt", "tea"),
        Call("read_file", json.dumps({"path": "note.txt"})),
        Say("It says tea."),
        Say("The graph is done."),
    )
    settings = {"SKILLS": REACTS, "PERMISSION_ASK_ALL": "on"}
    await rig.start(**settings)
    rig.telegram.say(PERSON, "let the graph do it")
    rig.press(await rig.card(), "Approve once")
    await rig.telegram.wait(lambda: any("note.txt" in card["text"] for card in rig.cards()))
    assert len(rig.model.requests) == 2 and not (rig.workspace() / "note.txt").exists()
    await rig.crash()
    await rig.start(**settings)
    rig.press(await rig.card(), "Approve once")
    await rig.telegram.wait(lambda: any("Read a file" in card["text"] for card in rig.cards()))
    rig.press(await rig.card(), "Approve once")
    await rig.shows("The graph is done.")
    await rig.quiet()
    assert (rig.workspace() / "note.txt").read_text() == "tea"
    assert len(rig.model.requests) == 5, "no answer was asked for again"
    assert json.loads(rig.seen(role="tool")[-1]) == {"done": "It says tea."}
