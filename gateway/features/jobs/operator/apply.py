"""Applies `jobs.toml`, all of it or nothing.

The file is the truth: a job that left it is deleted. Its jobs belong to the operator. A missing
file changes nothing; an empty one removes them all.
"""

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from agent_core.config.plain_files import read_plain
from gateway.errors import StoreFailed
from gateway.features.jobs.deps import is_reachable
from gateway.features.jobs.operator.jobfile import (
    FILE,
    MAX_FAULTS,
    NAME,
    NAME_RULE,
    Fault,
    Faulty,
    JobTable,
    read,
)
from gateway.jobs_port import FILE as TO_FILE
from gateway.jobs_port import HERE, OPERATOR, Draft, Job, JobPorts, JobRefused

log = logging.getLogger("turnkeeper.jobs")

SAID = (
    "conversation",
    "title",
    "prompt",
    "schedule",
    "zone",
    "missed",
    "window",
    "overlap",
    "jitter",
    "script",
    "feeds_on",
    "hook",
    "deliver",
    "spend",
    "talk",
    "model",
    "profile",
    "tools",
)
"""The fields of a job that the file sets."""
MAX_BYTES = 4_000_000
Stamp: TypeAlias = tuple[int, int, int]
"""The time, size and number of a file."""
_UNKNOWN: Stamp = -1, -1, -1


class Applied(Struct, frozen=True, kw_only=True):
    """The changes made, by the jobs' names."""

    made: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    same: int = 0

    @property
    def text(self) -> str:
        """The changes, described for people."""
        lines = [
            f"{what}: {', '.join(names)}"
            for what, names in (
                ("Made", self.made),
                ("Changed", self.changed),
                ("Removed", self.removed),
            )
            if names
        ]
        return "\n".join((*lines, f"As before: {self.same}"))


