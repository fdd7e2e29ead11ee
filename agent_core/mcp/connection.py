"""The connection to one server: started on demand, listened to, and reopened when it is lost."""

import asyncio
import importlib
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.mcp.calls import RunningCall, Send, Spawn, current_call
from agent_core.mcp.child_process import Complaints, child
from agent_core.mcp.elicitation import Elicitation, ServerForm, ServerLink
from agent_core.mcp.listings import ListCleaner, read_pages
from agent_core.mcp.marks import mark_untrusted
from agent_core.mcp.oauth.account import ServerAccount
from agent_core.mcp.prompts import list_prompts
from agent_core.mcp.resources import Request, has_resources
from agent_core.mcp.secrets import make_redactions
from agent_core.mcp.server_facts import PromptFacts
from agent_core.mcp.settings import McpServer
from agent_core.mcp.transport import Connect, address

if TYPE_CHECKING:
    from mcp import Client, MCPError
    from mcp.client.session import ClientRequestContext, IncomingMessage
    from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, ListRootsResult, Tool

log = logging.getLogger("turnkeeper.mcp")

START = 20.0
"""Seconds that a server may take to start and to name its tools."""
MAX_PAUSE = 60.0
"""Maximum seconds between two attempts to reopen a lost connection; the pauses grow up to this."""
FIRST = 0.5
"""Seconds, doubled with each try."""
STEADY = 5.0
"""Seconds after which a connection that ends is reopened at once."""
FRESH, LOOK = 30.0, 5.0
"""Seconds for which a list of tools is good for a call, and that asking for it may take."""
CALM = 1.0
"""Seconds between two lists that a server has asked for."""
UNREADABLE = (
    "{name}: its answer is not as the protocol has it, and cannot be read. The call may have taken "
    "effect. Check before you repeat it."
)
UNSURE = (
    "{why} It was lost while the call ran: the call may or may not have taken effect. Check "
    "before you repeat it."
)

NO_WAY_BACK = "back-channel"
"""The SDK's words for a question that a server cannot ask by the newer protocol."""
OLDER = (
    "The server wanted to ask a person in the middle of the call, and had no way to by the newer "
    "protocol. It is reached by the older one from now on: call it again. What it did before it "
    "asked may have taken effect."
)
SIGNED_OUT = (
    "The server took the person's sign-in no more, and did nothing. Call it again: then they are "
    "asked to sign in."
)
UNOPENED = "The server needs a page to be opened first, and the person did not open it."
MAX_LINKS = 5
ASKED_OF_WHOM = (
    "The server asked a person something while several calls of it ran. Nobody could say for "
    "which of them, so it was not put. Call it again, alone."
)


class Unavailable(Exception):
    """The server is not there; the text says why."""


