"""The conversation in provider-neutral form: messages made of parts.

A transcript is a sequence of messages without system text (that is in the request). Roles alternate
user / assistant / tool / assistant …; `models` renders it for each provider.
"""

import re
from typing import Literal, TypeAlias

from msgspec import Struct

from agent_core.phrases import Phrase

Role = Literal["user", "assistant", "tool"]


class Text(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="text"):
    """Text in Markdown. `condensed`: it summarises earlier messages, which are not visible."""

    text: str
    condensed: bool = False


class Thinking(Struct, frozen=True, kw_only=True, tag_field="kind", tag="thinking"):
    """A model's reasoning; replayed to the provider that made it and to no other."""

    text: str
    provider: str
    signature: str | None = None


Access = Literal["read", "write", "shell", "network", "person"]
"""The reach of a tool's calls."""
Repetition = Literal["pure", "idempotent", "effect"]
"""The repetition allowed for a tool's calls. pure: run again freely. idempotent: run again with the
same key. effect: never run twice."""


TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The form of a tool's name that all providers take."""


class ToolCall(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_call"):
    """A call by the model; `arguments` is its JSON text as it was written."""

    id: str
    name: str
    arguments: str


class Picture(Struct, frozen=True, kw_only=True, tag_field="kind", tag="picture"):
    """A picture that a person or a tool gave. `ref` names a kept copy that never changes, `path`
    the file in the workspace, `size` in bytes."""

    ref: str
    path: str
    mime: str
    size: int


NO_OUTPUT = "(no output)"
"""Stands for the output of a command that wrote nothing."""


class CommandResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a command, beside the text for the model. One of three: `exit_code`;
    `stopped`, the seconds after which it was ended, 0 = on demand; `handle`, the name under which
    it runs on. `written`: characters of the text before the note about its end."""

    exit_code: int | None = None
    stopped: float | None = None
    handle: str = ""
    written: int = 0

    @property
    def silent(self) -> bool:
        """True if it went well and wrote nothing."""
        return self.exit_code == 0 and not self.written

    @property
    def failed(self) -> bool:
        """True if it ended, and not well."""
        return self.stopped is not None or bool(self.exit_code)

    def describe_end(self) -> str:
        """Describe its end for the model."""
        if self.exit_code is not None:
            return f"[exit code {self.exit_code}]"
        return f"[stopped after {self.stopped:g} s]" if self.stopped else "[stopped]"


class Browsed(Struct, frozen=True, kw_only=True):
    """A call's use of the browser: the action, and the page that is open then ("" = none);
    otherwise the address at which it can be watched."""

    action: str = ""
    url: str = ""


class SharedLink(Struct, frozen=True, kw_only=True):
    """Something that people can open: the server of the app `name`, or the browser, to watch.
    `public`: from everywhere, otherwise on the gateway's machine alone."""

    of: Literal["app", "browser"]
    url: str
    public: bool = False
    name: str = ""


class ToolResult(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="tool_result"
):
    """The result of a call, or why it failed. `denied`: a person or the policy did not allow it."""

    call_id: str
    name: str
    content: str
    error: bool = False
    pictures: tuple[Picture, ...] = ()
    denied: bool = False
    command: CommandResult | None = None
    seal: str = ""
    """Set: strangers may have written `content`, and the marks around it hold this."""


class GivenFile(Struct, frozen=True, kw_only=True):
    """A file sent to people. `ref` names a stored copy that never changes; `size` in bytes;
    `redacted`: names stand in it in place of secrets."""

    ref: str
    name: str
    mime: str
    size: int
    redacted: bool = False


class ToolOutput(Struct, frozen=True, kw_only=True):
    """The output of a tool: `text` and `pictures` for the model, `files` for people, with a note.
    `changed`: paths of the workspace that it wrote. `shown`: shown to people in place of `text`;
    None: the text itself. `link`: what people can open now."""

    text: str
    files: tuple[GivenFile, ...] = ()
    caption: str = ""
    changed: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    command: CommandResult | None = None
    browsed: Browsed | None = None
    shown: str | Phrase | None = None
    link: SharedLink | None = None
    seal: str = ""
    """Set: strangers may have written `text`: see `ToolResult`."""


def wrap_output(gave: str | ToolOutput) -> ToolOutput:
    """Wrap a tool's output if it is a text alone."""
    return gave if isinstance(gave, ToolOutput) else ToolOutput(text=gave)


Part: TypeAlias = Text | Thinking | ToolCall | ToolResult | Picture


class Message(Struct, frozen=True, kw_only=True):
    """One message of a transcript."""

    role: Role
    parts: tuple[Part, ...]


def user(text: str, pictures: tuple[Picture, ...] = ()) -> Message:
    """A user message of one text, with the pictures that belong to it."""
    return Message(role="user", parts=(Text(text=text), *pictures))


def text_of(message: Message) -> str:
    """The words of `message`, without thinking and calls."""
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return message.parts[0].text
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def pictures_of(message: Message) -> tuple[Picture, ...]:
    """Return the pictures in `message`, in order, also those of results. Fast for the usual
    message, which is one text."""
    if len(message.parts) == 1 and isinstance(message.parts[0], Text):
        return ()
    if message.role == "tool":
        results = (part for part in message.parts if isinstance(part, ToolResult))
        return tuple(picture for result in results for picture in result.pictures)
    return tuple(part for part in message.parts if isinstance(part, Picture))


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The tool calls in `message`, in order."""
    return tuple(part for part in message.parts if isinstance(part, ToolCall))


class Mention(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server's resource (`uri`) or `prompt` (with the `words` after it) that a person names in a
    message."""

    server: str
    uri: str = ""
    prompt: str = ""
    words: str = ""

    def __str__(self) -> str:
        if self.prompt:
            return f"/prompt {self.server} {self.prompt}"
        return f"@{self.server}:{self.uri}"
