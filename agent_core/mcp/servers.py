"""All servers of one agent, and the tools that are known of them.

What a server once said of its tools is kept in a file: after a restart they are known before it
has been started, and a prompt that shows them is the same as before.
"""

import asyncio
import hashlib
import logging
import os
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

from agent_core.errors import Parked, ToolFailed
from agent_core.mcp.calls import RunningCall, RunningCalls
from agent_core.mcp.connection import START, Connection, Unavailable
from agent_core.mcp.marks import mark_untrusted
from agent_core.mcp.prompts import get_prompt
from agent_core.mcp.resources import READ, Request, define_resource_tools, make_request
from agent_core.mcp.results import Keep, output, words
from agent_core.mcp.server_facts import ServerFacts
from agent_core.mcp.settings import McpServer
from agent_core.messages import Mention, ToolOutput
from agent_core.models.port import ToolSpec
from agent_core.phrases import phrase
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.finding.mcp_tools import (
    GONE,
    NAME_SEPARATOR,
    Definition,
    NoRegistry,
    foreign_tool,
)
from agent_core.tools.finding.schema import objects
from agent_core.tools.finding.toolsets import Reach, within

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as Listed

log = logging.getLogger("turnkeeper.mcp")

MEET = 5.0
"""Seconds that a search waits for servers that were never met."""
MAX_TOOLS = 500
"""Of one server."""
MAX_OFFERED = 3_000
"""Bytes of servers' schemas that are always shown."""
MAX_PROMPT = 20_000
"""Characters of a prompt that a person runs."""
MAX_NAME = 64
MAX_DESCRIPTION = 2_000
CHANGED = (
    "Not run: {server} now describes {name} in other words than when this call was allowed. Look "
    "at it with find_tools, and ask again if the call is still wanted."
)
MAX_VERSION = 12
"""Characters of a definition's digest in a rule that people read."""


