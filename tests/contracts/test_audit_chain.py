"""Whatever somebody does to the audit behind our back is found, in both stores, and nothing that
the gateway does itself is taken for that: retention, erasure, removed conversations, restarts."""

import asyncio
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


async def test_retention_and_removal_leave_chains_that_hold(world: World) -> None:
    removal, contents = make_removal(world.store), make_contents(world.store)
    trail = AuditTrail(SIGNER, contents, world.store, "me")
    await write(world.store, "one", 6)
    await write(world.store, "two", 4)
    assert not await removal.drop_audit(START + 3, trail.mark_dropped)
    report = await trail.verify()
    assert report.flaws == () and report.lines == 4
    name = replace(place("two"), private=True).id
    assert await removal.begin(name, None)
    await trail.close(name)
    while await removal.remove_piece(name):
        continue
    assert (await trail.verify()).flaws == ()
    dropped: list[bytes] = []

    async def forget(bodies: object) -> None:
        dropped.extend(cast("list[bytes]", bodies))

    assert not await removal.drop_audit(START + 4, forget), "by somebody without the key"
    assert dropped and {flaw.kind for flaw in (await trail.verify()).flaws} >= {"missing"}
