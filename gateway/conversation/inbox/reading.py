"""Renders a waiting message for the model: author, quotes, files, and transcribed voice notes."""

import asyncio
from collections.abc import Sequence
from io import BytesIO
from os import SEEK_END

from msgspec import Struct
from msgspec.structs import replace

from agent_core.context.data_marks import mark_data
from agent_core.context.prompt import attribute_text
from agent_core.errors import ToolFailed
from agent_core.messages import Mention, Picture
from agent_core.orchestration.brief import Brief
from agent_core.questions import Answer
from agent_core.text import file_name
from agent_core.tools import paths
from gateway.conversation.inbox.fetching import FileFetcher
from gateway.conversation.inbox.parts import (
    render_answer,
    render_quote,
    render_text,
)
from gateway.conversation.state import ConversationState
from gateway.errors import DeliveryError
from gateway.messages import (
    Attachment,
    CommandGiven,
    Conversation,
    JobFired,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    PlanRetry,
    WebhookCalled,
    is_forwarded,
)
from gateway.store.rows import InboxRow
from gateway.texts import say

JOINED_FILE = "messages.txt"
INCOMING = "incoming"
"""Folder of the workspace for files that people send."""
MAX_JOINED = 64_000
"""Characters of waiting messages that one prompt holds; the rest is a file in its workspace."""
CALLED = (
    "[A call from outside: {name}. Nobody of this conversation wrote it. Here is what it brought, "
    "and below that what the operator wants done about it.]"
)
MAX_PICTURES = 10
"""Pictures of one turn that the model sees; all are files in its workspace."""


class TurnInput(Struct, frozen=True, kw_only=True):
    """The input of a turn: `text` for the model, `said` for people if the surface does not show it
    itself. `fetched`: files or a voice note were fetched for it. `files`: paths of those that are
    neither pictures nor speech. `mentions`: named server resources. `command`: run instead of
    asking a model. `retry`: it runs a plan again. `rows`: earlier messages that it asks again."""

    text: str
    said: str
    fetched: bool
    pictures: tuple[Picture, ...] = ()
    files: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    command: str = ""
    retry: PlanRetry | None = None
    rows: tuple[InboxRow, ...] = ()

    def fill(self, brief: Brief, shows: bool) -> Brief:
        """Return the brief with all of it but the text. `shows`: the surface shows what people
        say."""
        said = "" if shows else self.said
        return replace(
            brief, said=said, pictures=self.pictures, files=self.files, mentions=self.mentions,
            command=self.command,
        )  # fmt: skip


def words(row: InboxRow) -> str:
    """The plain words of `row`, with their writer's name in a group."""
    inbound = row.inbound
    if isinstance(inbound, MessageReceived):
        sender, group = inbound.sender, not inbound.conversation.private
        text = f"\n{render_text(inbound)}" if inbound.described and group else render_text(inbound)
        return attribute_text(sender.name or sender.handle or sender.id, text, group)
    if isinstance(inbound, WebhookCalled):
        return _render_call(inbound)
    return _render_firing(inbound) if isinstance(inbound, JobFired) else ""


def _render_call(called: WebhookCalled) -> str:
    """Render a call from outside for the model, as said by nobody in the conversation."""
    about = CALLED.format(name=called.name)
    return "\n\n".join((about, mark_data(called.text), called.prompt))


def _render_firing(fired: JobFired) -> str:
    brought = (f"{about}\n{mark_data(text)}" for about, text in fired.brought)
    return "\n\n".join(filter(None, (fired.text, *brought, fired.prompt)))


def _read_typed(row: InboxRow) -> str:
    """Return the words its sender typed; "" for forwarded words and for messages that nobody
    sent."""
    message = row.inbound
    if isinstance(message, MessageReceived) and not is_forwarded(message):
        return message.text
    return ""


def _has_mark(text: str) -> bool:
    return "@" in text or text.startswith("/")


