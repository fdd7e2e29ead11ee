"""Slack: one app in one workspace, as the gateway's Adapter port."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import msgspec
from aiohttp import web

from adapters.outputs import kept_copy
from adapters.slack.blocks import Source
from adapters.slack.markup import escaped
from adapters.slack.receive import Receiver
from adapters.slack.render import render
from adapters.slack.transport import Json, Wire, write
from gateway import clock
from gateway.errors import Ambiguous, DeliveryError, Rejected, Unsent
from gateway.messages import Attachment, Conversation
from gateway.ports import Accept
from gateway.views import Abilities, View

log = logging.getLogger("adapters.slack")

SENT = "turnkeeper_sent"
LOOKED_BACK = 5.0
"""Seconds before a call whose answer was lost, from which its message is looked for: clocks differ."""
READ_BACK = 4.0
MOST_FETCHED = 50 << 20
PAGE = 30
QUIET = {"unfurl_links": False, "unfurl_media": False, "link_names": False}


class SlackAdapter:
    """One app's bot. With `app_token` it receives by Socket Mode, else over HTTP at /slack/events,
    signed with `signing_secret`; `outputs` is the folder of the files that the agent gives out.
    ValueError if a setting cannot work."""

    platform = "slack"
    abilities = Abilities(drafts=False, edit_interval=1.2, send_timeout=14.0)

    def __init__(
        self,
        token: str,
        app_token: str = "",
        signing_secret: str = "",
        api_base_url: str = "https://slack.com/api/",
        outputs: Path | None = None,
    ) -> None:
        if not token.strip():
            raise ValueError("the Slack bot token is empty")
        if not app_token and not signing_secret:
            raise ValueError("Slack needs an app token (Socket Mode) or a signing secret (HTTP)")
        self.last_contact = 0.0
        self._wire = Wire(token, api_base_url)
        self._receiver = Receiver(self._wire, self._touch, app_token, signing_secret)
        self._hooked = not app_token
        self._outputs = outputs

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        return [web.post("/slack/events", self._receiver.hook)] if self._hooked else []

    async def run(self, accept: Accept) -> None:
        """Receive until cancelled; Rejected if Slack refuses a token."""
        try:
            await self._receiver.run(accept)
        finally:
            await self._wire.close()

    def render(self, view: View, conversation: Conversation) -> tuple[bytes, ...]:
        """What chat.postMessage takes, the same in every channel."""
        return render(view)

    async def send(self, conversation: Conversation, payload: bytes) -> str:
        """The new message's `ts`; of files the first one's id."""
        body = _body(payload)
        if files := msgspec.convert(body.pop("files", []), list[Source]):
            return await self._upload(conversation, files, str(body.get("text", "")))
        mark = clock.new_id()
        body |= QUIET | _where(conversation)
        body["metadata"] = {"event_type": SENT, "event_payload": {"id": mark}}
        since = clock.now() - LOOKED_BACK
        try:
            answer = await self._wire.call("chat.postMessage", body)
        except Ambiguous:
            if stamp := await self._found(conversation, mark, since):
                return stamp
            raise
        return _stamp(answer)

    async def edit(self, conversation: Conversation, native: str, payload: bytes) -> None:
        """Of a message with files nothing changes."""
        body = _body(payload)
        if "files" in body or "." not in native:
            return
        body |= {"channel": conversation.channel, "ts": native, "link_names": False}
        await self._wire.call("chat.update", body)

    async def draft(self, conversation: Conversation, key: int, text: str) -> None:
        """Not here: `abilities.drafts` says so."""

    async def tell(self, conversation: Conversation, press: str, text: str) -> None:
        """A word that only the person sees; a press is acknowledged already."""
        channel, _, rest = press.partition("|")
        thread, _, user = rest.partition("|")
        if not text or not channel or not user:
            return
        said: dict[str, object] = {"channel": channel, "user": user, "text": escaped(text)}
        try:
            await self._wire.call(
                "chat.postEphemeral", said | ({"thread_ts": thread} if thread else {})
            )
        except (Rejected, Ambiguous) as error:
            log.info("slack_not_told", extra={"why": str(error)})

    async def receipt(self, conversation: Conversation, message: str) -> None:
        """Eyes on the message."""
        try:
            eyes = {"channel": conversation.channel, "timestamp": message, "name": "eyes"}
            await self._wire.call("reactions.add", eyes)
        except DeliveryError as error:
            log.debug("slack_no_receipt", extra={"why": str(error)})

    async def fetch(self, attachment: Attachment, to: Path) -> None:
        """At most 50 MB."""
        if attachment.size > MOST_FETCHED:
            raise Rejected(f"the file is larger than {MOST_FETCHED >> 20} MB")
        try:
            answer = await self._wire.call("files.info", {"file": attachment.ref}, form=True)
            file = answer.get("file")
            about = file if isinstance(file, dict) else {}
            url = about.get("url_private_download") or about.get("url_private")
            if not isinstance(url, str):
                raise Rejected("Slack does not hand out this file")
            async with self._wire.download(url) as chunks:
                await write(chunks, to, MOST_FETCHED)
        except (DeliveryError, OSError) as error:
            await asyncio.to_thread(to.unlink, missing_ok=True)
            if isinstance(error, Ambiguous):
                raise Unsent(str(error)) from None  # a download may be made again
            raise

    async def _upload(self, where: Conversation, files: Sequence[Source], caption: str) -> str:
        """Nothing is seen of the files before the last call."""
        try:
            kept = [await self._kept(file) for file in files]
        except Ambiguous as error:
            raise Unsent(str(error)) from None
        asked: dict[str, object] = {"files": kept, "channel_id": where.channel}
        if where.thread:
            asked["thread_ts"] = where.thread
        if caption:
            asked["initial_comment"] = caption
        await self._wire.call("files.completeUploadExternal", asked)
        return kept[0]["id"]

    async def _kept(self, file: Source) -> dict[str, str]:
        """The file as Slack has it, seen by nobody yet."""
        with ExitStack() as stack:
            path = None
            if file.ref:
                path = await asyncio.to_thread(kept_copy, self._outputs, file.ref, file.name)
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
            await self._wire.upload(url, content)
        return {"id": name, "title": file.name or "file"}

    async def _found(self, where: Conversation, mark: str, since: float) -> str:
        """The `ts` of the message that bears `mark`, "" if it is not there or cannot be read."""
        asked: dict[str, object] = {"channel": where.channel, "oldest": f"{since:.6f}"}
        asked |= {"limit": PAGE, "include_all_metadata": "true"}
        method = "conversations.replies" if where.thread else "conversations.history"
        if where.thread:
            asked["ts"] = where.thread
        try:
            async with clock.limit(READ_BACK):
                answer = await self._wire.call(method, asked, form=True)
        except (DeliveryError, TimeoutError) as error:
            log.info("slack_not_read_back", extra={"why": str(error)})
            return ""
        messages = answer.get("messages")
        for message in messages if isinstance(messages, list) else ():
            sent = msgspec.convert(message, _Sent)
            if sent.metadata.event_payload.get("id") == mark:
                log.info("slack_read_back", extra={"ts": sent.ts})
                return sent.ts
        return ""

    def _touch(self) -> None:
        self.last_contact = clock.monotonic()


class _Metadata(msgspec.Struct):
    event_payload: dict[str, object] = msgspec.field(default_factory=dict)


class _Sent(msgspec.Struct):
    """A message as it is read back."""

    ts: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def _body(payload: bytes) -> dict[str, object]:
    body: dict[str, object] = msgspec.json.decode(payload)
    return body


def _where(conversation: Conversation) -> dict[str, object]:
    where: dict[str, object] = {"channel": conversation.channel}
    return where | ({"thread_ts": conversation.thread} if conversation.thread else {})


def _stamp(answer: Json) -> str:
    stamp = answer.get("ts")
    if not isinstance(stamp, str):
        raise Ambiguous("the answer to chat.postMessage names no message")
    return stamp
