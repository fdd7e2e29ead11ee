"""What a model sees of a long conversation: cut where a provider accepts it, and only added to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.config.declaration import SettingsError
from agent_core.context.compression import (
    SummaryRequest,
    Window,
    border,
    join_head,
    lineage,
    turn_border,
)
from agent_core.context.limits import ContextLimits
from agent_core.context.settings import ContextSettings
from agent_core.errors import ModelFailed
from agent_core.events import Compressed
from agent_core.journal import Emitted
from agent_core.messages import Message, Text, ToolCall, ToolResult, text_of, user
from agent_core.models.port import ModelReply, Usage
from agent_core.scope import Scope
from tests.agent_core.compression_rig import CompressionRig
from tests.fakes.world import check_order

LONG = "w" * 400


def said(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


def round_(n: int) -> tuple[Message, Message]:
    call = ToolCall(id=f"c{n}", name="look", arguments="{}")
    result = ToolResult(call_id=f"c{n}", name="look", content=f"{n} {LONG}")
    return Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,))


def growing(
    world: CompressionRig, rounds: int, seen: list[tuple[Message, ...]], room: ContextLimits
) -> None:
    async def code(scope: Scope) -> None:
        window, messages = Window(room, request="find it"), (user("find it"),)
        for n in range(rounds):
            seen.append(await window.fit(scope.child(f"r{n}"), messages, world.asking))
            messages = (*messages, *round_(n))

    world.live(code)


ROOM = ContextLimits(limit=1_000, keep=4)


def test_rounds_are_never_split_and_earlier_summaries_are_folded_in() -> None:
    world, seen = CompressionRig("first", "second", "third"), []
    growing(world, 20, seen, ROOM)
    assert len(world.asked) == 3 and "first" in world.asked[1] and "second" in world.asked[2]
    for messages in seen:
        check_order(messages)
    steps = [b[: len(a)] == a for a, b in zip(seen, seen[1:], strict=False)]
    assert steps.count(False) == 3, "between two compressions it is only added to"
    assert "find it" in text_of(seen[-1][0]), "the request is kept word for word"
    events = [r.event for r in world.records if isinstance(r, Emitted)]
    assert len(events) == 3 and all(isinstance(one, Compressed) for one in events)
    lines = [(one.parent, one.lineage) for one in events]
    assert lines[0][0] == "" and [after for _, after in lines[:-1]] == [b for b, _ in lines[1:]]
    assert len({line for _, line in lines}) == 3 and lineage(seen[-1]) == lines[-1][1]


@pytest.mark.parametrize("summary", ["so far", ModelFailed("down")])
def test_a_word_on_the_way_is_not_taken_for_the_request(summary: str | ModelFailed) -> None:
    """Neither a notice among the last messages nor one among those that are compressed."""
    world, seen = CompressionRig(*[summary] * 20), []

    async def code(scope: Scope) -> None:
        window, messages = Window(ROOM, request="find it"), (user("find it\n\n[Planning]"),)
        for n in range(12):
            seen.append(await window.fit(scope.child(f"r{n}"), messages, world.asking))
            messages = (*messages, *round_(n), user(f"[Going in circles] {n}"))

    world.live(code)
    assert len(world.asked) > 1 and "circles" in text_of(seen[-1][-1])
    for messages in seen:
        check_order(messages)
        assert "find it" in text_of(messages[0])
    assert "word for word]\nfind it" in text_of(seen[-1][0])


def test_a_replay_sees_the_same_and_asks_nobody() -> None:
    world, first, again = CompressionRig("first", "second", "third"), [], []
    growing(world, 20, first, ROOM)
    growing(world, 20, again, ROOM)
    assert again == first and len(world.asked) == 3


def test_without_a_summary_the_oldest_is_left_out() -> None:
    world, seen = CompressionRig(*[ModelFailed("down")] * 9), []
    growing(world, 12, seen, ROOM)
    assert "left out here" in text_of(seen[-1][0]) and "find it" in text_of(seen[-1][0])
    check_order(seen[-1])


def test_switched_off_it_is_cut_only_where_the_window_ends() -> None:
    world, seen = CompressionRig(), []
    growing(world, 12, seen, ContextLimits(limit=0, most=1_000, keep=4))
    assert world.asked == [] and "left out here" in text_of(seen[-1][0])
    seen.clear()
    growing(CompressionRig(), 12, seen, ContextLimits())
    assert len(seen[-1]) == 23


def test_the_real_count_of_tokens_decides_where_it_is_known() -> None:
    world = CompressionRig("summary")

    async def code(scope: Scope) -> None:
        window, messages = Window(ROOM), tuple(user(f"m{n} {LONG}") for n in range(6))
        reply = ModelReply(parts=(), model="m", provider="p", usage=Usage(input_tokens=990))
        window.count(reply, len(messages))
        assert await window.fit(scope.child("a"), messages, world.asking) == messages
        messages = (*messages, said("x" * 100))
        assert len(await window.fit(scope.child("b"), messages, world.asking)) < 6

    world.live(code)


def test_one_message_that_a_model_refuses_is_seen_by_its_ends() -> None:
    world = CompressionRig()

    async def code(scope: Scope) -> None:
        window, messages = Window(ROOM), (user("BEGIN" + "x" * 9_000 + "END"),)
        assert window.narrow(messages, 1_024)
        (seen,) = await window.fit(scope.child("a"), messages, world.asking)
        text = text_of(seen)
        assert len(text) < 1_600 and text.startswith("BEGIN") and text.endswith("END")
        assert window.narrow(messages, 1_024) and not window.narrow(messages, 1_024)

    world.live(code)


def test_what_shall_be_remembered_is_asked_for_first() -> None:
    world, flushed = CompressionRig("summary"), []

    async def flush(scope: Scope, messages: tuple[Message, ...]) -> None:
        assert not world.asked
        flushed.extend(messages)

    async def code(scope: Scope) -> None:
        messages = tuple(user(f"m{n} {LONG}{LONG}") for n in range(9))
        asking = SummaryRequest(complete=world.complete, limit=5.0, flush=flush)
        await Window(ROOM).fit(scope, messages, asking)

    world.live(code)
    assert len(flushed) == 5


@given(st.lists(st.sampled_from(["user", "assistant", "tool"])), st.integers(-5, 30))
def test_borders(roles: list, wanted: int) -> None:
    messages = tuple(Message(role=role, parts=()) for role in ["user", *roles])
    at = border(messages, wanted)
    assert 0 <= at <= max(0, wanted) and messages[at].role != "tool"
    if at:
        assert 0 < turn_border(messages, at, 0) <= at


def test_a_person_never_speaks_twice_in_a_row() -> None:
    one = join_head((user("summary"),), (user("next"), said("yes")))
    assert [m.role for m in one] == ["user", "assistant"]
    assert text_of(one[0]) == "summary\nnext"


def test_settings() -> None:
    plain = ContextSettings.read({})
    assert plain.make_limits(128_000, "flash") == ContextLimits(
        limit=60_000, most=108_800, keep=10, by="flash"
    )
    limits = {
        window: plain.make_limits(window, "flash").limit for window in (4_096, 32_000, 1_050_000)
    }
    assert limits == {4_096: 2_048, 32_000: 16_000, 1_050_000: 525_000}
    own = ContextSettings.read(
        {
            "CONTEXT_COMPRESSION_TOKEN_THRESHOLD": "20000",
            "CONTEXT_COMPRESSION_PRESERVE_RECENT": "6",
            "COMPRESSION_PROTECT_LAST_N": "20",
        }
    )
    assert (
        own.make_limits(128_000, "flash").limit == own.make_limits(10**6, "flash").limit == 20_000
    )
    assert own.make_limits(8_000, "flash").limit == 4_000 and own.keep == 20
    assert (
        ContextSettings.read({"CONTEXT_COMPRESSION_ENABLED": "false"}).make_limits(9, "m").limit
        == 0
    )
    with pytest.raises(SettingsError, match="CONTEXT_COMPRESSION_TOKEN_THRESHOLD"):
        ContextSettings.read({"CONTEXT_COMPRESSION_TOKEN_THRESHOLD": "many"})
