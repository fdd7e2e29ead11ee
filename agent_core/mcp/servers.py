"""All servers of one agent, and their known tools.

The tools that a server listed are stored in a file: after a restart they are known before it has
been started, and a prompt that shows them is the same as before.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec
from pydantic import BaseModel

from agent_core.config.plain_files import write_whole
from agent_core.errors import Parked, ToolFailed
from agent_core.mcp.calls import RunningCall, RunningCalls
from agent_core.mcp.connection import START, Connection, Unavailable
from agent_core.mcp.marks import mark_untrusted
from agent_core.mcp.oauth.account import ServerAccount
from agent_core.mcp.oauth.flow import SignInGuard, begin, finish
from agent_core.mcp.oauth.grants import PendingSignIn, ServerGrant, SignInFailed, SignInPort
from agent_core.mcp.oauth.questions import SIGN_IN, ask_sign_in, define_sign_in_tool, tell_tools
from agent_core.mcp.prompts import get_prompt
from agent_core.mcp.resources import READ, Request, define_resource_tools, make_request
from agent_core.mcp.results import Keep, output, words
from agent_core.mcp.server_facts import ServerFacts
from agent_core.mcp.settings import McpServer
from agent_core.mcp.vouching import Vouching
from agent_core.messages import Mention, ToolOutput
from agent_core.models.port import ToolSpec
from agent_core.phrases import phrase
from agent_core.questions import Decision
from agent_core.text import escape_name
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.finding.mcp_tools import (
    GONE,
    NAME_SEPARATOR,
    Definition,
    NoRegistry,
    digest_meaning,
    foreign_tool,
)
from agent_core.tools.finding.schema import objects
from agent_core.tools.finding.toolsets import Reach, is_in_all

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as Listed

log = logging.getLogger("turnkeeper.mcp")

MEET = 5.0
"""Seconds that a search waits for servers that were never met."""
MAX_TOOLS = 500
"""Maximum tools of one server."""
MAX_OFFERED = 3_000
"""Bytes of servers' schemas that are always shown."""
MAX_PROMPT = 20_000
"""Characters of a prompt that a person runs."""
MAX_ACCOUNTS = 200
"""Connections of persons of their own; beyond them the one that was used longest ago ends."""
MAX_NAME = 64
MAX_DESCRIPTION = 2_000
CHANGED = (
    "Not run: {server} now describes {name} in other words than when this call was allowed. Look "
    "at it with find_tools, and ask again if the call is still wanted."
)
NOBODY = "The person is not signed in at {server}, or it cannot be reached. Nothing was done."
MAX_VERSION = 32
"""Characters of a definition's digest in a rule. Whoever writes two definitions must find no two
whose digests begin alike."""


class _Account(msgspec.Struct, frozen=True):
    """A person's own connection, and the task that keeps it up."""

    connection: Connection
    account: ServerAccount
    task: asyncio.Task[None]


