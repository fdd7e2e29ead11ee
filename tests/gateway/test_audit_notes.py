"""What is done beside conversations stands in the audit: who was let in and put out, whose accounts
were linked and parted, who signed in at the page."""

from collections.abc import Sequence
from pathlib import Path

from adapters.web.sessions import SessionBook
from gateway.access.access import Access, AllowLists
from gateway.access.linking import DirectoryLinking
from gateway.access.pairing import DirectoryPairing
from gateway.messages import Inbound, Sender
from gateway.ops.stored_contents import make_contents
from gateway.services.audit_trail import AuditTrail
from gateway.store.audit_chain import AuditSigner
from gateway.store.rows import AuditRow
from gateway.store.sqlite import SqliteStore

ADMIN = Sender(platform="telegram", id="1", name="Ada")
EVE = Sender(platform="telegram", id="66", name="Eve")


async def test_who_came_in_and_who_went_is_told(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.db")
    trail = AuditTrail(AuditSigner(("key",)), make_contents(store), store, "me")
    lists = Access({"telegram": AllowLists(admins=frozenset({"1"}))}, {})

    async def accept(inbounds: Sequence[Inbound]) -> None:
        """News go nowhere here."""

    pairing = DirectoryPairing(store, lists, accept, trail.note)
    await pairing.enter("WRONGONE", ADMIN.key, "")
    await pairing.enter(await pairing.code_for(EVE), ADMIN.key, "")
    await pairing.put_out(EVE.key, ADMIN.key, "")
    await pairing.put_out(EVE.key, ADMIN.key, "")
    linking = DirectoryLinking(store, trail.note)
    await linking.enter(await linking.code_for(EVE), ADMIN)
    await linking.leave(ADMIN)
    book = SessionBook(store, trail.note)
    session = await book.begin("ada", "Firefox, Linux", 60)
    await book.end("ada", "another")
    await book.end("ada", session.id)
    lines: list[AuditRow] = []
    await trail.read(lines.append)
    assert [(line.who, line.what, line.detail) for line in lines[:3]] == [
        (ADMIN.key, "paired", f"{EVE.key} user"),
        (ADMIN.key, "put_out", EVE.key),
        (ADMIN.key, "linked", EVE.key),
    ]
    assert [(line.who, line.what) for line in lines[3:]] == [
        (ADMIN.key, "parted"),
        ("web:ada", "signed_in"),
        ("web:ada", "session_ended"),
    ]
    assert (await trail.verify()).flaws == ()
    await store.close()
