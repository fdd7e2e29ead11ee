"""What a conversation leaves in the audit: what ran, asked and unasked, how it ended, and who changed
how things are done; no secret; and chains that hold, also after a crash."""

import json

from agent_core.guardrails.secret_shapes import MARK
from gateway.ops.stored_contents import make_contents
from gateway.services.audit_trail import AuditTrail
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig

TOKEN = "ghp_" + "a1B2" * 9


async def test_what_ran_and_what_was_changed_is_told(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.telegram.say(PERSON, "/mode ask")
    await rig.until(lambda: rig.telegram.chats[PERSON])
    write = Call("write_file", json.dumps({"path": "a.txt", "content": TOKEN}))
    rig.model.script(write, Call("list_files", "{}"), Say("there"))
    rig.telegram.say(PERSON, "write it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("there")
    await rig.quiet()
    await rig.crash()
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.model.script(Call("read_file", '{"path": "nothing.txt"}'), Say("gone"))
    rig.telegram.say(PERSON, "read it")
    await rig.shows("gone")
    await rig.quiet()
    lines = await rig.audit()
    me = f"telegram:{PERSON}"
    assert ("mode", "ask") in [(what, detail) for who, what, detail in lines if who == me]
    ran = [detail for _, what, detail in lines if what == "ran"]
    assert ["write_file" in ran[0], "approved" in ran[0]] == [True, True]
    assert ["list_files" in ran[1], "unasked" in ran[1]] == [True, True]
    assert "read_file" in ran[2] and "failed" in ran[2]
    assert not any(TOKEN in detail for *_, detail in lines)
    assert any(MARK in detail for _, what, detail in lines if what in ("asked", "ran"))
    trail = AuditTrail(rig.host.services.signer, make_contents(rig.store), rig.store, "me")
    report = await trail.verify()
    assert report.flaws == () and report.lines == len(lines)
