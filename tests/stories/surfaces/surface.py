"""What a person can do on any surface, and the screen as a text that stays the same."""

import abc
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path

from agent_core.context.data_marks import strip_marks
from tests.stories.rig import PATIENCE, Rig
from tests.stories.surfaces.mind import HEARD, RECAP, Fragile, Line, Mind

GOLDENS = Path(__file__).parents[2] / "goldens"
TIME = re.compile(r"(?:\b[A-Z][a-z]+day )?\d{4}-\d\d-\d\d(?: \d\d:\d\d UTC)?")
PORT = re.compile(r"127\.0\.0\.[12]:\d+")
SIGN_IN = re.compile(r"(?<=/servers/signin/)[\w.-]+")
SECRET = re.compile(r"(?<=/open/)[\w-]+|(?<=/turnkeeper-watch/)[\w-]+")
"""Of a link that is good once, or as long as the browser is open."""
NAMED = re.compile(r"-[0-9a-f]{8}(?=\.md\b)")
"""What makes a file's name the only one."""
AGAIN = re.compile(r"\b(\w+)(?: \1\b)+ ?")
"""How far a stream came when it was stopped is chance."""
LONG = 14
"""Lines of a message from which on its middle is counted, not shown."""
TWICE = ("Possibly sent twice (restart).", "Möglicherweise doppelt gesendet (Neustart).")


class Surface(abc.ABC):
    """One person in front of one screen. `crash_at` names the rest at which the gateway dies."""

    name: str

    def __init__(self, rig: Rig, language: str = "en", crash_at: str = "") -> None:
        self.rig, self.language, self.crash_at = rig, language, crash_at
        self.zone = ""
        """What their client tells, where it tells one."""
        self.mind = Mind(rig.model)
        self.fragile = Fragile()
        """Another model, where a story starts it."""
        self.beside: dict[str, str] = {}
        """Settings by which the gateway finds the servers beside it."""
        self.rests: list[str] = []
        self._looks: list[str] = []

    # ---- lives ---------------------------------------------------------------------------

    @abc.abstractmethod
    async def open(self, **settings: str) -> None:
        """Start the gateway, and look at it."""

    @abc.abstractmethod
    async def restart(self) -> None:
        """Kill the gateway and start it again; the person stays."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Look away."""

    def answers(self, **lines: list[Line]) -> None:
        """What the model says, by the words that it hears."""
        self.mind.lines = lines

    async def rest(self, name: str, *, busy: bool = False, sending: bool = False) -> None:
        """A point where all waits for the person or, if `busy`, for the model. But for `sending`,
        nothing is on its way to the screen then: cut off in a send, it would be told twice."""
        if not busy:
            await self.rig.quiet()
        elif not sending:
            await self.delivered()
        self.rests.append(name)
        if name != self.crash_at:
            return
        self.mind.holds.clear()
        await self.restart()
        if self.rig.model.gate is not None:
            await self.thinks()

    async def delivered(self) -> None:
        """Until all that is wanted so far stands on the screen, and that is on record."""
        sessions = self.rig.host.sessions
        await self.rig.until(
            lambda: sessions and all(one.state.outbox.idle for one in sessions.values())
        )

    async def thinks(self) -> None:
        """Until the model holds its answer back."""
        await self.rig.until(self.mind.holds.is_set)

    # ---- what a person does --------------------------------------------------------------

    @abc.abstractmethod
    async def say(self, text: str, files: Sequence[tuple[str, bytes]] = ()) -> str:
        """Write a message, with files (name, content); how it is named from now on."""

    @abc.abstractmethod
    async def command(self, text: str) -> None:
        """`/name arguments`"""

    @abc.abstractmethod
    async def press(self, label: str) -> None:
        """The newest open button of this label."""

    @abc.abstractmethod
    def link(self, label: str) -> str:
        """Where the button of this label leads."""

    @abc.abstractmethod
    async def deny(self, reason: str) -> None:
        """Say no to the open card, and why."""

    @abc.abstractmethod
    async def fill_in(self, text: str) -> None:
        """Answer the open form."""

    @abc.abstractmethod
    async def write_own(self, text: str) -> None:
        """Answer the open choice with something else."""

    @abc.abstractmethod
    async def edit(self, message: str, text: str) -> None:
        """Change a message that waits, until the gateway knows."""

    @abc.abstractmethod
    async def stop(self) -> None:
        """What the surface has for it."""

    # ---- what a person sees --------------------------------------------------------------

    @abc.abstractmethod
    async def shows(self, text: str) -> None:
        """Until the gateway shows `text`."""

    @abc.abstractmethod
    async def card(self, text: str) -> None:
        """Until a card with `text` is open."""

    @abc.abstractmethod
    async def grows(self, text: str) -> None:
        """Until an answer that is under way shows `text`."""

    @abc.abstractmethod
    async def waits(self, message: str) -> None:
        """Until the person can see that the message was received and waits."""

    @abc.abstractmethod
    def screen(self) -> list[str]:
        """The messages from top to bottom, each with who said it."""

    @abc.abstractmethod
    def hold_sends(self) -> None:
        """From now on nothing that is sent arrives, where messages are sent."""

    @abc.abstractmethod
    async def sends(self, text: str) -> None:
        """Until `text` is on its way, where messages are sent; else until it is shown."""

    @abc.abstractmethod
    def let_sends_go(self) -> None:
        """All is as ever."""

    async def settle(self) -> None:
        """Until nobody has work, and all of it is on the screen."""
        await self.rig.quiet()

    def look(self, name: str) -> None:
        """Keep what is on the screen now for the transcript."""
        self._looks.append(f"-- {name} --\n{self._text()}")

    async def transcript(self) -> str:
        """All that was looked at, and the screen at the end; then what the model has heard."""
        await self.settle()
        self.look("at the end")
        await self.say(RECAP)
        await self.shows(HEARD)
        await self.settle()
        heard = self.screen()[-1].partition(HEARD)[2]
        return "\n".join([*self._looks, f"-- the model heard --\n{normal(strip_marks(heard))}\n"])

    def _text(self) -> str:
        return "".join(f"{normal(one)}\n" for one in self.screen())


