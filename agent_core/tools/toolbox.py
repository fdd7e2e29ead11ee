"""Looks tools up, validates a model's arguments, binds approvals, and runs calls."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from copy import copy
from pathlib import Path

import msgspec
from pydantic import BaseModel, ValidationError

from agent_core.errors import ToolFailed
from agent_core.messages import CommandResult, ToolCall, ToolOutput
from agent_core.models.port import ToolSpec
from agent_core.policy import Bond
from agent_core.text import clean
from agent_core.tools import ask, paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.finding.argument_schema import describe_arguments
from agent_core.tools.finding.mcp_tools import NoRegistry, ToolRegistry
from agent_core.tools.finding.schema import faults
from agent_core.tools.finding.tool_list import summarize
from agent_core.tools.finding.toolsets import Reach, is_in_all
from agent_core.tools.sources import SourceDigest, read_sources, read_surroundings


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call that can run: its tool and validated arguments. `digest`: what an approval is bound
    to, once it is known."""

    call: ToolCall
    tool: Tool
    arguments: BaseModel
    digest: str = ""
    sources: SourceDigest | None = None
    """The workspace's files as they were then, where it is bound to them."""


class UnfitCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that cannot run; `text` tells the model why and how to correct it. `shown`: shown to
    people in its place, None for the text itself."""

    call: ToolCall
    text: str
    shown: str | None = None


class Toolbox:
    """The tools of one agent, by name. `registry`: those of servers, which come and go."""

    def __init__(self, tools: Iterable[Tool], registry: ToolRegistry | None = None) -> None:
        self.registry: ToolRegistry = registry or NoRegistry()
        self.bounds: Reach = ()
        """Sets beyond which nothing is found or called, though the prompt may show it."""
        self._tools = {tool.name: tool for tool in tools}
        self._specs = {name: _spec(tool) for name, tool in self._tools.items()}
        self._offers: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}
        self._weights: dict[tuple[str, ...], int] = {}
        self._digests: dict[tuple[str, ...], str] = {}

    def show_more(
        self, more: tuple[ToolSpec, ...], bounds: Reach = (), registry: ToolRegistry | None = None
    ) -> "Toolbox":
        """Return the toolbox for a turn that is shown `more` and may use what is in `bounds`;
        `registry` replaces the servers' tools, if given."""
        if not more and bounds == self.bounds and registry is None:
            return self
        other = copy(self)
        other.bounds, other.registry = bounds, registry or self.registry
        if more:
            other._specs = {**self._specs, **{spec.name: spec for spec in more}}
            other._offers, other._weights, other._digests = {}, {}, {}
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order given."""
        return tuple(self._tools)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools, without those of servers."""
        return tuple(self._tools.values())

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Name and line of each, for lists."""
        every = self._tools.values()
        return tuple((one.name, one.summary or summarize(one.description)) for one in every)

    def specs(self, names: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        """Return the specifications of the tools `names` for the model, without unknown ones. The
        same names give the same object, so that providers need not render it for each call."""
        offer = self._offers.get(names)
        if offer is None:
            offer = tuple(self._specs[name] for name in names if name in self._specs)
            self._offers[names] = offer
        return offer

    def weight(self, names: tuple[str, ...]) -> int:
        """Return the bytes of these specifications; counted once for each set."""
        weight = self._weights.get(names)
        if weight is None:
            weight = self._weights[names] = len(msgspec.json.encode(self.specs(names)))
        return weight

    def digest(self, names: tuple[str, ...]) -> str:
        """Return the digest of these specifications; computed once for each set."""
        digest = self._digests.get(names)
        if digest is None:
            shown = hashlib.sha256(msgspec.json.encode(self.specs(names)))
            digest = self._digests[names] = shown.hexdigest()
        return digest

    def can_call(self, name: str, offered: Iterable[str], reach: Reach | None) -> bool:
        """Return True for a known tool that is `offered`, or may be called by name within
        `reach`."""
        there = name in offered or (reach is not None and is_in_all(name, reach))
        return name in self._tools and there and is_in_all(name, self.bounds)

    def takes_text(self, name: str, argument: str) -> bool:
        """The tool `name` takes a text for `argument`, and nothing else."""
        spec = self._specs.get(name)
        fields = spec.parameters.get("properties") if spec is not None else None
        field = fields.get(argument) if isinstance(fields, dict) else None
        return isinstance(field, dict) and field.get("type") == "string"

    async def list_reachable(self, reach: Reach | None) -> tuple[ToolSpec, ...]:
        """Return all tools within `reach`, including those of servers."""
        if reach is None:
            return ()
        reach = (*reach, *self.bounds)
        own = (self._specs[name] for name in self._tools if is_in_all(name, reach))
        return (*own, *(one.spec for one in await self.registry.list_known(reach)))

    def select_lasting(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """Return `calls` without those that are repeated by nature."""
        polls = {name for name, tool in self._tools.items() if tool.polls}
        return tuple(call for call in calls if call.name not in polls)

    def prepare(
        self,
        call: ToolCall,
        offered: Iterable[str],
        reach: Reach | None = None,
        foreign: Mapping[str, Tool] | None = None,
    ) -> Prepared | UnfitCall:
        """Look up the call's tool and validate its arguments. A tool that is not `offered` may be
        called by name within `reach`, None: not at all. `foreign`: tools of servers."""
        name = call.name if call.name in self._tools else ask.ALSO.get(call.name, call.name)
        tool = self._tools.get(name) or (foreign or {}).get(name)
        there = name in offered or (reach is not None and is_in_all(name, reach))
        if tool is None or not there or not is_in_all(name, self.bounds):
            known = ", ".join(name for name in offered if is_in_all(name, self.bounds)) or "none"
            return UnfitCall(call=call, text=f"There is no tool {call.name!r}. Tools: {known}.")
        try:
            raw = msgspec.json.decode(call.arguments or "{}")
            if tool.schema is not None and (wrong := faults(tool.schema, raw)):
                return _explain_unfit(call, "; ".join(wrong), tool.schema)
            return Prepared(call=call, tool=tool, arguments=tool.arguments.model_validate(raw))
        except (msgspec.DecodeError, ValidationError, RecursionError) as error:
            schema = tool.schema or self._specs[name].parameters
            return _explain_unfit(call, _explain(error), schema)


def _explain_unfit(call: ToolCall, why: str, schema: dict[str, object]) -> UnfitCall:
    said = msgspec.json.encode(schema).decode()
    shown = f"The arguments of {call.name} do not fit: {why}."
    return UnfitCall(call=call, text=f"{shown} Schema: {said}", shown=shown)


ENVIRONMENT = "PATH HOME LANG"
"""Names of the environment of commands and code, besides those of lent secrets."""


async def bind_digest(prepared: Prepared, workspace: Path, bond: Bond | None = None) -> Prepared:
    """Return `prepared` with its digest as of now, reading the tool's files in a thread. `bond`:
    the policy's word on what it is bound to."""
    bound = bond if prepared.tool.access == "shell" else None
    if prepared.tool.bind is None and bound is None:
        return msgspec.structs.replace(prepared, digest=bind(prepared, workspace))
    if bound is None:
        digest = await asyncio.to_thread(bind, prepared, workspace)
        return msgspec.structs.replace(prepared, digest=digest)
    return await asyncio.to_thread(_bind_shell, prepared, workspace, bound)


