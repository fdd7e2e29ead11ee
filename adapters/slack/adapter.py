"""Slack: one app in one workspace, as the gateway's Adapter port."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
from aiohttp import web
from msgspec.structs import replace

from adapters.http_errors import unwrap_refusal
from adapters.incoming import read_string
from adapters.outputs import find_copy
from adapters.slack.blocks import SlackUpload
from adapters.slack.doubt import with_twins
from adapters.slack.history import SENT, SlackHistory, read_own_words, read_whole
from adapters.slack.home import Homes
from adapters.slack.live.chunks import StreamChunks
from adapters.slack.live.missed import Backfill
from adapters.slack.live.sessions import Sessions, Status
from adapters.slack.live.streams import SlackStreams
from adapters.slack.markup import escape_markup, write_command
from adapters.slack.moments import write_moment
from adapters.slack.people import SlackPeople
from adapters.slack.receive import SlackReceiver
from adapters.slack.render import render
from adapters.slack.transport import Json, SlackWire, write
from gateway import clock
from gateway.accounts.slack import Slack
from gateway.command_texts import write_commands
from gateway.errors import Ambiguous, DeliveryError, FileNotTaken, Gone, Rejected, Unsent
from gateway.messages import (
    Attachment,
    Conversation,
    Inbound,
    MessageReceived,
    Quote,
    Sender,
    digest,
)
from gateway.moment_texts import write_moments
from gateway.ports import Accept, Look, Recent
from gateway.views import Abilities, Media, SaidView, View

log = logging.getLogger("adapters.slack")

STREAMS = ("streaming_state_conflict", "cant_update_message", "edit_window_closed")
"""Refusals of an edit that may be for a stream that was never ended."""
LOOKED_BACK = 5.0
"""Seconds before a call whose answer was lost from which its message is searched for: clocks
differ."""
MAX_FETCHED, KNOWN = 50 << 20, 2_000
RECALLS = 0.001
"""Seconds: a send is named (`send_as`), but Slack itself never knows it again. It is found by
reading back, which may fail, so a send that was cut off is in doubt at once."""
QUIET = {"unfurl_links": False, "unfurl_media": False, "link_names": False}


class SlackAdapter:
    """One app's bot. With an app token it receives by Socket Mode, otherwise over HTTP at
    /slack/events; `look` returns the content of its home, `recent` where to read back missed
    messages, `outputs` the folder of files that the agent sends. ValueError if a setting cannot
    work."""

    platform = "slack"
    abilities = Abilities(drafts=False, edit_interval=1.2, send_timeout=14.0, recalls=RECALLS)

    def __init__(
        self,
        app: Slack,
        look: Look | None = None,
        recent: Recent | None = None,
        outputs: Path | None = None,
    ) -> None:
        if not app.token.strip():
            raise ValueError("the Slack bot token is empty")
        if not app.app_token and not app.signing_secret:
            raise ValueError("Slack needs an app token (Socket Mode) or a signing secret (HTTP)")
        self.last_contact = 0.0
        self._wire = SlackWire(app.token, app.api_base_url, self._lose_contact)
        self._sessions = Sessions(self._wire)
        self._history = SlackHistory(self._wire)
        self._streams = SlackStreams(self._wire, self._sessions, self._history)
        self._arrived: dict[str, None] = {}
        self._certain: dict[str, None] = {}
        """Messages in doubt of this life that were found."""
        people = self._people = SlackPeople(self._wire)
        self._homes = Homes(self._wire, people, look)
        self._missed = Backfill(self._wire, recent)
        self._receiver = SlackReceiver(self._wire, people, self._homes, self._touch, app)
        self._hooked = not app.app_token
        self._outputs = outputs

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [web.post("/slack/events", self._receiver.hook)] if self._hooked else []

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; Rejected if Slack refuses a token."""
        try:
            with unwrap_refusal():
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._streams.watch())
                    group.create_task(self._sessions.run())
                    group.create_task(self._homes.keep())
                    group.create_task(self._receiver.catch_up(self._missed, accept))
                    group.create_task(self._receiver.run(partial(self._accept, accept)))
        finally:
            await self._wire.close()

    async def _accept(self, accept: Accept, inbounds: Sequence[Inbound]) -> None:
        """Accept messages; in a private thread, where each is answered, show the agent at work at
        once. A repeated one begins nothing."""
        for one in inbounds:
            new = isinstance(one, MessageReceived) and one.message not in self._arrived
            if isinstance(one, MessageReceived) and new and one.conversation.private:
                self._arrived[one.message] = None
                self._sessions.want(one.conversation, "processing")
        while len(self._arrived) > KNOWN:
            self._arrived.pop(next(iter(self._arrived)))
        await accept(inbounds)
        self._homes.stir()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """Render for chat.postMessage; commands are written differently in a thread."""
        thread = bool(conversation.thread)
        payloads = render(view, thread=thread)
        if isinstance(view, SaidView | Media) or not view.doubt:  # files have no duplicate to find
            return payloads
        return with_twins(payloads, render(replace(view, doubt=""), thread=thread))

    async def send(self, conversation: Conversation, payload: bytes, answers: str = "") -> str:
        """The new message's `ts`; of files the first one's id."""
        return await self.send_as(clock.new_id(), conversation, payload)

    async def send_as(
        self, name: str, conversation: Conversation, payload: bytes, answers: str = ""
    ) -> str:
        """Send like `send`; for a message in doubt return the `ts` of the one of this `name`, if it
        exists."""
        body = _body(payload)
        if body.files:
            native = await self._upload(conversation, body.files, str(body.told.get("text", "")))
        else:
            native = await self._post_new(name, conversation, body)
        await self._set_status(conversation, body.session)
        return native

    async def _post_new(self, mark: str, conversation: Conversation, body: "_Body") -> str:
        says = digest((body.sure or body.whole).encode())
        if body.sure and (
            stamp := await self._history.find_sent_or_equal(conversation, mark, says)
        ):
            self._certain[stamp] = None
            return stamp
        if stamp := await self._send_stream(conversation, body):
            return stamp
        told = body.told | QUIET | _address(conversation)
        told["metadata"] = {"event_type": SENT, "event_payload": {"id": mark, "says": says}}
        since = clock.now() - LOOKED_BACK
        try:
            answer = await self._wire.call("chat.postMessage", told)
        except Ambiguous:
            if stamp := await self._history.find_sent(conversation, mark, since):
                return stamp
            raise
        return _stamp(answer)

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Edit a message; one with files does not change."""
        body = _body(payload)
        if body.files or "." not in native:
            return
        if body.sure and native in self._certain:
            body = _body(body.sure.encode())
        if not await self._streams.show(native, body.stream):
            told = body.told | {"channel": conversation.channel, "ts": native, "link_names": False}
            await self._update_message(conversation, told)
        await self._set_status(conversation, body.session)

    async def remove(self, conversation: Conversation, native: str) -> None:
        """Delete the message; one that streams is ended first."""
        if self._streams.shows(native):
            await self._streams.end(conversation, native)
        try:
            await self._wire.call("chat.delete", {"channel": conversation.channel, "ts": native})
        except Gone:
            pass

    async def _send_stream(self, conversation: Conversation, body: "_Body") -> str:
        """The `ts` of the stream that shows this, "" if a message has to. One that was found shows
        it by an edit; if that fails, the next edit does."""
        stream, stamp = body.stream, ""
        if stream is None or not self._streams.can_begin(conversation):
            return ""
        if stream.live:
            stamp = await self._streams.begin(conversation, stream)
        elif body.sure:
            stamp = await self._streams.cut(conversation, stream.chunks)
        if stamp and not self._streams.shows(stamp):
            self._certain[stamp] = None
            told = (_body(body.sure.encode()) if body.sure else body).told
            told = told | {"channel": conversation.channel, "ts": stamp, "link_names": False}
            try:
                await self._update_message(conversation, told)
            except DeliveryError as error:
                log.info("slack_not_caught_up", extra={"why": str(error)})
        return stamp

    async def _update_message(self, conversation: Conversation, told: dict[str, object]) -> None:
        """A message that still streams, begun before a restart, takes no edit: it is ended
        first."""
        try:
            await self._wire.call("chat.update", told)
        except Rejected as error:
            if not str(error).startswith(STREAMS):
                raise
            await self._streams.end(conversation, str(told["ts"]))
            await self._wire.call("chat.update", told)

    async def _set_status(self, conversation: Conversation, status: Status | None) -> None:
        self._homes.stir()
        if status == "active":
            await self._streams.settle(conversation)
        if status is not None:
            self._sessions.want(conversation, status)

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Do nothing: there are no drafts (`abilities.drafts`)."""

    async def probe(self) -> None:
        """Check that Slack answers."""
        await self._wire.call("auth.test", {})

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """A word that only the person sees; a press is acknowledged already."""
        channel, thread, user, answer_at, *_ = (*press.split("|", 3), "", "", "")
        if not text or not channel or not user:
            return
        write = partial(write_command, thread=bool(thread))
        text = escape_markup(write_commands(text, write, moments=True))
        text = write_moments(text, write_moment)
        said: dict[str, object] = {"channel": channel, "user": user, "text": text}
        said |= {"thread_ts": thread} if thread else {}
        try:
            if not answer_at or not await self._respond(answer_at, text):
                await self._wire.call("chat.postEphemeral", said)
        except (Rejected, Ambiguous) as error:
            log.warning("slack_not_told", extra={"why": str(error)})

    async def _respond(self, answer_at: str, text: str) -> bool:
        """Answer a command where it came from; False if Slack does not take it there any more."""
        try:
            await self._wire.respond(answer_at, text)
        except Rejected as error:
            log.info("slack_answer_refused", extra={"why": str(error)})
            return False
        return True

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """Add eyes to the message; a question from a window is no message."""
        if "." in message:
            await self._add_eyes(conversation, message)

    async def _add_eyes(self, conversation: Conversation, message: str) -> bool:
        """Return False if Slack refuses them."""
        try:
            eyes = {"channel": conversation.channel, "timestamp": message, "name": "eyes"}
            await self._wire.call("reactions.add", eyes)
        except DeliveryError as error:
            log.debug("slack_no_receipt", extra={"why": str(error)})
            return not isinstance(error, Rejected) or "already_reacted" in str(error)
        return True

    async def clear_receipt(self, conversation: Conversation, message: str) -> None:
        """Remove the eyes."""
        if "." not in message:
            return
        try:
            eyes = {"channel": conversation.channel, "timestamp": message, "name": "eyes"}
            await self._wire.call("reactions.remove", eyes)
        except (Rejected, Ambiguous) as error:
            log.debug("slack_receipt_stays", extra={"why": str(error)})

    async def show_work(self, conversation: Conversation, message: str) -> bool:
        """Return False: a private thread has its session (`_accept`); elsewhere the eyes are the
        sign, or the session where the app may not react."""
        if (conversation.private and conversation.thread) or "." not in message:
            return False
        if not await self._add_eyes(conversation, message):
            self._sessions.want(conversation, "processing")
        return True

    async def read_thread(
        self, conversation: Conversation, before: str, limit: int
    ) -> tuple[Quote, ...]:
        """Read the thread with the authors' names; () for a window's question, which is no
        message."""
        if "." not in before:
            return ()
        said = await self._history.read_thread(conversation, before)
        first = [one for one in said[:1] if one.get("ts") == conversation.thread]
        return tuple(
            [await self._quote(one, conversation) for one in (*first, *said[len(first) :][-limit:])]
        )

    async def read_groups(self, conversation: Conversation, person: str) -> tuple[str, ...] | None:
        """Return the person's user groups, known for a few minutes."""
        return await self._people.read_groups(person)

    async def _quote(self, said: Json, conversation: Conversation) -> Quote:
        user, me = str(said.get("user", "")), conversation.account
        mine = user == me
        person = Sender(platform="slack", id="" if mine else user)
        named = await self._people.resolve_sender(person)
        text = read_own_words(said) if mine else read_whole(said, me)
        return Quote(
            message=str(said.get("ts", "")),
            author=named.name or named.handle or read_string(said.get("username")) or user,
            text=await self._people.name_mentioned(text),
            mine=mine,
        )

    async def fetch(self, attachment: Attachment, to: BinaryIO) -> None:
        """Fetch at most 50 MB."""
        if attachment.size > MAX_FETCHED:
            raise Rejected(f"the file is larger than {MAX_FETCHED >> 20} MB")
        try:
            answer = await self._wire.call("files.info", {"file": attachment.ref}, form=True)
            file = answer.get("file")
            about = file if isinstance(file, dict) else {}
            url = about.get("url_private_download") or about.get("url_private")
            if not isinstance(url, str):
                raise Rejected("Slack does not hand out this file")
            async with self._wire.download(url) as chunks:
                await write(chunks, to, MAX_FETCHED)
        except Ambiguous as error:
            raise Unsent(str(error)) from None  # a download may be repeated

    async def _upload(self, where: Conversation, files: Sequence[SlackUpload], caption: str) -> str:
        """Upload the files; nothing is visible before the last call."""
        try:
            kept = [await self._upload_file(file) for file in files]
        except Ambiguous as error:
            raise Unsent(str(error)) from None
        asked: dict[str, object] = {"files": kept, "channel_id": where.channel}
        if where.thread:
            asked["thread_ts"] = where.thread
        if caption:
            asked["initial_comment"] = caption
        await self._wire.call("files.completeUploadExternal", asked)
        return kept[0]["id"]

    async def _upload_file(self, file: SlackUpload) -> dict[str, str]:
        """Upload a file, not yet visible to anybody."""
        with ExitStack() as stack:
            path = None
            if file.ref:
                path = await asyncio.to_thread(find_copy, self._outputs, file.ref, file.name)
            whole = file.text.encode("utf-8", "replace")
            content: BinaryIO = BytesIO(whole)
            if path:
                content = stack.enter_context(path.open("rb"))  # noqa: ASYNC230 - a local file
            length = path.stat().st_size if path else len(whole)  # noqa: ASYNC240
            asked: dict[str, object] = {"filename": file.name or "file", "length": length}
            if file.alt:
                asked["alt_txt"] = file.alt
            answer = await self._wire.call("files.getUploadURLExternal", asked, form=True)
            url, name = answer.get("upload_url"), answer.get("file_id")
            if not isinstance(url, str) or not isinstance(name, str):
                raise Unsent("Slack names no place for the file")
            try:
                await self._wire.upload(url, content)
            except (Unsent, Ambiguous) as error:
                raise FileNotTaken(str(error)) from None
        return {"id": name, "title": file.name or "file"}

    def _touch(self) -> None:
        if not self._wire.token_refused:
            self.last_contact = clock.monotonic()

    def _lose_contact(self) -> None:
        self.last_contact = 0.0


class _Body(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed payload. `told`: for Slack; `stream`: the same as a stream; `session`: the thread's
    session afterwards; `sure`: the payload that may be there in its place."""

    whole: str
    told: dict[str, object]
    files: tuple[SlackUpload, ...] = ()
    stream: StreamChunks | None = None
    session: Status | None = None
    sure: str = ""


def _body(payload: bytes) -> _Body:
    told: dict[str, object] = msgspec.json.decode(payload)
    names = [name for name in ("files", "stream", "session", "sure") if name in told]
    ours = {name: told.pop(name) for name in names}
    return msgspec.convert(ours | {"told": told, "whole": payload.decode()}, _Body)


def _address(conversation: Conversation) -> dict[str, object]:
    where: dict[str, object] = {"channel": conversation.channel}
    return where | ({"thread_ts": conversation.thread} if conversation.thread else {})


def _stamp(answer: Json) -> str:
    stamp = answer.get("ts")
    if not isinstance(stamp, str):
        raise Ambiguous("the answer to chat.postMessage names no message")
    return stamp
