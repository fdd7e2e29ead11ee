"""Parses Bot API updates into Inbound values. Pure, and total: odd payloads give None, never an
error."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from adapters.incoming import read_command, read_string
from gateway.messages import (
    Attachment,
    ButtonPressed,
    ChatLost,
    CommandGiven,
    Conversation,
    Inbound,
    MessageEdited,
    MessageReceived,
    Quote,
    Sender,
    StopPressed,
    add_said,
)

Json = Mapping[str, object]

FILES = (
    ("document", "file", "application/octet-stream"),
    ("voice", "voice.ogg", "audio/ogg"),
    ("audio", "audio.mp3", "audio/mpeg"),
    ("video", "video.mp4", "video/mp4"),
    ("video_note", "video.mp4", "video/mp4"),
)
OUT = ("left", "kicked")
"""The bot's states in a chat that removed it, or with a person who blocked it."""
UNREAD = ("story", "game", "giveaway", "invoice", "paid_media", "gift", "unique_gift")
"""Kinds of messages that bots cannot see."""
ANONYMOUS = 1087968824
"""The user that stands for each anonymous admin, whose messages name the group besides."""
MAX_DEPTH = 20
"""Maximum depth of a rich message; Telegram's own limit is 16."""
NOTHING: Json = {}


class TelegramBot(Struct, frozen=True, kw_only=True):
    """The bot itself, from getMe."""

    id: int
    username: str = ""


def read_me(user: object) -> TelegramBot | None:
    """Parse getMe; None if the payload is not a user."""
    found = _map(user)
    number = _int(found.get("id"))
    return TelegramBot(id=number, username=read_string(found.get("username"))) if number else None


def update_id(update: object) -> int:
    """Return the update's number, -1 if it has none."""
    return _int(_map(update).get("update_id"), -1)


def parse(update: Json, me: TelegramBot) -> Inbound | None:
    """Parse `update`; None if it is nothing for the agent."""
    event = f"u{update_id(update)}"
    if message := _map(update.get("message")):
        return _message(message, me, event)
    if message := _map(update.get("edited_message")):
        return _parse_edit(message, me, event)
    if press := _map(update.get("callback_query")):
        return _parse_press(press, me, event)
    if member := _map(update.get("my_chat_member")):
        return _parse_loss(member, me, event)
    if stopped := _map(update.get("stopped_message_generation")):
        return _parse_stop(stopped, me, event)
    return None


def _message(message: Json, me: TelegramBot, event: str) -> Inbound | None:
    conversation, sender = _find_conversation(message, me), _sender(message)
    if conversation is None or sender is None:
        return None
    text, attachments = _text(message), tuple(_attachments(message))
    number, quote = str(_int(message.get("message_id"))), _quote(message, me)
    if quote is not None and quote.forwarded:
        text = ""
    words = _strip_mention(text, me)
    if not attachments and (given := read_command(words)):
        if given.bot and given.bot.casefold() != me.username.casefold():
            return None
        named = words != text
        return CommandGiven(
            conversation=conversation,
            sender=sender,
            event=event,
            message=number,
            name=given.name,
            arguments=given.arguments,
            addressed=conversation.private or named or bool(given.bot),
            worded=named,
        )
    if not text and not attachments and not (quote and quote.forwarded and quote.text):
        return None
    return MessageReceived(
        conversation=conversation,
        sender=sender,
        event=event,
        message=number,
        text=text,
        attachments=attachments,
        reply_to=quote,
        addressed=conversation.private
        or (quote is not None and quote.mine and not quote.forwarded)
        or _is_mentioned(message, me),
        at=float(_int(message.get("date"))),
        album=read_string(message.get("media_group_id")),
        described=bool(text) and _names_others(message) and not _read_text(message),
    )


def _parse_edit(message: Json, me: TelegramBot, event: str) -> Inbound | None:
    conversation, sender, text = (
        _find_conversation(message, me),
        _sender(message),
        _read_text(message),
    )
    if conversation is None or sender is None or not text:  # a live location changes continuously
        return None
    number = str(_int(message.get("message_id")))
    edit = MessageEdited(
        conversation=conversation, sender=sender, event=event, message=number, text=text
    )
    return add_said(edit, _message(message, me, event), float(_int(message.get("edit_date"))))


def _parse_press(press: Json, me: TelegramBot, event: str) -> Inbound | None:
    message, data = _map(press.get("message")), read_string(press.get("data"))
    conversation, sender = _find_conversation(message, me), _presser(press)
    if conversation is None or sender is None or not data:
        return None
    return ButtonPressed(
        conversation=conversation,
        sender=sender,
        event=event,
        message=str(_int(message.get("message_id"))),
        token=data,
        press=read_string(press.get("id")),
        anywhere=not _int(message.get("date")),  # 0 for a message that is not accessible any more
    )


