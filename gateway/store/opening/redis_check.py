"""Requirements on a Redis server; it is refused at the start with the mend."""

import logging
from collections.abc import Mapping
from contextlib import suppress

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from gateway.errors import StoreFailed

log = logging.getLogger("turnkeeper.store")

OLDEST = 7


async def check_server(client: Redis, *, without_log: bool) -> None:
    """Check the server. StoreFailed with the reason. `without_log`: accept one that loses its data
    on a restart."""
    info: dict[str, object] = await client.info()
    version = str(info.get("redis_version", "0"))
    if int(version.split(".")[0]) < OLDEST:
        raise StoreFailed(f"Redis {OLDEST}.0 or newer is needed, this is {version}")
    if info.get("redis_mode") == "cluster" or info.get("cluster_enabled") == 1:
        raise StoreFailed(
            "a Redis Cluster cannot hold the store: set REDIS_URL to a single Redis, with copies"
            " if you like (cluster-enabled no)"
        )
    if lack := find_lack(info, without_log=without_log):
        raise StoreFailed(lack)
    if info.get("aof_enabled") == 1:
        await _warn_of_seconds(client)
    else:
        log.warning("redis_without_log")


def find_lack(info: Mapping[str, object], *, without_log: bool) -> str:
    """Return why a server with this INFO would lose what it acknowledges, "" if it would not. Both
    can be set while it runs."""
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        return f"Redis may drop keys to make room (maxmemory-policy {policy}): set it to noeviction"
    if str(info.get("aof_enabled")) != "1" and not without_log:
        return (
            "Redis keeps no log, a crash would lose what was acknowledged (appendonly no): set"
            " appendonly to yes, or REDIS_WITHOUT_LOG=on if that may be lost"
        )
    return ""


async def _warn_of_seconds(client: Redis) -> None:
    with suppress(ResponseError):  # where CONFIG is forbidden
        sync = (await client.config_get("appendfsync")).get("appendfsync")
        if sync != "always":
            log.warning("redis_syncs_late", extra={"appendfsync": sync, "mend": "set it to always"})
