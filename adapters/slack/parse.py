"""Parses Slack's payloads into Inbound values. Pure, and total: odd payloads give None, never an
error.

In a channel each thread is a conversation, and a message outside threads begins one. In a private
chat the messages outside threads are one conversation.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from adapters.incoming import BARE_MENTION, normalize_width, read_command, read_string
from adapters.slack.history import read_whole
from adapters.slack.markup import MENTION, make_readable, mentions
from gateway.command_texts import take_word
from gateway.messages import (
    Attachment,
    ButtonPressed,
    ChatLost,
    CommandGiven,
    Conversation,
    FormSubmitted,
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
    StopPressed,
    add_said,
    read_conversation,
)

Json = Mapping[str, object]

ID = re.compile(r"[A-Z0-9]{2,24}")
STAMP = re.compile(r"\d{1,12}\.\d{1,6}")
LOST = (
    "member_left_channel", "channel_left", "group_left", "channel_archive", "group_archive",
    "channel_deleted", "group_deleted",
)  # fmt: skip
"""Events after which the app cannot write in their channel."""
SAID = ("", "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that people write."""
WRITES = "w"
"""Prefix of a button's action_id that opens a modal."""
STOP = "stop"
"""The token of the button that stops the turn."""
MODAL = "words"
NOTHING: Json = {}


class SlackBot(Struct, frozen=True, kw_only=True):
    """The bot itself, from auth.test. `enterprise`: the organization that its workspace is in."""

    user: str
    team: str
    bot: str = ""
    enterprise: str = ""


class ModalOrigin(Struct, frozen=True, kw_only=True):
    """The button that opened a modal, as kept in it (`private_metadata`)."""

    token: str
    channel: str
    thread: str = ""
    message: str = ""


def read_me(answer: Json) -> SlackBot | None:
    """Me from auth.test's answer, None if it names no bot."""
    user, team = _id(answer.get("user_id")), _id(answer.get("team_id"))
    if not user or not team:
        return None
    bot, enterprise = _id(answer.get("bot_id")), _id(answer.get("enterprise_id"))
    return SlackBot(user=user, team=team, bot=bot, enterprise=enterprise)


def parse(kind: str, payload: Json, me: SlackBot) -> Inbound | None:
    """Parse an envelope of Socket Mode, or an HTTP request."""
    match kind:
        case "events_api":
            return _event(payload, me)
        case "slash_commands":
            return _command(payload, me)
        case "interactive" if payload.get("type") == "block_actions":
            return _parse_press(payload, me)
        case "interactive" if payload.get("type") == "view_submission":
            return _parse_modal(payload, me)
    return None


# ---- messages ------------------------------------------------------------------------------


def home_opened(payload: Json, me: SlackBot) -> tuple[str, Conversation] | None:
    """Return (person, their private chat) if somebody opens the app's home."""
    event = _map(payload.get("event"))
    user, channel = _id(event.get("user")), _id(event.get("channel"))
    if event.get("type") != "app_home_opened" or event.get("tab", "home") != "home":
        return None
    return (user, place(me, channel, "")) if user and is_private(channel) else None


def _event(payload: Json, me: SlackBot) -> Inbound | None:
    event, name = _map(payload.get("event")), read_string(payload.get("event_id"))
    if event.get("type") == "agent_session_stopped" and name:
        return _parse_stop(event, me, name)
    if event.get("type") in LOST and name:
        return _parse_loss(event, me, name)
    if event.get("type") not in ("message", "app_mention") or not name:
        return None
    match read_string(event.get("subtype")):
        case "message_changed":
            return _parse_edit(event, me, name)
        case "message_deleted":
            return _parse_deletion(event, _map(event.get("previous_message")), me, name)
        case subtype if subtype in SAID:
            return _parse_message(event, me, name)
    return None


def _parse_loss(event: Json, me: SlackBot, name: str) -> Inbound | None:
    """A channel in which the app may write no longer; of members only its own leaving counts."""
    channel = _id(event.get("channel"))
    foreign = event.get("type") == "member_left_channel" and event.get("user") != me.user
    return (
        None
        if foreign or not channel
        else ChatLost(conversation=place(me, channel, ""), event=name)
    )


