"""The closed set of inbound values that adapters parse platform payloads into.

Vocabulary: imports nothing of ours. `event` is the platform's id of the delivery (the same on a
redelivery); `message` is the platform's id of the message within its channel.
"""

import hashlib
from functools import lru_cache
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

from msgspec import Struct
from msgspec.structs import replace


class Conversation(Struct, frozen=True, kw_only=True):
    """One line of talk on a platform. `id` is its address as one string."""

    platform: str
    account: str
    workspace: str = ""
    channel: str
    thread: str = ""
    private: bool = False
    """One person and the agent alone."""
    person: str = ""
    """The person whose line of talk it is, in a group where each person has their own."""

    @property
    def id(self) -> str:
        """`platform:account:workspace:channel:thread`, each part percent-encoded, then `:p` if it
        is private or `:u` and the person."""
        return _address(self)


@lru_cache(maxsize=1024)
def _address(where: Conversation) -> str:
    """Asked for many times while a conversation is busy."""
    parts = (where.platform, where.account, where.workspace, where.channel, where.thread)
    end = ":p" if where.private else f":u{_quote(where.person)}" if where.person else ""
    return ":".join(map(_quote, parts)) + end


def _quote(part: str) -> str:
    return quote(part, safe="@-_.~")


def read_conversation(address: str) -> Conversation:
    """Parse the `id` of a Conversation. ValueError if it is none."""
    parts = address.split(":")
    end = (parts.pop() or "?") if len(parts) == 6 else ""
    if len(parts) != 5 or not (end in ("", "p") or (end[0] == "u" and len(end) > 1)):
        raise ValueError(f"not a conversation address: {address!r}")
    platform, account, workspace, channel, thread = map(unquote, parts)
    return Conversation(
        platform=platform,
        account=account,
        workspace=workspace,
        channel=channel,
        thread=thread,
        private=end == "p",
        person=unquote(end[1:]) if end[:1] == "u" else "",
    )


def is_address(text: str) -> bool:
    """Return True if it is the `id` of a Conversation."""
    try:
        read_conversation(text)
    except ValueError:
        return False
    return True


class Sender(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The person who wrote or pressed. `id` is the platform's, never a name. `groups`: ids of the
    roles or user groups they have there; `zone`: the time zone (`Europe/Berlin`) of their client,
    if known; `external`: of another organization than the bot, in a channel that both share;
    `unplaced`: the platform did not tell whether they are; `anonymous`: somebody of the group, in
    its name."""

    platform: str
    id: str
    name: str = ""
    handle: str = ""
    language: str = ""
    groups: tuple[str, ...] = ()
    zone: str = ""
    external: bool = False
    unplaced: bool = False
    anonymous: bool = False

    @property
    def key(self) -> str:
        """`platform:id`, as allowlists and the directory name people."""
        return f"{self.platform}:{self.id}"


class Attachment(Struct, frozen=True, kw_only=True):
    """A file by reference; fetched when its turn starts. `size` in bytes, 0 if unknown."""

    ref: str
    name: str
    mime: str = ""
    size: int = 0
    voice: bool = False


class Quote(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message replied to, or one forwarded from elsewhere (`forwarded`)."""

    message: str
    author: str = ""
    text: str = ""
    mine: bool = False
    """The quoted message is the agent's own."""
    marked: bool = False
    """True if the person selected `text` out of a longer message."""
    forwarded: bool = False
    """True for forwarded words of somebody else, which the person did not say."""


class PlanRetry(Struct, frozen=True, kw_only=True):
    """Asks to run the plan called `title` again, as attempt number `count`."""

    title: str
    tries: int


class MessageReceived(Struct, frozen=True, kw_only=True, tag_field="kind", tag="message"):
    """A person wrote. `addressed`: in private, by mention, or in reply to the agent. Parts of one
    album share `album`; `at` is seconds since 1970, 0 if unknown.

    `described`: `text` has no words of theirs, but names that others gave: of a sticker, a place,
    a contact.

    Set by no adapter: `command`, run by one of the operator's quick commands before and instead of
    a model; `retry`, set when a press runs a plan again.
    """

    conversation: Conversation
    sender: Sender
    event: str
    message: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    reply_to: Quote | None = None
    addressed: bool = True
    at: float = 0.0
    album: str = ""
    described: bool = False
    command: str = ""
    retry: PlanRetry | None = None


class MessageEdited(Struct, frozen=True, kw_only=True, tag_field="kind", tag="edit"):
    """A person edited a message. `said`: the edited message, if it names the agent in a group and
    was written shortly before (see `add_said`); it counts as new if the agent had not received it.
    `command`: the name of the command that it is now, "" if it is none.
    """

    conversation: Conversation
    sender: Sender
    event: str
    message: str
    text: str
    said: MessageReceived | None = None
    command: str = ""


class MessageDeleted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="delete"):
    """A person removed a message."""

    conversation: Conversation
    sender: Sender
    event: str
    message: str


