"""The control socket in the data folder and its commands: JSON lines, one request and one answer a
connection.

Without a running gateway the command line asks the store itself, under the folder's lock.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from agent_core import ambient
from agent_core.journal import encode
from agent_core.unix_sockets import bind_socket, open_address
from gateway.access.pairing import MACHINE
from gateway.command_texts import NamedCommand, write_commands
from gateway.conversation.services import Pairing
from gateway.errors import StoreFailed
from gateway.features.jobs.operator.console import Console
from gateway.messages import read_conversation
from gateway.ops.audit_report import AuditQuery, describe_report, list_lines
from gateway.ops.backup import BackupError
from gateway.ops.turn_history import describe_turns, read_past_turns
from gateway.services.audit_trail import AuditTrail
from gateway.services.memory_removals import (
    GivenUpRemoval,
    drop_given_up,
    list_given_up,
    try_again,
)
from gateway.services.spoilt_files import set_aside
from gateway.store.port import PROBED, Store
from gateway.store.rows import JOBS, Letter
from gateway.texts import say

log = logging.getLogger("turnkeeper.control")

SOCKET = "control.sock"
MAX_LINE = 1 << 16
PROBE = "doctor"
"""Written to the store to test whether it can be written."""
LISTED = 50
PATIENCE = 30.0
"""Seconds that the command line waits for an answer."""
ASKED_SECONDS = 10.0
"""Time limit of a request's line."""
LONG_PATIENCE = 600.0
"""Between two lines of a command that says how far it is."""


class ControlRequest(Struct, frozen=True, kw_only=True):
    """A command and its words."""

    command: str
    words: tuple[str, ...] = ()


class ControlAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer for the person; `ok` False: nothing was done. `more`: this is progress, and
    another answer follows."""

    text: str
    ok: bool = True
    more: bool = False


Tell = Callable[[str], None]
"""Gets a line about how far a long command is."""


class Upkeep(Protocol):
    """Maintenance of everything stored. The texts are for people."""

    async def report_retention(self) -> str:
        """Describe what retention would delete now, and whether it is switched on."""

    async def back_up(self, to: Path, tell: Tell) -> str:
        """Write a backup into the file `to`. BackupError."""

    async def erase(self, person: str, tell: Tell) -> str:
        """Erase the person with the account `person`."""


STATUS = ControlRequest(command="status")
NEED_GATEWAY = ("status", "link", "stop")
LIST_THEM = "`turnkeeper dead` lists them."
NOT_RUNNING = "No gateway runs on this folder. Start it with `turnkeeper run`."


class Live(Struct, frozen=True, kw_only=True):
    """Commands that need a running gateway."""

    status: Callable[[], Awaitable[str]]
    link: Callable[[str], str]
    """A one-time link for a person of the page, "" for its owner. ValueError says why not."""
    wake: Callable[[str], None]
    stop: Callable[[], None]
    restore: Callable[[str], bool]
    """Stop, replace the data folder by an unpacked backup, and go on; False if it is none."""
    platforms: frozenset[str]
    """The platforms that are set up here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """The commands. `live` is None when no gateway runs."""

    store: Store
    pairing: Pairing | None
    jobs: Console | None = None
    live: Live | None = None
    upkeep: Upkeep | None = None
    trail: AuditTrail | None = None

    async def answer(
        self, request: ControlRequest, tell: Tell = lambda text: None
    ) -> ControlAnswer:
        """Run a command; `tell` is called with the progress of a long one."""
        long: dict[str, Callable[[tuple[str, ...], Tell], Awaitable[ControlAnswer]]] = {
            "backup": self._backup,
            "erase": self._erase,
            "verify": self._verify,
        }
        commands: dict[str, Callable[[tuple[str, ...]], Awaitable[ControlAnswer]]] = {
            "status": self._status,
            "pair": self._pair,
            "unpair": self._unpair,
            "link": self._link,
            "dead": self._dead,
            "resubmit": self._resubmit,
            "drop": self._drop,
            "turn": self._turn,
            "turns": self._turns,
            "audit": self._audit,
            "note": self._note,
            "jobs": self._jobs,
            "stop": self._stop,
            "restore": self._restore,
            "retention": self._retention,
        }
        try:
            if (command := commands.get(request.command)) is not None:
                return await command(request.words)
            if (longer := long.get(request.command)) is not None:
                return await longer(request.words, tell)
            return ControlAnswer(text=f"There is no command {request.command[:32]!r}.", ok=False)
        except BackupError as error:
            return ControlAnswer(text=str(error), ok=False)
        except StoreFailed as error:
            return ControlAnswer(text=f"The store failed: {error}.", ok=False)

    async def _status(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.live is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        return ControlAnswer(text=await self.live.status())

    async def _pair(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.pairing is None or not words:
            return ControlAnswer(text=write_commands(say("pair_usage"), _write_command), ok=False)
        text = await self.pairing.enter(words[0], MACHINE, "")
        return ControlAnswer(text=text, ok=text not in (say("pair_wrong"), say("pair_locked")))

    async def _unpair(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.pairing is None or not words or ":" not in words[0]:
            return ControlAnswer(text=write_commands(say("unpair_usage"), _write_command), ok=False)
        text = await self.pairing.put_out(words[0], MACHINE, "")
        return ControlAnswer(text=text, ok=text == say("unpaired", person=words[0]))

    async def _link(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.live is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        try:
            return ControlAnswer(text=self.live.link(words[0] if words else ""))
        except ValueError as error:
            return ControlAnswer(text=str(error), ok=False)

    async def _dead(self, words: tuple[str, ...]) -> ControlAnswer:
        letters = await self.store.letters(LISTED)
        removals = await list_given_up(self.store)
        lines = (*map(_letter_line, letters), *map(_removal_line, removals))
        return ControlAnswer(text="\n".join(lines) or "No dead letters.")

    async def _resubmit(self, words: tuple[str, ...]) -> ControlAnswer:
        name = words[0] if words else ""
        if await try_again(self.store, name):
            return ControlAnswer(
                text=f"{name} is asked for again, within a minute where a gateway runs."
            )
        conversation = await self.store.resubmit(name) if name else None
        if conversation is None:
            text = f"There is no dead letter {name!r} that can be resubmitted. {LIST_THEM}"
            return ControlAnswer(text=text, ok=False)
        if self.live is not None:
            if conversation != JOBS:  # the scheduler finds it in its next round
                platform = read_conversation(conversation).platform
                if platform not in self.live.platforms:
                    text = f"{name} waits in {conversation} until a gateway runs with {platform}."
                    return ControlAnswer(text=text)
                self.live.wake(conversation)
            return ControlAnswer(text=f"{name} waits again in {conversation}.")
        return ControlAnswer(text=f"{name} waits in {conversation} until the gateway runs.")

    async def _drop(self, words: tuple[str, ...]) -> ControlAnswer:
        name = words[0] if words else ""
        if await drop_given_up(self.store, name):
            return ControlAnswer(text=f"{name} is dropped. The other memory keeps what it has.")
        if not name or not await self.store.drop(name):
            return ControlAnswer(text=f"There is no dead letter {name!r}. {LIST_THEM}", ok=False)
        return ControlAnswer(text=f"{name} is dropped.")

    async def _turns(self, words: tuple[str, ...]) -> ControlAnswer:
        found = await read_past_turns(self.store, words[0] if words else "")
        return ControlAnswer(text=describe_turns(found), ok=bool(found))

    async def _turn(self, words: tuple[str, ...]) -> ControlAnswer:
        turn = await self.store.turn(words[0]) if words else None
        if turn is None:
            return ControlAnswer(text="There is no such turn.", ok=False)
        records = await self.store.records(turn.id)
        lines = [msgspec.json.encode(turn).decode(), *(encode(one).decode() for one in records)]
        return ControlAnswer(text="\n".join(lines))

    async def _audit(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.trail is None or not words:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        try:
            query = msgspec.json.decode(words[0], type=AuditQuery)
            return ControlAnswer(text=await list_lines(self.trail, query))
        except ValueError as error:
            return ControlAnswer(text=str(error), ok=False)

    async def _verify(self, words: tuple[str, ...], tell: Tell) -> ControlAnswer:
        if self.trail is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        tell("looking through the audit")
        report = await self.trail.verify()
        return ControlAnswer(text=describe_report(report), ok=not report.flaws)

    async def _note(self, words: tuple[str, ...]) -> ControlAnswer:
        """Add an audit line about a command on this machine."""
        if self.trail is None or len(words) != 2:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        await self.trail.note(MACHINE, words[0], words[1])
        return ControlAnswer(text="")

    async def _jobs(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.jobs is None:
            return ControlAnswer(text=say("jobs_off"), ok=False)
        told = await self.jobs.answer(words)
        return ControlAnswer(text=told.text, ok=told.ok)

    async def _retention(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.upkeep is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        await probe_store(self.store)
        return ControlAnswer(text=await self.upkeep.report_retention())

    async def _backup(self, words: tuple[str, ...], tell: Tell) -> ControlAnswer:
        if self.upkeep is None or not words:
            return ControlAnswer(text="write: turnkeeper backup FILE", ok=False)
        return ControlAnswer(text=await self.upkeep.back_up(Path(words[0]), tell))

    async def _erase(self, words: tuple[str, ...], tell: Tell) -> ControlAnswer:
        platform, _, name = (words[0] if words else "").partition(":")
        if self.upkeep is None or not platform or not name:
            return ControlAnswer(
                text="write: turnkeeper person erase PERSON, as telegram:123", ok=False
            )
        return ControlAnswer(text=await self.upkeep.erase(words[0], tell))

    async def _restore(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.live is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        if not words or not self.live.restore(words[0]):
            return ControlAnswer(
                text="Another restore is under way; try again when it is done.", ok=False
            )
        return ControlAnswer(
            text="The gateway finishes running turns, puts the backup in place and goes on."
        )

    async def _stop(self, words: tuple[str, ...]) -> ControlAnswer:
        if self.live is None:
            return ControlAnswer(text=NOT_RUNNING, ok=False)
        self.live.stop()
        return ControlAnswer(text="The gateway finishes running turns, then stops.")


async def probe_store(store: Store) -> None:
    """Write something and take it away again. StoreFailed."""
    await store.put(PROBE, PROBED)
    await store.put(PROBE, None)


def _write_command(command: NamedCommand) -> str:
    """Write a command as given on the command line."""
    return f"turnkeeper {command.words}"


def _letter_line(letter: Letter) -> str:
    """Describe a dead letter: number or name, time, place, kind, reason, and the payload."""
    when = ambient.utc(letter.at).isoformat(timespec="seconds")
    of = f" of turn {letter.turn}" if letter.turn else ""
    payload = letter.payload.decode(errors="backslashreplace")
    what = f"{letter.kind}{of} ({letter.why})" if letter.why else f"{letter.kind}{of}"
    return f"{letter.id}  {when}  {letter.conversation}  {what}  {payload}"


def _removal_line(removal: GivenUpRemoval) -> str:
    """Describe a given-up removal: name, time, and size, without its content."""
    if not removal.readable:
        return f"{removal.name}  memory removal (unreadable here: damaged, or of another version)"
    when = ambient.utc(removal.at).isoformat(timespec="seconds")
    many = f"{removal.entries} entries" if removal.entries else "a whole space"
    what = f"memory removal (the memory of MEMORY_PROVIDER did not make it: {many})"
    return f"{removal.name}  {when}  {what}"


@contextlib.asynccontextmanager
async def serve(home: Path, operations: Operations) -> AsyncIterator[None]:
    """Answer at the socket while the body runs; only the folder's owner may connect."""

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            answer = await operations.answer(request, partial(_tell, writer))
        except (msgspec.DecodeError, ValueError) as error:
            answer = ControlAnswer(text=f"not a question: {error}", ok=False)
        except Exception:  # boundary: a bad command must not end the gateway
            log.exception("command_failed")
            answer = ControlAnswer(text="This failed; the log says why.", ok=False)
        with contextlib.suppress(OSError):
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()
        writer.close()

    listening = _listen(home / SOCKET)
    server = await asyncio.start_unix_server(client, sock=listening, limit=MAX_LINE)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):  # the file system may be read-only by now
            (home / SOCKET).unlink()


async def _read_request(reader: asyncio.StreamReader) -> ControlRequest:
    """Read the line; ValueError for another, and for one that does not end."""
    try:
        async with ambient.limit(ASKED_SECONDS):
            line = await reader.readline()
    except TimeoutError:
        raise ValueError("its line does not end") from None
    return msgspec.json.decode(line, type=ControlRequest)


def _tell(writer: asyncio.StreamWriter, text: str) -> None:
    """Send one line of progress, while somebody listens."""
    if not writer.is_closing():
        writer.write(msgspec.json.encode(ControlAnswer(text=text, more=True)) + b"\n")


def ask(
    home: Path, request: ControlRequest, tell: Tell = lambda text: None
) -> ControlAnswer | None:
    """Ask the running gateway; None if none runs. `tell` is called with the progress."""
    with socket.socket(socket.AF_UNIX) as client, open_address(home / SOCKET) as address:
        client.settimeout(PATIENCE)
        try:
            client.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:  # for example too many pending connections
            return ControlAnswer(text=f"The gateway does not answer: {error}.", ok=False)
        try:
            with client.makefile("rwb") as file:
                file.write(msgspec.json.encode(request) + b"\n")
                file.flush()
                while line := file.readline():
                    answer = msgspec.json.decode(line, type=ControlAnswer)
                    if not answer.more:
                        return answer
                    tell(answer.text)
                    client.settimeout(LONG_PATIENCE)
        except OSError as error:
            return ControlAnswer(text=f"The gateway does not answer: {error}.", ok=False)
    return ControlAnswer(text="The gateway stopped before it answered.", ok=False)


def _listen(path: Path) -> socket.socket:
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError as error:
        set_aside(path, error)
    before = os.umask(0o177)
    try:
        return bind_socket(path)
    finally:
        os.umask(before)
