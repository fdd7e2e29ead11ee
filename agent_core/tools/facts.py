"""Reads off a call what the policy has to know of it."""

import re

from pydantic import BaseModel

from agent_core.phrases import Phrase, phrase
from agent_core.policy import CallFacts, Situation, Verdict, decide
from agent_core.tools import paths
from agent_core.tools.code.readonly import readonly_verbs
from agent_core.tools.contract import Tool
from agent_core.tools.shell_words import NotUnderstood, understand

_DANGER = re.compile(
    r"\b(rm|rmdir|shred|truncate|dd|mkfs\S*|wipefs|sudo|su|doas|chown|chmod|shutdown|reboot|halt"
    r"|kill|pkill|killall|curl|wget|ssh|scp|nc|ncat|socat|docker|eval|base64|xxd|crontab|at)\b"
    r"|git\s+(clean|reset|push)|(^|[\s=<>'\"])[~/](?!workspace\b|dev/null\b)|\.\.(/|\s|$)"
    r"|[^\x20-\x7e\w\s]|[\x00-\x08\x0e-\x1f]"
)


def judge_call(tool: Tool, arguments: BaseModel, digest: str, situation: Situation) -> Verdict:
    """The policy's verdict on a call of `tool`; `digest` is what an approval is bound to."""
    return decide(read_facts(tool, arguments), digest, situation)


def read_facts(tool: Tool, arguments: BaseModel) -> CallFacts:
    """What the policy knows of a call of `tool`. Pure."""
    reads_only = tool.looks is not None and tool.looks(arguments)
    is_shell, is_program = tool.access == "shell", "code" in type(arguments).model_fields
    command = _command(arguments)
    unsure = _doubt(arguments, command) if is_shell else None
    asked = arguments.model_dump(include={"timeout"}, exclude_unset=True).get("timeout", 0)
    in_words = is_shell and not is_program
    return CallFacts(
        tool=tool.name,
        access=tool.access,
        reads_only=reads_only,
        isolated=tool.isolated,
        refusal=_refusal(tool, arguments, write=tool.access == "write" and not reads_only),
        command=command,
        unsure=unsure,
        is_program=is_program,
        dangerous=unsure is not None and bool(_DANGER.search(_shell_words(arguments))),
        background=is_shell and _runs_on(arguments),
        seconds=asked if isinstance(asked, int) else 0,
        max_seconds=tool.limit,
        rule=tool.rule(arguments) if tool.rule is not None else None,
        words=command if in_words else arguments.model_dump_json(),
    )


def _refusal(tool: Tool, arguments: BaseModel, *, write: bool) -> Phrase | None:
    """Why the words of the call's paths forbid it; those of somebody else's tool are not ours."""
    if tool.access not in ("read", "write") or tool.schema is not None:
        return None
    fields = arguments.model_dump(include={"path", "pattern"})
    refusals = (paths.why_refused(str(path), write=write) for path in fields.values())
    return next(filter(None, refusals), None)


def _doubt(arguments: BaseModel, command: str) -> Phrase | None:
    """Why a call's command is not understood. Code never is. A command for a shell that stays is,
    if it is run beside it: what it means there depends on what was said before."""
    fields = type(arguments).model_fields
    if "code" in fields:
        return phrase("odd_program")
    if "restart" in fields and not readonly_verbs(command):
        return phrase("odd_goes_on")
    known = understand(command)
    return known.reason if isinstance(known, NotUnderstood) else None


def _command(arguments: BaseModel) -> str:
    return str(arguments.model_dump(include={"command"}).get("command", ""))


def _shell_words(arguments: BaseModel) -> str:
    """The words that a shell is given: a command, or code in its language."""
    given = arguments.model_dump(include={"code", "language"})
    return str(given.get("code", "")) if given.get("language") == "bash" else _command(arguments)


def _runs_on(arguments: BaseModel) -> bool:
    return bool(arguments.model_dump(include={"background"}).get("background"))
