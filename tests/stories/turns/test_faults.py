"""Things go wrong around the gateway: what people see, what the log says, and that it goes on."""

import asyncio
import io
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from aiohttp import ClientSession
from msgspec.structs import replace

from agent_core import ambient
from agent_core.orchestration.brief import Brief
from gateway.delivery import outbox
from gateway.store.sqlite import SqliteStore
from gateway.wiring.agent_default import TurnkeeperAgent
from tests.fakes.clocks import Skipping
from tests.fakes.model_server import Call, Calls, Cut, Empty, Events, Fail, Hang, Say, Slow, Stop
from tests.fakes.ports import free_port
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PATIENCE,
    PERSON,
    Rig,
    living,
    mention,
    quick,
    write,
)

SECRET = "a-secret-of-the-webhook"
T = TypeVar("T")


# ---- what comes in -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_redelivered_in_any_order_each_is_one_turn(rig: Rig, seed: int) -> None:
    chats = (PERSON, FRIEND)
    updates = [rig.telegram.say(chat, f"m{n}") for n, chat in enumerate(chats * 3)]
    rig.telegram._queue.clear()
    many = updates * 3
    random.Random(seed).shuffle(many)
    for update in many:
        rig.telegram.redeliver(update)
    await rig.start()
    await rig.telegram.wait(lambda: sum(len(rig.said(chat)) for chat in chats) == 6, PATIENCE)
    await rig.quiet()
    assert sorted(rig.said() + rig.said(FRIEND)) == [f"ack m{n}" for n in range(6)]
    assert len(rig.model.requests) == 6


async def test_redelivered_while_it_runs_and_after_a_restart(rig: Rig) -> None:
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    update = rig.telegram.say(PERSON, "hello")
    await rig.model.wait_inflight(1, PATIENCE)
    rig.telegram.redeliver(update)
    gate.set()
    rig.model.gate = None
    await rig.shows("ack hello")
    await rig.quiet()
    rig.telegram.redeliver(update)
    await rig.stop()
    rig.telegram.redeliver(update)
    await rig.start()
    rig.telegram.say(PERSON, "next")
    await rig.shows("ack next")
    assert rig.said() == ["ack hello", "ack next"]


