"""The person in Telegram: a private chat, or a group where others are too."""

import itertools
from collections.abc import Sequence

from gateway.texts import say as text_of
from tests.fakes.telegram_wire import Json, bare, span
from tests.stories.rig import (
    ADMIN,
    FRIEND,
    GROUP,
    PATIENCE,
    PERSON,
    STRANGER,
    Rig,
    labels,
    mention,
    token,
)
from tests.stories.surfaces.surface import Surface, indented

NAMES = {PERSON: "Ann", FRIEND: "Ben", ADMIN: "Ada", STRANGER: "Zoe"}
EYES = [{"type": "emoji", "emoji": "👀"}]


class Telegram(Surface):
    """Ann, who is an admin. With `group` she is in a group with the others."""

    name = "telegram"

    def __init__(self, rig: Rig, language: str = "en", crash_at: str = "") -> None:
        super().__init__(rig, language, crash_at)
        self.chat = PERSON
        self._settings: dict[str, str] = {}
        self._mine: dict[tuple[int, int], Json] = {}
        """What people wrote: (chat, message) -> message."""
        self._seen_waiting: set[int] = set()
        self._numbers = itertools.count(1)
        self._drafts = 0

    async def open(self, **settings: str) -> None:
        def user(user: int) -> Json:
            names = {"first_name": NAMES[user], "language_code": self.language}
            return {"id": user, "is_bot": False} | names

        self.rig.telegram._user = user  # type: ignore[method-assign]
        who = {"TELEGRAM_ADMIN_USERS": f"{PERSON},{ADMIN}", "TELEGRAM_ALLOWED_USERS": str(FRIEND)}
        self._settings = who | settings
        await self.rig.start(**self._settings)

    async def restart(self) -> None:
        await self.rig.crash()
        self._drafts = len(self.rig.telegram.drafts[self.chat])
        await self.rig.start(**self._settings)

    async def close(self) -> None:
        pass

    # ---- what a person does --------------------------------------------------------------

    async def say(self, text: str, files: Sequence[tuple[str, bytes]] = ()) -> str:
        named = "@test_bot " if self.chat == GROUP else ""
        return await self.say_as(PERSON, named + text, files)

    async def say_as(
        self, user: int, text: str, files: Sequence[tuple[str, bytes]] = (), reply_to: str = ""
    ) -> str:
        """Somebody in the chat writes; in a group it is for the bot if it begins with its name."""
        more: Json = mention(text) if text.startswith("@test_bot") else {}
        if reply_to:
            more |= {"reply_to": int(reply_to)}
        self._note()
        if not files:
            return self._put(self.rig.telegram.say(self.chat, text, user=user, **more))
        album = {"media_group_id": f"album{next(self._numbers)}"} if len(files) > 1 else {}
        names: list[str] = []
        for n, (name, data) in enumerate(files):
            key = f"file{next(self._numbers)}"
            self.rig.telegram.files[key] = data
            about = {"file_id": key, "file_unique_id": key, "file_name": name}
            file: Json = {"document": about | {"file_size": len(data)}} | album
            if text and not n:
                file["caption"] = text
            update = self.rig.telegram.say(self.chat, "", user=user, **file)
            names.append(self._put(update))
        return names[0]

    async def speak(self, sound: bytes) -> str:
        """Hold the microphone's button."""
        key = f"voice{next(self._numbers)}"
        self.rig.telegram.files[key] = sound
        voice = {"file_id": key, "file_unique_id": key, "duration": 2, "file_size": len(sound)}
        self._note()
        return self._put(self.rig.telegram.say(self.chat, "", user=PERSON, voice=voice))

    async def command(self, text: str) -> None:
        await self.say(text)

    async def press(self, label: str) -> None:
        assert await self.press_as(PERSON, label) == ""

    async def press_as(self, user: int, label: str) -> str:
        """The private word that answers the press."""
        self._note()
        cards = self.rig.buttons(self.chat)
        card = next(one for one in reversed(cards) if label in labels(one))
        update = self.rig.telegram.press(
            self.chat, card["message_id"], token(card, label), user=user
        )
        return await self.rig.told(update)

    def link(self, label: str) -> str:
        rows = [
            row
            for one in self.rig.telegram.chats[self.chat]
            for row in one.get("reply_markup", {}).get("inline_keyboard", ())
        ]
        return next(str(one["url"]) for row in rows for one in row if one["text"] == label)

    async def deny(self, reason: str) -> None:
        await self.say(f"/deny {reason}")

    async def fill_in(self, text: str) -> None:
        *_, form = self._forms()
        self._note()
        self._put(self.rig.telegram.say(self.chat, text, user=PERSON, reply_to=form["message_id"]))

    async def write_own(self, text: str) -> None:
        word = await self.press_as(PERSON, text_of("something_else", self.language))
        assert word == text_of("own_words", self.language)
        await self.say(text)

    async def edit(self, message: str, text: str) -> None:
        await self.change(message, text)
        await self.rig.until(
            lambda: (s := self.rig.session(self.chat)) is not None and text in str(s.state.queue)
        )

    async def change(self, message: str, text: str) -> None:
        """Edit a message that nothing is done about any more."""
        self.rig.telegram.edit(self.chat, int(message), text)

    async def stop(self) -> None:
        """The button that Telegram shows while a draft grows."""
        self._note()
        draft = self.rig.telegram.drafts[self.chat][-1]
        assert draft["can_stop"]
        chat = {"id": self.chat, "type": "private", "first_name": NAMES[PERSON]}
        self.rig.telegram.push(
            {"stopped_message_generation": {"chat": chat, "draft_id": draft["draft_id"]}}
        )

    # ---- what a person sees --------------------------------------------------------------

    async def shows(self, text: str) -> None:
        def shown() -> bool:
            return any(text in _words(one) for one in self.rig.telegram.chats[self.chat])

        await self.rig.telegram.wait(shown, PATIENCE)

    async def card(self, text: str) -> None:
        def opened() -> bool:
            found = [*self.rig.cards(self.chat), *self._forms()]
            return any(text in one["text"] for one in found)

        await self.rig.telegram.wait(opened, PATIENCE)

    async def grows(self, text: str) -> None:
        def grown() -> bool:
            drafts = self.rig.telegram.drafts[self.chat][self._drafts :]
            return any(text in one["text"] for one in drafts)

        await self.rig.telegram.wait(grown, PATIENCE)

    async def waits(self, message: str) -> None:
        key = self.chat, int(message)
        await self.rig.telegram.wait(lambda: self.rig.telegram.reacted.get(key) == EYES, PATIENCE)
        self._seen_waiting.add(int(message))

    def screen(self) -> list[str]:
        mine = {n: one for (chat, n), one in self._mine.items() if chat == self.chat}
        theirs = {one["message_id"]: one for one in self.rig.telegram.chats[self.chat]}
        lines = []
        for n, one in sorted((mine | theirs).items()):
            if n in theirs:
                lines.append(f"bot: {self._shows(one, last=n == max(mine | theirs))}")
            else:
                lines.append(f"{one['from']['first_name']}: {self._said(one)}")
        return lines

    def hold_sends(self) -> None:
        self.rig.telegram.hold("sendMessage")

    async def sends(self, text: str) -> None:
        def sent() -> bool:
            calls = self.rig.telegram.made("sendMessage")
            return any(text in str(call.params.get("text")) for call in calls)

        await self.rig.telegram.wait(sent, PATIENCE)

    def let_sends_go(self) -> None:
        self.rig.telegram.release("sendMessage")

    def named(self, text: str) -> str:
        """The bot's message that shows `text`, for a reply to it."""
        found = self.rig.telegram.chats[self.chat]
        return str(next(one["message_id"] for one in found if text in one["text"]))

    def note(self, user: int, told: str) -> None:
        """Keep the private word that `user` was told for the transcript."""
        self._looks.append(f"-- told to {NAMES[user]} alone --\n{told}\n")

    # ---- details -------------------------------------------------------------------------

    def _forms(self) -> list[Json]:
        found = self.rig.telegram.chats[self.chat]
        return [m for m in found if m.get("reply_markup", {}).get("force_reply")]

    def _note(self) -> None:
        """What is shown from now on is new."""
        self._drafts = len(self.rig.telegram.drafts[self.chat])

    def _put(self, update: Json) -> str:
        message = update["message"]
        self._mine[self.chat, message["message_id"]] = message
        return str(message["message_id"])

    def _said(self, one: Json) -> str:
        text = one.get("caption") or one["text"]
        if "document" in one:
            text = f"{text}\n[{one['document']['file_name']}]".strip()
        if "voice" in one:
            text = "[voice note]"
        edited = " (edited)" if "edit_date" in one else ""
        eyes = " 👀" if one["message_id"] in self._seen_waiting else ""
        return f"{text}{edited}{eyes}"

    def _shows(self, one: Json, *, last: bool) -> str:
        """Telegram offers to reply to its last message only."""
        text = _words(one)
        if file := self.rig.telegram.file_of(one):
            text = f"[{file.name}, {len(file.data)} bytes]\n{text}".strip()
        markup = one.get("reply_markup", {})
        for row in markup.get("inline_keyboard", ()):
            text += "\n" + " ".join(f"[{button['text']}]" for button in row)
        if last and markup.get("force_reply"):
            text += f"\n[{markup['input_field_placeholder']}: ____]"
        return text


def _words(one: Json) -> str:
    """What a message shows; what is folded away stands further in."""
    rich = one.get("rich_message")
    if rich is None:
        return str(one["text"])
    lines = []
    for block in rich["blocks"]:
        if block["type"] == "details":
            lines += [span(block["summary"]), indented(bare(block["blocks"]))]
        else:
            lines.append(bare([block]))
    return "\n".join(lines)
