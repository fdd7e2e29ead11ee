"""The adapter through the real SDK against a Bot API server on loopback."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from io import BytesIO

import pytest
from msgspec.structs import replace

from adapters.telegram import receive, transport
from adapters.telegram.adapter import TelegramAdapter
from gateway.errors import Ambiguous, Gone, RateLimited, Rejected, Unsent
from gateway.messages import Attachment, ButtonPressed, Conversation, Inbound
from gateway.ports import Adapter
from gateway.texts import say
from gateway.views import ApprovalCard, Button, FormCard, Notice, ProposalLine, ReplyView, View
from gateway.wiring.features import our_commands
from gateway.wiring.menu import Menu
from tests.adapters.telegram_rig import Store, running
from tests.fakes.telegram_server import TelegramServer
from tests.sampling import dice

ANN = Conversation(platform="telegram", account="123456", channel="7", private=True)
TEAM = Conversation(platform="telegram", account="123456", channel="-1007")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.01)


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server
        assert server.violations == []


@pytest.fixture
async def telegram(server: TelegramServer) -> AsyncIterator[TelegramAdapter]:
    """Not running: for sends and edits."""
    adapter = TelegramAdapter(server.token, server.base_url)
    yield adapter
    await adapter.close()


def payload(adapter: TelegramAdapter, view: View, chat: Conversation = ANN) -> bytes:
    return adapter.render(view, chat)[-1]


# ---- receiving by poll ---------------------------------------------------------------------


async def test_it_is_an_adapter(telegram: TelegramAdapter) -> None:
    adapter: Adapter = telegram
    assert adapter.last_contact == 0.0
    assert adapter.routes == []


async def test_the_backlog_and_what_follows_arrive_once_in_order(server: TelegramServer) -> None:
    adapter = TelegramAdapter(server.token, server.base_url, commands=Menu(our_commands))
    server.say(7, "one")
    server.say(7, "two")
    async with running(adapter, Store()) as store:
        await store.holds(2)
        assert adapter.last_contact > 0
        server.say(-1007, "three", user=8)
        await store.holds(3)
        await server.wait_calls("getUpdates", 3)
        await server.wait_calls("setMyCommands", 1)
    assert store.texts == ["one", "two", "three"]
    assert [call.method for call in server.calls[:2]] == ["getMe", "getUpdates"]
    assert not server.made("deleteWebhook")


async def test_what_the_store_did_not_keep_comes_again(server: TelegramServer) -> None:
    store = Store()
    store.failures = 3
    server.say(7, "one")
    async with running(TelegramAdapter(server.token, server.base_url), store):
        await store.holds(1)
    assert store.texts == ["one"]
    assert not any(call.params.get("offset") for call in server.made("getUpdates")[:4])


async def test_the_offset_waits_for_accept(server: TelegramServer) -> None:
    kept = asyncio.Event()

    async def accept(batch: Sequence[Inbound]) -> None:
        await kept.wait()

    server.say(7, "one")
    task = asyncio.create_task(TelegramAdapter(server.token, server.base_url).run(accept))
    await server.wait(lambda: bool(server.made("getUpdates")) and server.calls[-1].status == 200)
    task.cancel()
    await asyncio.wait([task])
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await store.holds(1)
    assert store.texts == ["one"]


async def test_what_came_begins_before_the_next_poll(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "HEAD_START", 1.0)
    server.say(7, "one")
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await store.holds(1)
        polls = len(server.made("getUpdates"))
        await asyncio.sleep(0.3)
        assert len(server.made("getUpdates")) == polls
        await server.wait_calls("getUpdates", polls + 1)


async def test_poison_stops_nothing(server: TelegramServer) -> None:
    server.push({"message": {"message_id": "x", "from": [], "chat": {"id": {}}}})
    server.push({"message": None, "callback_query": 5})
    server.say(7, "after")
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await store.holds(1)
    assert store.texts == ["after"]


async def test_faults_of_the_server_are_outlived(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail("getMe", 502)
    server.drop("getMe")
    server.fail("getUpdates", 409, description="Conflict: terminated by other getUpdates request")
    server.fail("getUpdates", 500)
    server.drop("getUpdates")
    server.fail("getUpdates", 429, retry_after=0.01)
    server.say(7, "one")
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await store.holds(1)
    assert "telegram_conflict" in caplog.messages
    assert {"telegram_unreachable", "telegram_limited"} <= set(caplog.messages)


async def test_polls_keep_their_distance_however_short_the_limit(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(2):
        server.fail("getUpdates", 429, retry_after=10.0 ** -dice("short limit", n).uniform(2, 9))
    server.say(7, "one")
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await store.holds(1)
    told = [vars(one)["pause"] for one in caplog.records if one.msg == "telegram_limited"]
    assert told == [0.05, 0.1], "each pause is twice as long"


@pytest.mark.parametrize("confirms", [True, False])
@pytest.mark.parametrize("waiting", range(4))
async def test_polls_that_end_at_once_are_not_made_without_a_pause(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch, waiting: int, *, confirms: bool
) -> None:
    monkeypatch.setattr(receive, "MIN_PAUSE", 0.05)
    server.holds_polls, server.confirms = False, confirms
    texts = [f"word {n}" for n in range(waiting)]
    for text in texts:
        server.say(7, text)
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await server.wait_calls("getUpdates", 10)
        server.say(7, "one more")
        await server.wait_calls("getUpdates", 20)
    at = [call.at for call in server.made("getUpdates")]
    assert at[-1] - at[0] > 14 * 0.05, "all but the first and those that bring something"
    assert set(store.texts) == {*texts, "one more"}


async def test_a_webhook_left_behind_is_removed(server: TelegramServer) -> None:
    server.webhook = {"url": "http://127.0.0.1:1/old"}
    async with running(TelegramAdapter(server.token, server.base_url), Store()) as store:
        await server.wait_calls("deleteWebhook")
        server.say(7, "one")
        await store.holds(1)
    assert server.made("deleteWebhook")[0].params == {"drop_pending_updates": False}


async def test_an_older_server_may_not_know_the_stop_button(server: TelegramServer) -> None:
    server.fail("getUpdates", 400, description="Bad Request: unknown update type")
    async with running(TelegramAdapter(server.token, server.base_url), Store()):
        first, second = (await server.wait_calls("getUpdates", 2))[:2]
    assert "stopped_message_generation" in first.params["allowed_updates"]
    assert "stopped_message_generation" not in second.params["allowed_updates"]


async def test_a_refused_token_ends_the_run_and_is_told_nowhere(
    server: TelegramServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = TelegramAdapter("123456:WRONGSECRET", server.base_url)
    with pytest.raises(Rejected, match="refuses the bot token") as caught:
        await adapter.run(Store().accept)
    assert "WRONGSECRET" not in caplog.text + repr(caught.value) + repr(adapter._bot)


# ---- sending -------------------------------------------------------------------------------


async def test_send_and_edit(server: TelegramServer, telegram: TelegramAdapter) -> None:
    native = await telegram.send(ANN, payload(telegram, ReplyView(text="Hello **you**")))
    await telegram.edit(ANN, native, payload(telegram, ReplyView(text="Bye")))
    await telegram.edit(ANN, native, payload(telegram, ReplyView(text="Bye")))  # not modified: fine
    (message,) = server.chats[7]
    assert (str(message["message_id"]), message["text"], message["edits"]) == (native, "Bye", 1)
    assert server.made("sendMessage")[0].params["link_preview_options"] == {"is_disabled": True}


async def test_topics_get_their_thread(server: TelegramServer, telegram: TelegramAdapter) -> None:
    topic = Conversation(platform="telegram", account="123456", channel="-1007", thread="4")
    await telegram.send(topic, payload(telegram, ReplyView(text="hi")))
    assert server.chats[-1007][0]["message_thread_id"] == 4


async def test_cards_round_trip(server: TelegramServer, telegram: TelegramAdapter) -> None:
    proposal = ProposalLine(tool="shell", arguments="{}", reason="why", risk="low")
    button = Button(label="Yes", token="q:1:yes", style="good")
    card = ApprovalCard(question="1", asker="Ann", proposals=(proposal,), buttons=(button,))
    native = await telegram.send(ANN, payload(telegram, card))
    server.press(7, int(native), "q:1:yes")
    async with running(telegram, Store()) as store:
        (press,) = await store.holds(1)
        assert isinstance(press, ButtonPressed)
        assert (press.token, press.message) == ("q:1:yes", native)
        await telegram.tell(ANN, press.press, "x" * 300)
        await telegram.tell(ANN, press.press, "")
        await telegram.tell(ANN, press.press, say("plan_off"))
        await telegram.tell(TEAM, press.press, say("plan_off"))
        said = Notice(text=say("plan_usage"))
        (alone, among) = (payload(telegram, said, chat).decode() for chat in (ANN, TEAM))
    assert "Use /plan on or /plan off. /todo changes" in alone
    assert "Use /plan@test_bot on or /plan@test_bot off. /todo@test_bot changes" in among
    assert alone.count('"type":"code"') == among.count('"type":"code"') == 2, "to be copied"
    assert server.answers[2]["text"].endswith("/plan on makes me show them to you first.")
    assert server.answers[3]["text"].endswith("/plan@test_bot on makes me show them to you first.")
    assert len(server.answers[0]["text"]) == 200
    assert server.answers[1] == {"callback_query_id": press.press}
    decided = ApprovalCard(
        question="1", asker="Ann", proposals=(proposal,), state="approved", outcome="Approved"
    )
    await telegram.edit(ANN, native, payload(telegram, decided))
    assert "reply_markup" not in server.chats[7][0]


async def test_a_form_forces_a_reply(server: TelegramServer, telegram: TelegramAdapter) -> None:
    form = FormCard(question="1", text="?", token="t")
    native = await telegram.send(ANN, payload(telegram, form))
    assert server.chats[7][0]["reply_markup"]["force_reply"] is True
    closed = replace(form, state="answered", outcome="Blue")
    await telegram.edit(ANN, native, payload(telegram, closed))
    assert server.chats[7][0]["text"] == "?", "it stays as it was asked"
    with pytest.raises(Rejected, match="can't be edited"):  # Telegram's rule for such messages
        await telegram.edit(ANN, native, payload(telegram, ReplyView(text="Answered")))
    await telegram.send(ANN, payload(telegram, closed), answers=native)
    assert "reply_markup" not in server.chats[7][1], "closed before it was sent"


async def test_what_errors_mean(server: TelegramServer, telegram: TelegramAdapter) -> None:
    hello = payload(telegram, ReplyView(text="hi"))
    server.fail("sendMessage", 429, retry_after=7)
    with pytest.raises(RateLimited) as limited:
        await telegram.send(ANN, hello)
    assert limited.value.retry_after == 7
    server.fail("sendMessage", 429)
    with pytest.raises(RateLimited):
        await telegram.send(ANN, hello)
    server.fail("sendMessage", 500)
    with pytest.raises(Ambiguous):
        await telegram.send(ANN, hello)
    server.fail("sendMessage", 413)
    with pytest.raises(Rejected):
        await telegram.send(ANN, hello)
    server.drop("sendMessage")
    with pytest.raises(Ambiguous):
        await telegram.send(ANN, hello)
    assert len(server.chats[7]) == 1
    server.blocked.add(7)
    with pytest.raises(Rejected, match="blocked"):
        await telegram.send(ANN, hello)
    with pytest.raises(Rejected, match="not found"):
        await telegram.edit(TEAM, "999", hello)


async def test_a_silent_server_is_ambiguous_an_absent_one_is_not(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    telegram = TelegramAdapter(server.token, server.base_url)
    hello = payload(telegram, ReplyView(text="hi"))
    server.hold("sendMessage")
    monkeypatch.setattr(transport, "READ_TIMEOUT", 0.05)
    with pytest.raises(Ambiguous):
        await telegram.send(ANN, hello)
    await telegram.close()
    for base in ("http://127.0.0.1:1", "http://no-such-host.invalid", "http://"):
        absent = TelegramAdapter("123456:HUSHHUSH", base)
        with pytest.raises(Unsent) as caught:
            await absent.send(ANN, hello)
        assert "HUSHHUSH" not in repr(caught.value)
        await absent.close()


async def test_formatting_that_telegram_refuses_is_sent_bare(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    server.fail("sendMessage", 400, description="Bad Request: can't parse entities: x")
    await telegram.send(ANN, payload(telegram, ReplyView(text="**bold** words")))
    (message,) = server.chats[7]
    assert message["text"] == "bold words"
    assert "entities" not in message


async def test_a_group_that_moved_still_gets_its_message(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    server.migrated[-5] = -1005
    moved = Conversation(platform="telegram", account="123456", channel="-5")
    await telegram.send(moved, payload(telegram, ReplyView(text="hi")))
    assert server.chats[-1005][0]["text"] == "hi"


async def test_messages_of_a_group_that_moved_are_not_those_of_the_new_one(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    """Numbers begin anew in a supergroup."""
    server.migrated[-5] = -1005
    moved = Conversation(platform="telegram", account="123456", channel="-5")
    there = replace(moved, channel="-1005")
    number = await telegram.send(there, payload(telegram, ReplyView(text="another answer")))
    theirs = server.say(-1005, "words of somebody", 7)["message"]["message_id"]
    with pytest.raises(Gone):
        await telegram.edit(moved, number, payload(telegram, ReplyView(text="of the old group")))
    assert [message["text"] for message in server.chats[-1005]] == ["another answer"]
    await telegram.send(moved, payload(telegram, ReplyView(text="hi")), str(theirs))
    assert server.chats[-1005][1]["text"] == "hi" and not server.replies


async def test_drafts_in_private_chats_only(
    server: TelegramServer, telegram: TelegramAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    await telegram.draft(ANN, 0, "so *far*")
    await telegram.draft(TEAM, 1, "no")
    (draft,) = server.drafts[7]
    assert (draft["text"], draft["draft_id"], draft["can_stop"]) == ("so far", 1, True)
    server.fail("sendMessageDraft", 403, times=2)
    await telegram.draft(ANN, 1, "x")
    await telegram.draft(ANN, 1, "x")
    assert caplog.messages == ["telegram_no_drafts"]
    assert telegram.abilities.drafts, "one chat refuses, not the server"
    server.fail("sendMessageDraft", 429, retry_after=3)
    with pytest.raises(RateLimited):
        await telegram.draft(ANN, 1, "x")
    server.fail("sendMessageDraft", 404)
    await telegram.draft(ANN, 1, "x")
    assert not telegram.abilities.drafts


async def test_receipt_and_late_presses_are_best_effort(
    server: TelegramServer, telegram: TelegramAdapter
) -> None:
    said = server.say(7, "hi")["message"]["message_id"]
    await telegram.receipt(ANN, str(said))
    assert server.reactions[7, said] == [{"type": "emoji", "emoji": "👀"}]
    server.unreactive.add(7)
    assert server.working == []
    await telegram.receipt(ANN, str(said))
    assert server.working == [7], "no reactions there: it is seen typing"
    await telegram.receipt(ANN, "999")
    server.old_presses.add("old")
    await telegram.tell(ANN, "old", "too late")
    assert server.answers == []


async def test_files(server: TelegramServer, telegram: TelegramAdapter) -> None:
    server.files |= {"f1": b"abc" * 50_000, "big": bytes((20 << 20) + 1)}
    to = BytesIO()
    await telegram.fetch(Attachment(ref="f1", name="a"), to)
    assert to.getvalue() == server.files["f1"]
    for refused in (
        Attachment(ref="big", name="b"),
        Attachment(ref="f1", name="a", size=21 << 20),
        Attachment(ref="none", name="n"),
    ):
        with pytest.raises(Rejected):
            await telegram.fetch(refused, to)
    server.drop("getFile")
    with pytest.raises((Ambiguous, Unsent)):
        await telegram.fetch(Attachment(ref="f1", name="a"), to)


async def test_what_is_under_way_when_the_run_ends_still_goes_out(server: TelegramServer) -> None:
    adapter = TelegramAdapter(server.token, server.base_url)
    hello = payload(adapter, ReplyView(text="last words"))
    server.hold("sendMessage")
    async with asyncio.TaskGroup() as group:
        async with running(adapter, Store()):
            sending = group.create_task(adapter.send(ANN, hello))
            await server.wait_calls("sendMessage")
        server.release("sendMessage")
        await sending
    await adapter.send(ANN, hello)
    assert len(server.chats[7]) == 2
    assert adapter._wire._session is None


async def test_a_message_is_taken_out_once(
    telegram: TelegramAdapter, server: TelegramServer
) -> None:
    native = await telegram.send(TEAM, payload(telegram, Notice(text="One"), TEAM))
    kept = await telegram.send(TEAM, payload(telegram, Notice(text="Two"), TEAM))
    for _ in range(2):  # as after an answer that was lost
        await telegram.remove(TEAM, native)
    assert [str(one["message_id"]) for one in server.chats[-1007]] == [kept]
