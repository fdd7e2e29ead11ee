"""Parses gateway events into Inbound values. Pure, and total: odd payloads give None, never an
error."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from adapters.incoming import BARE_MENTION, read_command, read_string
from gateway.messages import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    Conversation,
    FormSubmitted,
    Inbound,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
    StopPressed,
    add_said,
)

Json = Mapping[str, object]

HIDDEN = (
    "[I was mentioned by my role, so that Discord shows me no words. The person should choose me, "
    "not the role of my name, from the list that Discord offers.]"
)
"""The text of a message that arrives without one: the bot may read only messages that mention
it."""
MENTION = re.compile(r"<@!?(\d{1,20})>")
EMOJI = re.compile(r"<a?(:\w{1,32}:)\d{1,20}>")
NAMED_COMMAND = re.compile(r"<(/[\w -]{1,100}):\d{1,20}>")
MOMENT = re.compile(r"<t:(\d{1,11})(?::[tTdDfFRsS])?>")
ID = re.compile(r"\d{1,20}")
SAID = (0, 19)
"""Types of messages that people write: plain ones and replies."""
STARTER = 21
"""The type of a thread's message that stands for the one it began with."""
THREADS, OPENING = (10, 11, 12), (0, 5)
"""Types of channels: threads, and those in which a message can open one."""
COMMAND_GIVEN, PRESSED, TYPING, FILLED_IN = 2, 3, 4, 5
OF_TASKS = ("stop", "approve", "deny", "approvals")
"""Commands about what runs or waits."""
SELECT = 3
VOICE = 1 << 13
EPOCH = 1_420_070_400_000
"""Milliseconds since 1970 at which Discord's ids begin."""
MAX_DEPTH = 5
NOTHING: Json = {}
STOP = "stop"
"""The custom_id of the button that stops the turn."""


class DiscordBot(Struct, frozen=True, kw_only=True):
    """The bot itself; `application` owns its commands and answers."""

    id: str
    name: str = ""
    application: str = ""


class Channel(Struct, frozen=True, kw_only=True):
    """The channel of an event. `parent`: the channel that a thread belongs to; `opens`: a thread
    can be made from a message in it."""

    parent: str = ""
    opens: bool = False


NOWHERE = Channel()


def read_me(user: object, application: object = None) -> DiscordBot | None:
    """Parse the bot from a user and, if known, an application; None if it is none."""
    found = _map(user)
    number = _id(found.get("id"))
    own = _id(_map(application).get("id")) or number
    return DiscordBot(id=number, name=_name(found), application=own) if number else None


def channel_of(event: Json) -> str:
    """The channel of a server in which `event` happened, "" for other events."""
    return _id(event.get("channel_id")) if _id(event.get("guild_id")) else ""


def guild_of(event: Json) -> str:
    """The server in which `event` happened, "" for a private chat."""
    return _id(event.get("guild_id"))


def read_own_role(roles: object, bot: str) -> str:
    """Return the role that a server made for the bot alone, "" if there is none."""
    for role in map(_map, _list(roles)):
        if _id(_map(role.get("tags")).get("bot_id")) == bot:
            return _id(role.get("id"))
    return ""


def mention_bot(message: Json, me: DiscordBot, role: str) -> Json:
    """`message`, in which `role` is the bot itself."""
    mentions = [*_list(message.get("mentions")), {"id": me.id, "username": me.name}]
    content = read_string(message.get("content")).replace(f"<@&{role}>", f"<@{me.id}>") or HIDDEN
    return {**message, "mentions": mentions, "content": content}


def read_channel(value: object) -> Channel | None:
    """Parse a channel, None if `value` is none."""
    found = _map(value)
    kind = found.get("type")
    if type(kind) is not int:
        return None
    parent = _id(found.get("parent_id")) if kind in THREADS else ""
    return Channel(parent=parent, opens=kind in OPENING)


def conversation_of(event: Json, me: DiscordBot, channel: Channel) -> Conversation | None:
    """Return the conversation of an interaction."""
    where = _find_conversation(event, me, channel)
    return where and _find_task(_map(event.get("message")), where, channel)


def parse(kind: str, event: Json, me: DiscordBot, channel: Channel = NOWHERE) -> Inbound | None:
    """Parse `event`, which happened in `channel`; None if it is nothing for the agent."""
    conversation = conversation_of(event, me, channel)
    if conversation is None:
        return None
    match kind:
        case "MESSAGE_CREATE":
            return _message(event, me, conversation, channel)
        case "MESSAGE_UPDATE":
            edit = _parse_edit(event, me, _task(event, me, conversation, channel))
            said = _message(event, me, conversation, channel)
            return edit and add_said(edit, said, _read_time(event.get("edited_timestamp")))
        case "INTERACTION_CREATE":
            return _interaction(event, conversation, channel)
    return None