def _parse_message(event: Json, me: SlackBot, name: str) -> Inbound | None:
    where, sender, stamp = (
        _find_conversation(event, event, me),
        _author(event, me),
        _stamp(event.get("ts")),
    )
    if where is None or sender is None or not stamp:
        return None
    raw = read_string(event.get("text"))
    text, attachments = make_readable(raw, me.user), tuple(_attachments(event))
    addressed = where.private or event.get("type") == "app_mention" or mentions(raw, me.user)
    bare = text.removeprefix(MENTION).lstrip()  # a copied hint names nobody
    given = read_command(bare) if addressed and not attachments else None
    if given is not None and not given.bot:
        return CommandGiven(
            conversation=where,
            sender=sender,
            event=name,
            message=stamp,
            name=given.name,
            arguments=given.arguments,
            worded=True,
        )
    shared, described = _read_shared(event, me), ""
    if not text and not attachments and shared is None:
        described = read_whole(event, me.user)  # of blocks alone, or of a file that was deleted
        if not described and not mentions(raw, me.user):
            return None
        text = described or BARE_MENTION
    return MessageReceived(
        conversation=where,
        sender=sender,
        event=name,
        message=stamp,
        text=text,
        attachments=attachments,
        reply_to=shared,
        addressed=addressed,
        described=bool(described),
        at=float(stamp),
    )


def read_back(message: Json, channel: str, me: SlackBot) -> Inbound | None:
    """Parse a message of the history, None if it is nobody's words."""
    if (
        message.get("type", "message") != "message"
        or read_string(message.get("subtype")) not in SAID
    ):
        return None
    told = {**message, "channel": channel}
    return _parse_message(told, me, f"r{channel}:{read_string(message.get('ts'))}")


def _parse_edit(event: Json, me: SlackBot, name: str) -> Inbound | None:
    message, before = _map(event.get("message")), _map(event.get("previous_message"))
    if message.get("subtype") == "tombstone":  # deleted, but it has replies
        return _parse_deletion(event, before, me, name)
    where, sender = _find_conversation(event, message, me), _author(message, me)
    stamp = _stamp(message.get("ts"))
    text = make_readable(read_string(message.get("text")), me.user)
    unchanged = message.get("text") == before.get("text")  # a link was unfurled, or a thread grew
    if where is None or sender is None or not stamp or not text or unchanged:
        return None
    edit = MessageEdited(conversation=where, sender=sender, event=name, message=stamp, text=text)
    said = {**message, "channel": event.get("channel"), "type": "message"}
    return add_said(edit, _parse_message(said, me, name), float(_stamp(event.get("ts")) or 0))


def _parse_deletion(event: Json, message: Json, me: SlackBot, name: str) -> Inbound | None:
    where, sender, stamp = (
        _find_conversation(event, message, me),
        _author(message, me),
        _stamp(message.get("ts")),
    )
    if where is None or sender is None or not stamp:
        return None
    return MessageDeleted(conversation=where, sender=sender, event=name, message=stamp)


def _find_conversation(event: Json, message: Json, me: SlackBot) -> Conversation | None:
    channel, stamp = _id(event.get("channel")), _stamp(message.get("ts"))
    if not channel or not stamp:
        return None
    thread = _stamp(message.get("thread_ts"))
    if is_private(channel):
        return place(me, channel, "" if thread == stamp else thread)
    return place(me, channel, thread or stamp)


def place(me: SlackBot, channel: str, thread: str) -> Conversation:
    """The conversation at this address; ids of private chats begin with D."""
    return Conversation(
        platform="slack",
        account=me.user,
        workspace=me.team,
        channel=channel,
        thread=thread,
        private=is_private(channel),
    )


def is_private(channel: str) -> bool:
    """A chat of one person with the bot; group chats have other ids."""
    return channel.startswith("D")


def _author(message: Json, me: SlackBot) -> Sender | None:
    """The person; None for bots, ourselves among them."""
    user = _id(message.get("user"))
    mine = not user or user == me.user
    return None if mine or message.get("bot_id") else _person(user, message.get("user_team"), me)