def normal(text: str) -> str:
    """`text` without what differs from run to run, and without blank lines; a long one without
    its middle."""
    for pattern, name in (
        (TIME, "<time>"),
        (PORT, "<host>"),
        (NAMED, "-<name>"),
        (SECRET, "<secret>"),
        (SIGN_IN, "<link>"),
    ):
        text = pattern.sub(name, text)
    text = AGAIN.sub(r"\1 \1 …", text)
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if len(lines) > LONG:
        left = lines[3:-3]
        counted = f"[… {len(left)} lines, {sum(map(len, left))} characters …]"
        lines = [*lines[:3], counted, *lines[-3:]]
    return "\n    ".join(lines)


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def compare(name: str, found: str, *, write: bool = True) -> None:
    """`found` is what the golden `name` holds; GOLDENS=write makes it so."""
    path = GOLDENS / f"{name}.txt"
    if write and os.environ.get("GOLDENS") == "write":
        path.write_text(found)
    kept = path.read_text()
    changes = difflib.unified_diff(kept.splitlines(), found.splitlines(), path.name, "found", n=2)
    assert found == kept, "\n".join(changes)


def without_notes(text: str) -> str:
    """`text` without the word on what a restart may have doubled."""
    for note in TWICE:
        text = text.replace(f"\n    {note}", "")
    return text


BOXED = re.compile(r"☐ ([◐✕–]) ")
"""A box of Telegram's that is not ticked stands beside the mark that says why."""


OWN_COMMAND = re.compile(r"(?:@turnkeeper /|/turnkeeper |</(?=\w+:\d+>))(\w+)(?::\d+>)?")
"""A command as Slack and Discord write it."""


BESIDE = re.compile(r"(?<=\]) (?=\[)")
"""Between buttons of one row, which not every surface has."""


def told_by_bot(golden: str) -> list[str]:
    """What the bot shows at the end, line by line, its commands written alike."""
    _, _, shown = OWN_COMMAND.sub(r"/\1", golden).partition("-- at the end --\n")
    return [
        BOXED.sub(r"\1 ", line.removeprefix("bot: ").strip().replace("owner", "Ann"))
        for message in re.split(r"\n(?=\S)", shown.partition("\n-- ")[0])
        if message.startswith("bot: ")
        for row in message.split("\n")
        for line in BESIDE.split(row)
    ]


__all__ = ["PATIENCE", "Surface", "compare", "indented", "normal", "told_by_bot", "without_notes"]