class Servers:
    """A registry of servers' tools; `async with` ends their processes. `folder` holds descriptions
    of known tools, `keep` makes a copy of a file for people. `allowed`: places to which sign-ins
    may lead wherever they are. Methods with `sign_ins` reach those with sign-in as their person."""

    def __init__(
        self,
        servers: Iterable[McpServer],
        folder: Path | None = None,
        keep: Keep | None = None,
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        servers = tuple(servers)
        self._folder, self._keep = folder, keep
        self._known: dict[str, Definition] = {}
        self._vouching = Vouching(folder)
        self._calls = RunningCalls()
        self._there: dict[str, frozenset[str]] = {}
        self._connections = {
            server.name: Connection(server, partial(self._update_tools, server), self._spawn)
            for server in servers
            if not server.auth
        }
        self._personal = {server.name: server for server in servers if server.auth}
        self._accounts: dict[tuple[str, str], _Account] = {}
        self._scopes: dict[tuple[str, str], str] = {}
        self._guard = SignInGuard(allowed)
        self._known |= {one.name: one for one in map(define_sign_in_tool, self._personal)}
        self._names = tuple(server.name for server in servers)
        self.shown_names = tuple(server.name for server in servers if server.tools)
        """Servers whose tools the agent may have, whether connected or not."""
        self.ask_sign_ins = bool(self._personal)
        """People sign in at some of them."""
        self._stack = AsyncExitStack()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The servers' names."""
        return self._names

    async def __aenter__(self) -> "Servers":
        await self._stack.enter_async_context(self._group)
        if self._personal:
            await self._guard.open()
            self._stack.push_async_callback(self._guard.close)
            for server in self._personal.values():
                self._recall(server)
        for connection in self._connections.values():
            self._recall(connection.server)
            self._spawn(connection.live())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await self._stack.__aexit__(kind, error, at)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work, name="mcp")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def holds(self, turn: str) -> bool:
        """A call of the parked turn waits here for a person."""
        return self._calls.holds_turn(turn)

    def end_turn(self, turn: str) -> None:
        """End the calls held for the finished turn."""
        self._calls.end_turn(turn)

    async def read(
        self, mention: Mention, workspace: Path, key: str, sign_ins: SignInPort | None = None
    ) -> str:
        """Return the text of a resource, marked as its server's, or of a prompt, whose words are
        not marked; files are written into `workspace`. Raises ToolFailed."""
        connection = self._connect(mention.server, sign_ins)
        if connection is None and mention.server in self._personal:
            raise ToolFailed(f"nobody is signed in there; /mcp signin {mention.server}")
        if connection is None or not _fits(READ, connection.server.tools):
            raise ToolFailed("its server is not set up")
        request = make_request(READ, {"uri": mention.uri})
        if mention.prompt:
            request = lambda client, _: get_prompt(client, mention.prompt, mention.words)  # noqa: E731
        result = await self._follow(connection, request, workspace, key)
        make = partial(output, workspace=workspace, key=key, keep=None, redact=connection.redact)
        if not mention.prompt:
            return (await asyncio.to_thread(make, result, mention.server)).text
        said = [connection.redact(one.text) for one in result.content if one.type == "text"]
        rest = [one for one in result.content if one.type != "text"]
        more = result.model_copy(update={"content": rest})
        if rest:
            said.append((await asyncio.to_thread(make, more, mention.server)).text)
        return "\n".join(said)[:MAX_PROMPT]

    async def ask_tool(self, name: str, tool: str, arguments: dict[str, object]) -> str:
        """Call a tool of a server without sign-in for our own use, without asking anybody; return
        its words. Raises ToolFailed."""
        connection = self._connections.get(name)
        if connection is None:
            raise ToolFailed(f"there is no server {name}")
        request: Request = lambda client, _: client.call_tool(tool, arguments)  # noqa: E731
        result = await self._follow(connection, request, Path(), "")
        said = connection.redact("\n".join(b.text for b in result.content if b.type == "text"))
        if result.is_error:
            raise ToolFailed(f"{tool} of {name} failed")
        return said

    async def _follow(
        self, connection: Connection, request: Request, workspace: Path, key: str
    ) -> "CallToolResult":
        context = ToolContext(workspace=workspace, key=key, limit=0, output=lambda _: None)
        try:
            call = await connection.ask(request)
        except Unavailable:
            raise ToolFailed("its server is not there") from None
        try:
            return await call.follow(context, connection.redact)
        finally:
            call.cancel()

    async def describe(self, sign_ins: SignInPort | None = None) -> tuple[ServerFacts, ...]:
        """Describe the servers for a list, after a short wait for those not yet connected."""
        found = {name: self._connect(name, sign_ins) for name in self._names}
        async with asyncio.TaskGroup() as group:
            for connection in filter(None, found.values()):
                group.create_task(connection.wait_ready(MEET))
        return tuple([await self._describe(name, one) for name, one in found.items()])

    async def _describe(self, name: str, connection: Connection | None) -> ServerFacts:
        if connection is None or connection.signed_out:
            return ServerFacts(name=name, there=False, tools=(), asks_sign_in=True)
        tools = tuple(sorted(self._there.get(name, ())))
        return ServerFacts(
            name=name,
            there=connection.there,
            tools=tools,
            prompts=await connection.list_prompts(),
            left_out=tuple(
                (escape_name(what), escape_name(why)) for what, why in connection.left_out.items()
            ),
            why="" if connection.there else escape_name(connection.why),
        )

    def find(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """Return those of `names` that are known, without waiting."""
        return tuple(self._known[name] for name in dict.fromkeys(names) if name in self._known)

    async def seek(
        self, names: Iterable[str], sign_ins: SignInPort | None = None
    ) -> tuple[Definition, ...]:
        """Return those of `names` that exist. A server is started and asked for an unknown one, as
        its list of tools may be out of date."""
        names = tuple(names)
        servers = {name.partition(NAME_SEPARATOR)[0] for name in names if name not in self._known}
        async with asyncio.TaskGroup() as group:
            for server in servers:
                if (connection := self._connect(server, sign_ins)) is not None:
                    group.create_task(connection.list_now())
        first = (self._ask_first(name, sign_ins) for name in names if name not in self._known)
        return (*self.find(names), *filter(None, first))

    def _ask_first(self, name: str, sign_ins: SignInPort | None) -> Definition | None:
        """Return the stand-in for a tool that is unknown until its person signs in."""
        server = name.partition(NAME_SEPARATOR)[0]
        if sign_ins is None or server not in self._personal:
            return None
        connection = self._connect(server, sign_ins)
        if connection is not None and connection.there:
            return None
        return msgspec.structs.replace(define_sign_in_tool(server, {"type": "object"}), name=name)

    async def list_known(
        self, reach: Reach, sign_ins: SignInPort | None = None
    ) -> tuple[Definition, ...]:
        """Return all tools within `reach` that their servers still have; waits for servers never
        met."""
        found = {name: self._connect(name, sign_ins) for name in self._names}
        for connection in filter(None, found.values()):
            connection.want()
        new = [one for name, one in found.items() if one is not None and name not in self._there]
        if new:
            async with asyncio.TaskGroup() as group:
                for connection in new:
                    group.create_task(connection.wait_ready(MEET))
        return tuple(
            one
            for one in self._known.values()
            if self._is_there(one) and is_in_all(one.name, reach)
        )

    def _is_there(self, one: Definition) -> bool:
        own = one.ours and one.tool == SIGN_IN
        return own or one.tool in self._there.get(one.server, ())

    def make(self, definition: Definition, sign_ins: SignInPort | None = None) -> Tool:
        """Make the tool; one that the operator vouches for counts as read-only."""
        server = self._find_server(definition.server)
        if server is None:
            return NoRegistry().make(definition)
        vouched = self._is_vouched(server, definition)
        tool = foreign_tool(definition, partial(self._call, definition, sign_ins, vouched))
        if server.auth:
            entrance = partial(self._enter, server, sign_ins)
            tool = msgspec.structs.replace(tool, entrance=entrance)
        if definition.ours and definition.tool == SIGN_IN:
            call = partial(self._tell_tools, server, sign_ins)
            return msgspec.structs.replace(tool, access="read", repetition="pure", call=call)
        changes: dict[str, object] = {
            "limit": server.timeout,
            "holder": self._calls,
            "bind": lambda arguments, workspace: self._version(definition),
            "rule": lambda arguments: phrase(
                "covers_foreign",
                given=arguments.model_dump_json(),
                version=self._version(definition)[:MAX_VERSION],
            ),
        }
        if vouched:
            changes |= {"access": "read", "repetition": "pure"}
        elif _fits(definition.tool, server.allow):
            told = phrase("foreign_changed", server=server.name)
            changes |= {"preview": lambda arguments, workspace: told}
        return msgspec.structs.replace(tool, **changes)

    def _version(self, definition: Definition) -> str:
        """The version of the tool as its server describes it now."""
        return self._known.get(definition.name, definition).version

    def _is_vouched(self, server: McpServer, definition: Definition) -> bool:
        return self._vouching.is_vouched(server, self._known.get(definition.name, definition))

    def refresh(self) -> None:
        """Request the tools of connected servers again."""
        for connection in (*self._connections.values(), *self._accounts_there()):
            connection.refresh()

    def list_offered(self, reach: Reach) -> tuple[ToolSpec, ...]:
        """Return the tools that are always shown: the operator's choice, as far as there is room.
        One that its server lost stays, so that the prompt begins as before."""
        shown: list[ToolSpec] = []
        left = MAX_OFFERED
        for one in self._known.values():
            server = self._find_server(one.server)
            if server is None or not _fits(one.tool, server.offer):
                continue
            left -= len(msgspec.json.encode(one.spec))
            if left >= 0 and is_in_all(one.name, reach):
                shown.append(one.spec)
        return tuple(shown)

    async def meet(self, seconds: float = MEET) -> None:
        """Wait for all servers, as long as they may take."""
        async with asyncio.TaskGroup() as group:
            for connection in self._connections.values():
                group.create_task(connection.wait_ready(seconds))

    # ---- servers that people sign in at ------------------------------------------------------

    def asks_sign_in(self, name: str) -> bool:
        """People sign in at that one."""
        return name in self._personal

    def _find_server(self, name: str) -> McpServer | None:
        shared = self._connections.get(name)
        return shared.server if shared is not None else self._personal.get(name)

    def _connect(self, name: str, sign_ins: SignInPort | None) -> Connection | None:
        """The connection to the server: everybody's, or the person's own; None where they are not
        signed in."""
        server = self._personal.get(name)
        if server is None or sign_ins is None:
            return self._connections.get(name)
        key = (sign_ins.person, name)
        found = self._accounts.pop(key, None)
        if found is None:
            grant = sign_ins.read(name)
            if grant is None:
                return None
            account = ServerAccount(grant, sign_ins, self._guard)
            listed = partial(self._update_tools, server)
            connection = Connection(server, listed, self._spawn, account)
            found = _Account(connection, account, self._spawn(connection.live()))
        self._accounts[key] = found  # the newest comes last
        for oldest in list(self._accounts)[:-MAX_ACCOUNTS]:
            self._accounts.pop(oldest).task.cancel()
        return found.connection

    def _accounts_there(self) -> tuple[Connection, ...]:
        return tuple(one.connection for one in self._accounts.values())

    async def _enter(self, server: McpServer, sign_ins: SignInPort | None) -> Decision | None:
        """Return the question to sign in before a call, None if the person is signed in."""
        if sign_ins is None:
            return None  # the call itself reports it
        connection = self._connect(server.name, sign_ins)
        if connection is not None:
            await connection.wait_ready(START)
            await connection.look_again()
            if not connection.signed_out:
                return None
            self._sign_out(sign_ins, server.name)
        return ask_sign_in(server.name, await sign_ins.offer(server.name))

    def _sign_out(self, sign_ins: SignInPort, name: str) -> None:
        key = (sign_ins.person, name)
        if key in self._accounts:
            self._scopes[key] = self._accounts[key].account.wanted_scope
        self.drop(sign_ins.person, name)
        sign_ins.keep(name, None)

    def drop(self, person: str, name: str) -> None:
        """Close the person's connection: their sign-in changed or ended."""
        found = self._accounts.pop((person, name), None)
        if found is not None:
            found.task.cancel()

    async def begin_sign_in(self, person: str, name: str, redirect: str) -> PendingSignIn:
        """Begin a sign-in; see `flow.begin`."""
        scope = self._scopes.get((person, name), "")
        return await begin(self._need(name), redirect, self._guard, scope)

    async def finish_sign_in(
        self, name: str, pending: PendingSignIn, code: str, issuer: str
    ) -> ServerGrant:
        """Finish a sign-in; see `flow.finish`."""
        return await finish(self._need(name), pending, code, issuer, self._guard)

    def _need(self, name: str) -> McpServer:
        if name not in self._personal:
            raise SignInFailed("nobody signs in at that server")
        return self._personal[name]

    async def _tell_tools(
        self,
        server: McpServer,
        sign_ins: SignInPort | None,
        arguments: BaseModel,
        context: ToolContext,
    ) -> str:
        """The result of the call that only signs in."""
        connection = self._connect(server.name, sign_ins)
        if connection is None or not await connection.wait_ready(START):
            raise ToolFailed(NOBODY.format(server=server.name))
        there = self._there.get(server.name, ())
        own = (one for one in self._known.values() if one.server == server.name)
        return tell_tools(server.name, (one for one in own if one.tool in there))

    async def _call(
        self,
        definition: Definition,
        sign_ins: SignInPort | None,
        unasked: bool,
        arguments: BaseModel,
        context: ToolContext,
    ) -> ToolOutput:
        connection = self._connect(definition.server, sign_ins)
        if connection is None:
            raise ToolFailed(NOBODY.format(server=definition.server))
        call = self._calls.take(context.key)
        if call is None:
            call = await self._begin(connection, definition, arguments, unasked)
        try:
            result = await call.follow(context, connection.redact)
        except Parked:
            self._calls.hold(context.key, call)
            raise
        except BaseException:
            call.cancel()
            raise
        notes = "".join(f"\n{note}" for note in dict.fromkeys(call.notes))
        if result.is_error:
            said = mark_untrusted(definition.server, [connection.redact(words(result))])
            raise ToolFailed(f"{definition.name} failed.\n{said}{notes}")
        make = partial(output, result, definition.server, context.workspace, context.key)
        made = await asyncio.to_thread(make, self._keep, connection.redact)
        return msgspec.structs.replace(
            made, text=f"{made.text}{notes}", shown=f"{made.shown}{notes}"
        )

    async def _begin(
        self, connection: Connection, definition: Definition, arguments: BaseModel, unasked: bool
    ) -> RunningCall:
        before = self._version(definition)
        await connection.wait_ready(START)  # what is known of one that starts is of an earlier time
        await connection.look_again()
        unsure = unasked and not self._is_vouched(connection.server, definition)
        if unsure or self._version(definition) != before:
            raise ToolFailed(CHANGED.format(name=definition.name, server=definition.server))
        given = arguments.model_dump(mode="json")
        try:
            if definition.ours:
                return await connection.ask(make_request(definition.tool, given))
            return await connection.begin(definition.tool, given)
        except Unavailable as error:
            why = f"the server {definition.server} is not there"
            said = mark_untrusted(definition.server, [connection.redact(str(error))])
            raise ToolFailed(f"{GONE.format(name=definition.name, why=why)}\n{said}") from None

    def _update_tools(
        self, server: McpServer, tools: "tuple[Listed, ...]", resources: bool
    ) -> None:
        """Take over the server's list of tools: new ones after the known ones."""
        own = tuple(_definition(server.name, tool) for tool in tools if not _needs_task(tool))
        names = {one.tool for one in own}
        more = define_resource_tools(server.name) if resources else ()
        more = tuple(one for one in more if one.tool not in names)
        taken = [one for one in (*own, *more) if _fits(one.tool, server.tools)][:MAX_TOOLS]
        there = frozenset(one.tool for one in taken)
        before = self._there.get(server.name)
        old = {name: self._known[name] for name in self._known}
        self._known |= {one.name: one for one in taken}
        self._vouching.meet(server, taken)
        self._there[server.name] = there
        self._forget_gone(server)
        if before != there or old != self._known:
            log.info("mcp_tools", extra={"server": server.name, "count": len(there)})
            self._note(server.name)

    def _forget_gone(self, server: McpServer) -> None:
        """Forget the oldest tools that the server had, and has no more, beyond as many as it may
        have; not those that requests show."""
        gone = [
            one.name
            for one in self._known.values()
            if one.server == server.name
            and not self._is_there(one)
            and not _fits(one.tool, server.offer)
        ]
        for name in gone[:-MAX_TOOLS]:
            del self._known[name]

    def _place(self, server: str) -> Path | None:
        return self._folder / f"{server}.json" if self._folder is not None else None

    def _recall(self, server: McpServer) -> None:
        self._vouching.recall(server)
        place = self._place(server.name)
        if place is None or not place.is_file():
            return
        try:
            noted = msgspec.json.decode(place.read_bytes(), type=tuple[Definition, ...])
        except (OSError, msgspec.DecodeError):
            return
        self._known |= {one.name: one for one in noted if one.server == server.name}
        self._there[server.name] = frozenset(one.tool for one in noted)
        self._vouching.meet(server, noted)

    def _note(self, server: str) -> None:
        place = self._place(server)
        if place is None:
            return
        there = self._there[server]
        kept = [one for one in self._known.values() if one.server == server and one.tool in there]
        write_whole(place, msgspec.json.encode(kept))


def _definition(server: str, tool: "Listed") -> Definition:
    return Definition(
        name=_name(server, tool.name),
        server=server,
        tool=tool.name,
        description=(tool.description or tool.title or tool.name)[:MAX_DESCRIPTION],
        parameters=objects(tool.input_schema),
        traits=_digest_traits(tool),
    )


def _digest_traits(tool: "Listed") -> str:
    """Return the digest of what a server says of a tool to others than the model, "" for nothing.
    Icons and `_meta` say nothing."""
    said = {
        "title": tool.title,
        "annotations": tool.annotations.model_dump(exclude_none=True) if tool.annotations else None,
        "output": tool.output_schema,
    }
    known = {name: one for name, one in said.items() if one}
    return digest_meaning(known) if known else ""


def _needs_task(tool: "Listed") -> bool:
    """Return True if the tool can only be called as a background task, which is not supported."""
    return tool.execution is not None and tool.execution.task_support == "required"


def _name(server: str, tool: str) -> str:
    """`server__tool` in the letters that providers take; cut names stay different."""
    name = f"{server}{NAME_SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= MAX_NAME and name.endswith(tool):
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