class JobFile:
    """The file in the data folder `home`. `platforms`: those that are set up."""

    def __init__(self, home: Path, jobs: JobPorts, platforms: frozenset[str]) -> None:
        self._path = home / FILE
        self._jobs = jobs
        self._platforms = platforms
        self._seen: Stamp | None = None

    async def look(self) -> None:
        """Apply the file if it changed since the last look; faults are logged."""
        seen = self._stamp()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            done = await self.apply()
        except Faulty as error:
            for fault in error.faults:
                where = {"line": fault.line, "why": fault.text}
                log.error("jobs_file_refused", extra={"path": str(self._path), **where})
            return
        except StoreFailed:
            self._seen = _UNKNOWN  # it is applied at the next look
            raise
        if done is not None:
            log.info("jobs_file_applied", extra={"what": done.text.replace("\n", "; ")})

    def _stamp(self) -> Stamp | None:
        try:
            info = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:  # reading it reports its errors
            return 0, 0, 0
        return info.st_mtime_ns, info.st_size, info.st_ino

    async def apply(self) -> Applied | None:
        """Apply the file; None if there is none. Faulty: nothing was changed."""
        text = await asyncio.to_thread(self._read)
        return await self._apply_text(text) if text is not None else None

    async def add(self, name: str, fields: dict[str, str]) -> Applied:
        """Write the table `name` with these texts at the file's end and apply the file, or make it.
        Faulty: nothing was changed."""
        text = await asyncio.to_thread(self._read) or ""
        if not NAME.fullmatch(name):
            raise Faulty([Fault(line=1, text=NAME_RULE)])
        entries, _ = await asyncio.to_thread(read, text)
        if any(entry.name == name for entry in entries):
            why = f"[{name}] stands there already; change it there, then `turnkeeper jobs apply`."
            raise Faulty([Fault(line=1, text=why)])
        before = f"{text.rstrip()}\n\n" if text.strip() else ""
        lines = (f"{field} = {_quote(value)}" for field, value in fields.items() if value)
        after = "\n".join((f"{before}[{name}]", *lines, ""))
        return await self._apply_text(after, self._write)

    def _read(self) -> str | None:
        """Read the file's text, None if there is none. Faulty if it cannot be read."""
        try:
            data = read_plain(self._path, MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise Faulty([Fault(line=1, text=f"It is larger than {MAX_BYTES} bytes.")])
            text = data.decode("utf-8-sig")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise Faulty([Fault(line=line, text="Write it in UTF-8.")]) from None
        except OSError as error:
            raise Faulty([Fault(line=1, text=f"It cannot be read: {error.strerror}.")]) from None
        return text

    def _write(self, text: str) -> None:
        try:
            with tempfile.NamedTemporaryFile("w", dir=self._path.parent, delete=False) as file:
                file.write(text)
            Path(file.name).replace(self._path)
        except OSError as error:
            raise Faulty([Fault(line=1, text=f"It cannot be written: {error}.")]) from None

    async def _apply_text(self, text: str, keep: Callable[[str], None] | None = None) -> Applied:
        """Apply a text of the file; `keep` is called first, if it has no faults."""
        entries, faults = await asyncio.to_thread(read, text)
        known = {job.id: job for job in await self._jobs.store.list_jobs()}
        drafts, same = await self._drafts(entries, known, faults)
        if keep is not None:
            keep(text)
        return await self._carry_out(entries, known, drafts, same)

    async def _drafts(
        self, entries: tuple[JobTable, ...], known: dict[str, Job], faults: list[Fault]
    ) -> tuple[list[Draft], int]:
        """The jobs that are new or other than before, and how many are not. Faulty with these
        `faults` and more, if one cannot be."""
        drafts, same = list[Draft](), 0
        names, hooks = {entry.name for entry in entries}, dict[str, str]()
        for entry in entries:
            if len(faults) >= MAX_FAULTS:
                break
            faults += self._find_misplaced(entry, known, names)
            hook = entry.wish.hook
            if hook and hooks.setdefault(hook, entry.name) != entry.name:
                faults.append(entry.fault(f"The hook {hook} starts {hooks[hook]} already.", "hook"))
            try:
                draft = await self._draft(entry, known.get(entry.name))
            except JobRefused as error:
                fault = entry.fault(str(error), error.about)
                known_of = {one.line for one in faults}  # their errors are reported already
                faults += [fault] if fault.line not in known_of else []
                continue
            same += draft is None
            drafts += [draft] if draft is not None else []
        if faults:
            raise Faulty(faults)
        return drafts, same

    def _find_misplaced(
        self, entry: JobTable, known: dict[str, Job], names: set[str]
    ) -> list[Fault]:
        """Find references to things that do not exist."""
        found, platforms = [], self._platforms
        if entry.where and not is_reachable(entry.where, platforms):
            why = "`where` is no address of a platform that is set up; /jobs here shows a chat's."
            found.append(entry.fault(why, "where"))
        for place in entry.wish.deliver:
            if (
                place != HERE
                and not place.startswith(TO_FILE)
                and not is_reachable(place, platforms)
            ):
                why = f"{place!r} is neither `here`, `file:…` nor an address of a platform set up."
                found.append(entry.fault(why, "deliver"))
        if entry.wish.feeds_on and entry.wish.feeds_on not in names | known.keys():
            found.append(entry.fault(f"There is no job {entry.wish.feeds_on!r}.", "feeds_on"))
        if (old := known.get(entry.name)) is not None and not old.of_file:
            found.append(entry.fault("A job that was made in a chat has this name; take another."))
        return found

    async def _draft(self, entry: JobTable, old: Job | None) -> Draft | None:
        """The job as the file has it; None if it is so already."""
        fresh = Job(
            id=entry.name,
            owner=OPERATOR,
            conversation=entry.where,
            title="",
            prompt="",
            schedule="",
            zone="",
            made=await self._jobs.now(),
        )
        drafts = self._jobs.drafts
        if old is not None:
            wanted = drafts.apply_request(entry.wish, fresh)
            if all(getattr(wanted, name) == getattr(old, name) for name in SAID):
                return None
        return await drafts.look(entry.wish, fresh)

    async def _carry_out(
        self, entries: tuple[JobTable, ...], known: dict[str, Job], drafts: list[Draft], same: int
    ) -> Applied:
        """Write the changes. Each write is idempotent: an interrupted start repeats them."""
        names = {entry.name for entry in entries}
        gone = [job.id for job in known.values() if job.of_file and job.id not in names]
        made, changed = list[str](), list[str]()
        for draft in drafts:
            if draft.job.id in known:
                await self._jobs.drafts.change(draft, moved=True)
                changed.append(draft.job.id)
            else:
                await self._jobs.drafts.make(draft, draft.job.id)
                made.append(draft.job.id)
        for name in gone:
            await self._jobs.book.remove(name)
        return Applied(made=tuple(made), changed=tuple(changed), removed=tuple(gone), same=same)


def _quote(text: str) -> str:
    """`text` as TOML writes it; JSON leaves one character as it is that TOML does not allow."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