class CommandGiven(Struct, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A person gave a command: `/name arguments`. `addressed`: it can only be for this bot;
    `worded`: it was written as a message to the agent, which it is if there is no such command;
    `anywhere`: the thread of the channel is unknown; `press`: returned to the platform with an
    answer that only the sender may see, "" where all may; `aside`: the same for a refusal to a
    stranger, which nobody else sees."""

    conversation: Conversation
    sender: Sender
    event: str
    message: str
    name: str
    arguments: str = ""
    addressed: bool = True
    worded: bool = False
    anywhere: bool = False
    press: str = ""
    aside: str = ""


class ButtonPressed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="press"):
    """A person pressed a button. `token` is read by `read_press`; `press` is returned to the
    platform in its acknowledgement; `message` is the native id of the button's message; `anywhere`:
    its thread is unknown, as the platform tells no more of an old message, or the message has lost
    what it replied to."""

    conversation: Conversation
    sender: Sender
    event: str
    message: str
    token: str
    press: str = ""
    text: str = ""
    """Words given with the press, such as the reason of a denial."""
    anywhere: bool = False


class FormSubmitted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="form"):
    """A person filled in a form. `anywhere`: as of a press."""

    conversation: Conversation
    sender: Sender
    event: str
    token: str
    text: str
    press: str = ""
    anywhere: bool = False


class StopPressed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="stop"):
    """A person stopped the running turn (native stop button or a view's)."""

    conversation: Conversation
    sender: Sender
    event: str
    press: str = ""


class QuestionExpired(Struct, frozen=True, kw_only=True, tag_field="kind", tag="expired"):
    """A question expired unanswered."""

    conversation: Conversation
    event: str
    question: str


class QuestionDue(Struct, frozen=True, kw_only=True, tag_field="kind", tag="due"):
    """A question became due for a reminder or for more people who may decide, or its copy in the
    approvers' chat was sent or closed."""

    conversation: Conversation
    event: str
    question: str
    what: Literal["reminder", "escalation", "relayed", "told"]


class QuestionBrought(Struct, frozen=True, kw_only=True, tag_field="kind", tag="brought"):
    """A question of another conversation is to be shown here as it is now."""

    conversation: Conversation
    event: str
    question: str


class GatewaySaid(Struct, frozen=True, kw_only=True, tag_field="kind", tag="gateway"):
    """A message of the gateway itself to a conversation, caused elsewhere."""

    conversation: Conversation
    event: str
    text: str


class Terms(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a job's run, as of its due time. `script`: a command run first, `alone` if
    nothing else runs; `bound`: what was approved of it. `spend`: dollars the run may spend, 0 for
    no limit; `deliver`: where its report goes, empty for its own conversation alone. `model`,
    `profile` and the set of `tools` are the job's own, "" for the conversation's."""

    script: str = ""
    alone: bool = False
    bound: str = ""
    spend: float = 0.0
    deliver: tuple[str, ...] = ()
    model: str = ""
    profile: str = ""
    tools: str = ""


class Firing(Struct, frozen=True, kw_only=True):
    """One due time of a job, which identifies a run. `due`: seconds since 1970, 0 from older
    versions; `when`: the same in words."""

    job: str
    slot: str
    title: str = ""
    when: str = ""
    terms: Terms = Terms()
    due: float = 0.0


class JobFired(Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """A job is due (`due`, seconds since 1970). It runs for `owner`, in a turn with the id `turn`;
    `replaces`: the turn of an earlier run that it ends. `text` is followed by the data `brought`,
    each with an introduction, and the `prompt`; in rows of older versions it contains both."""

    conversation: Conversation
    event: str
    job: str
    due: float
    text: str
    brought: tuple[tuple[str, str], ...] = ()
    prompt: str = ""
    slot: str = ""
    title: str = ""
    when: str = ""
    owner: Sender | None = None
    turn: str = ""
    replaces: str = ""
    terms: Terms = Terms()

    @property
    def firing(self) -> Firing:
        """The part that its turn keeps."""
        return Firing(
            job=self.job, slot=self.slot, title=self.title, when=self.when, terms=self.terms,
            due=self.due,
        )  # fmt: skip


class JobFailed(Struct, frozen=True, kw_only=True, tag_field="kind", tag="job_failed"):
    """A run of a job failed, and its people are told once: `text`, and from newer versions the
    parts it is made of. `paused`: the job was paused."""

    conversation: Conversation
    event: str
    job: str
    slot: str
    text: str
    paused: bool = False
    language: str = ""
    title: str = ""
    why: str = ""
    due: float = 0.0
    when: str = ""
    retried: bool = False


class JobReported(Struct, frozen=True, kw_only=True, tag_field="kind", tag="job_report"):
    """The report of a run that was done elsewhere is to be shown here too. `due`, `when`: as a
    firing has them; `note` says it where they are missing."""

    conversation: Conversation
    event: str
    title: str
    text: str
    note: str = ""
    language: str = ""
    job: str = ""
    slot: str = ""
    due: float = 0.0
    when: str = ""


class ChatLost(Struct, frozen=True, kw_only=True, tag_field="kind", tag="chat_lost"):
    """The platform reported that the agent may no longer write in `conversation`: it was removed,
    or the chat is gone. Without a thread it covers all threads, without a channel the whole
    workspace. `why`: the refused call, "" if the platform reported it unasked."""

    conversation: Conversation
    event: str
    why: str = ""

    def covers(self, where: Conversation) -> bool:
        """Return True if the loss includes `where`."""
        lost = self.conversation
        pairs = ((lost.channel, where.channel), (lost.thread, where.thread))
        same = (lost.platform, lost.account, lost.workspace)
        return same == (where.platform, where.account, where.workspace) and all(
            not gone or gone == there for gone, there in pairs
        )


class WebhookCalled(Struct, frozen=True, kw_only=True, tag_field="kind", tag="webhook"):
    """A signed call from outside that starts a turn. `text`: its payload; `prompt`: the
    instructions of the person who set the hook up."""

    conversation: Conversation
    event: str
    name: str
    text: str
    prompt: str = ""


Inbound: TypeAlias = (
    MessageReceived
    | MessageEdited
    | MessageDeleted
    | CommandGiven
    | ButtonPressed
    | FormSubmitted
    | StopPressed
    | QuestionExpired
    | QuestionDue
    | QuestionBrought
    | GatewaySaid
    | JobFired
    | JobFailed
    | JobReported
    | ChatLost
    | WebhookCalled
)


def sender_of(inbound: Inbound) -> Sender | None:
    """The person behind it, None if it came about by itself."""
    match inbound:
        case QuestionExpired() | QuestionDue() | QuestionBrought() | GatewaySaid():
            return None
        case JobFired() | JobFailed() | JobReported() | ChatLost() | WebhookCalled():
            return None
        case _:
            return inbound.sender


def is_press(inbound: Inbound) -> bool:
    """Return True if it only presses or fills in something, which a decider may do for a
    conversation of somebody else."""
    return isinstance(inbound, ButtonPressed | FormSubmitted | StopPressed)


LATE_EDIT = 3_600.0
"""Seconds after which an edit can no longer address the agent."""


def is_forwarded(message: MessageReceived) -> bool:
    """Return True if the message only forwards somebody's words."""
    return message.reply_to is not None and message.reply_to.forwarded


def name_place(where: Conversation, press: ButtonPressed | FormSubmitted) -> Conversation:
    """Return `where` as a press there names it: without a person, and without a thread if that is
    unknown."""
    return replace(where, person="", thread="" if press.anywhere else where.thread)


def add_said(edit: MessageEdited, said: Inbound | None, at: float) -> MessageEdited:
    """Return `edit`, made at `at`, together with the edited message if that addresses the agent, or
    as the command that it is now."""
    if isinstance(said, CommandGiven):
        text = f"/{said.name} {said.arguments}".strip()
        return replace(edit, conversation=said.conversation, text=text, command=said.name)
    if not isinstance(said, MessageReceived) or said.conversation.private or not said.addressed:
        return edit
    late = at - said.at > LATE_EDIT
    return edit if late else replace(edit, said=replace(said, event=f"{edit.event}+"))


def divide_edit(inbound: Inbound) -> tuple[Inbound, ...]:
    """An edit, and the message that it made: one of them is known, by the message's id."""
    if not isinstance(inbound, MessageEdited) or inbound.said is None:
        return (inbound,)
    return inbound, inbound.said


def dedupe_keys(inbound: Inbound) -> tuple[str, str]:
    """Return the keys (by event, by workspace + channel + message) of `inbound`. The second is ""
    where one message may occur more than once (an edit, a press)."""
    where = inbound.conversation
    first = f"{where.platform}:{where.account}:{inbound.event}"
    if isinstance(inbound, MessageReceived | CommandGiven) and inbound.message:
        second = (
            f"{where.platform}:{where.account}:{where.workspace}:{where.channel}:m{inbound.message}"
        )
    else:
        second = ""
    return first, second


MAX_TOKEN = 64
"""Bytes that every platform takes in a button."""


class QuestionPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="question"):
    """An option of a question was chosen."""

    question: str
    option: str


class PlanPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plan"):
    """A button of the plan of the turn `turn`; `step`: the id of the step that it is about."""

    turn: str
    action: str
    step: str = ""


class TurnPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="turn"):
    """A button of a finished turn: `retry` or `continue`."""

    turn: str
    action: str


class RulePress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="rule"):
    """The button that takes back the rule named `rule`."""

    rule: str


class JobPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """A button about a job; `slot`: the run or the card that it is about."""

    job: str
    action: str
    slot: str = ""


class PluginPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="plugin"):
    """A button of the plugin feature named `feature`, which alone interprets `action` and
    `argument`."""

    feature: str
    action: str
    argument: str = ""


class UnknownPress(Struct, frozen=True, kw_only=True, tag_field="kind", tag="unknown"):
    """A token that no button of this version has."""


Press: TypeAlias = (
    QuestionPress | PlanPress | TurnPress | RulePress | JobPress | PluginPress | UnknownPress
)
"""A parsed button token: parsed once, where the press enters."""


def read_press(token: str) -> Press:
    """Parse a button's token. Total: a forged or foreign one is an UnknownPress."""
    kind, _, rest = token.partition(":")
    name, _, more = rest.partition(":")
    if kind == "r" and rest:
        return RulePress(rule=rest)
    if kind == "q" and name and more:
        return QuestionPress(question=name, option=more)
    if kind == "t" and name and more:
        return TurnPress(turn=name, action=more)
    action, colon, last = more.partition(":")
    if kind == "p" and name and action and colon:
        return PlanPress(turn=name, action=action, step=last)
    if kind == "j" and name and action and colon:
        return JobPress(job=name, action=action, slot=last)
    if kind == "x" and name and action and colon:
        return PluginPress(feature=name, action=action, argument=last)
    return UnknownPress()


