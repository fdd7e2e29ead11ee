"""Quick commands: an operator's words for a text, for a command of ours or of the shell."""

import shlex
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from gateway.command_texts import take_word
from gateway.feature import Call, Command, Feature, Meaning, run_command
from gateway.features.quick.settings import HOLE, SHELL
from gateway.texts import say

NAME = "quick"
MAX_HELP = 80


def make_feature(texts: Mapping[str, str]) -> Feature:
    """The commands of these names."""
    commands = (
        Command(
            name=name,
            run=partial(_run, text),
            help=partial(_describe, text),
            mean=partial(_mean, name, text),
            is_told=text.startswith(SHELL),
        )
        for name, text in texts.items()
    )
    return Feature(name=NAME, commands=tuple(commands))


async def _run(text: str, call: Call) -> str:
    """Run the text as if its person had written it: its row waits like a message."""
    meant = _mean(call.command.name, text, call.command.arguments)
    if meant is None:
        return await _give(_fill(text, call.command.arguments.strip())[1:], call)
    return await call.queue_message(meant.text, meant.command)


def _mean(name: str, text: str, arguments: str) -> Meaning | None:
    """The message that the command `name` stands for; None if it gives another command."""
    written = arguments.strip()
    if text.startswith(SHELL):
        command = _fill_shell(text.removeprefix(SHELL), written)
        return Meaning(text=f"/{name} {written}".strip(), command=command)
    said = _fill(text, written)
    return None if said.startswith("/") else Meaning(text=said)


async def _give(said: str, call: Call) -> str:
    """Run the command that the text names, if the person may; quick commands do not call each
    other."""
    name, arguments = take_word(said)
    command = call.commands.get(name.lower())
    if command is None or isinstance(command.run, partial) and command.run.func is _run:
        return say("unknown_command", call.language, name=name)
    given = replace(call.command, name=command.name, arguments=arguments)
    return await run_command(command, replace(call, command=given))


def _fill(text: str, words: str) -> str:
    """Fill in the words written after the command."""
    if HOLE in text:
        return text.replace(HOLE, words).strip()
    separator = " " if text.startswith("/") else "\n\n"
    return separator.join(filter(None, (text.strip(), words)))


def _fill_shell(text: str, words: str) -> str:
    """Fill in the words written after the command, quoted as one word of the shell."""
    if HOLE in text:
        return text.replace(HOLE, shlex.quote(words)).strip()
    return f"{text.strip()} {shlex.quote(words)}" if words else text.strip()


def _describe(text: str, language: str) -> str:
    """The text's first words: they are the operator's, in the operator's language."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_HELP else f"{line[: MAX_HELP - 1]}…"