def _parse_loss(member: Json, me: TelegramBot, event: str) -> Inbound | None:
    """Parse the bot's state in a chat, if it may no longer write there."""
    where, now = _find_conversation(member, me), _map(member.get("new_chat_member"))
    status = now.get("status")
    mute = status == "restricted" and now.get("can_send_messages") is False
    if where is None or (status not in OUT and not mute):
        return None
    return ChatLost(conversation=where, event=event)


def _parse_stop(stopped: Json, me: TelegramBot, event: str) -> Inbound | None:
    """The update names no person; drafts exist in private chats only, where chat and person
    have one id."""
    chat = _map(stopped.get("chat"))
    topic = _int(stopped.get("message_thread_id"))
    conversation = _find_conversation(
        {"chat": chat, "message_thread_id": topic, "is_topic_message": True}, me
    )
    if conversation is None or not conversation.private:
        return None
    return StopPressed(conversation=conversation, sender=_person(chat), event=event)


def _find_conversation(message: Json, me: TelegramBot) -> Conversation | None:
    chat = _map(message.get("chat"))
    number = _int(chat.get("id"))
    if not number:
        return None
    topic = _int(message.get("message_thread_id")) if message.get("is_topic_message") else 0
    return Conversation(
        platform="telegram",
        account=str(me.id),
        channel=str(number),
        thread=str(topic) if topic > 0 else "",
        private=chat.get("type") == "private",
    )


def _sender(message: Json) -> Sender | None:
    """The person; for anonymous admins and people writing as a channel that chat. None for bots
    and for channel posts that Telegram copies into the discussion group."""
    chat = _map(message.get("sender_chat"))
    if message.get("is_automatic_forward"):
        return None
    if number := _int(chat.get("id")):
        return _person(chat, anonymous=number == _int(_map(message.get("chat")).get("id")))
    user = _map(message.get("from"))
    return None if not _int(user.get("id")) or user.get("is_bot") is True else _person(user)


def _presser(press: Json) -> Sender | None:
    """The person who pressed; Telegram names anonymous admins too."""
    if _int(_map(press.get("from")).get("id")) == ANONYMOUS:
        return _person(_map(_map(press.get("message")).get("chat")), anonymous=True)
    return _sender(press)


def _person(user: Json, *, anonymous: bool = False) -> Sender:
    return Sender(
        platform="telegram",
        id=str(_int(user.get("id"))),
        name=_name(user),
        handle=read_string(user.get("username")),
        language=read_string(user.get("language_code")),
        anonymous=anonymous,
    )


def _name(user: Json) -> str:
    names = (read_string(user.get("first_name")), read_string(user.get("last_name")))
    return (
        " ".join(filter(None, names))
        or read_string(user.get("title"))
        or read_string(user.get("name"))
    )


def _text(message: Json) -> str:
    return _read_text(message) or _describe(message)


def _read_text(message: Json) -> str:
    sticker = _map(message.get("sticker"))
    return (
        read_string(message.get("text"))
        or read_string(message.get("caption"))
        or read_string(sticker.get("emoji"))
        or "\n".join(_lines(_map(message.get("rich_message"))))
    )


def _describe(message: Json) -> str:
    """Describe a message without words: a place, a person, a poll; "" for service messages."""
    if venue := _map(message.get("venue")):
        place = _place(_map(venue.get("location")))
        title, address = read_string(venue.get("title")), read_string(venue.get("address"))
        return f"[place: {title}, {address}, {place}]"
    if location := _map(message.get("location")):
        return f"[location: {_place(location)}]"
    if contact := _map(message.get("contact")):
        return f"[contact: {_name(contact)}, {read_string(contact.get('phone_number'))}]"
    if poll := _map(message.get("poll")):
        given = poll.get("options")
        options = map(_map, given) if isinstance(given, list) else ()
        lines = (f"- {read_string(option.get('text'))}" for option in options)
        return "\n".join((f"[poll: {read_string(poll.get('question'))}]", *lines))
    if checklist := _map(message.get("checklist")):
        given = checklist.get("tasks")
        tasks = list(map(_map, given)) if isinstance(given, list) else []
        marks = ("x" if task.get("completion_date") else " " for task in tasks)
        lines = (
            f"- [{m}] {read_string(task.get('text'))}" for m, task in zip(marks, tasks, strict=True)
        )
        return "\n".join((f"[check list: {read_string(checklist.get('title'))}]", *lines))
    if dice := _map(message.get("dice")):
        return f"[{read_string(dice.get('emoji'))}: {_int(dice.get('value'))}]"
    kind = next((kind for kind in UNREAD if message.get(kind)), "")
    return f"[a {kind.replace('_', ' ')}: bots cannot read it]" if kind else ""


def _names_others(message: Json) -> bool:
    """Return True for a place or a person: their names are not the sender's words."""
    return bool(_map(message.get("venue")) or _map(message.get("contact")))


def _place(location: Json) -> str:
    numbers = (location.get("latitude"), location.get("longitude"))
    return ", ".join(f"{n:.6g}" for n in numbers if isinstance(n, int | float))


