"""Sending to Slack: the four errors, a lost answer read back, files, private words."""

import asyncio
import json
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

from adapters.slack.adapter import SlackAdapter
from gateway.accounts.slack import Slack
from gateway.errors import Ambiguous, FileNotTaken, RateLimited, Rejected, Unsent
from gateway.messages import Attachment, Conversation
from gateway.texts import say
from gateway.views import Button, ChoiceCard, Media, MediaFile, Notice, ReplyView
from tests.adapters.slack_rig import adapter_of, where
from tests.fakes.slack_server import TOKEN, SlackServer, elements, shown


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as made:
        yield made
        assert made.violations == []


@pytest.fixture
async def adapter(server: SlackServer, tmp_path: Path) -> AsyncIterator[SlackAdapter]:
    made = adapter_of(server, outputs=tmp_path)
    yield made
    await made._wire.close()


HELLO = ReplyView(text="hello <!channel>")


async def test_a_message_is_sent_and_edited(server: SlackServer, adapter: SlackAdapter) -> None:
    thread = where("C0DEV", "1.5")
    (payload,) = adapter.render(HELLO, thread)
    native = await adapter.send(thread, payload)
    (message,) = server.channels["C0DEV"]
    assert (message["ts"], message["thread_ts"]) == (native, "1.5")
    assert message["text"] == "hello &lt;!channel&gt;", "for notifications"
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)
    (payload,) = adapter.render(ReplyView(text="done"), thread)
    await adapter.edit(thread, native, payload)
    await adapter.edit(thread, native, payload)
    assert shown(message) == "done" and message["edits"] == 2
    buttons = tuple(Button(label=x, token=f"q:1:{x}") for x in "ab")
    card = ChoiceCard(question="1", text="Which?", buttons=buttons)
    await adapter.edit(thread, native, adapter.render(card, thread)[0])
    assert len(elements(message)) == 2
    gone = msgspec.structs.replace(card, state="answered", outcome="Ann: a")
    await adapter.edit(thread, native, adapter.render(gone, thread)[0])
    assert elements(message) == []


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 429, "error": "ratelimited", "retry_after": 7}, RateLimited),
        ({"error": "ratelimited"}, RateLimited),
        ({"error": "service_unavailable"}, Unsent),
        ({"error": "channel_not_found"}, Rejected),
        ({"error": "invalid_blocks"}, Rejected),
        ({"error": "fatal_error"}, Ambiguous),
        ({"status": 503}, Ambiguous),
        ({"status": 0}, Ambiguous),
    ],
)
async def test_each_failure_is_a_decision(
    server: SlackServer, adapter: SlackAdapter, fault: dict, error: type[Exception]
) -> None:
    server.fail("chat.postMessage", **fault)
    with pytest.raises(error) as caught:
        await adapter.send(where(), adapter.render(HELLO, where())[0])
    if "retry_after" in fault:
        assert isinstance(caught.value, RateLimited) and caught.value.retry_after == 7
    assert TOKEN not in str(caught.value)
    assert server.channels["D0ANN"] == [] and len(server.made("chat.postMessage")) == 1


async def test_no_connection_is_unsent(tmp_path: Path) -> None:
    adapter = SlackAdapter(
        Slack(token=TOKEN, app_token="xapp-1", api_base_url="http://127.0.0.1:1/api/")
    )
    with pytest.raises(Unsent):
        await adapter.send(where(), adapter.render(HELLO, where())[0])
    await adapter._wire.close()


@pytest.mark.parametrize("thread", ["", "1.5"])
@pytest.mark.parametrize("status", [0, 502])
async def test_a_message_whose_answer_was_lost_is_found(
    server: SlackServer, adapter: SlackAdapter, status: int, thread: str
) -> None:
    here = where("C0DEV", thread)
    (payload,) = adapter.render(HELLO, here)
    first = await adapter.send(here, payload)
    server.fail("chat.postMessage", status, after_effect=True)
    second = await adapter.send(here, payload)
    assert [m["ts"] for m in server.channels["C0DEV"]] == [first, second]