class Connection:
    """`listed` is called with the server's tools whenever they were requested, and with whether it
    has resources; `spawn` starts the task of a call. `account`: the sign-in that the connection
    uses; without one everybody shares it."""

    def __init__(
        self,
        server: McpServer,
        listed: Callable[[tuple["Tool", ...], bool], None],
        spawn: Spawn,
        account: ServerAccount | None = None,
    ) -> None:
        self.server = server
        self._account = account
        self._spawn = spawn
        self.state: Literal["quiet", "starting", "ready", "lost"] = "quiet"
        self._listed = listed
        self._client: Client | None = None
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._over = asyncio.Event()
        self._why = ""
        # in the newer protocol a tool that asks a person during its call fails
        self._older = bool(server.command) or server.transport == "sse"
        self._has_resources = self._reopens = False
        self.left_out: dict[str, str] = {}
        """Reasons, by kind and name, why listed items are invalid by the protocol."""
        self._listed_at = 0.0
        known = (server.url, *server.secrets) if server.url else server.secrets
        self._redactions = make_redactions(known)
        self._calls: set[RunningCall] = set()

    async def live(self) -> None:
        """Run until cancelled; fails for nothing."""
        failures = 0
        while True:
            await self._wanted.wait()
            if not failures:
                self._start()
            began = ambient.monotonic()
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001  # boundary: servers may do anything
                if not self._reopens and not self.signed_out:
                    self._report_loss(error)
            self._client = None
            if (own := asyncio.current_task()) is not None and own.cancelling():
                # while anyio ends a connection, it takes such an exception for its own
                raise asyncio.CancelledError
            if self.signed_out:
                self._settled.set()
                return
            if self._reopens:
                self._reopens, failures = False, 0
                continue
            lasted = ambient.monotonic() - began if self.state == "ready" else 0.0
            failures = 0 if lasted > STEADY else failures + 1
            if failures:
                self.state = "lost"
                self._settled.set()
                await ambient.wait(min(MAX_PAUSE, FIRST * 2**failures))

    def _start(self) -> None:
        self.state = "starting"
        self._settled.clear()

    @property
    def there(self) -> bool:
        """True if it is connected."""
        return self._client is not None

    @property
    def why(self) -> str:
        """Why it is lost; "" while it is not."""
        return self._why

    @property
    def signed_out(self) -> bool:
        """True if its person has to sign in before it can be connected."""
        return self._account is not None and self._account.is_over

    def want(self) -> None:
        """Start it, if it has not been."""
        self._wanted.set()

    def refresh(self) -> None:
        """Request its tools again, if it is connected."""
        self._changed.set()

    async def wait_ready(self, seconds: float) -> bool:
        """Return True if it is connected; waits so long for one that is starting."""
        self.want()
        if self.state in ("quiet", "starting"):
            with suppress(TimeoutError):
                async with ambient.limit(seconds):
                    await self._settled.wait()
        return self._client is not None

    async def look_again(self) -> None:
        """Ask for its tools, unless that was just done: servers need not say that they changed."""
        if ambient.monotonic() - self._listed_at >= FRESH:
            await self.look()

    async def look(self) -> None:
        """Request its tools, if it is connected."""
        if self._client is None:
            return
        try:
            async with ambient.limit(LOOK):
                await self._list(self._client)
        except Exception as error:  # noqa: BLE001  # boundary: the call itself will report it
            log.info("mcp_not_listed", extra={"server": self.server.name, "why": _words(error)})

    async def list_now(self) -> None:
        """Request its tools; where it is not connected, they are listed as it starts."""
        await (self.look() if self.there else self.wait_ready(START))

    async def begin(self, tool: str, arguments: dict[str, object]) -> RunningCall:
        """Begin a call of a tool. Raises Unavailable where nothing can be sent."""

        async def call_tool(client: "Client", call: RunningCall) -> "CallToolResult":
            show = call.note_progress
            return await client.call_tool(tool, arguments, progress_callback=show)

        return await self.ask(call_tool)

    async def ask(self, request: Request) -> RunningCall:
        """Start a request. Raises Unavailable if nothing can be sent."""
        if not await self.wait_ready(START) or self._client is None:
            starting = self.state == "starting"
            raise Unavailable(
                self._why or ("it is still starting" if starting else "it cannot be reached")
            )
        send = partial(self._send, partial(request, self._client))
        call = RunningCall(self.server.name, send, self.server.timeout, self._spawn)
        self._calls.add(call)
        call.when_done(self._calls.discard)
        return call

    async def _send(self, send: Send, call: RunningCall) -> "CallToolResult":
        """The call's result. Raises ToolFailed: it may have taken effect."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import URL_ELICITATION_REQUIRED
        from pydantic import ValidationError

        try:
            try:
                return await send(call)
            except MCPError as error:
                if error.code != URL_ELICITATION_REQUIRED:
                    raise
                await _put_links(call, error.data)
                return await send(call)
        except ToolFailed:
            raise
        except ValidationError as error:  # only this answer is bad: the connection works
            raise ToolFailed(UNREADABLE.format(name=self.server.name)) from error
        except Exception as error:
            if self.signed_out:
                self._end()
                raise ToolFailed(SIGNED_OUT) from error
            if isinstance(error, MCPError):
                raise ToolFailed(self._handle_refusal(error)) from error
            # boundary: the SDK's transports raise all kinds of exceptions
            self._end()
            raise ToolFailed(UNSURE.format(why=f"{self.server.name}: an error.")) from error

    def _handle_refusal(self, error: "MCPError") -> str:
        """Describe the refusal; end the connection if it is of no more use, and reopen it in an
        older version of the protocol where that gives the server a way back."""
        from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

        if error.code == CONNECTION_CLOSED:
            self._end()
            return UNSURE.format(why=f"{self.server.name}: no connection.")
        if error.code == INVALID_REQUEST and NO_WAY_BACK in str(error) and not self._older:
            self._older = self._reopens = True
            self._end()
            self._start()
            return OLDER
        said = mark_untrusted(self.server.name, [self.redact(str(error))[:2_000]])
        return f"The server refused the call.\n{said}"

    async def list_prompts(self) -> tuple[PromptFacts, ...]:
        """Return its prompts; () if it has none, or is not connected."""
        if self._client is None:
            return ()
        try:
            async with ambient.limit(LOOK):
                return await list_prompts(self._client)
        except Exception as error:  # noqa: BLE001  # boundary: a missing list is no reason to fail
            log.info("mcp_not_listed", extra={"server": self.server.name, "why": _words(error)})
            return ()

    def redact(self, text: str) -> str:
        """Redact the secrets that the server was given, and its address, in `text`."""
        return self._redactions.hide(text)

    async def _session(self) -> None:
        """Run one connection, from its start to its end."""
        mcp = await asyncio.to_thread(importlib.import_module, "mcp")  # half a second, once
        self._over.clear()
        complaints = Complaints(self._end)
        cleaner = ListCleaner(self.server.name, lambda: client.protocol_version)
        self.left_out = cleaner.left_out
        async with AsyncExitStack() as stack:
            own = bool(self.server.command)
            reached = child(self.server, complaints) if own else None
            client: Client = mcp.Client(
                cleaner.wrap(reached or address(self.server, self._connect())),
                mode="legacy" if self._older else "auto",
                message_handler=self._handle_message,
                elicitation_callback=self._elicit,
                list_roots_callback=self._list_roots if self.server.roots else None,
                cache=None,
            )
            try:
                async with ambient.limit(START):
                    await stack.enter_async_context(client)
                    self._has_resources = await self._find_resources(client)
                    await self._list(client)
            except Exception as error:
                if own and isinstance(error, mcp.MCPError):
                    self._older = not self._older
                if own:
                    with suppress(TimeoutError):
                        async with ambient.limit(FIRST):
                            await self._over.wait()  # its last words
                raise Unavailable(_explain(error, complaints)) from error
            self._client = client
            self._settle()
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen(client), name="mcp:listen")
                await self._follow(client)
                listening.cancel()
            raise Unavailable(complaints.last or "the connection ended")

    async def _find_resources(self, client: "Client") -> bool:
        """Return True if it has resources; a server that fails to say counts as having none."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        try:
            return await has_resources(client)
        except (MCPError, ValidationError) as error:
            if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
                raise
            why = self.redact(_words(error))
            log.warning("mcp_no_resources", extra={"server": self.server.name, "why": why})
            return False

    def _connect(self) -> Connect | None:
        account = self._account
        return partial(account.connect, self.server) if account is not None else None

    async def _follow(self, client: "Client") -> None:
        """Request the tools whenever they may have changed, until the connection is over. Some
        servers say so after each request."""
        while True:
            await self._changed.wait()
            with suppress(TimeoutError):
                async with ambient.limit(self._listed_at + CALM - ambient.monotonic()):
                    await self._over.wait()
            self._changed.clear()
            if self._over.is_set():
                return
            try:
                async with ambient.limit(START):
                    await self._list(client)
            except Exception as error:  # noqa: BLE001  # boundary: lost, whatever it was
                log.info("mcp_not_listed", extra={"server": self.server.name, "why": _words(error)})
                return

    async def _list(self, client: "Client") -> None:
        pages = await read_pages(lambda cursor: client.list_tools(cursor=cursor))
        self._listed_at = ambient.monotonic()
        self._listed(tuple(tool for page in pages for tool in page.tools), self._has_resources)

    async def _listen(self, client: "Client") -> None:
        """Listen for changes, which the newer protocol requires to request. A dropped stream tells
        that the server is gone."""
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.shared.exceptions import MCPError

        try:
            async with client.listen(tools_list_changed=True) as news:
                async for _ in news:
                    self._changed.set()
        except (ListenNotSupportedError, MCPError):
            return
        except SubscriptionLost:
            if self.server.command:
                self._end()

    async def _elicit(
        self, context: "ClientRequestContext", params: "ElicitRequestParams"
    ) -> "ElicitResult":
        """Pass a server's question to the person whose call it is. The older protocol does not name
        the call: then it is the only one that could ask."""
        from mcp_types import ElicitResult

        call = current_call.get()
        if call is None:
            able = [one for one in self._calls if not one.asks]
            call = able[0] if len(able) == 1 else None
            for one in able if call is None else ():
                one.notes.append(ASKED_OF_WHOM)
        if call is None:
            return ElicitResult(action="cancel")
        reaction = await call.elicit(_read_elicitation(params))
        result = {"action": reaction.action, "content": reaction.content}
        return ElicitResult.model_validate(result)

    async def _list_roots(self, context: "ClientRequestContext") -> "ListRootsResult":
        """Name the folders of the settings."""
        from mcp_types import ListRootsResult

        uris = (Path(one).as_uri() for one in self.server.roots)
        return ListRootsResult.model_validate({"roots": [{"uri": one} for one in uris]})

    async def _handle_message(self, message: "IncomingMessage") -> None:
        """Hear of changes by the older protocol."""
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._changed.set()

    def _end(self) -> None:
        self._over.set()
        self._client = None
        self._changed.set()

    def _settle(self) -> None:
        if self._why:
            log.info("mcp_back", extra={"server": self.server.name})
        self._why, self.state = "", "ready"
        self._settled.set()

    def _report_loss(self, error: Exception) -> None:
        """Log the loss once, not at each attempt to reconnect."""
        why = self.redact(_words(error))
        if not self._why:
            log.warning("mcp_lost", extra={"server": self.server.name, "why": why})
        self._why = why or "it cannot be reached"


