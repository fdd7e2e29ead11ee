"""What may run, what needs a person, what never runs: verdicts are values."""

import re
from typing import Literal, assert_never

from msgspec import Struct
from pydantic import BaseModel

from agent_core.questions import Risk
from agent_core.sandboxes.secrets import named
from agent_core.tools import paths
from agent_core.tools.code.looking import looking
from agent_core.tools.contract import Tool
from agent_core.tools.shell_words import NotUnderstood, Understood, understand

Ruling = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "auto"]

MAX_RULE = 300
"""Characters of a rule that a person can still check."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What the policy says of one call, and why.

    `rule` names the line of the policy. `digest` binds an approval to the call as it was judged.
    `always` is the narrowest rule that 'always' would store.
    """

    ruling: Ruling
    rule: str
    reason: str
    risk: Risk = "low"
    digest: str = ""
    always: str = ""
    detail: str = ""


class Grant(Struct, frozen=True, kw_only=True):
    """An 'allow' that `person` gave for calls of `tool`.

    `pattern` is a verdict's `always`, compared as a whole, or `risk:<class>`: the tool's calls of
    that risk. The latter holds for a conversation only (`lasting` False), never for always.
    """

    tool: str
    pattern: str
    person: str
    lasting: bool = False


class Situation(Struct, frozen=True, kw_only=True):
    """What is in force for a turn. `person` (an id): whose message started it. `ask_all`: every
    call is asked, grants or not."""

    mode: Mode
    person: str
    ask_all: bool = False
    rules: tuple[Grant, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of secrets that a command may be given by naming them."""


class _Line(Struct, frozen=True, kw_only=True):
    """The table's line for a call. `grants`: a stored 'allow' may answer instead of a person."""

    ruling: Ruling
    rule: str
    reason: str
    risk: Risk = "low"
    detail: str = ""
    grants: bool = True


_DANGER = re.compile(
    r"\b(rm|rmdir|shred|truncate|dd|mkfs\S*|wipefs|sudo|su|doas|chown|chmod|shutdown|reboot|halt"
    r"|kill|pkill|killall|curl|wget|ssh|scp|nc|ncat|socat|docker|eval|base64|xxd|crontab|at)\b"
    r"|git\s+(clean|reset|push)|(^|[\s=<>'\"])[~/](?!workspace\b|dev/null\b)|\.\.(/|\s|$)"
    r"|[^\x20-\x7e\w\s]|[\x00-\x08\x0e-\x1f]"
)


def decide(tool: Tool, arguments: BaseModel, digest: str, situation: Situation) -> Verdict:
    """The verdict on a call of `tool`. Pure; `digest` is what an approval is bound to."""
    line = (
        _forbidden(tool, arguments)
        or _too_long(tool, arguments)
        or _lent(tool, arguments, situation.secrets)
        or _table(tool, arguments, situation.mode)
    )
    if situation.ask_all and line.ruling == "allow" and tool.access != "person":
        reason = "Every call is asked here (PERMISSION_ASK_ALL)."
        line = _Line(ruling="ask", rule="ask-all", reason=reason, risk=line.risk)
    grants = line.grants and not situation.ask_all
    always = _always(tool, arguments, digest) if grants and line.risk != "high" else ""
    if line.ruling == "ask" and grants:
        for grant in situation.rules:
            if _covers(grant, tool, line.risk, always) and grant.person == situation.person:
                reason = f"Allowed before: {grant.pattern}"
                line = _Line(ruling="allow", rule="granted", reason=reason, risk=line.risk)
    return Verdict(
        ruling=line.ruling,
        rule=line.rule,
        reason=line.reason,
        risk=line.risk,
        digest=digest,
        always=always if line.ruling == "ask" else "",
        detail=line.detail,
    )


def _forbidden(tool: Tool, arguments: BaseModel) -> _Line | None:
    """The line 'outside the workspace, secrets: deny', by the words of the call's paths."""
    if tool.access not in ("read", "write") or tool.schema is not None:
        return None
    fields = arguments.model_dump(include={"path", "pattern"})
    write = tool.access == "write" and not (tool.looks is not None and tool.looks(arguments))
    for path in fields.values():
        why = paths.refused(str(path), write=write)
        if why:
            return _Line(ruling="deny", rule="outside", reason=why, risk="high")
    return None


def _lent(tool: Tool, arguments: BaseModel, secrets: tuple[str, ...]) -> _Line | None:
    """The line 'a secret is given to a command: ask, each time'."""
    if tool.access != "shell":
        return None
    lent = named(_command(arguments), secrets)
    if not lent:
        return None
    where = "only the workspace, no network" if tool.isolated else "none"
    return _Line(
        ruling="ask",
        rule="secret",
        reason=f"The command is given a secret: {', '.join(lent)}.",
        risk="high",
        detail=f"Isolation: {where}. Its output is shown without the secret's value.",
        grants=False,
    )


def _table(tool: Tool, arguments: BaseModel, mode: Mode) -> _Line:
    match "read" if tool.looks is not None and tool.looks(arguments) else tool.access:
        case "person":
            return _Line(ruling="allow", rule="person", reason="It only asks the person.")
        case "read":
            return _Line(ruling="allow", rule="read", reason="It only reads.")
        case "write":
            ruling: Ruling = "allow" if mode == "auto" else "ask"
            reason = "It changes a file of the workspace; a backup is kept."
            return _Line(ruling=ruling, rule="write", reason=reason)
        case "shell":
            return _shell(tool, arguments, mode)
        case "network":
            reason = "It reaches outside: the network, messages or money."
            return _Line(ruling="ask", rule="network", reason=reason, risk="medium")
        case _:
            assert_never(tool.access)


def _too_long(tool: Tool, arguments: BaseModel) -> _Line | None:
    """The line 'longer than a command may take: deny'; the time that nobody asked for is cut."""
    asked = arguments.model_dump(include={"timeout"}, exclude_unset=True).get("timeout", 0)
    if tool.access != "shell" or not isinstance(asked, int) or asked <= tool.limit:
        return None
    reason = f"a command may take at most {tool.limit:g} s here, not {asked} (COMMAND_MAX_SECONDS)"
    return _Line(ruling="deny", rule="too-long", reason=f"{reason}. Use a smaller timeout.")


def _shell(tool: Tool, arguments: BaseModel, mode: Mode) -> _Line:
    behind = " It runs on in the background." if _runs_on(arguments) else ""
    known = _known(arguments)
    dangerous = isinstance(known, NotUnderstood) and bool(_DANGER.search(_told(arguments)))
    if not tool.isolated:
        reason = "Nothing isolates this command from the machine that the gateway runs on."
        risk: Risk = "high" if isinstance(known, NotUnderstood) else "medium"
        return _Line(
            ruling="ask",
            rule="shell-unisolated",
            reason=reason,
            risk=risk,
            detail=f"Isolation: none. It can reach the network and the gateway's files.{behind}",
            grants=False,
        )
    detail = f"Isolation: only the workspace, no network.{behind}"
    if isinstance(known, NotUnderstood):
        return _Line(
            ruling="ask",
            rule="shell",
            reason=f"Not sure what it does: {known.reason}.",
            risk="high" if dangerous else "medium",
            detail=detail,
        )
    ruling: Ruling = "allow" if mode == "auto" else "ask"
    return _Line(ruling=ruling, rule="shell", reason="It looks around.", detail=detail)


def _covers(grant: Grant, tool: Tool, risk: Risk, always: str) -> bool:
    if grant.tool != tool.name or not grant.person:
        return False
    if grant.pattern.startswith("risk:"):
        return not grant.lasting and grant.pattern == f"risk:{risk}"
    return bool(always) and grant.pattern == always


def _always(tool: Tool, arguments: BaseModel, digest: str) -> str:
    """This call and no other, or what the tool says, in words; "" if they are too long to be
    checked.

    A command that may run a file of the workspace is bound to the files' content as well: with
    the same words, a swapped script would be another call.
    """
    if tool.rule is not None:
        words = tool.rule(arguments)
        return words if len(words) <= MAX_RULE else ""
    code = "code" in type(arguments).model_fields
    words = arguments.model_dump_json() if tool.access != "shell" or code else _command(arguments)
    if len(words) > MAX_RULE:
        return ""
    unknown = tool.access == "shell" and isinstance(_known(arguments), NotUnderstood)
    behind = " · in the background" if tool.access == "shell" and _runs_on(arguments) else ""
    if unknown and (code or re.search(r"[./*?]", words)):
        return f"= {words}{behind} · as of {digest[:16]}"
    return f"= {words}{behind}"


def _known(arguments: BaseModel) -> Understood | NotUnderstood:
    """What is known of a call's command. Code is never understood. A command for a shell that
    stays is, if it is run beside it: what it means there depends on what was said before."""
    command, fields = _command(arguments), type(arguments).model_fields
    if "code" in fields:
        return NotUnderstood(reason="it is a program")
    if "restart" in fields and not looking(command):
        return NotUnderstood(reason="it goes on where the commands before it left off")
    return understand(command)


def _command(arguments: BaseModel) -> str:
    return str(arguments.model_dump(include={"command"}).get("command", ""))


def _told(arguments: BaseModel) -> str:
    """The words that a shell is given: a command, or code in its language."""
    given = arguments.model_dump(include={"code", "language"})
    return str(given.get("code", "")) if given.get("language") == "bash" else _command(arguments)


def _runs_on(arguments: BaseModel) -> bool:
    return bool(arguments.model_dump(include={"background"}).get("background"))