class Servers:
    """A shelf of servers' tools; `async with` ends their processes. `folder` holds what is known
    of them, `keep` makes a copy of a file for people."""

    def __init__(
        self,
        servers: Iterable[McpServer],
        folder: Path | None = None,
        keep: Keep | None = None,
    ) -> None:
        self._folder, self._keep = folder, keep
        self._known: dict[str, Definition] = {}
        self._calls = RunningCalls()
        self._there: dict[str, frozenset[str]] = {}
        self._connections = {
            server.name: Connection(server, partial(self._update_tools, server), self._spawn)
            for server in servers
        }
        self._stack = AsyncExitStack()
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The servers' names."""
        return tuple(self._connections)

    async def __aenter__(self) -> "Servers":
        await self._stack.enter_async_context(self._group)
        for name, connection in self._connections.items():
            self._recall(name)
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
        """The turn is over: no call waits for it any more."""
        self._calls.end_turn(turn)

    async def read(self, mention: Mention, workspace: Path, key: str) -> str:
        """The text of a resource, marked as its server's, or of a prompt, whose words are not;
        files are written into `workspace`. Raises ToolFailed."""
        connection = self._connections.get(mention.server)
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

    async def describe(self) -> tuple[ServerFacts, ...]:
        """The servers for a list; waits a little for those that are not there yet."""
        await self.meet()
        return tuple([await self._describe(one) for one in self._connections.values()])

    async def _describe(self, connection: Connection) -> ServerFacts:
        name = connection.server.name
        tools = tuple(sorted(self._there.get(name, ())))
        return ServerFacts(
            name=name,
            there=connection.there,
            tools=tools,
            prompts=await connection.list_prompts(),
        )

    def find(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """Those of `names` that are known, without waiting."""
        return tuple(self._known[name] for name in dict.fromkeys(names) if name in self._known)

    async def seek(self, names: Iterable[str]) -> tuple[Definition, ...]:
        """Those of `names` that there are. A server is asked for one it never told of, and started
        for it: what it says of a new tool may come later than the call."""
        names = tuple(names)
        servers = {name.partition(NAME_SEPARATOR)[0] for name in names if name not in self._known}
        async with asyncio.TaskGroup() as group:
            for server in servers & self._connections.keys():
                group.create_task(_ask(self._connections[server]))
        return self.find(names)

    async def list_known(self, reach: Reach) -> tuple[Definition, ...]:
        """All within `reach` that their servers still have; waits for servers never met."""
        for connection in self._connections.values():
            connection.want()
        new = [one for name, one in self._connections.items() if name not in self._there]
        if new:
            async with asyncio.TaskGroup() as group:
                for connection in new:
                    group.create_task(connection.ready(MEET))
        return tuple(
            one
            for one in self._known.values()
            if one.tool in self._there.get(one.server, ()) and within(one.name, reach)
        )

    def make(self, definition: Definition) -> Tool:
        """The tool; what the operator vouches for only reads."""
        connection = self._connections.get(definition.server)
        if connection is None:
            return NoRegistry().make(definition)
        tool = foreign_tool(definition, partial(self._call, connection, definition))
        changes: dict[str, object] = {
            "limit": connection.server.timeout,
            "holder": self._calls,
            "bind": lambda arguments, workspace: self._version(definition),
            "rule": lambda arguments: phrase(
                "covers_foreign",
                given=arguments.model_dump_json(),
                version=self._version(definition)[:MAX_VERSION],
            ),
        }
        if _fits(definition.tool, connection.server.allow):
            changes |= {"access": "read", "repetition": "pure"}
        return msgspec.structs.replace(tool, **changes)

    def _version(self, definition: Definition) -> str:
        """The version of the tool as its server describes it now."""
        return self._known.get(definition.name, definition).version

    def refresh(self) -> None:
        """Ask those that are there for their tools again."""
        for connection in self._connections.values():
            connection.refresh()

    def list_offered(self, reach: Reach) -> tuple[ToolSpec, ...]:
        """What is always shown: what the operator chose, as far as there is room. One that its
        server lost stays: the prompt begins as it did before."""
        shown: list[ToolSpec] = []
        left = MAX_OFFERED
        for one in self._known.values():
            connection = self._connections.get(one.server)
            if connection is None or not _fits(one.tool, connection.server.offer):
                continue
            left -= len(msgspec.json.encode(one.spec))
            if left >= 0 and within(one.name, reach):
                shown.append(one.spec)
        return tuple(shown)

    async def meet(self) -> None:
        """Wait for all servers, as long as they may take."""
        async with asyncio.TaskGroup() as group:
            for connection in self._connections.values():
                group.create_task(connection.ready(MEET))

    async def _call(
        self,
        connection: Connection,
        definition: Definition,
        arguments: BaseModel,
        context: ToolContext,
    ) -> ToolOutput:
        call = self._calls.take(context.key)
        if call is None:
            call = await self._begin(connection, definition, arguments)
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
        return msgspec.structs.replace(made, text=f"{made.text}{notes}")

    async def _begin(
        self, connection: Connection, definition: Definition, arguments: BaseModel
    ) -> RunningCall:
        before = self._version(definition)
        await connection.look_again()
        if self._version(definition) != before:
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
        """Take over what the server says that it has: new tools behind those known."""
        own = tuple(_definition(server.name, tool) for tool in tools if not _needs_task(tool))
        names = {one.tool for one in own}
        more = define_resource_tools(server.name) if resources else ()
        more = tuple(one for one in more if one.tool not in names)
        taken = [one for one in (*own, *more) if _fits(one.tool, server.tools)][:MAX_TOOLS]
        there = frozenset(one.tool for one in taken)
        before = self._there.get(server.name)
        old = {name: self._known[name] for name in self._known}
        self._known |= {one.name: one for one in taken}
        self._there[server.name] = there
        if before != there or old != self._known:
            log.info("mcp_tools", extra={"server": server.name, "count": len(there)})
            self._note(server.name)

    def _place(self, server: str) -> Path | None:
        return self._folder / f"{server}.json" if self._folder is not None else None

    def _recall(self, server: str) -> None:
        place = self._place(server)
        if place is None or not place.is_file():
            return
        try:
            noted = msgspec.json.decode(place.read_bytes(), type=tuple[Definition, ...])
        except (OSError, msgspec.DecodeError):
            return
        self._known |= {one.name: one for one in noted if one.server == server}
        self._there[server] = frozenset(one.tool for one in noted)

    def _note(self, server: str) -> None:
        place = self._place(server)
        if place is None:
            return
        there = self._there[server]
        kept = [one for one in self._known.values() if one.server == server and one.tool in there]
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = place.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(kept))
        os.replace(new, place)


async def _ask(connection: Connection) -> None:
    """Ask the server for its tools; one that is not there tells them as it starts."""
    if connection.there:
        await connection.look()
    else:
        await connection.ready(START)


def _definition(server: str, tool: "Listed") -> Definition:
    return Definition(
        name=_name(server, tool.name),
        server=server,
        tool=tool.name,
        description=(tool.description or tool.title or tool.name)[:MAX_DESCRIPTION],
        parameters=objects(tool.input_schema),
    )


def _needs_task(tool: "Listed") -> bool:
    """It can be called only as a task that goes on by itself, which we do not follow."""
    return tool.execution is not None and tool.execution.task_support == "required"


def _name(server: str, tool: str) -> str:
    """`server__tool` in the letters that providers take; cut names stay different."""
    name = f"{server}{NAME_SEPARATOR}{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= MAX_NAME and name.endswith(tool):
        return name
    return f"{name[: MAX_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