def _person(user: str, team: object, me: SlackBot) -> Sender:
    """The person `user` of the workspace `team`, which events name for people of other ones; their
    profile decides whether they are of the bot's organization."""
    elsewhere = _id(team) not in ("", me.team)
    external, unplaced = elsewhere and not me.enterprise, elsewhere and bool(me.enterprise)
    return Sender(platform="slack", id=user, external=external, unplaced=unplaced)


def place_presser(user: str, team: object, me: SlackBot) -> Sender:
    """The person `user` of a press, a form or a command, whose `team` Slack may leave out."""
    person = _person(user, team, me)
    return person if _id(team) else replace(person, unplaced=True)


def _read_shared(message: Json, me: SlackBot) -> Quote | None:
    """Return the shared messages, as Slack attaches them; a link's preview is none."""
    shared = [
        one for one in map(_map, _list(message.get("attachments"))) if one.get("is_share") is True
    ]
    said = [
        (read_string(one.get("author_name")) or read_string(one.get("author_subname")), text)
        for one in shared
        if (
            text := make_readable(
                read_string(one.get("text")) or read_string(one.get("fallback")), me.user
            )
        )
    ]
    if not said:
        return None
    text = "\n".join(
        text if n == 0 else f"{author}: {text}" for n, (author, text) in enumerate(said)
    )
    return Quote(message="", author=said[0][0], text=text, forwarded=True)


def _attachments(message: Json) -> Iterator[Attachment]:
    shared = (_map(one) for one in _list(message.get("attachments")))
    places = (message, *(one for one in shared if one.get("is_share") is True))
    for file in (_map(one) for place in places for one in _list(place.get("files"))):
        ref, size = _id(file.get("id")), file.get("size")
        if ref and file.get("mode") not in ("tombstone", "hidden_by_limit"):
            yield Attachment(
                ref=ref,
                name=read_string(file.get("name")) or "file",
                mime=read_string(file.get("mimetype")),
                size=size if type(size) is int and 0 <= size < 1 << 53 else 0,
                voice=file.get("subtype") == "slack_audio",
            )


def _parse_stop(event: Json, me: SlackBot, name: str) -> Inbound | None:
    """Parse Slack's own stop button, which tells the thread."""
    channel, user = _id(event.get("channel")), _id(event.get("user"))
    if not channel or not user:
        return None
    where = place(me, channel, _stamp(event.get("thread_ts")))
    return StopPressed(conversation=where, sender=place_presser(user, "", me), event=name)


# ---- commands, buttons, modals -------------------------------------------------------------


def _command(payload: Json, me: SlackBot) -> Inbound | None:
    """Parse a command: `/turnkeeper stop all` is `stop`; without a word it is `help`. Slack does
    not tell its thread, and shows it to nobody else in a channel: its answer is private."""
    channel, user = _id(payload.get("channel_id")), _id(payload.get("user_id"))
    trigger = read_string(payload.get("trigger_id"))
    if not channel or not user or not trigger:
        return None
    name, arguments = take_word(make_readable(read_string(payload.get("text")), me.user))
    answer_at = read_string(payload.get("response_url"))
    return CommandGiven(
        conversation=place(me, channel, ""),
        sender=place_presser(user, "", me),
        event=f"s{trigger}",
        message="",
        name=normalize_width(name).lstrip("/").lower() or "help",
        arguments=arguments,
        anywhere=True,
        press="" if channel.startswith("D") else write_press_place(channel, "", user, answer_at),
    )


def write_press_place(channel: str, thread: str, user: str, answer_at: str = "") -> str:
    """Encode the address of a private reply to `user`: where it is shown, and the URL that works
    also where the app is no member."""
    return "|".join((channel, thread, user, *((answer_at,) if answer_at else ())))


def write_home_token(conversation: str, token: str) -> str:
    """Encode the token of a home's button: the address it belongs to, and its own token."""
    return f"{conversation} {token}"


