"""A person's event streams are bounded, and leave room for everybody else."""

import asyncio
import contextlib
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.web import stream
from adapters.web.stream import MAX_STREAMS, EventStreams, Inbox
from tests.fakes.waiting import PATIENCE
from tests.fakes.web_server import serve
from tests.sampling import examples

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["join", "join", "join", "leave"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(0, 3),
    ),
    max_size=8 * MAX_STREAMS,
)


@given(STEPS)
@settings(max_examples=examples(100), deadline=None)
def test_the_newest_streams_of_each_person_stay(steps: list[tuple[str, str, int]]) -> None:
    streams, ended = EventStreams(), list[int]()
    opened: dict[str, list[tuple[int, Inbox, contextlib.ExitStack]]] = {"ann": [], "bob": []}
    for at, (step, person, chat) in enumerate(steps):
        own = opened[person]
        if step == "leave" and own:
            own.pop(chat % len(own))[2].close()
        elif step == "join":
            stack = contextlib.ExitStack()
            end = lambda at=at: ended.append(at)  # noqa: E731
            inbox = stack.enter_context(streams.join(f"{person}~c{chat}", "s", person, end))
            if len(own) == MAX_STREAMS:
                first, old, leave = own.pop(0)
                assert ended.pop() == first and old.get_nowait() == "closed"
                leave.close()
            own.append((at, inbox, stack))
        assert not ended
        assert all(inbox.empty() for known in opened.values() for _, inbox, _ in known)
    for _, _, stack in (*opened["ann"], *opened["bob"]):
        stack.close()
    assert not streams._open and not streams._people


async def is_over(answer: aiohttp.ClientResponse) -> bool:
    try:
        while await answer.content.readany():
            pass
    except aiohttp.ClientError:
        pass
    return True


@pytest.mark.parametrize("conversations", [1, 7])
async def test_a_further_stream_of_one_person_ends_the_oldest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conversations: int
) -> None:
    monkeypatch.setattr(stream, "MAX_STREAMS", 5)
    async with serve(tmp_path) as server:
        ann = await server.sign_in("ann")
        async with aiohttp.ClientSession(server.url, headers=ann) as other:
            hers = await other.get("/api/conversations/c0/events")
            own = [
                await server.http.get(f"/api/conversations/c{n % conversations}/events")
                for n in range(12)
            ]
            async with asyncio.timeout(PATIENCE):
                assert all([await is_over(answer) for answer in own[:7]])
            for answer in (*own[7:], hers):
                assert answer.status == 200
                assert b"retry" in await answer.content.readline()
                assert not answer.content.at_eof() and answer.content.exception() is None
            for answer in (*own, hers):
                answer.close()
