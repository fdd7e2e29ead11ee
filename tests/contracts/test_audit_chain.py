"""Whatever somebody does to the audit behind our back is found, in both stores, and nothing that
the gateway does itself is taken for that: retention, erasure, removed conversations, restarts."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.ops.audit_report import describe_report, read_since
from gateway.ops.lock import read_audit_keys
from gateway.ops.stored_contents import make_contents, make_removal
from gateway.services.audit_trail import AuditTrail
from gateway.store.audit_chain import AuditSigner, ChainCheck, ChainReport
from gateway.store.port import Store
from gateway.store.rows import AuditRow, ChainEnd, Changes, ConversationRow
from tests.contracts.conftest import RedisWorld, SqliteWorld
from tests.contracts.store_values import START, place, said
from tests.sampling import examples

SIGNER = AuditSigner(("a key of the tests", "an older one"))
World = SqliteWorld | RedisWorld


@pytest.fixture(params=["sqlite_world", "redis_world"])
def world(request: pytest.FixtureRequest) -> World:
    return cast("World", request.getfixturevalue(request.param))


def line(n: int, who: str = "test:ann", where: str = "test/a/room") -> AuditRow:
    return AuditRow(at=START + n, who=who, what="ran", detail=f"detail {n} of {who}", where=where)


# ---- the chain itself ------------------------------------------------------------------------


Kept = tuple[list[AuditRow], dict[str, ChainEnd], list[tuple[str, ChainEnd]]]


def keep_audit(sizes: list[int], dropped: list[int], erased: frozenset[int]) -> Kept:
    """The lines of chains of these sizes in turns, some dropped as retention does, those of the
    persons `erased` without words; begins and ends."""
    chains, begins, ends = [], {}, []
    for number, size in enumerate(sizes):
        end, lines = None, []
        for n in range(size):
            (one,), end = SIGNER.link(end, [line(n, f"test:{n % 3}", f"test/a/{number}")])
            lines.append(one)
        assert end is not None
        gone = min(dropped[number % len(dropped)], size - 1)
        if gone:
            last = lines[gone - 1]
            begins[last.chain] = SIGNER.seal("begin", last.chain, last.n, last.mac)
        chains.append(lines[gone:])
        ends.append((f"test/a/{number}", end))
    longest = max(map(len, chains))
    turns = (one for n in range(longest) for one in (chain[n : n + 1] for chain in chains))
    stored = [
        SIGNER.erase(one, who="(erased)", where=one.where, detail="(erased)")
        if any(one.who == f"test:{person}" for person in erased)
        else one
        for several in turns
        for one in several
    ]
    return stored, begins, ends


def check(lines: list[AuditRow], begins: dict[str, ChainEnd], ends: list) -> ChainReport:
    found = ChainCheck(SIGNER, begins)
    for one in lines:
        found.add(one)
    return found.finish(ends)


HISTORIES = st.tuples(
    st.lists(st.integers(2, 7), min_size=1, max_size=3),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.frozensets(st.integers(0, 2), max_size=2),
)


@settings(max_examples=examples(60), deadline=None)
@given(HISTORIES)
def test_what_the_gateway_does_itself_is_no_flaw(
    history: tuple[list[int], list[int], frozenset[int]],
) -> None:
    lines, begins, ends = keep_audit(*history)
    report = check(lines, begins, ends)
    assert report.flaws == () and report.lines == len(lines), describe_report(report)


TRICKS = ("cut", "drop", "who", "what", "detail", "where", "at", "double", "forge", "swap", "bare",
          "end", "begin", "blank", "splice")  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(HISTORIES, st.sampled_from(TRICKS), st.integers(0, 100))
def test_whatever_is_done_behind_our_back_is_found(
    history: tuple[list[int], list[int], frozenset[int]], trick: str, pick: int
) -> None:
    lines, begins, ends = keep_audit(*history)
    n = pick % len(lines)
    one = lines[n]
    match trick:
        case "cut":  # the last line of a chain, and the note of its end set back
            chain = [line for line in lines if line.chain == one.chain]
            lines.remove(chain[-1])
            before = chain[-2] if len(chain) > 1 else chain[-1]
            ends = [
                (where, replace(end, n=before.n, mac=before.mac) if end.chain == one.chain else end)
                for where, end in ends
            ]
        case "drop":
            lines.remove(one)
        case "who" | "what" | "detail" | "where":
            lines[n] = replace(one, **{trick: "somebody else"})
        case "at":
            lines[n] = replace(one, at=one.at - 1)
        case "double":
            lines.append(one)
        case "forge":
            other = AuditSigner(("a key of somebody else",))
            lines[n] = replace(other.link(None, [one])[0][0], chain=one.chain, n=one.n)
        case "swap":
            twin = next(
                (other for other in lines if other.chain == one.chain and other != one), None
            )
            if twin is None:
                lines.remove(one)
            else:
                at = lines.index(twin)
                lines[n] = replace(twin, n=one.n)
                lines[at] = replace(one, n=twin.n)
        case "bare":  # as if it were older than the chains
            lines[n] = AuditRow(at=one.at, who="x", what="x", detail="x")
        case "end":
            ends = ends[1:]
        case "begin":
            if not begins:
                return
            begins = {}
        case "blank":  # as erasure would, without the key
            lines[n] = replace(one, detail="", salt="", erased=None)
        case "splice":  # the words of another line of the same chain
            other = next(
                (o for o in lines if o.chain == one.chain and o.detail != one.detail), None
            )
            if other is None:
                return
            lines[n] = replace(one, detail=other.detail, salt=other.salt)
    assert check(lines, begins, ends).flaws, trick


def test_an_older_key_still_counts_and_an_unknown_one_is_named() -> None:
    old = AuditSigner(("an older one",))
    (first,), end = old.link(None, [line(1)])
    (second,), end = SIGNER.link(end, [line(2)])
    assert not check([first, second], {}, [("", end)]).flaws
    stranger = ChainCheck(AuditSigner(("a key of the tests",)), {})
    for one in (first, second):
        stranger.add(one)
    (flaw,) = stranger.finish([("", end)]).flaws
    assert flaw.kind == "unknown_key"


def test_the_key_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    keys = read_audit_keys(tmp_path, ())
    assert keys == read_audit_keys(tmp_path, ()) and len(keys[0]) >= 32
    assert (tmp_path / "audit.key").stat().st_mode & 0o077 == 0
    assert read_audit_keys(tmp_path, ("given by a setting",)) == ("given by a setting", *keys)


@pytest.mark.parametrize("text", ["yesterday", "7", "7y", "2026-13-01"])
def test_a_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2026-11-20"):
        read_since(text)


# ---- in the stores ---------------------------------------------------------------------------


async def write(store: Store, name: str, count: int) -> None:
    """A conversation at rest with a chain of so many lines."""
    own = replace(place(name), private=True)
    (kept,) = await store.accept([replace(said(f"{name}-0", name), conversation=own)])
    opened = await store.acquire(own.id, "me", 30)
    assert opened is not None
    end = None
    for n in range(count):
        lines, end = SIGNER.link(end, [line(n, where=own.id)])
        await store.submit(opened.lease, Changes(audit=lines, row=ConversationRow(audited=end)))
    assert await store.release(opened.lease, kept.seq, Changes(done=(kept.seq,)))


async def test_both_stores_keep_the_chains(world: World) -> None:
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    await write(world.store, "one", 12)
    await write(world.store, "two", 3)
    await trail.note("machine", "secret_set", "TOKEN")
    again = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    await asyncio.gather(*(again.note("machine", "linked", str(n)) for n in range(5)))
    report = await again.verify()
    assert (report.flaws, report.lines, report.chains) == ((), 21, 3)
    contents = make_contents(world.store)

    def change(body: bytes) -> bytes:
        found = msgspec.json.decode(body, type=AuditRow)
        return body.replace(b"detail 5", b"detail 7") if "one" in found.where else body

    assert await contents.edit_audit(change) == 1
    (flaw,) = (await trail.verify()).flaws
    assert flaw.kind == "changed" and flaw.first == 6


async def test_lines_of_commits_that_are_under_way_together_stand_once(world: World) -> None:
    own = replace(place("many"), private=True)
    (kept,) = await world.store.accept([replace(said("many-0", "many"), conversation=own)])
    opened = await world.store.acquire(own.id, "me", 30)
    assert opened is not None
    end, under_way = None, []
    for n in range(40):
        lines, end = SIGNER.link(end, [line(n, where=own.id)] * (1 + n % 2))
        row = ConversationRow(audited=end)
        under_way.append(world.store.submit(opened.lease, Changes(audit=lines, row=row)))
        if n % 7 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*under_way)
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    report = await trail.verify()
    assert (report.flaws, report.lines) == ((), 60)
    assert await world.store.release(opened.lease, kept.seq, Changes(done=(kept.seq,)))
    await write(world.store, "other", 1)
    assert len(await list_bodies(world.store)) == 61


async def test_retention_and_removal_leave_chains_that_hold(world: World) -> None:
    removal, contents = make_removal(world.store), make_contents(world.store)
    trail = AuditTrail(SIGNER, contents, world.store, "me")
    await write(world.store, "one", 6)
    await write(world.store, "two", 4)
    assert not await removal.drop_audit(START + 3, partial(trail.mark_dropped, START + 3))
    report = await trail.verify()
    assert report.flaws == () and report.lines == 4
    name = replace(place("two"), private=True).id
    assert await removal.begin(name, None)
    await trail.close(name)
    while await removal.remove_piece(name):
        continue
    assert (await trail.verify()).flaws == ()
    dropped: list[bytes] = []

    async def forget(bodies: Sequence[bytes]) -> Sequence[bytes]:
        dropped.extend(bodies)
        return bodies

    assert not await removal.drop_audit(START + 4, forget), "by somebody without the key"
    assert dropped and {flaw.kind for flaw in (await trail.verify()).flaws} >= {"missing"}


# ---- behind retention's back -----------------------------------------------------------------


async def list_bodies(store: Store) -> list[bytes]:
    return [body async for bodies in make_contents(store).read_audit() for body in bodies]


def read_line(body: bytes) -> AuditRow:
    return msgspec.json.decode(body, type=AuditRow)


async def put_line(world: World, at: float, body: bytes) -> None:
    """Straight into the store, as one would who can write it."""
    if isinstance(world, SqliteWorld):
        sql = "INSERT INTO audit(at, body) VALUES(?, ?)"
        await world.store.write(lambda c: c.execute(sql, (at, body)))
    else:
        member = b" ".join((read_line(body).where.encode(), b"x.1", body))
        await world.store.call(("ZADD", "tk:audit", at, member))


async def take_line(world: World, body: bytes) -> None:
    if isinstance(world, SqliteWorld):
        await world.store.write(lambda c: c.execute("DELETE FROM audit WHERE body = ?", (body,)))
        return
    (found,) = await world.store.call(("ZRANGE", "tk:audit", 0, -1))
    gone = [one for one in cast("list[bytes]", found) if one.split(b" ", 2)[2] == body]
    await world.store.call(("ZREM", "tk:audit", *gone))


class Killed(Exception):
    """The process ended here."""


OLD = 4
"""Lines of a chain that are old enough to be dropped."""


@pytest.fixture
def trail(world: World) -> AuditTrail:
    return AuditTrail(SIGNER, make_contents(world.store), world.store, "me")


async def drop(
    world: World, trail: AuditTrail, old: float = START + OLD, cut: bool = False
) -> None:
    async def mark(bodies: Sequence[bytes]) -> Collection[bytes]:
        go = await trail.mark_dropped(old, bodies)
        if cut:
            raise Killed
        return go

    while await make_removal(world.store).drop_audit(old, mark):
        continue


async def test_a_drop_that_was_cut_off_is_no_flaw_whatever_goes_next(
    world: World, trail: AuditTrail
) -> None:
    for name in ("one", "two"):
        await write(world.store, name, 9)
    for old in (2, OLD):
        for _ in range(2):
            with pytest.raises(Killed):
                await drop(world, trail, START + old, cut=True)
            assert (await trail.verify()).flaws == ()
    await drop(world, trail)
    assert (await trail.verify()).flaws == ()
    assert len(await list_bodies(world.store)) == 2 * (9 - OLD)
    await drop(world, trail, START + 100)
    assert await list_bodies(world.store) == [] and (await trail.verify()).flaws == ()


@pytest.mark.parametrize("cut", [False, True], ids=["dropped", "cut off"])
@pytest.mark.parametrize("key", ["ours", "another"])
async def test_a_line_that_is_put_where_old_ones_were_is_found(
    world: World, trail: AuditTrail, key: str, cut: bool
) -> None:
    await write(world.store, "one", 9)
    lines = [read_line(body) for body in await list_bodies(world.store)]
    if cut:
        with pytest.raises(Killed):
            await drop(world, trail, cut=True)
        await take_line(world, msgspec.json.encode(lines[1]))
    else:
        await drop(world, trail)
    forged = replace(lines[1], detail="what nobody did")
    if key == "another":
        (made,), _ = AuditSigner(("a key of somebody else",)).link(None, [forged])
        forged = replace(made, chain=lines[1].chain, n=2)
    await put_line(world, forged.at, msgspec.json.encode(forged))
    assert "changed" in {flaw.kind for flaw in (await trail.verify()).flaws}


async def make_young_old(world: World, body: bytes, *, inside: bool) -> None:
    """Have retention take a young line for an old one."""
    line = read_line(body)
    await take_line(world, body)
    told = msgspec.json.encode(replace(line, at=1.0)) if inside else body
    await put_line(world, 1.0, told)


@pytest.mark.parametrize("inside", [False, True], ids=["in its place", "in its words too"])
@pytest.mark.parametrize("picked", [(8,), (6, 7, 8), (0, 5), tuple(range(9))], ids=str)
async def test_retention_seals_no_line_as_dropped_that_was_made_old(
    world: World, trail: AuditTrail, picked: tuple[int, ...], inside: bool
) -> None:
    await write(world.store, "one", 9)
    before = await list_bodies(world.store)
    for n in picked:
        await make_young_old(world, before[n], inside=inside)
    await drop(world, trail, START - 1)
    flaws = (await trail.verify()).flaws
    left = {read_line(body).n for body in await list_bodies(world.store)}
    assert bool(flaws) == inside, describe_report(await trail.verify())
    assert inside or left == set(range(1, 10)), "what is young by its words stays"


async def test_lines_that_two_clocks_signed_go_one_after_the_other(
    world: World, trail: AuditTrail
) -> None:
    """The third line is older than the second: another replica, whose clock is behind, wrote it."""
    end, own = None, replace(place("one"), private=True)
    (kept,) = await world.store.accept([replace(said("one-0", "one"), conversation=own)])
    opened = await world.store.acquire(own.id, "me", 30)
    assert opened is not None
    for n in (0, 3, 1, 4, 2, 5):
        lines, end = SIGNER.link(end, [line(n, where=own.id)])
        await world.store.submit(
            opened.lease, Changes(audit=lines, row=ConversationRow(audited=end))
        )
    assert await world.store.release(opened.lease, kept.seq, Changes(done=(kept.seq,)))
    for old in range(1, 8):
        await drop(world, trail, START + old)
        assert (await trail.verify()).flaws == (), old
    assert await list_bodies(world.store) == []


async def remove_behind(world: World, name: str, lines: bool) -> None:
    """Somebody deletes a conversation's rows and, if `lines`, its audit lines, and says nothing."""
    removal = make_removal(world.store)
    where = replace(place(name), private=True).id

    async def mark(bodies: Sequence[bytes]) -> frozenset[bytes]:
        decoded = {body: msgspec.json.decode(body, type=AuditRow) for body in bodies}
        return frozenset(body for body, one in decoded.items() if one.where == where)

    assert await removal.begin(where, None)
    while await removal.remove_piece(where):
        continue
    while lines and await removal.drop_audit(START + 99, mark):
        continue