def _parse_home_press(action: Json, sender: Sender, me: SlackBot) -> Inbound | None:
    address, _, token = read_string(action.get("value")).partition(" ")
    try:
        where = read_conversation(address)
    except ValueError:
        return None
    if not token or (where.platform, where.account) != ("slack", me.user):
        return None
    event = f"h{sender.id}:{read_string(action.get('action_ts'))}"
    press = write_press_place(where.channel, where.thread, sender.id)
    if token == STOP:
        return StopPressed(conversation=where, sender=sender, event=event, press=press)
    return ButtonPressed(
        conversation=where, sender=sender, event=event, message="", token=token, press=press
    )


def _parse_press(payload: Json, me: SlackBot) -> Inbound | None:
    action, asked = read_action(payload)
    about, stamp = _map(payload.get("user")), read_string(action.get("action_ts"))
    user = _id(about.get("id"))
    sender = place_presser(user, about.get("team_id"), me)
    if user and _map(payload.get("view")).get("type") == "home":
        return _parse_home_press(action, sender, me)
    if asked is None or not user or read_string(action.get("action_id")).startswith(WRITES):
        return None
    if asked.token == STOP:
        return StopPressed(
            conversation=place(me, asked.channel, asked.thread),
            sender=sender,
            event=f"b{asked.message}:{user}:{stamp}",
            press=_press(asked, user),
        )
    return ButtonPressed(
        conversation=place(me, asked.channel, asked.thread),
        sender=sender,
        event=f"b{asked.message}:{user}:{stamp}",
        message=asked.message,
        token=asked.token,
        press=_press(asked, user),
    )


def read_action(payload: Json) -> tuple[Json, ModalOrigin | None]:
    """Return the action of a press and the question it belongs to, None if it is none of a message
    of ours."""
    action = _map(next(iter(_list(payload.get("actions"))), None))
    container, message = _map(payload.get("container")), _map(payload.get("message"))
    token = read_string(action.get("value")) or read_string(
        _map(action.get("selected_option")).get("value")
    )
    channel = _id(_map(payload.get("channel")).get("id")) or _id(container.get("channel_id"))
    stamp = _stamp(message.get("ts")) or _stamp(container.get("message_ts"))
    thread = _stamp(message.get("thread_ts")) or _stamp(container.get("thread_ts"))
    if not token or not channel or not stamp:
        return action, None
    thread = "" if thread == stamp else thread
    return action, ModalOrigin(token=token, channel=channel, thread=thread, message=stamp)


def _parse_modal(payload: Json, me: SlackBot) -> Inbound | None:
    """A modal of ours that was sent off."""
    view, about = _map(payload.get("view")), _map(payload.get("user"))
    user = _id(about.get("id"))
    try:
        asked = msgspec.json.decode(read_string(view.get("private_metadata")), type=ModalOrigin)
    except msgspec.DecodeError:
        return None
    number = read_string(view.get("id"))
    if view.get("callback_id") != MODAL or not user or not number:
        return None
    words = "\n".join(read_words(view)).strip()
    where = place(me, asked.channel, asked.thread)
    sender = place_presser(user, about.get("team_id"), me)
    press = _press(asked, user)
    if words and asked.token.endswith(":text"):
        return FormSubmitted(
            conversation=where,
            sender=sender,
            event=f"v{number}",
            token=asked.token,
            text=words,
            press=press,
        )
    return ButtonPressed(
        conversation=where,
        sender=sender,
        event=f"v{number}",
        message=asked.message,
        token=asked.token,
        press=press,
        text=words,
    )


def read_words(view: Json) -> Iterator[str]:
    """Yield the texts of a modal's fields."""
    for block in _map(_map(view.get("state")).get("values")).values():
        for element in map(_map, _map(block).values()):
            if value := read_string(element.get("value")):
                yield value


def _press(asked: ModalOrigin, user: str) -> str:
    """Return the address for a private reply to the press: channel, thread and person."""
    return write_press_place(asked.channel, asked.thread, user)


# ---- odd payloads --------------------------------------------------------------------------


def _map(value: object) -> Json:
    return value if isinstance(value, dict) else NOTHING


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _id(value: object) -> str:
    return value if isinstance(value, str) and ID.fullmatch(value) else ""


def _stamp(value: object) -> str:
    return value if isinstance(value, str) and STAMP.fullmatch(value) else ""