def show_row(row: InboxRow) -> str:
    """`row` as people see it where the surface does not show it by itself."""
    inbound = row.inbound
    if isinstance(inbound, WebhookCalled):
        return f"{inbound.name}\n{inbound.text}"
    if not isinstance(inbound, MessageReceived):
        return words(row)
    if inbound.retry is not None:
        return ""
    return "\n".join([inbound.text, *(f"[{file.name}]" for file in inbound.attachments)]).strip()


def put_change(row: InboxRow, conversation: Conversation) -> InboxRow:
    """Turn an edit or deletion into a message that describes it, for a model that has seen the
    original."""
    change = row.inbound
    assert isinstance(change, MessageEdited | MessageDeleted)
    sender, text = change.sender, say("deleted", change.sender.language)
    if isinstance(change, MessageEdited):
        text = say("edited", sender.language, text=change.text)
    said = MessageReceived(
        conversation=conversation, sender=sender, event="", message="", text=text
    )
    return replace(row, inbound=said)


def read_for_steering(row: InboxRow) -> str | None:
    """Return the row's text for a running turn, None if it must be read as a turn of its own."""
    message = row.inbound
    if not isinstance(message, MessageReceived) or message.attachments or message.command:
        return None
    return f"{render_quote(message.reply_to)}{words(row)}"


def only_voice(message: MessageReceived) -> bool:
    """Return True if the message consists of speech alone."""
    files = message.attachments
    return bool(files) and not message.text and all(file.voice for file in files)


