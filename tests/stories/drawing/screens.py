"""The screens of the shared stories' people, as HTML: the servers' messages in order, with what else
is seen (receipts, private words, what grows)."""

from tests.stories.drawing import discord, slack, telegram
from tests.stories.drawing.markup import LOOKS, Look, box, page, words
from tests.stories.surfaces import Discord, Slack, Surface, Telegram
from tests.stories.surfaces.discord import NAMES as DISCORD_NAMES
from tests.stories.surfaces.slack import NAMES as SLACK_NAMES

Frame = tuple[str, str]
"""A title, and a screen as HTML."""
DRAWN = {
    "telegram": (telegram.CSS, telegram.WIDTH),
    "discord": (discord.CSS, discord.WIDTH),
    "slack": (slack.CSS, slack.WIDTH),
}


def sheet(on: str, frames: list[Frame], look: Look = LOOKS[0]) -> str:
    """All frames of a story on one platform as one document."""
    css, width = DRAWN[on]
    return page(css, frames, width=look.width(width), scheme=look.scheme)


def screen(surface: Surface) -> str:
    """What is on the screen now."""
    match surface:
        case Telegram():
            return _telegram(surface)
        case Discord():
            return _discord(surface)
        case Slack():
            return _slack(surface)
    raise AssertionError(f"{surface.name} has a page of its own")


def _telegram(surface: Telegram) -> str:
    server, chat = surface.rig.telegram, surface.chat
    mine = {n: one for (where, n), one in surface._mine.items() if where == chat}
    theirs = {one["message_id"]: one for one in server.chats[chat]}
    shown = [_telegram_line(surface, one) for _, one in sorted((mine | theirs).items())]
    if draft := server.drafts[chat]:
        shown.append(
            telegram.message(draft[-1] if draft[-1].get("text") else draft[-1] | {"text": "…"})
        )
    shown += [telegram.toast(one["text"]) for one in server.answers if one.get("text")]
    shown += [telegram.asked(one) for one in list(theirs.values())[-1:]]
    return "".join(shown)


def _telegram_line(surface: Telegram, one: telegram.Json) -> str:
    number = one["message_id"]
    files = [file.name for file in surface.rig.telegram.uploads.get(number, ())]
    files += [one["document"]["file_name"]] if "document" in one else []
    files += ["voice note"] if "voice" in one else []
    eyes = surface.rig.telegram.reactions.get((surface.chat, number), ())
    seen = box("seen", " ".join(words(each["emoji"]) for each in eyes))
    return telegram.message(one, files, seen)


def _discord(surface: Discord) -> str:
    shown = ""
    for channel in surface.channels:
        if title := surface.server.titles.get(channel):
            shown += box("thread", words(f"⤷ {title}"))
        shown += "".join(line for _, line in sorted(_discord_lines(surface, channel)))
    return shown


def _discord_lines(surface: Discord, channel: str) -> list[tuple[int, str]]:
    server = surface.server
    found = [
        (int(one["id"]), discord.message(one, server.uploads[one["id"]]))
        for one in server.chats[channel]
    ]
    for number, one in surface._mine.items():
        if one["channel_id"] == channel:
            seen = box("seen", words(" ".join(server.reactions.get(number, ()))))
            name, said = DISCORD_NAMES[int(one["author"]["id"])], surface._said(one)
            found.append((int(number), discord.said(name, said.removesuffix(" 👀"), seen)))
    if channel == surface.channels[-1]:
        told = server.whispers.items()
        found += [(int(number), discord.whisper(texts)) for number, texts in told]
    return found


def _slack(surface: Slack) -> str:
    server, channel = surface.slack, surface._channel
    found = [
        (float(one["ts"]), slack.message(one, _names(surface, one)))
        for one in server.channels[channel]
    ]
    for (where, stamp), event in server._said.items():
        if where == channel:
            eyes = "👀" if (channel, stamp, "eyes") in server.reactions else ""
            said = surface._written(event).removesuffix(" 👀")
            name = SLACK_NAMES[event["user"]]
            found.append((float(stamp), slack.said(name, said, box("seen", eyes))))
    told = "".join(slack.whisper(one["text"]) for one in server.ephemeral)
    status = server.sessions.get((channel, surface._thread), "")
    session = slack.session(status) if status else ""
    return "".join(line for _, line in sorted(found)) + told + session


def _names(surface: Slack, one: slack.Json) -> list[str]:
    return [surface.slack.uploads[file][0] for file in one.get("files", ())]
