"""Messages read back from Slack: to find our own, and what people wrote meanwhile."""

import logging
from collections.abc import Container, Sequence
from itertools import chain, takewhile

from msgspec import Struct

from adapters.incoming import read_string
from adapters.slack.markup import make_readable
from adapters.slack.transport import Json, SlackWire
from gateway import clock
from gateway.errors import DeliveryError
from gateway.messages import Conversation

log = logging.getLogger("adapters.slack")

SENT = "turnkeeper_sent"
"""The kind of the metadata that our messages bear."""
READ_BACK = 4.0
"""Seconds for messages to be read back."""
PAGE, PAGES, DAY = 100, 10, 86_400.0
STREAMING = "in_progress"
ALIKE = 20
"""Characters by which a text is known again."""


class SlackMessage(Struct, frozen=True):
    """A message as read back. `payload`: its metadata, for ours `id` and `says`."""

    ts: str = ""
    user: str = ""
    bot_id: str = ""
    streaming_state: str = ""
    payload: Json = {}
    words: str = ""

    def begins(self, words: str) -> bool:
        """Return True if it shows enough of the beginning of `words` to be the same text."""
        both = min(len(self.words), len(words))
        return both >= ALIKE and self.words[:ALIKE] == words[:ALIKE]


class SlackHistory:
    """The messages of a channel or a thread."""

    def __init__(self, wire: SlackWire) -> None:
        self._wire = wire

    async def find_sent(self, where: Conversation, mark: str, since: float) -> str:
        """Return the `ts` of our message sent with `mark`, "" if it does not exist or cannot be
        read."""
        for one in await self._read_newest(where, since):
            if one.payload.get("id") == mark:
                log.info("slack_read_back", extra={"ts": one.ts})
                return one.ts
        return ""

    async def find_sent_or_equal(self, where: Conversation, mark: str, says: str) -> str:
        """Return the `ts` of our message with `mark`, anywhere; otherwise of one with the content
        of `says`, below the last message of a person: an equal one above that was said before, and
        may rightly be repeated."""
        found = await self._read_newest(where)
        alike = takewhile(lambda one: one.user == where.account, found)
        for one in chain(
            (one for one in found if one.payload.get("id") == mark),
            (one for one in alike if one.payload.get("says") == says),
        ):
            log.info("slack_read_back", extra={"ts": one.ts})
            return one.ts
        return ""

    async def find_streaming(
        self, where: Conversation, since: float, known: Container[str], words: str = ""
    ) -> str:
        """Return the `ts` of our newest unfinished stream there that is none of the `known`; with
        `words`, of one that shows their beginning."""
        for one in await self._read_newest(where, since):
            mine = one.user == where.account and one.streaming_state == STREAMING
            if mine and one.ts not in known and (not words or one.begins(words)):
                log.info("slack_stream_found", extra={"ts": one.ts})
                return one.ts
        return ""

    async def read_thread(self, where: Conversation, before: str) -> list[Json]:
        """Return the messages of a thread before `before`, oldest first. Slack returns them from
        the beginning, so of a very long thread the last ones are missing. DeliveryError."""
        asked: dict[str, object] = {"channel": where.channel, "ts": where.thread, "limit": PAGE}
        found: dict[str, Json] = {}
        for _ in range(PAGES):
            answer = await self._wire.call("conversations.replies", asked, form=True)
            messages, more = answer.get("messages"), answer.get("response_metadata")
            page = messages if isinstance(messages, list) else ()
            found |= {str(one.get("ts", "")): one for one in page if isinstance(one, dict)}
            cursor = more.get("next_cursor") if isinstance(more, dict) else ""
            if not cursor or any(stamp >= before for stamp in found):
                break
            asked["cursor"] = str(cursor)
        return [found[stamp] for stamp in sorted(found) if stamp < before]

    async def _read_newest(self, where: Conversation, since: float = 0.0) -> Sequence[SlackMessage]:
        """Return messages, newest first; () if they cannot be read."""
        asked: dict[str, object] = {"channel": where.channel, "include_all_metadata": "true"}
        if where.thread and not since:  # a thread can only be read from its start
            since = clock.now() - DAY
        asked |= {"oldest": f"{since:.6f}"} if since else {}
        asked |= {"limit": PAGE} | ({"ts": where.thread} if where.thread else {})
        method = "conversations.replies" if where.thread else "conversations.history"
        try:
            async with clock.limit(READ_BACK):
                answer = await self._wire.call(method, asked, form=True)
        except (DeliveryError, TimeoutError) as error:
            log.info("slack_not_read_back", extra={"why": str(error)})
            return ()
        messages = answer.get("messages")
        found = map(_message, messages if isinstance(messages, list) else ())
        return sorted(found, key=lambda one: one.ts, reverse=True)


def _message(raw: object) -> SlackMessage:
    about = raw if isinstance(raw, dict) else {}
    metadata = about.get("metadata")
    payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
    kept = {name: str(about.get(name) or "") for name in ("ts", "user", "bot_id")}
    kept["streaming_state"] = str(about.get("streaming_state") or "")
    blocks = about.get("blocks")
    first = blocks[0] if isinstance(blocks, list) and blocks else {}
    return SlackMessage(
        **kept,
        payload=payload if isinstance(payload, dict) else {},
        words=_words(first) if isinstance(first, dict) else "",
    )


def read_own_words(message: Json) -> str:
    """Return the words of a message of ours: of its blocks, as its text may be a summary."""
    blocks = (one for one in _maps(message.get("blocks")) if one.get("type") != "actions")
    said = filter(None, map(_read_block, blocks))
    return "\n".join(said) or str(message.get("text") or "")


def read_whole(message: Json, me: str) -> str:
    """Return the words of anybody's message: its text, else those of its blocks, as alerts have
    them; then what is attached to it, and the names of its files."""
    text = read_string(message.get("text")) or read_own_words(message)
    attached = (one for one in _maps(message.get("attachments")) if not _is_preview(one))
    files = (f"[{read_string(one.get('name')) or 'file'}]" for one in _maps(message.get("files")))
    lines = (
        make_readable(text, me),
        *(make_readable(_read_attached(one), me) for one in attached),
        *files,
    )
    return "\n".join(filter(None, lines))


def _maps(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_preview(attached: Json) -> bool:
    """Return True for the preview of a link, which Slack has added."""
    linked = "from_url" in attached or "original_url" in attached
    return linked and attached.get("is_share") is not True


def _read_attached(attached: Json) -> str:
    names = ("author_name", "pretext", "title", "text")
    lines = [read_string(attached.get(name)) for name in names]
    lines += [read_own_words(attached)] if "blocks" in attached else []
    for field in _maps(attached.get("fields")):
        lines.append(": ".join(read_string(field.get(name)) for name in ("title", "value")))
    return "\n".join(filter(None, lines)) or read_string(attached.get("fallback"))


def _read_block(block: Json) -> str:
    text = block.get("text")
    inner = text.get("text") if isinstance(text, dict) else ""
    return _words(block) or (inner if isinstance(inner, str) else "")


def _words(block: Json) -> str:
    """Return the words of a block that identify its message: its text, or the steps of a plan."""
    tasks = block.get("tasks")
    if isinstance(tasks, list):
        return "\n".join(str(one.get("title", "")) for one in tasks if isinstance(one, dict))
    text = block.get("text")
    return text if isinstance(text, str) else ""
