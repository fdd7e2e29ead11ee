"""Notices a store that is not the one used before: an emptied server, another one, a deleted file.

The store has an id among its documents, and the data folder remembers it. A store that is new for a
new folder, and a folder that is new for a known store, are nothing unusual.
"""

import logging
import re
from collections.abc import Callable
from pathlib import Path

from agent_core import ambient
from agent_core.config.plain_files import write_whole
from gateway.errors import StoreFailed
from gateway.services.spoilt_files import read_text
from gateway.store.port import Directory

log = logging.getLogger("turnkeeper.store")

IDENTITY = "store:id"
"""The store's id in its directory."""
STORE_ID = "store_id"
"""The file of the data folder with the id of the store that it used last."""
_ID = re.compile(rb"[0-9A-Za-z]{19}")
"""Matches an `ambient.new_id`."""
EVERY = 15.0
"""Seconds between looks: a server may be emptied, or a name lead to another one, at any time."""
REPLACED = (
    "it is not the store that this data folder used before: what was stored there, also waiting"
    " turns and jobs, is not known here. If that was not intended, stop the gateway and put the old"
    " store or a backup in place"
)


async def is_replaced(home: Path, directory: Directory) -> bool:
    """Return True if the folder used another store before. OSError, StoreFailed."""
    known, found = read_text(home / STORE_ID).strip(), await directory.get(IDENTITY)
    return bool(known) and known.encode() != found and not _is_spoilt(found)


def _is_spoilt(found: bytes | None) -> bool:
    return found is not None and not _ID.fullmatch(found)


class StoreIdentity:
    """The id of the store of a running gateway. `count` adds to a counter of /metrics."""

    def __init__(self, home: Path, directory: Directory, count: Callable[[str], None]) -> None:
        self._home, self._directory, self._count = home, directory, count
        self._seen = ""

    async def watch(self) -> None:
        """Look, now and then, until cancelled."""
        while True:
            try:
                await self._look()
            except (OSError, StoreFailed) as error:
                log.warning("store_not_identified", extra={"why": str(error)})
            await ambient.wait(EVERY)

    async def _look(self) -> None:
        """Report a replaced store once, and remember the present one. OSError, StoreFailed."""
        known = self._seen or read_text(self._home / STORE_ID).strip()
        found = await self._directory.get(IDENTITY)
        if found is None or _is_spoilt(found):
            own = ambient.new_id()
            if found is not None:  # damaged: it is still the store that is known here
                log.error("store_id_spoilt")
                own = known or own
            await self._directory.put(IDENTITY, own.encode(), found or b"")
            found = await self._directory.get(IDENTITY) or b""
        self._seen = found.decode(errors="replace")
        if known == self._seen:
            return
        if known:
            log.error("store_replaced", extra={"why": REPLACED})
            self._count("stores_replaced")
        write_whole(self._home / STORE_ID, self._seen.encode())
