"""Looks tools up, validates what the model wrote, binds approvals, and runs calls."""

import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
from pydantic import BaseModel, ValidationError

from agent_core.errors import ToolFailed
from agent_core.messages import Output, ToolCall
from agent_core.models.port import ToolSpec
from agent_core.tools import paths
from agent_core.tools.contract import Tool, ToolContext

MAX_OBSERVE = 10_000
"""Characters of a result that the model sees; the whole is kept as a file."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A call that can run: its tool and validated arguments."""

    call: ToolCall
    tool: Tool
    arguments: BaseModel


class Unfit(msgspec.Struct, frozen=True, kw_only=True):
    """A call that cannot run; `text` tells the model why and how to mend it."""

    call: ToolCall
    text: str


class Toolbox:
    """The tools of one agent, by name."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._specs = {name: _spec(tool) for name, tool in self._tools.items()}
        self._offers: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order they were given."""
        return tuple(self._tools)

    def specs(self, names: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        """What the model is shown of the tools `names`; unknown ones are left out. The same
        names give the same object, so that providers need not render it for each call."""
        offer = self._offers.get(names)
        if offer is None:
            offer = tuple(self._specs[name] for name in names if name in self._specs)
            self._offers[names] = offer
        return offer

    def lasting(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """`calls` without those that are made again by nature."""
        polls = {name for name, tool in self._tools.items() if tool.polls}
        return tuple(call for call in calls if call.name not in polls)

    def prepare(self, call: ToolCall, offered: Iterable[str]) -> Prepared | Unfit:
        """Look the call's tool up and validate its arguments."""
        tool = self._tools.get(call.name)
        if tool is None or call.name not in offered:
            known = ", ".join(offered) or "none"
            return Unfit(call=call, text=f"There is no tool {call.name!r}. Tools: {known}.")
        try:
            raw = msgspec.json.decode(call.arguments or "{}")
            return Prepared(call=call, tool=tool, arguments=tool.arguments.model_validate(raw))
        except (msgspec.DecodeError, ValidationError) as error:
            schema = msgspec.json.encode(self._specs[call.name].parameters).decode()
            return Unfit(
                call=call,
                text=f"The arguments of {call.name} do not fit: {_why(error)}. Schema: {schema}",
            )


def bind(prepared: Prepared, workspace: Path) -> str:
    """The digest that an approval is bound to: tool, canonical arguments, working folder, and
    what the tool adds (environment, the content of scripts named)."""
    canonical = prepared.arguments.model_dump_json()
    extra = prepared.tool.bind(prepared.arguments, workspace) if prepared.tool.bind else ""
    text = "\0".join((prepared.tool.name, canonical, str(workspace), extra))
    return hashlib.sha256(text.encode()).hexdigest()


async def run(
    prepared: Prepared,
    context: ToolContext,
    approved: str,
    rewrite: Callable[[str], Awaitable[str]] | None = None,
) -> str | Output:
    """Run the call. `approved`: the digest a person approved, checked in this last instant;
    "" where nobody was asked. `rewrite` has the last word on the result, or on the failure."""
    if approved and bind(prepared, context.workspace) != approved:
        raise ToolFailed(
            "Not run: the call or a script it names was changed after it was approved. "
            "Ask again if it is still wanted."
        )
    context.workspace.mkdir(parents=True, exist_ok=True)
    try:
        gave = await prepared.tool.call(prepared.arguments, context)
    except ToolFailed as error:
        if rewrite is None:
            raise
        text = observe(await rewrite(str(error)), context.workspace, prepared.call.id)
        raise ToolFailed(text) from None
    said = gave.text if isinstance(gave, Output) else gave
    said = said if rewrite is None else await rewrite(said)
    text = observe(said, context.workspace, prepared.call.id)
    return msgspec.structs.replace(gave, text=text) if isinstance(gave, Output) else text


def observe(content: str, workspace: Path, call_id: str) -> str:
    """`content`, cut for the model if it is too long; then the whole is kept as a file."""
    if len(content) <= MAX_OBSERVE:
        return content
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in call_id)
    path = workspace / paths.OWN / "outputs" / f"{name}.txt"
    with paths.folder(workspace, Path(os.path.realpath(path.parent)), create=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path.name, flags, 0o600, dir_fd=folder), "w") as file:
            file.write(content)
    half = MAX_OBSERVE // 2
    left_out = len(content) - 2 * half
    where = path.relative_to(workspace)
    return f"{content[:half]}\n[… {left_out} characters left out; the whole is in {where}]\n{content[-half:]}"


def _spec(tool: Tool) -> ToolSpec:
    schema = tool.arguments.model_json_schema()
    return ToolSpec(name=tool.name, description=tool.description, parameters=_plain(schema))


def _plain(schema: dict[str, object]) -> dict[str, object]:
    """The schema without the titles that pydantic adds: fewer tokens, same meaning."""
    slim: dict[str, object] = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties" and isinstance(value, dict):
            slim[key] = {name: _plain(inner) for name, inner in value.items()}
        elif isinstance(value, dict):
            slim[key] = _plain(value)
        else:
            slim[key] = value
    return slim


def _why(error: msgspec.DecodeError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
            for item in error.errors()[:5]
        )
    return f"not valid JSON ({error})"
