"""The settings of a bucket for snapshots; without its SDK, which is imported where it is used."""

import os
import re
from urllib.parse import urlsplit

from msgspec import Struct

from agent_core.config.declaration import Env, Setting
from agent_core.config.kinds import Url

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(?:/[\w.-]+)*/?")


class BucketAccess(Struct, frozen=True, kw_only=True):
    """A bucket's address and credentials; "" for those that its SDK finds itself."""

    url: str = ""
    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    secret: str = ""


def parse_bucket(text: str) -> str:
    """Parse `s3://bucket/prefix`, where the prefix is optional, or a folder's absolute path."""
    if text.startswith("/") and ".." not in text.split("/"):
        return os.path.normpath(text)
    parts = urlsplit(text)
    fits = _BUCKET.fullmatch(parts.netloc) and _PREFIX.fullmatch(parts.path)
    if parts.scheme != "s3" or not fits or parts.query or parts.fragment or "/." in parts.path:
        raise ValueError("write s3://bucket, s3://bucket/prefix or the whole path of a folder.")
    return text


STORE = Setting(
    "SNAPSHOT_STORE",
    "",
    parse_bucket,
    "alternative location of the snapshots, from which lost workspaces are restored: a folder "
    "(`/mnt/states`), or an S3-compatible bucket, `s3://bucket/prefix`, with `pip install "
    "'turnkeeper[s3]'`. It contains all files of the workspaces, including secrets: see "
    "[security.md](security.md#snapshots-in-a-bucket)",
    default_text="the workspace's own folder",
)
ENDPOINT = Setting(
    "SNAPSHOT_S3_ENDPOINT",
    "",
    Url(),
    "endpoint URL of the S3 service",
    default_text="Amazon S3",
    secret="password",
)
REGION = Setting(
    "SNAPSHOT_S3_REGION",
    "",
    str,
    "the region of the bucket",
    default_text="from the usual AWS variables, else us-east-1",
)
KEY_ID = Setting(
    "SNAPSHOT_S3_KEY_ID",
    "",
    str,
    "access key id for the bucket",
    default_text="from the usual AWS variables or the machine's role",
)
SECRET = Setting("SNAPSHOT_S3_SECRET", "", str, "secret access key for the bucket", secret="all")
TABLE: tuple[Setting[str], ...] = (STORE, ENDPOINT, REGION, KEY_ID, SECRET)


def read_bucket(env: Env) -> BucketAccess:
    """Read the bucket's settings."""
    return BucketAccess(
        url=STORE.read(env),
        endpoint=ENDPOINT.read(env),
        region=REGION.read(env),
        key_id=KEY_ID.read(env),
        secret=SECRET.read(env),
    )