def button_token(question: str, option: str) -> str:
    """Encode the token of a question's option (≤ 64 bytes)."""
    return f"q:{question}:{option}"


def plan_token(turn: str, action: str, step: str = "") -> str:
    """Encode the token of a plan's button (≤ 64 bytes)."""
    return f"p:{turn}:{action}:{step}"


def turn_token(turn: str, action: str) -> str:
    """Encode the token of a button of a finished turn (≤ 64 bytes)."""
    return f"t:{turn}:{action}"


def rule_token(rule: str) -> str:
    """Encode the token of the button that revokes a rule (≤ 64 bytes)."""
    return f"r:{rule}"


def job_token(job: str, action: str, slot: str = "") -> str:
    """Encode the token of a job's button (≤ 64 bytes)."""
    return f"j:{job}:{action}:{slot}"


def plugin_token(feature: str, action: str, argument: str = "") -> str:
    """Encode the token of a plugin feature's button. ValueError if it could not be parsed again, or
    is too long for some platform."""
    token = f"x:{feature}:{action}:{argument}"
    if read_press(token) != PluginPress(feature=feature, action=action, argument=argument):
        raise ValueError(f"feature and action must be there, without a colon: {token!r}")
    if len(token.encode()) > MAX_TOKEN:
        raise ValueError(f"a button carries {MAX_TOKEN} bytes; this has more: {token!r}")
    return token


def digest(data: bytes) -> str:
    """A short name for `data`: 22 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:22]
