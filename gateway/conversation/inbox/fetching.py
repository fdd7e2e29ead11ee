"""Fetches the files of waiting messages in the background: until all of one are there, commands are
heard, and it can be edited, deleted and stopped."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from agent_core import ambient
from agent_core.errors import ModelFailed
from agent_core.text import file_name
from agent_core.tools import paths
from gateway.conversation.state import ConversationState
from gateway.errors import Ambiguous, DeliveryError, RateLimited, Rejected, TokenRefused, Unsent
from gateway.messages import Attachment

log = logging.getLogger("turnkeeper.fetching")

FETCH_TRIES, FETCH_SECONDS, FETCH_PAUSE = 3, 60.0, 1.0
"""Attempts to fetch a file after passing failures, the seconds for all of them, and the first
pause, which doubles."""
FETCH_RATE = 100_000
"""Bytes a second that a download makes at least."""
LATE_SECONDS = 10.0
"""In place of FETCH_SECONDS and without a retry, for a file behind one that did not come: ten of a
server that hangs would hold up their message for ten minutes."""
UNKNOWN_SIZE = 10_000_000
"""Bytes assumed where the platform tells no size."""


class FetchedFile(Struct, frozen=True):
    """A file of the gateway's own, closed by its `with`. Of speech: `heard` for the model, and the
    words `spoken` in it, "" if nobody could listen."""

    file: BinaryIO
    heard: str = ""
    spoken: str = ""

    def __enter__(self) -> "FetchedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


class FileFetcher:
    """Fetches the files of one conversation and keeps them until they are taken. The state's
    `changed` is set when all that were wanted are there."""

    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._services = state.services
        self._wanted: Collection[Attachment] = ()
        self._done: dict[Attachment, FetchedFile | Exception] = {}
        self._current: Attachment | None = None
        self._task: asyncio.Task[None] | None = None
        self._late = False
        """The file before did not come."""
        self.is_busy = False

    def fetch_ahead(self, files: Sequence[Attachment]) -> bool:
        """Fetch these files, and drop all others. Return False if all of them are there."""
        self._wanted = files
        for one in [one for one in self._done if one not in files]:
            _discard(self._done.pop(one))
        if self._task is not None and self._current not in files:
            self._task.cancel()
        if not self.is_busy and self._find_missing() is not None:
            self.is_busy = True
            self._services.spawn(self._fetch_all, "fetch")
        return self.is_busy and bool(files)

    def close(self) -> None:
        """Stop fetching, and drop what nobody has taken."""
        self.fetch_ahead(())

    async def take(self, attachment: Attachment) -> FetchedFile:
        """Return the file; one that was not fetched ahead is fetched now. DeliveryError, OSError,
        ToolFailed."""
        done = self._done.pop(attachment, None) or await self._fetch(attachment)
        if isinstance(done, Exception):
            raise done
        return done

    def _find_missing(self) -> Attachment | None:
        return next((one for one in self._wanted if one not in self._done), None)

    async def _fetch_all(self) -> None:
        self._task = asyncio.current_task()
        try:
            while (one := self._find_missing()) is not None:
                self._current = one
                self._done[one] = done = await self._fetch(one)
                self._late = isinstance(done, Unsent | Ambiguous | RateLimited)
        finally:
            self._late = False
            self._task = self._current = None
            self.is_busy = False
            self._state.changed.set()

    async def _fetch(self, attachment: Attachment) -> FetchedFile | Exception:
        """Fetch the file and listen to it. Return what failed, to be raised where it is taken."""
        workspace = self._services.agent.workspace(self._state.conversation)
        with ExitStack() as stack:
            try:
                file = stack.enter_context(await open_scratch(workspace))
                await self._download(attachment, file)
                spoken = heard = ""
                if attachment.voice:
                    heard, spoken = await self._transcribe(file, file_name(attachment.name))
            except Exception as error:  # noqa: BLE001  # raised where the file is taken
                return error
            stack.pop_all()
            return FetchedFile(file, heard, spoken)

    async def _download(self, attachment: Attachment, file: BinaryIO) -> None:
        """Fetch it, with a few retries after passing failures."""
        patience, tries = (LATE_SECONDS, 1) if self._late else (FETCH_SECONDS, FETCH_TRIES)
        until, pause = ambient.monotonic() + patience, FETCH_PAUSE
        for tries_left in reversed(range(tries)):
            try:
                async with ambient.limit(find_fetch_time(attachment, patience)):
                    return await self._state.adapter.fetch(attachment, file)
            except TokenRefused:
                raise
            except TimeoutError:
                raise Unsent("it came too slowly") from None
            except (Unsent, Ambiguous, RateLimited) as error:
                wait = error.retry_after if isinstance(error, RateLimited) else pause
                if not tries_left or ambient.monotonic() + wait > until:
                    raise
                log.info("fetched_again", extra={"why": str(error)})
            except (DeliveryError, OSError):
                raise
            except Exception as error:
                # boundary: an adapter's failure costs the file, not the message
                log.exception("fetch_failed")
                raise Rejected(f"the gateway met {type(error).__name__}") from error
            await ambient.wait(wait)
            pause *= 2
            file.seek(0)
            file.truncate()
        return None

    async def _transcribe(self, audio: BinaryIO, name: str) -> tuple[str, str]:
        """Return what the model reads of it, and the words alone."""
        hearing = self._services.hearing
        if hearing is None:
            said = "[a voice note; no transcription model is set, so nobody has listened to it]"
            return said, ""
        audio.seek(0)
        try:
            spoken = await hearing.words(audio, name)
        except ModelFailed as error:
            return f"[a voice note that could not be transcribed: {error}]", ""
        return f"[voice note, transcribed]\n{spoken}", spoken


def find_fetch_time(attachment: Attachment, patience: float) -> float:
    """Seconds that the file may take: a server that sends a byte now and then holds up nobody."""
    return patience + (attachment.size or UNKNOWN_SIZE) / FETCH_RATE


async def open_scratch(workspace: Path) -> BinaryIO:
    """Open a file of the gateway's own in a thread; if it is no longer awaited, close it there."""
    opening = asyncio.get_running_loop().run_in_executor(None, paths.scratch, workspace)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        opening.add_done_callback(_close_opened)
        raise


def _close_opened(opening: asyncio.Future[BinaryIO]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _discard(done: FetchedFile | Exception) -> None:
    if isinstance(done, FetchedFile):
        done.file.close()
