"""A waiting message as the model reads it: who wrote, what is quoted, which files came along,
what a voice note says."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agent_core.context.prompt import attributed
from agent_core.errors import ModelFailed
from agent_core.messages import Picture
from gateway.errors import DeliveryError
from gateway.messages import (
    Attachment,
    Conversation,
    JobFired,
    MessageReceived,
    Quote,
    WebhookCalled,
)
from gateway.ports import Adapter
from gateway.sessions.services import Services
from gateway.store.rows import InboxRow
from gateway.texts import say

INCOMING = "incoming"
"""Folder of the workspace for files that people send."""
MOST_QUOTED = 2_000
MOST_PICTURES = 10
"""Of one turn, that the model is shown; all are files in its workspace."""


class Asked(Struct, frozen=True, kw_only=True):
    """What a turn begins with: `text` for the model, `said` for people where the surface does
    not show it by itself. `fetched`: files or a voice note were got for it, once."""

    text: str
    said: str
    fetched: bool
    pictures: tuple[Picture, ...] = ()


def words(row: InboxRow) -> str:
    """The plain words of `row`, with their writer's name in a group."""
    inbound = row.inbound
    if isinstance(inbound, MessageReceived):
        return attributed(inbound.sender.name, inbound.text, not inbound.conversation.private)
    return inbound.text if isinstance(inbound, JobFired | WebhookCalled) else ""


def shown(row: InboxRow) -> str:
    """`row` as people see it where the surface does not show it by itself."""
    inbound = row.inbound
    if not isinstance(inbound, MessageReceived):
        return words(row)
    return "\n".join([inbound.text, *(f"[{file.name}]" for file in inbound.attachments)]).strip()


def only_voice(message: MessageReceived) -> bool:
    """Nothing to work with but what is spoken."""
    files = message.attachments
    return bool(files) and not message.text and all(file.voice for file in files)


class Reading:
    """Reads the messages of one conversation; fetches their files into its workspace."""

    def __init__(self, services: Services, adapter: Adapter, conversation: Conversation) -> None:
        self._services = services
        self._adapter = adapter
        self._conversation = conversation
        self._heard: list[str] = []
        self._seen: list[Picture] = []

    def take_heard(self) -> str:
        """What voice notes said since the last call."""
        heard, self._heard = "\n".join(self._heard), []
        return heard

    async def asked(self, rows: Sequence[InboxRow]) -> Asked:
        """All of `rows` as one turn takes it up."""
        self._seen.clear()
        texts = [await self._whole(row) for row in rows]
        return Asked(
            pictures=tuple(self._seen[:MOST_PICTURES]),
            text="\n\n".join(texts),
            said="\n\n".join(map(shown, rows)),
            fetched=any(getattr(row.inbound, "attachments", ()) for row in rows),
        )

    async def _whole(self, row: InboxRow) -> str:
        """All of `row` in words; what cannot be had is said too."""
        message = row.inbound
        text = words(row)
        if not isinstance(message, MessageReceived):
            return text
        if message.reply_to is not None:
            text = f"{_quoted(message.reply_to)}{text}"
        for attachment in message.attachments:
            text += f"\n{await self._file(attachment)}"
        return text.lstrip("\n")

    async def _file(self, attachment: Attachment) -> str:
        name = Path(attachment.name).name.lstrip(".") or "file"
        folder = self._services.agent.workspace(self._conversation) / INCOMING
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = _free(folder, name)
            await self._adapter.fetch(attachment, path)
            said = f"[file: {INCOMING}/{path.name}, {path.stat().st_size} bytes]"
            await self._look(f"{INCOMING}/{path.name}")
        except (DeliveryError, OSError) as error:
            return say("lost_file", "", name=name, why=str(error))
        return f"{said}\n{await self._spoken(path)}" if attachment.voice else said

    async def _look(self, path: str) -> None:
        """Keep what the model can be shown: a workspace's files may change, a turn's may not."""
        picture = await asyncio.to_thread(self._services.agent.picture, self._conversation, path)
        if picture is not None:
            self._seen.append(picture)

    async def _spoken(self, path: Path) -> str:
        hearing = self._services.hearing
        if hearing is None:
            return "[a voice note; no transcription model is set, so nobody has listened to it]"
        try:
            spoken = await hearing.words(path)
        except ModelFailed as error:
            return f"[a voice note that could not be transcribed: {error}]"
        self._heard.append(spoken)
        return f"[voice note, transcribed]\n{spoken}"


def _quoted(quote: Quote) -> str:
    if not quote.text or quote.mine:
        return ""
    lines = "\n".join(f"> {line}" for line in quote.text[:MOST_QUOTED].splitlines())
    return f"> {quote.author}:\n{lines}\n"


def _free(folder: Path, name: str) -> Path:
    """A path for `name` that nothing has yet: the second photo.jpg does not replace the first."""
    stem, suffix = Path(name).stem, Path(name).suffix
    path, n = folder / name, 2
    while path.exists():
        path, n = folder / f"{stem}-{n}{suffix}", n + 1
    return path