# ---- messages ------------------------------------------------------------------------------


def _message(
    message: Json, me: DiscordBot, conversation: Conversation, channel: Channel
) -> Inbound | None:
    sender, number = _author(message), _id(message.get("id"))
    if sender is None or not number or message.get("type", 0) not in SAID:
        return None
    text, quote = _text(message, me), _quote(message, me)
    attachments = tuple(_attachments(message))
    addressed = conversation.private or _mentions(message, me) or bool(quote and quote.mine)
    given = read_command(text) if addressed and not attachments else None
    if given is not None and not given.bot:
        quoted = _map(message.get("referenced_message"))
        return CommandGiven(
            conversation=_find_task(quoted, conversation, channel),
            sender=sender,
            event=f"m{number}",
            message=number,
            name=given.name,
            arguments=given.arguments,
            worded=True,
        )
    if not text and not attachments and not (quote and quote.forwarded and quote.text):
        if not _mentions(message, me):
            return None
        text = BARE_MENTION
    return MessageReceived(
        conversation=_task(message, me, conversation, channel),
        sender=sender,
        event=f"m{number}",
        message=number,
        text=text,
        attachments=attachments,
        reply_to=quote,
        addressed=addressed,
        at=((int(number) >> 22) + EPOCH) / 1000,
        described=bool(_name_stickers(message)) and not _read_text(message, me),
    )


def _parse_edit(message: Json, me: DiscordBot, conversation: Conversation) -> MessageEdited | None:
    """Parse an edit. Only a person's own has a time; an added preview has none."""
    sender, number, when = _author(message), _id(message.get("id")), message.get("edited_timestamp")
    text = _text(message, me)
    if sender is None or not number or not text or not isinstance(when, str):
        return None
    event = f"e{number}:{read_string(when)[:40]}"
    return MessageEdited(
        conversation=conversation, sender=sender, event=event, message=number, text=text
    )