@pytest.mark.parametrize("before", [0, 2])
async def test_a_conversation_that_is_deleted_with_its_lines_is_found(
    world: World, before: int
) -> None:
    """`before`: lines of it that retention had dropped."""
    removal = make_removal(world.store)
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    await write(world.store, "one", 5)
    await write(world.store, "two", 4)
    await trail.note("machine", "linked", "x")
    await removal.drop_audit(START + before, partial(trail.mark_dropped, START + before))
    assert (await trail.verify()).flaws == ()
    await remove_behind(world, "one", lines=True)
    report = await trail.verify()
    (flaw,) = report.flaws
    assert (flaw.kind, flaw.first, flaw.last) == ("gone", before + 1, 5)
    assert "was deleted, with the conversation itself" in describe_report(report)


async def test_what_is_removed_as_it_should_be_leaves_nothing_to_find(world: World) -> None:
    removal = make_removal(world.store)
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    for name, first in (("one", "lines"), ("two", "conversation")):
        await write(world.store, name, 3)
        if first == "conversation":
            await trail.close(replace(place(name), private=True).id)
            await remove_behind(world, name, lines=False)
        while await removal.drop_audit(START + 99, partial(trail.mark_dropped, START + 99)):
            continue
        assert (await trail.verify()).flaws == ()
        if first == "lines":
            await trail.close(replace(place(name), private=True).id)
            await remove_behind(world, name, lines=False)
        assert (await trail.verify()).flaws == ()
    assert await world.store.keys("audit-") == ()


async def test_an_end_that_is_put_back_with_its_lines_is_found(world: World) -> None:
    """Row and lines are those of a moment ago; the note elsewhere knows more."""
    trail = AuditTrail(SIGNER, make_contents(world.store), world.store, "me")
    await write(world.store, "one", 3)
    (name,) = await world.store.keys("audit-chain:")
    note = msgspec.json.decode(await world.store.get(name) or b"", type=ChainEnd)
    longer = SIGNER.seal("end", note.chain, note.n + 2, note.mac)
    await world.store.put(name, msgspec.json.encode(longer))
    (flaw,) = (await trail.verify()).flaws
    assert (flaw.kind, flaw.first, flaw.last) == ("cut", 4, 5)