def _explain(error: Exception, complaints: Complaints) -> str:
    """Explain why a session did not begin. A child that is ended for that has an exit code too."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    first = _unwrap(error)
    if isinstance(first, MCPError) and first.code == CONNECTION_CLOSED:
        return complaints.last or _words(error)
    late = f"no answer within {START:g} s" if isinstance(first, TimeoutError) else ""
    return complaints.line or late or _words(error)


def _unwrap(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error


def _words(error: BaseException) -> str:
    error = _unwrap(error)
    text = str(error).strip().splitlines()
    return (text[0] if text else type(error).__name__)[:300]


async def _put_links(call: RunningCall, data: object) -> None:
    """Have the person open the pages that the server needs first. Raises ToolFailed."""
    from mcp_types import ElicitationRequiredErrorData

    try:
        needed = ElicitationRequiredErrorData.model_validate(data).elicitations
    except ValueError:
        needed = []
    if not 0 < len(needed) <= MAX_LINKS:
        raise ToolFailed(UNOPENED)
    for one in needed:
        if (await call.elicit(_read_elicitation(one))).action != "accept":
            raise ToolFailed(UNOPENED)


def _read_elicitation(params: "ElicitRequestParams") -> Elicitation:
    if params.mode == "url":
        return ServerLink(message=params.message, url=params.url)
    return ServerForm(message=params.message, schema=dict(params.requested_schema))