def _read_time(value: object) -> float:
    """Return seconds since 1970, 0 for an invalid time."""
    try:
        return datetime.fromisoformat(read_string(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _task(
    message: Json, me: DiscordBot, conversation: Conversation, channel: Channel
) -> Conversation:
    """Return the task's conversation: a mention in a channel begins one, in a thread with the
    message's id (threads.py); a reply to the bot continues that of the replied message."""
    quoted = _map(message.get("referenced_message"))
    if _id(_map(quoted.get("author")).get("id")) == me.id:
        return _find_task(quoted, conversation, channel)
    if not channel.opens or not _mentions(message, me):
        return conversation
    return replace(conversation, thread=_id(message.get("id")))


def _find_task(message: Json, conversation: Conversation, channel: Channel) -> Conversation:
    """Return the task of the bot's `message` where it may make no threads: it replies to the task's
    first message."""
    began = _id(_map(message.get("message_reference")).get("message_id"))
    return replace(conversation, thread=began) if began and channel.opens else conversation


def _find_conversation(event: Json, me: DiscordBot, within: Channel) -> Conversation | None:
    """A server's channel, or a chat of one person with the bot."""
    channel, guild = _id(event.get("channel_id")), _id(event.get("guild_id"))
    if not channel or (not guild and event.get("context") == 2):  # other people's chats
        return None
    return Conversation(
        platform="discord",
        account=me.id,
        workspace=guild,
        channel=within.parent or channel,
        thread=channel if within.parent else "",
        private=not guild,
    )


def _author(message: Json) -> Sender | None:
    """Return the person; None for bots and webhooks."""
    user = _map(message.get("author"))
    human = user.get("bot") is not True and message.get("webhook_id") is None
    return _person(user, _map(message.get("member")), "") if human else None


def _person(user: Json, member: Json, language: str) -> Sender | None:
    number = _id(user.get("id"))
    if not number:
        return None
    return Sender(
        platform="discord",
        id=number,
        name=read_string(member.get("nick")) or _name(user),
        handle=read_string(user.get("username")),
        language=language,
        groups=read_roles(member),
    )


def read_roles(member: object) -> tuple[str, ...]:
    """Return the ids of a server member's roles."""
    return tuple(filter(None, map(_id, _list(_map(member).get("roles")))))


def _name(user: Json) -> str:
    return read_string(user.get("global_name")) or read_string(user.get("username"))


def _text(message: Json, me: DiscordBot) -> str:
    named = _read_text(message, me) or _name_stickers(message)
    return named or _describe_poll(_map(message.get("poll")))


def _read_text(message: Json, me: DiscordBot) -> str:
    """Return the text as people read it: names for mentions, emoji, commands, times; without the
    bot's own mention in front."""
    names = {_id(_map(one).get("id")): _name(_map(one)) for one in _list(message.get("mentions"))}
    names[me.id] = me.name
    text = read_string(message.get("content")).strip()
    opening = MENTION.match(text)
    if opening is not None and opening[1] == me.id:
        text = text[opening.end() :].strip()
    text = MENTION.sub(lambda at: f"@{names[at[1]]}" if names.get(at[1]) else at[0], text)
    return NAMED_COMMAND.sub(r"`\1`", EMOJI.sub(r"\1", MOMENT.sub(_tell_moment, text)))


def _name_stickers(message: Json) -> str:
    stickers = (read_string(_map(one).get("name")) for one in _list(message.get("sticker_items")))
    return "\n".join(f"[sticker: {name}]" for name in stickers if name)


def _tell_moment(found: re.Match[str]) -> str:
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%d %H:%M} UTC"


def _describe_poll(poll: Json) -> str:
    if not (question := read_string(_map(poll.get("question")).get("text"))):
        return ""
    media = (_map(_map(one).get("poll_media")) for one in _list(poll.get("answers")))
    return "\n".join(
        (f"[poll: {question}]", *(f"- {read_string(one.get('text'))}" for one in media))
    )


def _mentions(message: Json, me: DiscordBot) -> bool:
    return any(_id(_map(one).get("id")) == me.id for one in _list(message.get("mentions")))


def _quote(message: Json, me: DiscordBot) -> Quote | None:
    shots = [_map(_map(one).get("message")) for one in _list(message.get("message_snapshots"))]
    if shots:  # forwarded messages have no author
        text = "\n".join(filter(None, (_text(one, me) or _join_texts(one) for one in shots)))
        return Quote(message="", text=text, forwarded=True)
    replied = _map(message.get("referenced_message"))
    if not replied:
        return None
    author = _map(replied.get("author"))
    return Quote(
        message=_id(replied.get("id")),
        author=_name(author),
        text="\n".join(
            filter(None, (_text(replied, me) or _join_texts(replied), *_name_files(replied)))
        ),
        mine=_id(author.get("id")) == me.id,
    )


def _name_files(message: Json) -> Iterator[str]:
    for file in files_of(message):
        yield f"[{read_string(file.get('filename')) or 'file'}]"


def _join_texts(message: Json) -> str:
    return "\n".join(_iterate_texts(message))


def read_quotes(messages: object, bot: str) -> list[Quote]:
    """Parse messages of a channel's history, skipping those without words. A thread's first message
    appears in it as one without words that refers to it."""
    found = []
    for one in map(_map, _list(messages)):
        said = _map(one.get("referenced_message")) if one.get("type") == STARTER else one
        author, number = _map(said.get("author")), _id(said.get("id"))
        words = _text(said, DiscordBot(id=bot)) or _join_texts(said)
        text = "\n".join(filter(None, (words, *_name_files(said))))
        if number and text:
            mine = _id(author.get("id")) == bot
            found.append(Quote(message=number, author=_name(author), text=text, mine=mine))
    return found


def _iterate_texts(within: Json, depth: int = 0) -> Iterator[str]:
    """The texts of a message in Components V2, which has no content."""
    for one in map(_map, _list(within.get("components"))):
        if one.get("type") == 10:
            yield read_string(one.get("content"))
        elif depth < MAX_DEPTH:
            yield from _iterate_texts(one, depth + 1)


def _attachments(message: Json) -> Iterator[Attachment]:
    """Named by message: their URLs are good for a day only."""
    where = f"{_id(message.get('channel_id'))}/{_id(message.get('id'))}"
    flags = message.get("flags")
    voice = isinstance(flags, int) and bool(flags & VOICE)
    for one in files_of(message):
        if number := _id(one.get("id")):
            size = one.get("size")
            yield Attachment(
                ref=f"{where}/{number}",
                name=read_string(one.get("filename")) or "file",
                mime=read_string(one.get("content_type")).split(";")[0],
                size=size if type(size) is int and 0 <= size < 1 << 53 else 0,
                voice=voice,
            )


def files_of(message: Json) -> Iterator[Json]:
    """The attachments of a message, forwarded ones too."""
    yield from map(_map, _list(message.get("attachments")))
    for one in _list(message.get("message_snapshots")):
        yield from map(_map, _list(_map(_map(one).get("message")).get("attachments")))


# ---- interactions --------------------------------------------------------------------------


def _interaction(event: Json, conversation: Conversation, channel: Channel) -> Inbound | None:
    number, sender = _id(event.get("id")), presser(event)
    if sender is None or not number:
        return None
    if event.get("type") == TYPING:
        return None
    if event.get("type") == COMMAND_GIVEN:
        given = _command(event, conversation, sender, number)
        return _find_task_command(given, channel) if given is not None else None
    token, data = token_of(event), _map(event.get("data"))
    if not token or (event.get("type") == PRESSED and token.startswith("w:")):
        return None  # a button that opens a modal sends nothing yet
    press = read_press_place(event)
    if token == STOP:
        return StopPressed(
            conversation=conversation, sender=sender, event=f"i{number}", press=press
        )
    words = "\n".join(_iterate_fields(data)).strip() if event.get("type") == FILLED_IN else ""
    anywhere = channel.opens and not conversation.thread  # the task's first message was deleted
    if words and token.endswith(":text"):
        return FormSubmitted(
            conversation=conversation,
            sender=sender,
            event=f"i{number}",
            token=token,
            text=words,
            press=press,
            anywhere=anywhere,
        )
    return ButtonPressed(
        conversation=conversation,
        sender=sender,
        event=f"i{number}",
        message=_id(_map(event.get("message")).get("id")),
        token=token,
        press=press,
        text=words,
        anywhere=anywhere,
    )


def _command(
    event: Json, conversation: Conversation, sender: Sender, number: str
) -> CommandGiven | None:
    name = command_of(event)
    if not name:
        return None
    return CommandGiven(
        conversation=conversation,
        sender=sender,
        event=f"i{number}",
        message=number,
        name=name,
        arguments=read_typed(event).strip(),
        aside="" if conversation.private else read_press_place(event),
    )


def _find_task_command(given: CommandGiven, channel: Channel) -> CommandGiven:
    """Return the command of a channel whose tasks are elsewhere, in threads or below replies, as
    one for whichever task it is about; its answer is private then."""
    if not channel.opens or given.name not in OF_TASKS:
        return given
    return replace(given, anywhere=True, press=given.aside)


def command_of(event: Json) -> str:
    """Return the slash command that is given or typed, "" for those of menus on messages and
    people."""
    data = _map(event.get("data"))
    return read_string(data.get("name")) if data.get("type", 1) == 1 else ""


def read_typed(event: Json) -> str:
    """The words of a slash command, as far as they are typed."""
    options = _list(_map(event.get("data")).get("options"))
    return " ".join(filter(None, (read_string(_map(one).get("value")) for one in options)))


def presser(event: Json) -> Sender | None:
    """Return the person of an interaction."""
    member = _map(event.get("member"))
    user = _map(member.get("user")) or _map(event.get("user"))
    return _person(user, member, read_string(event.get("locale")))


def token_of(event: Json) -> str:
    """Return the token of the pressed button, the choice made or the modal, "" for other events."""
    if event.get("type") not in (PRESSED, FILLED_IN):
        return ""
    data = _map(event.get("data"))
    if data.get("component_type") == SELECT:
        return read_string(next(iter(_list(data.get("values"))), ""))
    return read_string(data.get("custom_id"))


def read_press_place(event: Json) -> str:
    """Return the address for a private reply to the interaction."""
    return f"{_id(event.get('application_id'))}/{read_string(event.get('token'))}"


def _iterate_fields(within: Json, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a modal's fields."""
    inside = [*_list(within.get("components")), within.get("component")]
    for one in map(_map, inside):
        if isinstance(value := one.get("value"), str):
            yield read_string(value)
        elif one and depth < MAX_DEPTH:
            yield from _iterate_fields(one, depth + 1)


def moment(at: float) -> int:
    """The first id of messages written at `at`, seconds since 1970."""
    return max(0, int(at * 1000) - EPOCH) << 22


def number_of(event: Json, name: str) -> str:
    """Return the id in a field of `event`, "" if there is none."""
    return _id(event.get(name))


def read_command_ids(taken: object) -> dict[str, str]:
    """The ids of the bot's commands by name, from Discord's answer to its menu."""
    found = [one for one in taken if isinstance(one, dict)] if isinstance(taken, list) else []
    return {
        str(one["name"]): number
        for one in found
        if (number := number_of(one, "id")) and isinstance(one.get("name"), str)
    }


# ---- odd payloads --------------------------------------------------------------------------


def _map(value: object) -> Json:
    return value if isinstance(value, dict) else NOTHING


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _id(value: object) -> str:
    return value if isinstance(value, str) and ID.fullmatch(value) and value.isascii() else ""