def _bind_shell(prepared: Prepared, workspace: Path, bond: Bond) -> Prepared:
    """Digest a call of commands or code: its folder, environment, secrets, and files."""
    tool, files, sources = prepared.tool, "", None
    if bond.kind != "words" and tool.bind is not None:
        files = tool.bind(prepared.arguments, workspace)
    if bond.kind == "sources":
        sources = read_sources(workspace, everything=bond.everything)
    around = ""
    if bond.kind != "words":
        around = read_surroundings(workspace, everything=bond.kind == "sources")
    text = "\0".join(
        (
            tool.name,
            _write_canonically(prepared),
            workspace.name,
            tool.place(workspace) if tool.place is not None else "",
            f"{bond.kind} isolated={tool.isolated}",
            " ".join((ENVIRONMENT, *sorted(bond.lends))),
            files,
            sources.digest if sources is not None else "",
            *filter(None, (around,)),
        )
    )
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return msgspec.structs.replace(prepared, digest=digest, sources=sources)


def _write_canonically(prepared: Prepared) -> str:
    # once calls did not name these: approvals from that time are still valid
    unnamed = {name for name in ("hosts", "cwd") if not getattr(prepared.arguments, name, True)}
    return prepared.arguments.model_dump_json(exclude=unnamed)


def bind(prepared: Prepared, workspace: Path, *, by_path: bool = False) -> str:
    """Return the digest to which an approval is bound if no policy says otherwise: tool, canonical
    arguments, working folder, and the tool's addition (environment, contents of scripts named). May
    block.

    All approvals of an older version were bound so, and waiting ones still hold. The folder counts
    by its own name, so that an approval survives a move of the data folder. `by_path`: by its whole
    path, as in approvals of an even older version.
    """
    extra = prepared.tool.bind(prepared.arguments, workspace) if prepared.tool.bind else ""
    folder = str(workspace) if by_path else workspace.name
    text = "\0".join((prepared.tool.name, _write_canonically(prepared), folder, extra))
    return hashlib.sha256(text.encode()).hexdigest()


