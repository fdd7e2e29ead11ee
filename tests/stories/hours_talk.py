"""How the people of an hour bring their words to each platform."""

import itertools
from typing import Any

from tests.fakes.discord_server import DiscordServer
from tests.fakes.slack_server import BOT as SLACK_BOT
from tests.fakes.slack_server import SlackServer
from tests.fakes.telegram_server import TelegramServer
from tests.stories.hours_grammar import IDS, Json, Says, Who
from tests.stories.rig import GROUP, mention

CHANNEL, DEV = "7100", "C0DEV"
TOPIC = 1_000_005
"""The number of the message with which the topic began: no other one has it."""
FULL = 4_096
"""Characters at which Telegram's clients cut a paste; those of others make a file of it."""
CARL = {"id": 88, "is_bot": False, "first_name": "Carl"}
_keys = itertools.count(1)


def bring(deed: Says, words: list[str]) -> list[str]:
    """The texts of the messages that the deed is, in the group without the agent's name."""
    match deed.way, deed.kind:
        case "paste", _:
            first = f"{words[0]} " + "p" * FULL
            return [first[:FULL], f"the end {words[1]}"]
        case "forward", _:
            return [words[0]]
        case _, "write":
            return [f"write {words[0]}"]
        case _, "long":
            return [f"{words[0]} " + "long " * 805]
    return [words[0]]


class Talk:
    """Three platforms, and what people send there. Each method gives what the server knows the
    message by."""

    def __init__(
        self, telegram: TelegramServer, discord: DiscordServer, slack: SlackServer
    ) -> None:
        self.telegram, self.discord, self.slack = telegram, discord, slack

    def newest(self, deed: Says) -> Json | None:
        """The agent's newest words where the deed is done, if there are any."""
        match deed.on:
            case "telegram":
                own = self.telegram.chats[int(IDS["telegram"][deed.who]) if deed.private else GROUP]
                topic = self._topic(deed)
                own = [one for one in own if int(one.get("message_thread_id") or 0) == topic]
            case "discord":
                own = self.discord.chats[self.discord_channel(deed.who, deed.private)]
            case "slack":
                own = self.slack.channels[DEV]
        return own[-1] if own else None

    @staticmethod
    def discord_channel(who: Who, private: bool) -> str:
        return f"9000{IDS['discord'][who]}" if private else CHANNEL

    @staticmethod
    def slack_channel(who: Who, private: bool) -> str:
        return f"D{IDS['slack'][who][1:]}" if private else DEV

    def say_on_telegram(self, deed: Says, text: str, *, named: bool, reply: Json | None) -> Any:
        who, more = int(IDS["telegram"][deed.who]), {}
        chat = who if deed.private else GROUP
        if named:
            text, more = f"@test_bot {text}", mention("")
        if deed.way in ("album", "file"):
            more = {f"caption_{name}": one for name, one in more.items()}
            return self._attach(deed, chat, who, text, reply, more)
        if deed.way == "forward":
            more["forward_origin"] = {"type": "user", "date": 5, "sender_user": CARL}
        if reply:
            more["reply_to"] = reply["message_id"]
            if deed.way == "quote":
                shown = str(reply.get("text", ""))[:9]
                more["quote"] = {"text": shown, "position": 0, "is_manual": True}
        return self.telegram.say(chat, text, user=who, thread=self._topic(deed), **more)

    @staticmethod
    def _topic(deed: Says) -> int:
        return TOPIC if deed.topic and not deed.private else 0

    def _attach(
        self, deed: Says, chat: int, who: int, text: str, reply: Json | None, more: Json
    ) -> Any:
        """An album's first part carries its words; the update of that part."""
        album = {"media_group_id": f"a{next(_keys)}"} if deed.way == "album" else {}
        answers = {"reply_to": reply["message_id"]} if reply else {}
        said: list[Json] = []
        for n in range(2 if album else 1):
            key = f"file{next(_keys)}"
            self.telegram.files[key] = b"a,b\n1,2\n"
            about = {"file_id": key, "file_unique_id": key, "file_name": "t.csv", "file_size": 8}
            file: Json = {"document": about} | album | (more | {"caption": text} if not n else {})
            sent = self.telegram.say(
                chat, "", user=who, thread=self._topic(deed), **file, **answers
            )
            said.append(sent)
        return said[0]

    async def say_on_discord(
        self, deed: Says, text: str, *, named: bool, reply: Json | None
    ) -> Any:
        channel, more = self.discord_channel(deed.who, deed.private), {}
        text = (f"@bot {text}" if named else text)[:2_000]
        if deed.way in ("album", "file"):
            more["attachments"] = [
                self._attachment(f"{next(_keys)}-t.csv") for _ in range(1 + (deed.way == "album"))
            ]
        if deed.way == "forward":
            more["message_snapshots"] = [{"message": {"content": text, "attachments": []}}]
            text = ""
        answered = str(reply["id"]) if reply else ""
        if reply:  # as clients have it unless one switches it off
            more["mentions"] = [self.discord.user]
        return await self.discord.say(
            channel, text, int(IDS["discord"][deed.who]), answered, **more
        )

    def _attachment(self, key: str) -> Json:
        self.discord.files[key] = b"a,b\n1,2\n"
        url = f"{self.discord.base}/files/{key}"
        return {"id": f"88{next(_keys)}", "filename": "t.csv", "size": 8, "url": url}

    def say_on_slack(self, deed: Says, text: str, *, named: bool, reply: Json | None) -> Any:
        channel, who = self.slack_channel(deed.who, deed.private), IDS["slack"][deed.who]
        thread = reply.get("thread_ts", "") if reply and not deed.private else ""
        more: Json = {}
        if deed.way in ("album", "file"):
            files = [self._upload() for _ in range(1 + (deed.way == "album"))]
            more = {"subtype": "file_share", "files": files}
        if deed.way == "forward":
            more["attachments"] = [{"is_share": True, "author_name": "Carl", "text": text}]
            text = ""
        if not named:
            return self.slack.say(channel, text, who, thread, **more)
        said = self.slack.say(channel, f"<@{SLACK_BOT}> {text}", who, thread, **more)
        again = {key: value for key, value in said["event"].items() if key != "channel_type"}
        self.slack.event(again | {"type": "app_mention"})
        return said

    def _upload(self) -> Json:
        name = f"F{next(_keys):04d}"
        self.slack.files[name] = b"a,b\n1,2\n"
        return {"id": name, "name": "t.csv", "mimetype": "text/csv", "size": 8}