class MessageReader:
    """Reads the messages of one conversation; fetches their files into its workspace."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._services = state.services
        self._conversation = state.conversation
        self._heard: list[str] = []
        self._lost: list[tuple[str, str]] = []
        self._seen: list[Picture] = []
        self._files: list[str] = []
        self._fetcher: FileFetcher | None = None

    def fetch_ahead(self, rows: Sequence[InboxRow]) -> bool:
        """Fetch the files of these waiting messages in the background. Return False if all of them
        are fetched, True if the conversation's `changed` will tell."""
        files = [file for row in rows for file in getattr(row.inbound, "attachments", ())]
        return bool(files) and self._find_fetcher().fetch_ahead(files)

    def is_fetching(self) -> bool:
        """Return True while `fetch_ahead` is under way."""
        return self._fetcher is not None and self._fetcher.is_busy

    def close(self) -> None:
        """Stop fetching, and drop what nobody has read."""
        if self._fetcher is not None:
            self._fetcher.close()

    def _find_fetcher(self) -> FileFetcher:
        if self._fetcher is None:
            self._fetcher = FileFetcher(self._state)
        return self._fetcher

    def take_heard(self) -> str:
        """Return and forget the transcripts since the last call."""
        heard, self._heard = "\n".join(self._heard), []
        return heard

    def take_lost(self) -> tuple[tuple[str, str], ...]:
        """Return and forget (name, reason) of the files that could not be fetched since the last
        call."""
        lost, self._lost = tuple(self._lost), []
        return lost

    async def read_rows(self, rows: Sequence[InboxRow]) -> TurnInput:
        """Read `rows` as the input of one turn."""
        self._seen.clear()
        self._files.clear()
        texts = [await self._describe_whole(row) for row in rows]
        typed = tuple(filter(_has_mark, map(_read_typed, rows)))
        return TurnInput(
            pictures=tuple(self._seen[:MAX_PICTURES]),
            files=tuple(self._files),
            text=await self._join_within_bounds(texts),
            said="\n\n".join(map(show_row, rows)),
            fetched=any(getattr(row.inbound, "attachments", ()) for row in rows),
            mentions=self._services.agent.find_mentions(typed) if typed else (),
            command=getattr(rows[0].inbound, "command", ""),
            retry=getattr(rows[0].inbound, "retry", None),
        )

    async def answer(self, row: InboxRow) -> str:
        """Read the message as the answer to a question: its words, files and speech; "" if none
        could be fetched."""
        message = row.inbound
        if not isinstance(message, MessageReceived):
            return ""
        lost = len(self._lost)
        files = await self._read_files(message)
        said = render_answer(message)
        if not said and len(self._lost) - lost == len(message.attachments):
            return ""
        return "\n".join(filter(None, (said, files)))

    def show_answer(self, row: InboxRow, answer: Answer) -> Answer:
        """Return `answer`, read from `row` by `answer()`, with the text shown to people: file names
        and transcripts."""
        heard = self.take_heard()
        if not getattr(row.inbound, "attachments", ()):
            return answer
        return replace(answer, said=show_row(row), heard=heard)

    async def _join_within_bounds(self, texts: Sequence[str]) -> str:
        """Join the messages; text beyond a prompt's bounds goes to a file that is named instead."""
        used = 0
        for n, text in enumerate(texts):
            used += len(text) + 2
            if n and used > MAX_JOINED:
                break
        else:
            return "\n\n".join(texts)
        rest = "\n\n".join(texts[n:])
        workspace = self._services.agent.workspace(self._conversation)
        source = BytesIO(rest.encode("utf-8", "replace"))
        try:
            path = await asyncio.to_thread(paths.add, workspace, INCOMING, JOINED_FILE, source)
        except (OSError, ToolFailed):  # never lose anything, whatever the cost
            return "\n\n".join(texts)
        left = len(texts) - n
        more = f"[{left} more messages, {len(rest)} characters: {path}. Read all of it.]"
        return "\n\n".join((*texts[:n], more))

    async def _describe_whole(self, row: InboxRow) -> str:
        """Describe the whole row in words, also what could not be fetched."""
        message = row.inbound
        text = words(row)
        if not isinstance(message, MessageReceived):
            return text
        text = f"{render_quote(message.reply_to)}{text}"
        if files := await self._read_files(message):
            text = f"{text}\n{files}"
        return text.lstrip("\n")

    async def _read_files(self, message: MessageReceived) -> str:
        """Fetch the files of a message. Their names are data, as others may have given them; what
        was spoken in them is the sender's own, unless it is forwarded."""
        read = [await self._file(one) for one in message.attachments]
        spoken = [heard for _, heard in read if heard]
        if is_forwarded(message):
            spoken = list(map(mark_data, spoken))
        about = mark_data("\n".join(said for said, _ in read)) if read else ""
        return "\n".join(filter(None, (about, *spoken)))

    async def _file(self, attachment: Attachment) -> tuple[str, str]:
        """Copy the file into the workspace, so that planted links are not followed. Return its name
        and size, and its transcript."""
        name = file_name(attachment.name)
        workspace = self._services.agent.workspace(self._conversation)
        try:
            with await self._find_fetcher().take(attachment) as fetched:
                size = fetched.file.seek(0, SEEK_END)
                fetched.file.seek(0)
                path = await asyncio.to_thread(paths.add, workspace, INCOMING, name, fetched.file)
        except (DeliveryError, OSError, ToolFailed) as error:
            self._lost.append((name, str(error)))
            return say("lost_file", "", name=name, why=str(error)), ""
        if not await self._look(path) and not attachment.voice:
            self._files.append(path)
        if fetched.spoken:
            self._heard.append(fetched.spoken)
        return f"[file: {path}, {size} bytes]", fetched.heard

    async def _look(self, path: str) -> bool:
        """Keep a picture for the model: files of a workspace may change, those of a turn may
        not. Return False if it is none."""
        picture = await asyncio.to_thread(self._services.agent.picture, self._conversation, path)
        if picture is not None:
            self._seen.append(picture)
        return picture is not None


def read_as_words(row: InboxRow, command: CommandGiven) -> tuple[InboxRow, MessageReceived]:
    """A message that only looked like a command."""
    said = MessageReceived(
        conversation=command.conversation,
        sender=command.sender,
        event=command.event,
        message=command.message,
        text=f"/{command.name} {command.arguments}",
    )
    return replace(row, inbound=said), said