async def test_a_lost_answer_that_cannot_be_read_back_stays_in_doubt(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.fail("chat.postMessage", 0, after_effect=True)
    server.fail("conversations.history", error="missing_scope")
    with pytest.raises(Ambiguous):
        await adapter.send(where(), adapter.render(HELLO, where())[0])


async def test_files_go_up_with_their_caption(
    server: SlackServer, adapter: SlackAdapter, tmp_path: Path
) -> None:
    (tmp_path / "chart.png").write_bytes(b"P" * 2_000_000)
    (tmp_path / "data.csv").write_bytes(b"a,b")
    files = tuple(
        MediaFile(ref=name, name=name, mime=mime, size=5)
        for name, mime in (("chart.png", "image/png"), ("data.csv", "text/csv"))
    )
    here = where("C0DEV", "1.5")
    (payload,) = adapter.render(Media(files=files, caption="See"), here)
    native = await adapter.send(here, payload)
    (message,) = server.channels["C0DEV"]
    assert (message["text"], message["thread_ts"]) == ("See", "1.5")
    assert message["files"][0] == native
    assert [server.uploads[one] for one in message["files"]] == [
        ("chart.png", b"P" * 2_000_000, "chart.png"),
        ("data.csv", b"a,b", ""),
    ]
    await adapter.edit(here, native, payload)
    assert len(server.channels["C0DEV"]) == 1 and not server.made("chat.update")


@pytest.mark.parametrize("status", [0, 302, 400, 401, 403, 404, 413, 429, 500, 502, 503])
async def test_a_file_that_its_place_does_not_take_concerns_the_file_alone(
    server: SlackServer, adapter: SlackAdapter, tmp_path: Path, status: int
) -> None:
    (tmp_path / "data.csv").write_bytes(b"a,b")
    file = MediaFile(ref="data.csv", name="data.csv", mime="text/csv", size=3)
    (payload,) = adapter.render(Media(files=(file,)), where())
    server.upload_status = status
    with pytest.raises(FileNotTaken):
        await adapter.send(where(), payload)
    assert not server.made("files.completeUploadExternal"), "nothing of it is visible"


@pytest.mark.parametrize("ref", ["../secret", "gone.txt"])
async def test_only_kept_copies_go_up(
    server: SlackServer, adapter: SlackAdapter, tmp_path: Path, ref: str
) -> None:
    (tmp_path.parent / "secret").write_text("x")
    file = MediaFile(ref=ref, name="x", mime="", size=1)
    with pytest.raises(Rejected):
        await adapter.send(where(), adapter.render(Media(files=(file,)), where())[0])
    assert server.calls == []


async def test_a_file_that_was_not_taken_was_not_sent(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    (payload,) = adapter.render(ReplyView(text="x"), where())
    payload = json.dumps({"text": "", "files": [{"name": "a.md", "text": "hello"}]}).encode()
    server.fail("files.getUploadURLExternal", 502)
    with pytest.raises(Unsent):
        await adapter.send(where(), payload)
    server.fail("files.completeUploadExternal", 502)
    with pytest.raises(Ambiguous):
        await adapter.send(where(), payload)


async def test_what_people_sent_is_fetched_with_the_token_and_from_slack_only(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.files["F1"] = b"hello"
    to = BytesIO()
    await adapter.fetch(Attachment(ref="F1", name="f"), to)
    assert to.getvalue() == b"hello"
    with pytest.raises(Rejected, match="file_not_found"):
        await adapter.fetch(Attachment(ref="F2", name="f"), to)
    assert to.getvalue() == b"hello"
    with pytest.raises(Rejected, match="not kept by Slack"):
        async with adapter._wire.download("https://slack.com.evil.example/f"):
            pass
    with pytest.raises(Rejected, match="larger"):
        await adapter.fetch(Attachment(ref="F1", name="f", size=60 << 20), to)


async def test_private_words_and_receipts_are_best_effort(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    await adapter.tell(where(), "C0DEV|1.5|U0BOB", "Not <you>.")
    (said,) = server.ephemeral
    assert (said["channel"], said["thread_ts"], said["user"]) == ("C0DEV", "1.5", "U0BOB")
    assert said["text"] == "Not &lt;you&gt;."
    for thread, written in (("1.5", "@turnkeeper /jobs"), ("", "/turnkeeper jobs")):
        await adapter.tell(where(), f"C0DEV|{thread}|U0BOB", say("jobs_no_such"))
        assert f"no such job. {written} lists them" in server.ephemeral[-1]["text"]
    await adapter.tell(where(), "C0DEV|1.5|U0BOB", "")
    await adapter.tell(where(), "", "word")
    server.fail("chat.postEphemeral", error="user_not_in_channel")
    await adapter.tell(where(), "C0DEV||U0BOB", "word")
    assert len(server.made("chat.postEphemeral")) == 4
    await adapter.receipt(where(), "5.5")
    server.fail("reactions.add", error="already_reacted")
    await adapter.receipt(where(), "5.5")
    assert server.reactions == [("D0ANN", "5.5", "eyes")]


async def test_last_words_go_out_after_the_end(server: SlackServer) -> None:
    adapter = adapter_of(server)

    async def accept(_: object) -> None: ...

    task = asyncio.create_task(adapter.run(accept))
    await server.wait(lambda: server.connections)
    task.cancel()
    await asyncio.wait([task])
    await adapter.send(where(), adapter.render(Notice(text="bye"), where())[0])
    assert shown(server.channels["D0ANN"][0]) == "bye"
    await adapter._wire.close()


def test_it_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="bot token"):
        SlackAdapter(Slack(token=" ", app_token="xapp-1"))
    with pytest.raises(ValueError, match="signing secret"):
        SlackAdapter(Slack(token=TOKEN))


async def test_groups_are_those_of_now_and_unknown_until_slack_tells_them(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    there = Conversation(platform="slack", account="B", workspace="T", channel="C")
    server.fail("usergroups.list", error="missing_scope")
    assert await adapter.read_groups(there, "U0ANN") is None
    adapter._people._groups._until = 0.0
    server.groups = {"S0OPS": ["U0BOB"]}
    assert await adapter.read_groups(there, "U0BOB") == ("S0OPS",)
    assert await adapter.read_groups(there, "U0ANN") == ()