async def is_bound(
    prepared: Prepared, workspace: Path, approved: str, bond: Bond | None = None
) -> bool:
    """Return True if the call is still what was approved, or has nothing left to do."""
    if (await bind_digest(prepared, workspace, bond)).digest == approved:
        return True

    def look() -> bool:
        known = (bind(prepared, workspace), bind(prepared, workspace, by_path=True))
        done = prepared.tool.is_done
        return approved in known or (done is not None and done(prepared.arguments, workspace))

    return look() if prepared.tool.bind is None else await asyncio.to_thread(look)


async def run(
    prepared: Prepared,
    context: ToolContext,
    approved: str,
    rewrite: Callable[[str], Awaitable[str]] | None = None,
    bond: Bond | None = None,
) -> str | ToolOutput:
    """Run the call. `approved`: the digest that a person approved, bound as `bond` says and checked
    in this last instant; "" if nobody was asked. `rewrite` has the last word on the result, or on
    the failure."""
    if approved and not await is_bound(prepared, context.workspace, approved, bond):
        raise ToolFailed(
            "Not run: the call or a script it names was changed after it was approved. "
            "Ask again if it is still wanted."
        )
    paths.make(context.workspace)
    try:
        gave = await prepared.tool.call(prepared.arguments, context)
    except ToolFailed as error:
        if rewrite is None:
            raise
        text = await observe(await rewrite(clean(str(error))), context, prepared.call.id)
        raise ToolFailed(text) from None
    said = clean(gave.text if isinstance(gave, ToolOutput) else gave)
    told = said if rewrite is None else await rewrite(said)
    text = await observe(told, context, prepared.call.id)
    if not isinstance(gave, ToolOutput):
        return text
    command = gave.command and _command(gave.text, gave.command, text)
    shown = gave.shown if told == said else None
    return msgspec.structs.replace(gave, text=text, command=command, shown=shown)


def _command(was: str, command: CommandResult, text: str) -> CommandResult:
    """Return `command` adapted to `text`, which was made from the text `was`."""
    note = was[command.written :]
    written = len(text) - len(note) if text.endswith(note) else len(text)
    return msgspec.structs.replace(command, written=written)


async def observe(content: str, context: ToolContext, call_id: str) -> str:
    """`content`, cut for the model if it is too long; then the whole is kept as a file. Models may
    use an id again in a later round: the file is named after the call's key as well."""
    if len(content) <= context.most:
        return content
    name = "".join(c if c.isascii() and c.isalnum() or c in "-_" else "-" for c in call_id)[-60:]
    name = f"{name}-{hashlib.sha256(context.key.encode()).hexdigest()[:8]}.txt"
    data = content.encode("utf-8", "replace")
    try:
        kept = await asyncio.to_thread(paths.put_output, context.workspace, name, data)
        where = f"the whole is in {kept}"
    except ToolFailed as error:  # the call itself took effect
        where = f"the whole could not be kept: {error}"
    half = context.most // 2
    left_out = len(content) - 2 * half
    return f"{content[:half]}\n[… {left_out} characters left out; {where}]\n{content[-half:]}"


def _spec(tool: Tool) -> ToolSpec:
    parameters = describe_arguments(tool.arguments)
    return ToolSpec(name=tool.name, description=tool.description, parameters=parameters)


def _explain(error: msgspec.DecodeError | ValidationError | RecursionError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
            for item in error.errors()[:5]
        )
    return f"not valid JSON ({error})"
