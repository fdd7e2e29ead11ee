"""While the files of a message come, its conversation goes on: commands are heard, and the message
can be edited, deleted and stopped."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.discord.adapter import DiscordAdapter
from adapters.slack.adapter import SlackAdapter
from adapters.telegram.adapter import TelegramAdapter
from adapters.web.adapter import WebAdapter
from gateway.ports import Working
from tests.fakes.model_server import Say
from tests.stories.rig import PERSON, Rig
from tests.stories.surfaces import Discord, Slack, Surface, Telegram, Web

ADAPTERS = (TelegramAdapter, DiscordAdapter, SlackAdapter, WebAdapter)
SURFACES = pytest.mark.parametrize("surface", [Telegram, Web, Discord, Slack])
FILES = [("a.txt", b"one"), ("b.txt", b"two")]


class Downloads:
    """All downloads of the gateway; each waits until it may go on."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cut = 0
        self.go_on = asyncio.Event()
        self.signs: list[str] = []

    def hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for adapter in ADAPTERS:
            monkeypatch.setattr(adapter, "fetch", self._wrap(adapter.fetch))
            if issubclass(adapter, Working):
                monkeypatch.setattr(adapter, "show_work", self._note(adapter.show_work))

    def _wrap(self, plain: Any) -> Any:
        async def fetch(adapter: Any, attachment: Any, to: Any) -> None:
            self.begun.append(attachment.name)
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cut += 1
                raise
            await plain(adapter, attachment, to)

        return fetch

    def _note(self, plain: Any) -> Any:
        async def show_work(adapter: Any, conversation: Any, message: str) -> bool:
            self.signs.append(message)
            shown: bool = await plain(adapter, conversation, message)
            return shown

        return show_work


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Downloads]:
    held = Downloads()
    held.hold(monkeypatch)
    yield held


@SURFACES
async def test_a_stop_is_heard(surface: type[Surface], rig: Rig, downloads: Downloads) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(Sort=[Say("Sorted.")], Then=[Say("Done.")])
        await person.say("Sort these", FILES)
        await rig.until(lambda: downloads.begun)
        await person.command("/stop")
        await person.shows("Stopped.")
        await rig.until(lambda: downloads.cut == 1)
        downloads.go_on.set()
        await person.say("Then this")
        await person.shows("Done.")
        await rig.quiet()
        assert len(rig.model.requests) == 1 and not list(rig.home.glob("workspaces/*/incoming/*"))
        assert downloads.begun == ["a.txt"]
    finally:
        await person.close()


@SURFACES
async def test_commands_are_answered_and_it_is_shown_that_it_is_worked_on(
    surface: type[Surface], rig: Rig, downloads: Downloads
) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(Sort=[Say("Sorted.")])
        await person.say("Sort these", FILES)
        await rig.until(lambda: downloads.begun)
        await person.command("/status")
        await person.shows("Mode")
        if person.name != "web":
            await rig.until(lambda: downloads.signs)
        downloads.go_on.set()
        await person.shows("Sorted.")
        await rig.quiet()
        assert "incoming/a.txt" in rig.seen(role="user")[-1]
        assert "incoming/b.txt" in rig.seen(role="user")[-1]
        assert downloads.begun == ["a.txt", "b.txt"] and downloads.cut == 0
    finally:
        await person.close()


@pytest.mark.parametrize("surface", [Telegram, Discord])
async def test_an_edit_counts(
    surface: type[Telegram | Discord], rig: Rig, downloads: Downloads
) -> None:
    person = surface(rig)
    await person.open()
    try:
        person.answers(Count=[Say("Counted.")], Sort=[Say("Sorted.")])
        said = await person.say("Count these", FILES[:1])
        await rig.until(lambda: downloads.begun)
        await person.edit(said, "Sort these")
        downloads.go_on.set()
        await person.shows("Sorted.")
        await rig.quiet()
        assert len(rig.model.requests) == 1 and "incoming/a.txt" in rig.seen(role="user")[-1]
    finally:
        await person.close()


async def test_what_was_deleted_is_not_fetched(rig: Rig, downloads: Downloads) -> None:
    person = Discord(rig)
    await person.open()
    try:
        person.answers(Sort=[Say("Sorted.")], Then=[Say("Done.")])
        said = await person.say("Sort these", FILES)
        await rig.until(lambda: downloads.begun)
        await person.withdraw(said)
        await rig.until(lambda: downloads.cut)
        downloads.go_on.set()
        await person.say("Then this")
        await person.shows("Done.")
        await rig.quiet()
        assert len(rig.model.requests) == 1 and downloads.begun == ["a.txt"]
    finally:
        await person.close()


async def test_a_stop_is_heard_while_somebody_listens(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speech is transcribed by a model, which may take as long as the speech."""
    person = Telegram(rig)
    await person.open(TRANSCRIPTION_MODEL="openai/whisper-1")
    gate = asyncio.Event()
    begun = asyncio.Event()

    async def listen(*given: object) -> str:
        begun.set()
        await gate.wait()
        return "buy milk"

    hearing = rig.host.services.hearing
    assert hearing is not None
    monkeypatch.setattr(type(hearing), "words", listen)
    try:
        await person.speak(b"OggS!")
        await begun.wait()
        await person.command("/stop")
        await person.shows("Stopped.")
        await rig.quiet()
        assert not rig.model.requests and not gate.is_set()
    finally:
        await person.close()


@pytest.mark.parametrize("how", ["stop", "crash"])
async def test_files_that_come_are_fetched_again_after_a_restart(
    rig: Rig, downloads: Downloads, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.__main__.PATIENCE", 0.2)
    await rig.start()
    rig.telegram.files["a.txt"] = b"one"
    file = {"file_id": "a.txt", "file_unique_id": "a", "file_name": "a.txt", "file_size": 3}
    rig.telegram.say(PERSON, "", caption="Sort", document=file)
    await rig.until(lambda: downloads.begun)
    await (rig.stop() if how == "stop" else rig.crash())
    downloads.go_on.set()
    await rig.start()
    await rig.shows("ack")
    await rig.quiet()
    assert len(rig.model.requests) == 1 and "incoming/a.txt" in rig.seen(role="user")[-1]


async def test_further_messages_are_read_in_their_order(rig: Rig, downloads: Downloads) -> None:
    person = Telegram(rig)
    await person.open()
    try:
        person.answers(first=[Say("One.")], second=[Say("Two.")])
        await person.say("the first", FILES[:1])
        await rig.until(lambda: downloads.begun)
        await person.say("the second", FILES[1:])
        downloads.go_on.set()
        await person.shows("Two.")
        await rig.quiet()
        said = [text for text in person.screen() if "One." in text or "Two." in text]
        assert ["One." in text for text in said] == [True, False]
        assert downloads.begun == ["a.txt", "b.txt"] and downloads.cut == 0
    finally:
        await person.close()
