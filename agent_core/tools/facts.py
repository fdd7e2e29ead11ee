"""Reads the facts about a call for the policy."""

import re
import shlex
from itertools import chain

from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.phrases import Phrase, phrase
from agent_core.policy import Bond, CallFacts, Situation, Verdict, decide, find_bond
from agent_core.tools import paths, secret_files
from agent_core.tools.code.readonly import readonly_verbs
from agent_core.tools.contract import Tool
from agent_core.tools.shell_reading.mentions import names_secret
from agent_core.tools.shell_words import NotUnderstood, runs_no_file, understand
from agent_core.tools.sources import SourceDigest
from agent_core.tools.web.addresses import Unreachable, read_url, why_closed

_DANGER = re.compile(
    r"\b(rm|rmdir|shred|truncate|dd|mkfs\S*|wipefs|sudo|su|doas|chown|chmod|shutdown|reboot|halt"
    r"|kill|pkill|killall|curl|wget|ssh|scp|nc|ncat|socat|docker|eval|base64|xxd|crontab|at)\b"
    r"|git\s+(clean|reset|push)|(^|[\s=<>'\"])[~/](?!workspace\b|dev/null\b)|\.\.(/|\s|$)"
    r"|[^\x20-\x7e\w\s]|[\x00-\x08\x0e-\x1f]"
)

_GIT = re.compile(r"\bgit\b")


def judge_call(
    tool: Tool,
    arguments: BaseModel,
    digest: str,
    situation: Situation,
    sources: SourceDigest | None = None,
) -> Verdict:
    """Return the policy's verdict on a call of `tool`; `digest` is what an approval is bound to,
    together with the `sources` if needed."""
    facts = read_facts(tool, arguments)
    if sources is not None:
        facts = replace(facts, sources=sources.files, countable=sources.whole)
    return decide(facts, digest, situation)


def find_call_bond(tool: Tool, arguments: BaseModel, situation: Situation) -> Bond:
    """Return what an approval of a call of `tool` is bound to besides its words."""
    return find_bond(read_facts(tool, arguments), situation)


def read_facts(tool: Tool, arguments: BaseModel) -> CallFacts:
    """Return the policy's facts about a call of `tool`. Pure."""
    reads_only = tool.looks is not None and tool.looks(arguments)
    is_shell, is_program = tool.access == "shell", "code" in type(arguments).model_fields
    command = _command(arguments)
    unsure = _doubt(arguments, command) if is_shell else None
    asked = arguments.model_dump(include={"timeout"}, exclude_unset=True).get("timeout", 0)
    in_words = is_shell and not is_program
    place, inside = _read_place(tool, arguments)
    return CallFacts(
        tool=tool.name,
        access=tool.access,
        reads_only=reads_only,
        isolated=tool.isolated,
        refusal=_refusal(tool, arguments, reads_only=reads_only),
        command=command,
        script=_shell_words(arguments) if is_shell and is_program else "",
        code=_read_code(arguments) if is_shell else "",
        unsure=unsure,
        runs_no_file=unsure is not None and in_words and runs_no_file(command),
        is_program=is_program,
        dangerous=unsure is not None and bool(_DANGER.search(_shell_words(arguments))),
        background=is_shell and _runs_on(arguments),
        seconds=asked if isinstance(asked, int) else 0,
        max_seconds=tool.limit,
        rule=tool.rule(arguments) if tool.rule is not None else None,
        hosts=_read_hosts(arguments) if is_shell and tool.isolated else (),
        names_secret=is_shell and _names_secret(arguments),
        runs_git=is_shell and bool(_GIT.search(_program_words(arguments))),
        sets_up=tool.access == "write"
        and not reads_only
        and any(map(secret_files.holds_settings, _read_paths(tool, arguments))),
        words=command if in_words else arguments.model_dump_json(),
        place=place,
        closed=None if reads_only else inside,
        paths=_read_paths(tool, arguments),
    )


