"""The network of a sandbox: granted hosts, for single commands, by the guarded proxy.

A sandbox has no network but a port of its own loopback, behind which the supervisor hands each
connection to the gateway. There the proxy identifies the command by its pass, which is part of the
proxy's address in its environment.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from agent_core import ambient
from agent_core.sandboxes.commands.advice import MAX_LOOKED
from agent_core.sandboxes.link import Streams
from agent_core.sandboxes.port import ProcessResult
from agent_core.tools.web.addresses import Target
from agent_core.tools.web.hosts import admits
from agent_core.tools.web.proxy import GuardedProxy, Resolve

PORT = 3128
"""The proxy's port inside."""
SECONDS_TO_ARRIVE = 1.0
_NEVER = "localhost,127.0.0.1,::1"
_OFFLINE = re.compile(
    r"resolve host|Name or service not known|Temporary failure in name resolution|ENOTFOUND"
    r"|EAI_AGAIN|Network is unreachable|no such host|getaddrinfo"
)
"""Error messages of programs that bypass the proxy."""
_BY_ITSELF = (
    "[The sandbox has no network and no names of its own. A program reaches the hosts that the "
    "call names in `hosts`, by the proxy that its environment names (HTTPS_PROXY).]"
)
_NO_PASS = "Only the command that was given hosts can reach them, while it runs."
_CLOSED = (
    "{host} is not open for this command. Give the call `hosts` with what it needs; a person may "
    "be asked."
)


_INSIDE = (
    "[Not reached: {host} leads to an address that is not public. Only the operator can open such "
    "a place, by WEB_ALLOWED_HOSTS.]"
)


class NetworkPass:
    """The hosts that one command may reach, and those it was refused."""

    def __init__(
        self, hosts: frozenset[str], why_barred: Callable[[str], str] = lambda _: ""
    ) -> None:
        self.hosts, self._why_barred = hosts, why_barred
        self.word = ambient.secret_id()
        self.refused: dict[str, None] = {}
        self.admitted: dict[str, None] = {}

    @property
    def env(self) -> dict[str, str]:
        """The environment variables for the proxy."""
        url = f"http://sandbox:{self.word}@127.0.0.1:{PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "CARGO_HTTP_PROXY", "NPM_CONFIG_PROXY")
        found = {name: url for name in (*names, "NPM_CONFIG_HTTPS_PROXY")}
        found |= {name.lower(): url for name in names[:3]}
        if not self.hosts:  # retries do not help
            found |= {"PIP_RETRIES": "0", "UV_HTTP_RETRIES": "0", "CARGO_NET_RETRY": "0"}
        return found | {"NO_PROXY": _NEVER, "no_proxy": _NEVER, "NODE_USE_ENV_PROXY": "1"}

    def describe_refused(self, done: ProcessResult) -> str:
        """Describe refused hosts, and what to do; "" for none."""
        if not self.refused:
            inside = [one for one in self.admitted if self._why_barred(f"http://{one}")]
            if inside and done.exit_code:
                return _INSIDE.format(host=", ".join(inside))
            lost = done.exit_code != 0 and _OFFLINE.search(done.output[-MAX_LOOKED:])
            return _BY_ITSELF if lost else ""
        named = ", ".join(self.refused)
        return f"[Not reached: {_CLOSED.format(host=named)}]"


class SandboxNetwork:
    """The proxy of all sandboxes. `allowed`: places (`host:port`) that the operator opened and that
    may be anywhere; others must be public addresses."""

    def __init__(self, allowed: frozenset[str] = frozenset(), resolve: Resolve | None = None):
        self._proxy = GuardedProxy(allowed, resolve, self._check)
        self._passes: dict[str, NetworkPass] = {}

    @contextmanager
    def lend(self, hosts: frozenset[str]) -> Iterator[NetworkPass]:
        """A pass that holds within the block."""
        lent = self.issue(hosts)
        try:
            yield lent
        finally:
            self.revoke(lent)

    def issue(self, hosts: frozenset[str]) -> NetworkPass:
        """A pass that holds until it is revoked."""
        lent = NetworkPass(hosts, self._proxy.why_barred)
        self._passes[lent.word] = lent
        return lent

    def revoke(self, lent: NetworkPass) -> None:
        """Revoke a pass. Its open connections end when what the command sent has had time to
        arrive: nothing that it leaves running keeps a way out."""
        self._passes.pop(lent.word, None)
        loop = asyncio.get_running_loop()
        loop.call_later(SECONDS_TO_ARRIVE, self._proxy.end_admitted, partial(_has_word, lent.word))

    def accept(self, streams: Streams) -> None:
        """Serve a connection that something inside made."""
        self._proxy.take(*streams)

    async def close(self) -> None:
        """End every connection."""
        await self._proxy.close()

    def _check(self, credentials: str, target: Target) -> str:
        lent = self._passes.get(_read_word(credentials))
        if lent is None:
            return _NO_PASS
        if admits(lent.hosts, target):
            lent.admitted[target.place] = None
            return ""
        usual = target.port in (80, 443)
        lent.refused[target.host if usual else target.place] = None
        return _CLOSED.format(host=target.host if usual else target.place)


def _has_word(word: str, credentials: str) -> bool:
    return _read_word(credentials) == word


def _read_word(credentials: str) -> str:
    """The password of `Basic …`."""
    scheme, _, words = credentials.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(words).decode("latin-1").partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
