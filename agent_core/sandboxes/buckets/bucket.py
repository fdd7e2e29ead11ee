"""Snapshots in a bucket of S3's protocol, by obstore. Blocks.

Below the prefix each workspace has a folder of its name. Failures are OSErrors, as for snapshots in
a folder: a request is retried for half a minute at most.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agent_core.sandboxes.buckets.folder_store import FolderStore
from agent_core.sandboxes.buckets.settings import STORE, BucketAccess

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Store

R = TypeVar("R")

SECONDS, SECONDS_TO_CONNECT, MAX_RETRIES = 30, 5, 3
PROBE = "turnkeeper-doctor"


class BucketFailed(OSError):
    """A request to the bucket failed; the text says why."""


class SnapshotBucket:
    """The bucket of these settings; connects when it is used first. SettingsError where its SDK is
    not installed."""

    kind = "bucket"

    def __init__(self, access: BucketAccess) -> None:
        try:
            import obstore.store
        except ImportError:
            mend = "needs the extra: pip install 'turnkeeper[s3]'."
            raise STORE.error(access.url, mend) from None
        self._access = access
        self._make = obstore.store.S3Store
        self._store: S3Store | None = None

    def put(self, name: str, data: bytes) -> None:
        """Store `data`. OSError."""
        self._ask(lambda store: store.put(name, data))

    def get(self, name: str) -> bytes | None:
        """Return what is stored under this name, None if nothing is. OSError."""
        try:
            return self._ask(lambda store: bytes(store.get(name).bytes()))
        except FileNotFoundError:
            return None

    def list_names(self, folder: str) -> list[str]:
        """The whole names below a folder. OSError."""
        return self._ask(lambda store: [one["path"] for page in store.list(folder) for one in page])

    def remove(self, names: Sequence[str]) -> None:
        """Remove these, ignoring missing ones. OSError."""
        if names:
            self._ask(lambda store: store.delete(list(names)))

    def find(self, workspace: Path) -> str | None:
        """Return the name under which snapshots of a workspace are stored, independent of its
        folder."""
        return ""

    def erase(self, workspace: str, what: str = "") -> None:
        """Remove everything stored of a workspace. OSError."""
        self.remove(self.list_names(workspace))

    def probe(self) -> None:
        """Write, read and remove something. OSError."""
        self.put(PROBE, b"1")
        if self.get(PROBE) != b"1":
            raise BucketFailed("what was written cannot be read back")
        self.remove([PROBE])

    def _ask(self, act: "Callable[[S3Store], R]") -> R:
        from obstore.exceptions import BaseError

        try:
            if self._store is None:
                self._store = self._connect()
            return act(self._store)
        except FileNotFoundError:
            raise
        except (BaseError, ValueError, OSError) as error:
            raise BucketFailed(_shorten(str(error))) from None

    def _connect(self) -> "S3Store":
        access = self._access
        bucket, _, prefix = access.url.removeprefix("s3://").strip("/").partition("/")
        config: S3Config = {"virtual_hosted_style_request": False}
        if access.endpoint:
            config["endpoint"] = access.endpoint.rstrip("/")
        if access.region:
            config["region"] = access.region
        if access.key_id:
            config["access_key_id"] = access.key_id
            config["secret_access_key"] = access.secret
        client: ClientConfig = {
            "timeout": timedelta(seconds=SECONDS),
            "connect_timeout": timedelta(seconds=SECONDS_TO_CONNECT),
            "allow_http": access.endpoint.startswith("http:"),
        }
        retry: RetryConfig = {
            "max_retries": MAX_RETRIES,
            "retry_timeout": timedelta(seconds=SECONDS),
        }
        return self._make(
            bucket,
            prefix=prefix or None,
            config=config,
            client_options=client,
            retry_config=retry,
        )


def make_bucket(access: BucketAccess) -> SnapshotBucket | FolderStore | None:
    """Make the configured store: a bucket or a folder; None for neither. SettingsError."""
    if access.url.startswith("/"):
        return FolderStore(Path(access.url))
    return SnapshotBucket(access) if access.url else None


def _shorten(text: str) -> str:
    """Return the first sentence of the SDK's error; the rest is its cause."""
    return text.partition("\n\n")[0].partition("Debug source:")[0].strip()[:300]