def _refusal(tool: Tool, arguments: BaseModel, *, reads_only: bool) -> Phrase | None:
    """Return why the call's paths are forbidden by their words; paths of foreign tools are not
    ours. A lasting shell never sees files that a single command may be allowed to see."""
    if tool.schema is not None:
        return None
    if tool.access == "shell":
        if tool.interactive and tool.isolated and _names_secret(arguments):
            return phrase("why_secret_shell")
        folder = str(arguments.model_dump(include={"cwd"}).get("cwd", ""))
        asked = secret_files.names_secret(folder)  # about that a person may be asked
        return paths.leaves(folder) if asked else paths.why_refused(folder)
    if tool.access not in ("read", "write") and not reads_only:
        return None
    write = tool.access == "write" and not reads_only
    pattern = str(arguments.model_dump(include={"pattern"}).get("pattern", ""))
    named = (*_read_paths(tool, arguments), pattern)
    return next(filter(None, (paths.why_refused(path, write=write) for path in named)), None)


def _read_paths(tool: Tool, arguments: BaseModel) -> tuple[str, ...]:
    """The workspace's paths that the call names."""
    if tool.schema is not None:
        return ()
    given = arguments.model_dump(include={"path", "paths", "artifacts"})
    lists = [one if isinstance(one, list | tuple) else (one,) for one in given.values()]
    return tuple(str(path) for path in chain.from_iterable(lists) if path)


def _read_place(tool: Tool, arguments: BaseModel) -> tuple[str, Phrase | None]:
    """Return where the call's URL leads, and why it is not read; a foreign tool reads its own."""
    url = arguments.model_dump(include={"url"}).get("url", "")
    if tool.access != "network" or tool.schema is not None or not url:
        return "", None
    return judge_url(str(url))


def judge_url(url: str) -> tuple[str, Phrase | None]:
    """Return where a URL leads, `host:port`, and why it is not read, None if it may be. Asks no
    DNS."""
    try:
        target = read_url(url)
    except Unreachable:
        return "", phrase("why_url")
    return target.place, why_closed(target)


def _doubt(arguments: BaseModel, command: str) -> Phrase | None:
    """Return why a call's command is not understood. Code never is. A command for a lasting shell
    is, if it is run beside it: its meaning there depends on earlier commands."""
    fields = type(arguments).model_fields
    if "code" in fields:
        return phrase("odd_program")
    if "restart" in fields and not readonly_verbs(command):
        return phrase("odd_goes_on")
    known = understand(command)
    return known.reason if isinstance(known, NotUnderstood) else None


def _command(arguments: BaseModel) -> str:
    given = arguments.model_dump(include={"command", "cwd"})
    command, cwd = str(given.get("command", "")), str(given.get("cwd", ""))
    return f"cd {shlex.quote(cwd)}; {command}" if cwd else command


def _shell_words(arguments: BaseModel) -> str:
    """Return the words for a shell: a command, or code in its language."""
    given = arguments.model_dump(include={"code", "language"})
    return str(given.get("code", "")) if given.get("language") == "bash" else _command(arguments)


def _read_code(arguments: BaseModel) -> str:
    return str(arguments.model_dump(include={"code"}).get("code", ""))


def _program_words(arguments: BaseModel) -> str:
    """Return all words for a shell or an interpreter."""
    given = arguments.model_dump(include={"command", "code", "cwd"})
    return "\n".join(map(str, given.values()))


def _names_secret(arguments: BaseModel) -> bool:
    """A secret file is named: in a command as one to use, in code by any word."""
    given = arguments.model_dump(include={"command", "code", "cwd"})
    command = str(given.pop("command", ""))
    return names_secret(command) or any(
        secret_files.names_secret(str(text)) for text in given.values()
    )


def _read_hosts(arguments: BaseModel) -> tuple[str, ...]:
    given = arguments.model_dump(include={"hosts"}).get("hosts", ())
    return tuple(map(str, given)) if isinstance(given, tuple | list) else ()


def _runs_on(arguments: BaseModel) -> bool:
    return bool(arguments.model_dump(include={"background"}).get("background"))
