"""Checks calls against the policy without making them: the gateway's tools, facts and verdicts,
without a gateway, a workspace, a store or DNS."""

import logging
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.messages import ToolCall
from agent_core.policy import VIEWER, Mode, Situation
from agent_core.policy_rules import OperatorRule
from agent_core.settings import ModelSettings
from agent_core.tools import ask, facts, paths
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.finding.mcp_tools import NAME_SEPARATOR, Definition, foreign_tool
from agent_core.tools.finding.tools import unwrap_call
from agent_core.tools.toolbox import Prepared, Toolbox
from agent_core.tools.turn.tool import TurnTool
from gateway.roles import Role
from gateway.wiring.closed_tools import CLOSED, make_closed_tools

log = logging.getLogger("turnkeeper.policy")

Ruling = Literal["allow", "ask", "deny"]
CONTAINING = frozenset({"bwrap", "docker", "boxlite", "landlock", "e2b", "monty"})
"""Tiers of which a self-test at the gateway's start shows that they contain."""
NONE, UNSAFE = "none", "unsafe-subprocess"
TIERS = (NONE, UNSAFE, *sorted(CONTAINING))
MAX_LINE = 1_000_000
"""Bytes of a line."""
UNREADABLE, NO_TOOL, NO_FIT, CONFIRMED = "unreadable", "no-tool", "arguments", "confirmed"
_STRICTNESS: tuple[Ruling, ...] = ("allow", "ask", "deny")


class CheckedCall(Struct, frozen=True, kw_only=True):
    """A line of `policy check`."""

    tool: str
    args: dict[str, object]
    mode: Mode = "ask"
    role: Role = "user"
    tier: str = NONE
    person: str = ""
    conversation: str = ""


class PolicyAnswer(Struct, frozen=True, kw_only=True):
    """The output for a line. `error`: why it could not be read."""

    decision: Ruling
    rule: str
    error: str | UnsetType = UNSET


class PolicyChecker:
    """Judges lines. `settings`: of the agent, for hosts and limits; `rules`: the operator's."""

    def __init__(self, settings: ModelSettings, rules: tuple[OperatorRule, ...] = ()) -> None:
        self._settings, self._rules = settings, rules
        self._boxes: dict[bool, Toolbox] = {}

    def judge_call(self, line: bytes) -> PolicyAnswer:
        """Judge a call written as JSON."""
        if len(line) > MAX_LINE:
            return refuse_line(f"the line is longer than {MAX_LINE:,} bytes.")
        try:
            call = msgspec.json.decode(line, type=CheckedCall)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            return refuse_line(str(error))
        if call.tier not in TIERS:
            return refuse_line(f"there is no tier {call.tier!r}; tiers: {', '.join(TIERS)}.")
        try:
            return self._judge(call)
        except Exception as error:  # boundary: one line must not affect another
            log.exception("policy_check_failed")
            return refuse_line(f"it cannot be judged: {type(error).__name__}.")

    def _judge(self, checked: CheckedCall) -> PolicyAnswer:
        box = self._find_box(checked.tier != UNSAFE)
        arguments = msgspec.json.encode(checked.args).decode()
        call = unwrap_call(ToolCall(id="c", name=checked.tool, arguments=arguments))
        call = replace(call, name=ask.ALSO.get(call.name, call.name))
        foreign = {call.name: _make_foreign(call.name)} if NAME_SEPARATOR in call.name else {}
        if call.name not in box.names and not foreign:
            return PolicyAnswer(decision="deny", rule=NO_TOOL)
        ready = box.prepare(call, (call.name,), None, foreign)
        if not isinstance(ready, Prepared):
            return PolicyAnswer(decision="deny", rule=NO_FIT)
        verdict = facts.judge_call(ready.tool, ready.arguments, "", self._find_situation(checked))
        own = PolicyAnswer(decision=verdict.ruling, rule=verdict.rule)
        return max((*self._judge_made(checked, ready), own), key=_find_strictness)

    def _judge_made(self, checked: CheckedCall, ready: Prepared) -> list[PolicyAnswer]:
        """Judge what a tool does by other calls, and by a question of its own."""
        tool = ready.tool
        if not isinstance(tool, TurnTool):
            return []
        try:
            made = tool.makes(ready.arguments)
        except ToolFailed:
            return [PolicyAnswer(decision="deny", rule=NO_FIT)]
        answers = [self._judge(replace(checked, tool=name, args=args)) for name, args in made]
        if tool.asks(ready.arguments):
            may = checked.role != VIEWER
            answers.append(PolicyAnswer(decision="ask" if may else "deny", rule=CONFIRMED))
        return answers

    def _find_box(self, isolated: bool) -> Toolbox:
        if isolated not in self._boxes:
            tools = make_closed_tools(self._settings, isolated=isolated)
            self._boxes[isolated] = Toolbox(tools)
        return self._boxes[isolated]

    def _find_situation(self, checked: CheckedCall) -> Situation:
        web = self._settings.tools.web
        return Situation(
            mode=checked.mode,
            person=checked.person,
            role=checked.role,
            contained=checked.tier in CONTAINING,
            hosts=web.open,
            places=web.allowed,
            operator=self._rules,
            conversation=checked.conversation,
            now=ambient.now(),
        )

    def judge_url(self, line: bytes) -> PolicyAnswer:
        """Judge by its words whether a URL may be read at all."""
        text = _read_text(line)
        if isinstance(text, PolicyAnswer):
            return text
        place, closed = facts.judge_url(text)
        if closed is None or place in self._settings.tools.web.allowed:
            return PolicyAnswer(decision="allow", rule="url")
        return PolicyAnswer(decision="deny", rule="address")

    def judge_path(self, line: bytes) -> PolicyAnswer:
        """Judge by its words whether a path of the workspace may be read at all."""
        return _judge_path(line, write=False)

    def judge_written_path(self, line: bytes) -> PolicyAnswer:
        """Judge by its words whether a path of the workspace may be written at all."""
        return _judge_path(line, write=True)


def _judge_path(line: bytes, *, write: bool) -> PolicyAnswer:
    text = _read_text(line)
    if isinstance(text, PolicyAnswer):
        return text
    if paths.why_refused(text, write) is None:
        return PolicyAnswer(decision="allow", rule="path")
    return PolicyAnswer(decision="deny", rule="outside")


def _make_foreign(name: str) -> Tool:
    """Make a server's tool, of which the policy knows only that."""
    server, _, tool = name.partition(NAME_SEPARATOR)
    about = Definition(name=name, server=server, tool=tool, description="", parameters={})

    async def call(arguments: object, context: ToolContext) -> str:
        return CLOSED

    return foreign_tool(about, call)


def _find_strictness(answer: PolicyAnswer) -> int:
    return _STRICTNESS.index(answer.decision)


def refuse_line(why: str) -> PolicyAnswer:
    """The answer for a line that cannot be read."""
    return PolicyAnswer(decision="deny", rule=UNREADABLE, error=why)


def _read_text(line: bytes) -> str | PolicyAnswer:
    """Return the text of a line; a JSON string is decoded, so that it can hold anything."""
    if len(line) > MAX_LINE:
        return refuse_line(f"the line is longer than {MAX_LINE:,} bytes.")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return refuse_line(str(error))
    if not text.startswith('"'):
        return text
    try:
        return msgspec.json.decode(line, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return refuse_line(str(error))