async def hooked(rig: Rig) -> str:
    """A gateway that receives by webhook; its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/telegram/webhook"
    await rig.start(
        TURNKEEPER_PORT=str(port), TELEGRAM_WEBHOOK_SECRET=SECRET, TELEGRAM_WEBHOOK_URL=url
    )
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None, PATIENCE)
    return url


async def post(url: str, body: bytes, secret: str | None = SECRET) -> int:
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    data = io.BytesIO(body)
    async with ClientSession() as http, http.post(url, data=data, headers=headers) as answer:
        return answer.status


async def test_a_webhook_takes_what_is_signed_and_well_formed(rig: Rig) -> None:
    url = await hooked(rig)
    rig.telegram.webhook = None  # we deliver ourselves
    update = json.dumps(rig.telegram.say(PERSON, "hello")).encode()
    for wrong in (None, "", "wrong", SECRET[:-1], SECRET + "x", SECRET.upper()):
        assert await post(url, update, wrong) == 401
    for bad in (b"", b"{", b"[]", b"1", b"\xff\xfe", b'"x"', b"[" * 100_000):
        assert await post(url, bad) == 400, bad[:20]
    assert await post(url, b" " * ((1 << 20) + 1)) == 413
    odd = (b"{}", b'{"update_id": "x"}', b'{"update_id": 5, "message": []}', b'{"message": {}}')
    for nothing in (*odd, b'{"update_id": 6, "message": {"chat": {"id": 11}, "text": null}}'):
        assert await post(url, nothing) == 200
    assert rig.model.requests == []
    assert await post(url, update) == 200
    assert await post(url, update) == 200
    await rig.shows("ack hello")
    await rig.quiet()
    assert len(rig.model.requests) == 1


async def test_files_of_no_and_of_too_many_bytes(rig: Rig) -> None:
    files = {"empty": b"", "large": b"x" * (25 << 20), "good": b"hello"}
    rig.telegram.files |= files
    await rig.start()
    for name, data in files.items():
        document = {"file_id": name, "file_unique_id": name, "file_name": f"{name}.txt",
                    "file_size": len(data), "mime_type": "text/plain"}  # fmt: skip
        rig.telegram.say(PERSON, "", caption=f"read {name}", document=document)
    await rig.telegram.wait(lambda: len(rig.model.requests) == 3, PATIENCE)
    empty, large, good = (r.body["messages"][-1]["content"] for r in rig.model.requests)
    assert "incoming/empty.txt, 0 bytes" in empty
    assert "large.txt could not be downloaded" in large and "too big" in large
    assert "incoming/good.txt, 5 bytes" in good
    assert (rig.workspace() / "incoming" / "good.txt").read_bytes() == b"hello"
    assert not (rig.workspace() / "incoming" / "large.txt").exists()


async def test_a_slow_file_behind_another_message_is_waited_for(rig: Rig) -> None:
    """While a turn is being made, the conversation must not be given back as quiet."""
    rig.telegram.files["slow"] = b"hello"
    rig.telegram.hold("getFile")
    document = {"file_id": "slow", "file_unique_id": "slow", "file_name": "slow.txt"}
    rig.telegram.say(PERSON, "one")
    rig.telegram.say(PERSON, "", caption="two", document=document)
    await rig.start()
    await rig.shows("ack one")
    await rig.telegram.wait_calls("getFile", 1, PATIENCE)
    await asyncio.sleep(0.1)
    rig.telegram.release("getFile")
    await rig.shows("ack two")
    assert not rig.log.named("session_ended")


async def test_a_message_of_100_000_characters(rig: Rig) -> None:
    text = "Überlänge 🦊 " * 8_000
    rig.model.script(Say("read"))
    await rig.start()
    rig.telegram.say(PERSON, text)
    await rig.shows("read")
    assert rig.seen()[-1] == text.strip() or rig.seen()[-1] == text


HOSTILE = [
    "*a _b *c_ `d **e", "```", "```python\nx = 1", "[a](b [c](d", "<b>x</i> &amp; &#0; <script>",
    "\\*\\_\\`", "|a|b|\n|-|\n|c|", "# \n## \n- \n1. ", "\u202etxt.exe\u200b \ud83e\udd8a", "> " * 200 + "x",
    "![](http://x/y.png)", "||spoiler", "~~a~ b~~~", "**" * 500, "_" * 3000, "𝕏" * 5000,
]  # fmt: skip


async def test_markdown_that_breaks_parsers(rig: Rig) -> None:
    await rig.start()
    for n, text in enumerate(HOSTILE):
        rig.model.script(Say(f"{text}\n\nend {n}", words=50))
        rig.telegram.say(PERSON, f"say {n}")
        await rig.shows(f"end {n}")
    await rig.quiet()


async def test_entities_that_telegram_refuses_go_as_plain_text(rig: Rig) -> None:
    rig.model.script(Say("a **bold** word"))
    description = "Bad Request: can't parse entities: unsupported start tag"
    rig.telegram.fail("sendMessage", 400, description=description)
    await rig.start()
    rig.telegram.say(PERSON, "say it")
    answer = await rig.shows("a bold word")
    assert "entities" not in answer
    await rig.quiet()
    assert rig.log.named("telegram_unformatted") and len(rig.said()) == 1


async def test_what_telegram_refuses_for_good_is_told(rig: Rig) -> None:
    rig.telegram.fail("sendMessage", 400, description="Bad Request: no luck with this")
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.shows("o luck with this")
    await rig.quiet()
    assert rig.log.named("rejected")
    rig.telegram.say(PERSON, "two")
    await rig.shows("ack two")


async def test_a_chat_that_blocked_the_bot_holds_up_nobody(rig: Rig) -> None:
    rig.telegram.blocked.add(FRIEND)
    await rig.start()
    rig.telegram.say(FRIEND, "hello?")
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert rig.said(FRIEND) == []


# ---- the model -----------------------------------------------------------------------------


async def test_arguments_that_are_no_json_and_unknown_tools_are_told_to_the_model(rig: Rig) -> None:
    rig.model.script(
        Calls([Call("write_file", '{"path": "a.txt", "content'), Call("fly_to_the_moon", "{}")]),
        Call("write_file", '{"path": 5}'),
        Say("I give up"),
    )
    await rig.start()
    rig.telegram.say(PERSON, "go")
    await rig.shows("I give up")
    await rig.quiet()
    bad, unknown, unfit = rig.seen(role="tool")
    assert "not valid JSON" in bad and "no tool 'fly_to_the_moon'" in unknown
    assert "do not fit" in unfit and "Schema" in unfit
    assert rig.cards() == [] and any("✕ Write a file" in text for text in rig.said())


PROBLEMS = {
    "429": (Fail(429, retry_after=0.01), "is limiting requests (429)"),
    "500": (Fail(500, retry_after=0.01), "overloaded or down (500: scripted failure)"),
    "529": (Fail(529, retry_after=0.01), "overloaded or down (529: scripted failure)"),
    "401": (Fail(401), "rejected the API key (401). Check OPENAI_API_KEY"),
    "400": (Fail(400, message="no such model"), "no such model"),
    "cut": (Cut(), "answer was cut off"),
    "no end": (Stop(), "again"),
    "garbage": (Events(("data: {]",)), "openai"),
}


@pytest.mark.parametrize("name", PROBLEMS)
async def test_a_provider_that_fails_is_told_and_the_next_message_works(
    rig: Rig, name: str
) -> None:
    step, words = PROBLEMS[name]
    rig.model.script(*[step] * 3)  # as often as it is tried
    await rig.start()
    rig.telegram.say(PERSON, "one")
    told = await rig.shows("✕")
    assert words in told["text"], told["text"]
    await rig.quiet()
    assert len(rig.said()) == 1, rig.said()
    rig.model.steps.clear()
    rig.telegram.say(PERSON, "two")
    await rig.shows("ack two")


@pytest.mark.parametrize("name", ["429", "500", "cut"])
async def test_a_provider_that_fails_once_is_asked_again(rig: Rig, name: str) -> None:
    rig.model.script(PROBLEMS[name][0], Say("the whole answer"))
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.shows("the whole answer")
    await rig.quiet()
    assert rig.said() == ["the whole answer"]


async def test_an_empty_answer_is_said_to_be_empty(rig: Rig) -> None:
    rig.model.script(Empty(), Empty(), Empty())
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.telegram.wait(lambda: bool(rig.said()), PATIENCE)
    await rig.quiet()
    assert len(rig.said()) == 1 and "mpty" in rig.said()[0] or "nothing" in rig.said()[0]
    rig.model.steps.clear()
    rig.telegram.say(PERSON, "two")
    await rig.shows("ack two")


async def test_a_model_that_says_nothing_runs_into_its_limit(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = TurnkeeperAgent.brief

    def brief(self: TurnkeeperAgent, *given: object) -> Brief:
        return replace(real(self, *given), limit=0.3)  # type: ignore[arg-type]

    await rig.start()
    rig.telegram.say(PERSON, "zero")
    await rig.shows("ack zero")  # the SDK is imported
    with monkeypatch.context() as patch:
        patch.setattr(TurnkeeperAgent, "brief", brief)
        rig.model.script(Hang(30))
        rig.telegram.say(PERSON, "one")
        assert "the model took over 0.3 s" in (await rig.shows("✕"))["text"]
    rig.telegram.say(PERSON, "two")
    await rig.shows("ack two")


async def test_no_model_at_all(rig: Rig) -> None:
    await rig.start(OPENAI_BASE_URL=f"http://127.0.0.1:{free_port()}/v1")
    rig.telegram.say(PERSON, "one")
    assert "cannot be reached at 127.0.0.1" in (await rig.shows("✕"))["text"]


# ---- Telegram ------------------------------------------------------------------------------


@pytest.fixture
def clock() -> "Callable[[], Skipping]":
    made = Skipping()
    ambient.use(made)
    yield made
    ambient.use(ambient.SystemClock())


async def test_limited_for_minutes_nothing_is_sent_and_then_all(rig: Rig, clock: Skipping) -> None:
    rig.telegram.fail("sendMessage", 429, retry_after=1000)
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.telegram.wait_calls("sendMessage", 1, PATIENCE)
    await rig.until(lambda: rig.log.named("rate_limited"))
    rig.telegram.say(PERSON, "two")
    await rig.until(lambda: len(rig.model.requests) == 2 and rig.session() and not rig.session().state.active)  # fmt: skip
    rig.telegram.say(FRIEND, "hello")
    await rig.shows("ack hello", FRIEND)
    clock.skip(20)  # not long enough, yet within the lease
    await asyncio.sleep(0.1)
    assert rig.said() == [] and len(rig.telegram.made("sendMessage")) == 2
    while clock.ahead < 960:  # still limited, so that no send is in flight when 20 s are skipped
        clock.skip(20)
        await asyncio.sleep(0.005)
    assert rig.said() == []
    async with asyncio.timeout(PATIENCE):
        while len(rig.said()) < 2:
            clock.skip(0.25)
            if (session := rig.session()) is not None:
                session.state.outbox._wake.set()  # its own alarm rings by the machine's clock
            await asyncio.sleep(0.01)
    assert rig.said() == ["ack one", "ack two"]


async def test_the_limit_and_what_waits_for_it_survive_a_restart(rig: Rig) -> None:
    rig.telegram.fail("sendMessage", 429, retry_after=2)
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.until(lambda: rig.log.named("rate_limited"))
    await rig.store.put("probe", b"written behind the mark of the limit")
    await rig.crash()
    assert rig.said() == []
    await rig.start()
    await rig.shows("ack hello")
    await rig.quiet()
    assert rig.said() == ["ack hello"], "429 says that nothing was sent: no label"
    assert len(rig.model.requests) == 1
    limited, sent = rig.telegram.made("sendMessage")
    assert sent.at - limited.at > 1.9, "nothing is sent while it is limited"


async def test_limited_while_streaming_it_ends_with_the_final_state(rig: Rig) -> None:
    rig.telegram.fail("editMessageText", 429, retry_after=0.5, times=2)
    rig.model.script(Slow(0.01, " ".join(f"w{n}" for n in range(60))))
    await rig.start()
    rig.telegram.say(GROUP, "@test_bot slowly", user=PERSON, **mention("@test_bot"))
    await rig.shows("w59", GROUP)
    await rig.quiet()
    calls = rig.telegram.made("editMessageText")
    limited = [call for call in calls if call.status == 429]
    assert len(limited) == 2 and len(rig.said(GROUP)) == 1
    for call in limited:
        after = [
            c.at - call.at for c in rig.telegram.calls if c.at > call.at and "essage" in c.method
        ]
        assert min(after) > 0.45, "nothing is sent while it is limited"


async def test_telegram_down_before_the_call_was_carried_out(rig: Rig) -> None:
    """Of one message nobody sees more than two copies, so it is not sent into an outage."""
    rig.telegram.fail("sendMessage", 502)
    rig.telegram.fail("getMe", 502, times=3)
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    assert len(rig.said()) == 1
    assert "Possibly sent twice" in rig.said()[0], "a 5xx says nothing of what was carried out"


async def test_a_message_in_doubt_twice_is_told_and_kept(rig: Rig) -> None:
    rig.telegram.fail("sendMessage", 502, times=2, after_effect=True)
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("A message may be missing here")
    await rig.quiet()
    assert sum("ack hello" in text for text in rig.said()) == 2
    (letter,) = await rig.store.letters(9)
    assert letter.kind == "view" and b"ack hello" in letter.payload
    assert await rig.store.resubmit(letter.id) == rig.where().id
    rig.host.wake(rig.where().id)
    await rig.telegram.wait(lambda: sum("ack hello" in one for one in rig.said()) == 3, PATIENCE)


@pytest.mark.parametrize("how", ["dropped", "502"])
async def test_an_answer_lost_after_the_call_was_carried_out(rig: Rig, how: str) -> None:
    if how == "dropped":
        rig.telegram.drop("sendMessage")
    else:
        rig.telegram.fail("sendMessage", 502, after_effect=True)
    await rig.start()
    rig.telegram.say(PERSON, "hello")
    await rig.shows("Possibly sent twice (the connection was lost).")
    await rig.quiet()
    assert len(rig.said()) == 2 and rig.said()[0] == "ack hello"
    assert len(rig.model.requests) == 1


async def test_a_lost_edit_is_made_again_and_leaves_one_message(rig: Rig) -> None:
    rig.telegram.drop("editMessageText")
    rig.telegram.fail("editMessageText", 502)
    rig.model.script(write("a.txt"), Say("written"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    card = await rig.card()
    rig.press(card, "Approve once")
    await rig.shows("written")
    await rig.telegram.wait(lambda: "Approved once by" in card["text"], PATIENCE)
    await rig.quiet()
    assert len(rig.said()) == 3 and not any("twice" in text for text in rig.said())


@pytest.mark.parametrize("status", [500, 0], ids=["fails", "is cut off"])
async def test_an_edit_that_always_fails_holds_up_nothing_else(
    rig: Rig, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool line cannot be changed; the card below it, and the answer, come all the same."""
    monkeypatch.setattr(outbox, "MIN_BACKOFF", 10 * PATIENCE)
    if status:
        rig.telegram.fail("editMessageText", status, times=1_000)
    else:
        rig.telegram.drop("editMessageText", times=1_000)
    rig.model.script(write("a.txt"), Say("written"), Say("and more"))
    await rig.start()
    rig.telegram.say(PERSON, "write it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("written")
    rig.telegram.say(PERSON, "more")
    await rig.shows("and more")
    assert len(rig.telegram.made("editMessageText")) < 30
    assert not any("twice" in text for text in rig.said())


async def test_polls_that_fail_lose_nothing(rig: Rig) -> None:
    rig.telegram.fail("getUpdates", 502, times=2)
    rig.telegram.drop("getUpdates")
    rig.telegram.fail("getUpdates", 409, description="Conflict: terminated by other getUpdates")
    for n in range(3):
        rig.telegram.say(PERSON, f"m{n}")
    await rig.start()
    await rig.shows("ack m2")
    assert rig.said() == ["ack m0", "ack m1", "ack m2"]


# ---- a full disk ---------------------------------------------------------------------------


async def writing(store: SqliteStore, work: Callable[[sqlite3.Connection], T]) -> T:
    """`work` on the connection that writes."""
    return await store._writer.submit(work)


async def fill(store: SqliteStore) -> None:
    """No page more than there are now."""

    def limit(c: sqlite3.Connection) -> None:
        (pages,) = c.execute("PRAGMA page_count").fetchone()
        c.execute(f"PRAGMA max_page_count = {pages}")

    await writing(store, limit)


async def empty(store: SqliteStore) -> None:
    await writing(store, lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchone())


@pytest.fixture
async def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    quick(monkeypatch)
    async with living(tmp_path, strict=False) as made:
        yield made


async def test_a_full_disk_at_arrival_takes_it_when_there_is_space(broken: Rig) -> None:
    rig = await broken.start()
    rig.telegram.say(PERSON, "before")
    await rig.shows("ack before")
    await rig.quiet()
    await fill(rig.store)
    texts = [f"m{n} " + "x" * 3000 for n in range(20)]
    for text in texts:
        rig.telegram.say(PERSON, text)
    await rig.until(lambda: rig.log.named("telegram_not_stored"))
    assert "full" in vars(rig.log.named("telegram_not_stored")[0])["why"]
    await rig.shows("I cannot save anything at the moment")
    rig.telegram.say(PERSON, "last")
    await empty(rig.store)
    await rig.shows("ack last")
    await rig.quiet()
    told = [text for text in rig.said() if "cannot save" in text]
    assert len(told) == 1, "a word, and only one"
    answers = [text.split()[1] for text in rig.said() if text not in told]
    assert answers == ["before", *(f"m{n}" for n in range(20)), "last"], "all, in order, once"
    assert rig.log.bugs == []


async def test_a_full_disk_in_the_turn_goes_on_when_there_is_space(broken: Rig) -> None:
    rig = broken
    gate = rig.model.gate = asyncio.Event()
    rig.model.script(Say("a long answer " + "y" * 30_000 + " the end"))
    await rig.start()
    rig.telegram.say(PERSON, "one")
    await rig.model.wait_inflight(1, PATIENCE)
    await fill(rig.store)
    rig.model.gate = None
    gate.set()
    await rig.until(lambda: rig.log.named("session_ended") or rig.log.named("store_failed"))
    assert rig.said() == []
    await empty(rig.store)
    await rig.shows("a long answer")
    rig.telegram.say(PERSON, "two")
    await rig.shows("ack two")
    await rig.quiet()
    assert len([t for t in rig.said() if t.startswith("a long answer")]) == 1, "answered once"
    assert len(rig.model.requests) == 2, "what was answered once is not paid for again"
    assert rig.log.bugs == []


async def test_a_full_disk_and_a_kill(broken: Rig) -> None:
    rig = await broken.start()
    rig.telegram.say(PERSON, "before")
    await rig.shows("ack before")
    await rig.quiet()
    await fill(rig.store)
    for n in range(20):
        rig.telegram.say(PERSON, f"m{n} " + "x" * 3000)
    await rig.until(lambda: rig.log.named("telegram_not_stored"))
    await rig.crash()
    await rig.start()

    def answers() -> list[str]:
        return [text.split()[1] for text in rig.said() if "cannot save" not in text]

    await rig.telegram.wait(lambda: len(answers()) == 21, PATIENCE)
    assert answers()[1:] == [f"m{n}" for n in range(20)]


async def test_a_locked_store_is_waited_for(rig: Rig) -> None:
    await rig.start()
    other = sqlite3.connect(rig.home / "turnkeeper.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    rig.telegram.say(PERSON, "hello")
    await asyncio.sleep(0.3)
    assert rig.said() == []
    other.execute("ROLLBACK")
    other.close()
    await rig.shows("ack hello")
    assert len(rig.said()) == 1


@pytest.mark.parametrize("when", ["arrival", "turn"])
async def test_a_store_locked_for_longer_than_it_waits(broken: Rig, when: str) -> None:
    rig = broken
    gate = asyncio.Event()
    rig.model.gate = gate if when == "turn" else None
    await rig.start()
    await writing(rig.store, lambda c: c.execute("PRAGMA busy_timeout = 50").fetchone())
    if when == "turn":
        rig.telegram.say(PERSON, "hello")
        await rig.model.wait_inflight(1, PATIENCE)
    other = sqlite3.connect(rig.home / "turnkeeper.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    if when == "arrival":
        rig.telegram.say(PERSON, "hello")
    rig.model.gate = None
    gate.set()
    event = "telegram_not_stored" if when == "arrival" else "session_ended"
    await rig.until(lambda: rig.log.named(event))
    if when == "arrival":
        await rig.shows("I cannot save anything at the moment")
    other.execute("ROLLBACK")
    other.close()
    await rig.shows("ack hello")
    await rig.quiet()
    assert rig.said()[-1] == "ack hello" and len(rig.said()) == 1 + (when == "arrival")
    assert rig.log.bugs == []


async def test_a_tool_that_fails_is_told_to_the_model(rig: Rig) -> None:
    rig.model.script(write("a.txt/b.txt"), Say("it did not work"))
    await rig.start()
    rig.workspace(ADMIN).mkdir(parents=True, exist_ok=True)
    rig.workspace(ADMIN).joinpath("a.txt").write_text("a file, no folder")
    rig.telegram.say(ADMIN, "write")
    await rig.shows("it did not work", ADMIN)
    await rig.quiet()
    (told,) = rig.seen(role="tool")
    assert told and "Traceback" not in told
    assert any("✕ Write a file" in text for text in rig.said(ADMIN))
