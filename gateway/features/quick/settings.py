"""QUICK_COMMANDS: the operator's own commands, which stand for longer texts."""

import re
import shlex

import msgspec

from agent_core.config.declaration import Setting, SettingTables, WrongValue

MAX_COMMANDS = 30
MAX_TEXT = 8_000
NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""Matches names of commands that every platform accepts."""
HOLE, SHELL = "{}", "!"
_ALONE = re.compile(r"(?<!\S)\{\}(?!\S)")
EXAMPLE = '{"standup": "What did I do yesterday?", "deep": "/mode research"}'


def parse_quick(text: str) -> dict[str, str]:
    """Parse the JSON object `text` of texts by command."""
    try:
        found = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, RecursionError) as error:
        raise WrongValue(f"write JSON such as {EXAMPLE} ({error}).") from None
    if len(found) > MAX_COMMANDS:
        raise WrongValue(f"there may be {MAX_COMMANDS} of them.")
    for name, words in found.items():
        if not NAME.fullmatch(name):
            raise WrongValue("a command is small letters, digits and _, at most 32.", name)
        if not words.strip() or len(words) > MAX_TEXT:
            raise WrongValue(f"give it a text of at most {MAX_TEXT:,} characters.", name)
        if words.startswith(SHELL) and not _is_safe(words.removeprefix(SHELL)):
            raise WrongValue(
                "a shell's command is one line; {} is a word of its own in it, outside of quotes.",
                name,
            )
    return found


def _is_safe(command: str) -> bool:
    """Return True if the words after the command can be inserted as exactly one word."""
    if not command.strip() or "\n" in command or "<<" in command:
        return False
    places = [found.start() for found in _ALONE.finditer(command)]
    if len(places) != command.count(HOLE):
        return False
    try:
        for end in (*places, len(command)):
            shlex.split(command[:end])
    except ValueError:  # it is inside a quotation
        return False
    return True


QUICK: Setting[dict[str, str]] = Setting(
    "QUICK_COMMANDS",
    {},
    parse_quick,
    f"JSON, your own commands: `{EXAMPLE}`. `/standup` then sends that text; a text that begins "
    "with a slash runs that command. `{}` in it is replaced by the command's arguments, which "
    "otherwise follow the text. A text that begins with `!`, as in "
    '`{"deploy": "!make deploy {}"}`, is a shell command: it runs like one of the agent, in the '
    "sandbox and with the same approvals, for at most `COMMAND_MAX_SECONDS`, and its output is the "
    "answer. The name of a built-in command is an error",
    default_text="none",
)
TABLES: SettingTables = {"quick": (QUICK,)}