def _lines(block: Json, depth: int = 0) -> Iterator[str]:
    """Yield the text of a rich message, which has no text of its own."""
    if depth > MAX_DEPTH:
        return
    for field in ("summary", "text"):
        if line := _read_plain(block.get(field), depth):
            yield line
    for field in ("blocks", "items"):
        inside = block.get(field)
        for one in inside if isinstance(inside, list) else ():
            yield from _lines(_map(one), depth + 1)
    rows = block.get("cells")
    for row in rows if isinstance(rows, list) else ():
        cells = map(_map, row) if isinstance(row, list) else ()
        yield " | ".join(_read_plain(cell.get("text"), depth) for cell in cells)


def _read_plain(text: object, depth: int) -> str:
    if depth > MAX_DEPTH:
        return ""
    if isinstance(text, list):
        return "".join(_read_plain(one, depth + 1) for one in text)
    return _read_plain(text.get("text"), depth + 1) if isinstance(text, dict) else read_string(text)


def _attachments(message: Json) -> Iterator[Attachment]:
    photo = message.get("photo")
    if isinstance(photo, list) and photo:
        largest = max(map(_map, photo), key=lambda size: _int(size.get("width")))
        name = f"photo_{_int(message.get('message_id'))}.jpg"
        yield from _attachment(largest, name, "image/jpeg")
    for field, name, mime in FILES:
        yield from _attachment(_map(message.get(field)), name, mime, voice=field == "voice")
    sticker = _map(message.get("sticker"))
    if sticker.get("is_animated") is not True:  # vector files, which cannot be read
        moving = sticker.get("is_video") is True
        kind = ("sticker.webm", "video/webm") if moving else ("sticker.webp", "image/webp")
        yield from _attachment(sticker, *kind)


def _attachment(file: Json, name: str, mime: str, *, voice: bool = False) -> Iterator[Attachment]:
    if ref := read_string(file.get("file_id")):
        yield Attachment(
            ref=ref,
            name=read_string(file.get("file_name")) or name,
            mime=read_string(file.get("mime_type")) or mime,
            size=max(_int(file.get("file_size")), 0),
            voice=voice,
        )


def _quote(message: Json, me: TelegramBot) -> Quote | None:
    if origin := _map(message.get("forward_origin")):
        mine = _int(_map(origin.get("sender_user")).get("id")) == me.id
        writer, text = _name_origin(origin), _text(message)
        return Quote(message="", author=writer, text=text, mine=mine, forwarded=True)
    part = read_string(_map(message.get("quote")).get("text"))
    if replied := _map(message.get("reply_to_message")):
        if "forum_topic_created" in replied:  # every message in a topic replies to its first one
            return None
        author = _map(replied.get("from"))
        return Quote(
            message=str(_int(replied.get("message_id"))),
            author=_name(_map(replied.get("sender_chat")) or author),
            text=part or _describe_whole(replied),
            marked=bool(part),
            mine=_int(author.get("id")) == me.id,
        )
    if elsewhere := _map(message.get("external_reply")):
        writer = _name_origin(_map(elsewhere.get("origin")))
        text = part or _describe_whole(elsewhere)
        return Quote(message="", author=writer, text=text, marked=bool(part))
    return None


def _describe_whole(message: Json) -> str:
    """Return the words of a message that is replied to, and the names of its files."""
    files = (f"[{file.name}]" for file in _attachments(message))
    return "\n".join(filter(None, (_text(message), *files)))


def _name_origin(origin: Json) -> str:
    """Return the author of a forwarded message: a person, perhaps hidden, a group or a channel."""
    known = (_map(origin.get(field)) for field in ("sender_user", "sender_chat", "chat"))
    return _name(next(filter(None, known), NOTHING)) or read_string(origin.get("sender_user_name"))


def _is_mentioned(message: Json, me: TelegramBot) -> bool:
    for text_field, field in (("text", "entities"), ("caption", "caption_entities")):
        entities = message.get(field)
        if not isinstance(entities, list):
            continue
        units = read_string(message.get(text_field)).encode("utf-16-le")
        for entity in map(_map, entities):
            if _int(_map(entity.get("user")).get("id")) == me.id:
                return True
            start, length = _int(entity.get("offset")), _int(entity.get("length"))
            if entity.get("type") != "mention" or start < 0 or length <= 0:
                continue
            name = units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
            if me.username and name.casefold() == f"@{me.username}".casefold():
                return True
    return False


def _strip_mention(text: str, me: TelegramBot) -> str:
    """Return `text` without the bot's own name in front."""
    own = f"@{me.username}"
    named = me.username and text[: len(own)].casefold() == own.casefold()
    rest = text[len(own) :] if named else text
    return rest.lstrip() if rest[:1].isspace() else text


def _map(value: object) -> Json:
    return value if isinstance(value, dict) else NOTHING


def _int(value: object, default: int = 0) -> int:
    if type(value) is int and -(1 << 53) < value < 1 << 53:
        return value
    return default
