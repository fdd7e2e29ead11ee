"""A person is erased from both stores and from the folder: no byte of what they wrote is left, and
what others wrote is."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from agent_core.journal import Noted
from agent_core.messages import user
from agent_core.questions import Decision
from gateway.access.access import Accounts, Identity, LetIn
from gateway.jobs_port import Job
from gateway.messages import Conversation, MessageReceived, Quote, Sender
from gateway.ops.stored_contents import make_trail
from gateway.ops.upkeep import StoreUpkeep
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.rows import (
    AuditRow,
    Changes,
    ConversationRow,
    Letter,
    RecordRow,
    TurnStatus,
)
from gateway.store.statements import encode
from gateway.views import ReplyView
from tests.contracts.conftest import RedisWorld, SqliteWorld
from tests.contracts.store_values import START, place, question, spoken, turn, view

NONCE = "zq-secret-7731-ö"
SAID = f'my word is {NONCE} and "more"'
OTHER = "what Bob wrote stays here"
ADA, ADA2 = Sender(platform="test", id="ada", name="Ada"), Sender(platform="web", id="ada2")
BOB = Sender(platform="test", id="bob", name="Bob")
GROUP = place("crowd")


def say(
    sender: Sender, where: Conversation, text: str, n: str, quote: Quote | None = None
) -> MessageReceived:
    return MessageReceived(
        conversation=where, sender=sender, event=f"e{n}", message=f"m{n}", text=text, reply_to=quote
    )


async def take_turn(
    store: Store, said: MessageReceived, name: str, n: int, status: TurnStatus = "done"
) -> None:
    """A turn of `said`, with what it leaves everywhere."""
    (kept,) = await store.accept([said])
    opened = await store.acquire(said.conversation.id, "me", 30)
    assert opened is not None
    text = said.text if said.reply_to is None else f"> {said.reply_to.text}\n{said.text}"
    begun = replace(
        turn(name, status),
        sender=said.sender.key,
        sender_name=said.sender.name,
        text=said.text[:60],
    )
    noted = RecordRow(turn=name, n=0, record=Noted(key="k", value=encode_raw(text)))
    shown = replace(view("reply", n + 1), turn=name, view=ReplyView(text=f"you said: {text}"))
    asked = replace(question(f"q-{name}"), turn=name, question=Decision(text=text, options=("a",)))
    entry = replace(
        spoken(n),
        turn=name,
        person=said.sender.key,
        messages=(user(f"{said.sender.name}: {text}"),),
    )
    changes = Changes(
        turns=(begun,), records=(noted,), views=(shown,), transcript=(entry,), done=(kept.seq,),
        questions=(asked,) if status == "parked" else (),
        row=ConversationRow(end=n + 1, shows=((0, n + 1),), title=said.text[:30]),
        audit=(AuditRow(at=START + n, who=said.sender.key, what="allowed", detail=text),),
    )  # fmt: skip
    assert await store.release(opened.lease, kept.seq, changes)


def encode_raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(encode(text))


async def talk(store: Store, home: Path) -> None:
    """Ada alone and with Bob; what she left elsewhere."""
    own = replace(place("home"), private=True)
    linked = replace(place("page"), platform="web", private=True)
    bobs = replace(place("bobs"), private=True)
    await take_turn(store, say(ADA, own, SAID, "1"), "t1", 0)
    await take_turn(store, say(ADA, own, SAID, "2"), "t2", 1, "parked")
    await take_turn(store, say(ADA2, linked, SAID, "3"), "t3", 0)
    await take_turn(store, say(BOB, bobs, OTHER, "4"), "t4", 0)
    await take_turn(store, say(ADA, GROUP, SAID, "5"), "t5", 0)
    quote = Quote(message="m5", author="Ada", text=SAID)
    await take_turn(store, say(BOB, GROUP, OTHER, "6", quote), "t6", 1)
    await take_turn(store, say(ADA, GROUP, SAID, "7"), "t7", 2, "parked")
    await store.accept([say(ADA, GROUP, SAID, "8"), say(BOB, GROUP, OTHER + " too", "9", quote)])
    await store.keep_letter(
        Letter(id="l1", kind="message", conversation=GROUP.id, name="0", at=START, why="test",
               payload=encode(say(ADA, GROUP, SAID, "10")))
    )  # fmt: skip
    for key, body in {
        "memory:own:test:ada": f'{{"memory":["{NONCE}"]}}'.encode(),
        "memory:own:web:ada2": f'{{"memory":["{NONCE}"]}}'.encode(),
        "memory:own:test:bob": b'{"memory":["likes tea"]}',
        "person:test:ada": encode(LetIn(role="user", name=NONCE, by="x", at=START)),
        "identity:test:ada": encode(Identity(person="p1")),
        "identity:web:ada2": encode(Identity(person="p1")),
        "accounts:p1": encode(Accounts(keys=(ADA.key, ADA2.key))),
        "zone:test:ada": NONCE.encode(),
        "sessions:web:ada2": f'[{{"id":"s","device":"{NONCE}","began":0,"expires":0}}]'.encode(),
    }.items():
        await store.put(key, body)
    job = Job(id="j1", owner=ADA, conversation=GROUP.id, title=NONCE, prompt=SAID,
              schedule="* * * * *", zone="UTC", version="1")  # fmt: skip
    assert await make_jobs(store).commit(None, job, ())
    upload = home / "uploads" / "ada2" / "s" / "notes.txt"
    upload.parent.mkdir(parents=True)
    upload.write_text(SAID)


async def read_everything(world: SqliteWorld | RedisWorld, home: Path) -> bytes:
    found = b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())
    if isinstance(world, RedisWorld):
        async with Redis.from_url(world.server.url, protocol=2) as client:
            async for name in client.scan_iter():
                found += name + (await client.dump(name) or b"")
                match await client.type(name):
                    case b"hash":
                        found += b"".join(b"".join(p) for p in (await client.hgetall(name)).items())
                    case b"zset":
                        found += b"".join(await client.zrange(name, 0, -1))
    return found


@pytest.mark.parametrize("old", [False, True])
async def test_nothing_of_them_is_left_and_all_of_the_others(
    world: SqliteWorld | RedisWorld, tmp_path: Path, old: bool
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    if old:
        await world.store.put("retention:since", None)
    await talk(world.store, tmp_path)
    assert NONCE.encode() in await read_everything(world, tmp_path)
    lines: list[str] = []
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        "web:ada2", lines.append
    )
    assert said.startswith("2 conversations") and lines

    left = await read_everything(world, tmp_path)
    assert NONCE.encode() not in left and SAID.encode() not in left
    assert OTHER.encode() in left and b"likes tea" in left
    store = world.store
    entries = await store.newest(GROUP.id, 10)
    assert [bool(entry.messages) for entry in entries] == [False, True, False]
    opened = await store.acquire(GROUP.id, "me", 30)
    assert opened is not None
    assert not opened.turns and not opened.questions and not opened.damaged
    assert [row.inbound.text for row in opened.inbox] == [OTHER + " too"]  # type: ignore[union-attr]
    assert not await make_jobs(store).list_jobs()
    kept = {key for key in await store.keys("") if not key.startswith("audit-")}
    assert kept <= {"memory:own:test:bob", "retention:since"}
    audit = await store.audit(20)
    assert [line.what for line in audit].count("allowed") == 7
    erased = next(line for line in audit if line.what == "erased")
    assert "2 conversations" in erased.detail and "ada" not in erased.detail
    trail = make_trail(settings, store)
    flaws = {flaw.kind for flaw in (await trail.verify()).flaws}
    assert flaws <= {"foreign"}, "the lines of this test have no signature"
    again = await StoreUpkeep(settings, store, trail).erase("test:ada", lines.append)
    assert again.startswith("0 conversations")
    await store.give_back(opened.lease)


async def test_what_another_process_holds_is_named_and_left(
    world: SqliteWorld | RedisWorld, tmp_path: Path
) -> None:
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    own = replace(place("home"), private=True)
    await take_turn(world.store, say(ADA, own, SAID, "1"), "t1", 0)
    assert await world.store.acquire(own.id, "other", 30) is not None
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        ADA.key, lambda text: None
    )
    assert own.id in said and "0 conversations" in said
    world.clock.time += 31
    said = await StoreUpkeep(settings, world.store, make_trail(settings, world.store)).erase(
        ADA.key, lambda text: None
    )
    assert "1 conversations" in said
