"""Secret files, through the real gateway and a sandbox: nothing reads them unasked."""

import json

import pytest

from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.rig import ADMIN, Rig

VALUE = "tok-91c7ae"
TRIES = {
    "run_command": {"command": "cat * .[a-z]*; grep -r '' ."},
    "bash": {"command": "head .e*"},
    "python_execute": {"code": "import glob\nfor n in glob.glob('.e*'): print(open(n).read())"},
    "execute_script": {"code": "from turnkeeper import *\nprint(run_command('cat .e*'))"},
}


@pytest.mark.pick
@NEEDS_BWRAP
@pytest.mark.parametrize("tool", TRIES)
async def test_they_are_read_after_a_press_alone(rig: Rig, tool: str) -> None:
    named = Call("run_command", json.dumps({"command": "cat .env"}))
    unnamed = Call(tool, json.dumps(TRIES[tool]))
    rig.model.script(unnamed, Say("Nothing to see."), named, Say("There it is."))
    await rig.start(SANDBOX_PROVIDER="bwrap")
    workspace = rig.workspace(ADMIN)
    workspace.mkdir(parents=True)
    (workspace / ".env").write_text(f"KEY={VALUE}\n")
    rig.telegram.say(ADMIN, "look around")
    await rig.shows("Nothing to see.", ADMIN)
    assert not any("May this run?" in text for text in rig.said(ADMIN)), "nobody is asked"
    assert not any(VALUE in str(one) for one in rig.seen(role="tool"))
    await rig.quiet()
    rig.telegram.say(ADMIN, "read it then")
    card = await rig.card(ADMIN)
    assert "secret file" in card["text"]
    rig.press(card, "Approve once", ADMIN)
    await rig.shows("There it is.", ADMIN)
    assert VALUE in rig.seen(role="tool")[-1]
