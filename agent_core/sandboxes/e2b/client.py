"""E2B's SDK, with its errors by their meaning: passing, refused, or unknown outcome."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

import e2b
import httpx
from e2b import AsyncSandbox as BaseSandbox
from e2b.connection_config import ApiParams
from e2b_code_interpreter import AsyncSandbox

from agent_core.errors import ToolFailed
from agent_core.sandboxes.e2b.settings import E2BAccess
from agent_core.sandboxes.link import SandboxGone

LABEL = "turnkeeper"
"""The name in a sandbox's metadata that says that a gateway of ours made it."""
OWNER, KEEPS = "turnkeeper.owner", "turnkeeper.keeps"
"""Metadata: the owner, and whether it is to be found again (`yes`)."""
SECONDS_ALIVE = 300
"""Seconds after which E2B ends a sandbox that nobody renews."""
SECONDS_TO_ANSWER = 30.0
RemoteBox: TypeAlias = BaseSandbox
"""A sandbox of E2B's, as its SDK has it."""
_BOXES: type[BaseSandbox] = AsyncSandbox
"""The default template, which has the data libraries."""


class E2BUnavailable(ToolFailed):
    """E2B does not answer now, or no longer: passing."""


class E2BRefused(ToolFailed):
    """E2B refuses the call, as it will the next time. `about_key`: because of the key."""

    def __init__(self, words: str, about_key: bool = False) -> None:
        super().__init__(words)
        self.about_key = about_key


class BoxGone(SandboxGone):
    """There is no such sandbox any more."""


class E2BClient:
    """Makes, finds and ends sandboxes."""

    def __init__(self, access: E2BAccess) -> None:
        self._access = access

    async def create(self, metadata: dict[str, str], template: str = "") -> RemoteBox:
        """Create a sandbox, without a network and unreachable by others. `template`: a snapshot to
        begin from; BoxGone if there is none."""
        async with translate_errors():
            return await _BOXES.create(
                template or self._access.template or None,
                timeout=SECONDS_ALIVE,
                metadata=metadata | {LABEL: "1"},
                allow_internet_access=False,
                network={"allow_public_traffic": False},
                lifecycle={"on_timeout": "kill"},
                **self._options(),
            )

    async def connect(self, name: str) -> RemoteBox:
        """The one of this name, resumed if it is paused. BoxGone."""
        async with translate_errors():
            return await _BOXES.connect(name, timeout=SECONDS_ALIVE, **self._options())

    async def list_own(self) -> list[e2b.SandboxInfo]:
        """Return the gateways' sandboxes, running and paused."""
        async with translate_errors():
            query = e2b.SandboxQuery(metadata={LABEL: "1"})
            pages = _BOXES.list(query=query, **self._options())
            found: list[e2b.SandboxInfo] = []
            while pages.has_next:
                found += await pages.next_items()
            return found

    async def pause(self, name: str) -> None:
        """Pause it: kept with its content, without running. BoxGone."""
        async with translate_errors():
            await _BOXES.pause(name, **self._options())

    async def kill(self, name: str) -> None:
        """End it, if it exists."""
        async with translate_errors():
            await _BOXES.kill(name, **self._options())

    async def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot, if it exists."""
        async with translate_errors():
            await _BOXES.delete_snapshot(name, **self._options())

    def _options(self) -> ApiParams:
        return make_options(self._access)


def make_options(access: E2BAccess) -> ApiParams:
    """Return the options of each SDK call: credentials and address."""
    given = ApiParams(api_key=access.api_key, request_timeout=SECONDS_TO_ANSWER)
    if access.api_url:
        given["api_url"] = access.api_url
    if access.sandbox_url:
        given["sandbox_url"] = access.sandbox_url
    return given


@asynccontextmanager
async def translate_errors() -> AsyncIterator[None]:
    """Translate the SDK's errors to BoxGone, E2BRefused or E2BUnavailable. The SDK has retried by
    then where that is safe."""
    try:
        yield
    except e2b.CommandExitException:
        raise
    except (e2b.SandboxNotFoundException, e2b.SandboxNotRunningException) as error:
        raise BoxGone(str(error)) from error
    except e2b.NotFoundException as error:
        raise BoxGone(str(error)) from error
    except e2b.AuthenticationException as error:
        words = f"E2B refuses the key that E2B_API_KEY names ({_shorten(error)})."
        raise E2BRefused(f"{words} Ask the operator to set one that it takes.", True) from error
    except (
        e2b.InvalidArgumentException,
        e2b.TemplateException,
        e2b.NotEnoughSpaceException,
    ) as error:
        raise E2BRefused(f"E2B refuses this: {_shorten(error)}.") from error
    except (e2b.TimeoutException, e2b.ServiceBusyException, httpx.HTTPError, OSError) as error:
        raise E2BUnavailable(_UNAVAILABLE.format(why=_shorten(error))) from error
    except e2b.SandboxException as error:
        if (status := error.status_code) == 404:
            raise BoxGone(str(error)) from error
        if status is not None and 400 <= status < 500 and status != 429:
            raise E2BRefused(f"E2B refuses this: {_shorten(error)}.") from error
        raise E2BUnavailable(_UNAVAILABLE.format(why=_shorten(error))) from error


_UNAVAILABLE = (
    "E2B does not do it now ({why}). Nothing ran. Files of the workspace can be read and written "
    "by the tools for files; try again in a minute."
)


def _shorten(error: Exception) -> str:
    return (str(error).strip().rstrip(".") or type(error).__name__)[:200]
