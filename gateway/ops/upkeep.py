"""Maintenance of everything stored, with or without a gateway: retention reports, backups."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from agent_core import ambient
from agent_core.memory.settings import MemorySettings, ToolMemorySettings
from gateway.access.access import Access
from gateway.conversation.host import Host
from gateway.ops.backup import BackupError, BackupManifest, write_backup
from gateway.ops.control import Tell
from gateway.ops.erasure import OWN_MEMORY, Erasure
from gateway.ops.erasure_notes import ErasureNote, ErasureNotes
from gateway.ops.erasure_rows import find_phrases
from gateway.ops.stored_contents import (
    make_contents,
    make_removal,
    make_retention,
    make_workspaces,
)
from gateway.services.audit_trail import AuditTrail
from gateway.services.memory import name_space
from gateway.services.sign_ins import forget_sign_ins
from gateway.services.vault import Vault
from gateway.settings import Settings
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.store.removal.periods import CREATED
from gateway.store.sqlite import SqliteStore

IN_REDIS = """What is stored in Redis is not in it. Redis writes its snapshot now, in the \
background: copy {file} on its machine when `redis-cli lastsave` has changed \
(docs/operations.md)."""

FORGOTTEN = "\nThe memory {name} has forgotten them."
FORGETS_LATER = "\nThe memory {name} is asked to forget them when the gateway runs again."
FORGETS_STILL = """
The memory {name} has not forgotten them yet. It is asked again for about 20 hours; if it never
does, `turnkeeper dead` lists it."""
CANNOT_FORGET = """
The memory {name} may still hold what it was told of them: MEMORY_PROVIDER sets neither `remove` nor
`clear`."""


class StoreUpkeep:
    """gateway.ops.control.Upkeep. `host`: of the gateway that runs, None without one."""

    def __init__(
        self, settings: Settings, store: Store, trail: AuditTrail, host: Host | None = None
    ) -> None:
        self._settings = settings
        self._store = store
        self._trail = trail
        self._host = host

    async def report_retention(self) -> str:
        """Describe what retention would delete now, and whether it is switched on."""
        settings = self._settings.retention
        created = await self._store.get(CREATED) is not None
        retention = await make_retention(self._settings, self._store, self._trail)
        retention.periods = settings.periods
        count = await retention.count(ambient.now())
        days = settings.periods.conversations
        period = "never go" if days is None else f"go after {days / 86_400:.0f} days"
        if settings.chosen or created:
            return f"conversations {period}; {count} are older now."
        return (
            f"this store is older than the settings of it, so no conversation goes. Set one of "
            f"RETENTION_…_DAYS to choose; with the defaults up to {count} would go now."
        )

    async def back_up(self, to: Path, tell: Tell) -> str:
        """Write a backup into the file `to`. BackupError, StoreFailed."""
        loop = asyncio.get_running_loop()
        database = isinstance(self._store, SqliteStore)

        def tell_soon(text: str) -> None:
            loop.call_soon_threadsafe(tell, text)

        def write() -> BackupManifest:
            home = self._settings.home
            return write_backup(home, to, database=database, tell=tell_soon)

        if to.is_dir():
            raise BackupError(f"{to} is a folder; name a file.")
        manifest = await asyncio.to_thread(write)
        said = f"{to}: {len(manifest.files)} files, {to.stat().st_size:,} bytes."
        return said if database else f"{said}\n{await self._snapshot()}"

    async def erase(self, person: str, tell: Tell) -> str:
        """Erase the person behind the account `person`; return the report. StoreFailed."""
        store = self._store
        known = await Access({}, {}, None, store.get).accounts(person)
        notes = await ErasureNotes.open(store, known)
        accounts = notes.note.accounts
        await self._end_jobs(notes)
        workspaces = make_workspaces(self._settings)
        removal = make_removal(store)

        async def finish(conversation: str) -> None:
            await asyncio.to_thread(workspaces.remove, conversation)
            await self._trail.close(conversation)
            while await removal.remove_piece(conversation):
                pass

        closed = self._host.keep_closed if self._host is not None else _keep_closed
        erasure = Erasure(store, removal, make_contents(store), closed, finish, self._trail)
        memory = MemorySettings.read(self._settings.env).provider
        forgets = memory is not None and (memory.remove or memory.clear) is not None
        done = await erasure.erase(notes, tell, beside=forgets)
        await asyncio.to_thread(self._remove_files, notes.note)
        beside = await self._settle_memory(accounts, memory)
        if not done.busy:  # otherwise any of the accounts may be granted the rest again
            await notes.drop()
        tell("overwriting what is left in the files")
        created = await store.get(CREATED) is not None
        whole = self._host is None and not created
        await make_contents(store).wipe(whole=whole)
        counts = (len(done.removed), done.rows, done.documents)
        said = "{} conversations, {} rows elsewhere and {} documents are erased.".format(*counts)
        if not created and self._host is not None:
            said += "\nThis file was made by an older version: give the command again without a "
            said += "gateway, and it is written anew, without what was freed in it before."
        busy = "".join(f"\nNot erased, another process holds it: {name}" for name in done.busy)
        return said + beside + busy

    async def _settle_memory(
        self, accounts: frozenset[str], memory: ToolMemorySettings | None
    ) -> str:
        """Let another memory forget the accounts; return the report."""
        if memory is None:
            return ""
        if memory.remove is None and memory.clear is None:
            return CANNOT_FORGET.format(name=memory.server)
        memories = self._host.services.memory if self._host is not None else None
        removals = memories.removals if memories is not None else None
        if removals is None:
            return FORGETS_LATER.format(name=memory.server)
        spaces = [name_space(OWN_MEMORY + account) for account in sorted(accounts)]
        done = all([await removals.settle(space) for space in spaces])
        return (FORGOTTEN if done else FORGETS_STILL).format(name=memory.server)

    async def _end_jobs(self, notes: ErasureNotes) -> None:
        """Remove their jobs with all runs."""
        jobs, accounts = make_jobs(self._store), notes.note.accounts
        for account in accounts:
            for job in await jobs.list_jobs(account):
                phrases = find_phrases(job.title) | find_phrases(job.prompt)
                await notes.add(
                    ErasureNote(
                        accounts=accounts,
                        jobs=frozenset({job.id}),
                        phrases=frozenset(phrases),
                    )
                )
                for run in await jobs.list_unfinished(job.id):
                    ended = replace(
                        run,
                        state="stopped",
                        reason="deleted",
                        text="",
                        given="",
                        wake=0.0,
                        version=ambient.new_id(),
                    )
                    await jobs.advance(run, ended)
                await jobs.commit(job, None, ())

    def _remove_files(self, note: ErasureNote) -> None:
        """Remove uploads, copies of sent files, and secrets of deleted conversations. Blocks."""
        for account in note.accounts:
            platform, _, name = account.partition(":")
            if platform == "web" and name not in ("", ".", "..") and "/" not in name:
                shutil.rmtree(self._settings.home / "uploads" / name, ignore_errors=True)
        for ref in note.refs:
            (self._settings.outputs / ref).unlink(missing_ok=True)
        vault = Vault(self._settings.home)
        forget_sign_ins(vault, note.accounts)
        for conversation in note.removed:
            for name in vault.names(conversation):
                vault.drop(conversation, name)

    async def _snapshot(self) -> str:
        from gateway.store.redis import RedisStore

        assert isinstance(self._store, RedisStore)
        return IN_REDIS.format(file=await self._store.begin_snapshot())


@asynccontextmanager
async def _keep_closed(conversation: str) -> AsyncIterator[None]:
    """Do nothing: without a gateway there is no session."""
    yield
