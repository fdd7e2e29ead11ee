"""The course of what people's agents run all day (`tests/fixtures/course`): judged as the gateway does
for who may choose the mode auto, and run by the tools."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_core.messages import ToolOutput
from agent_core.policy import Situation
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.pool import SandboxPool
from agent_core.tools.code.execute import code_tools
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.facts import judge_call
from agent_core.tools.shell import command_tools

LACKS = r"\[(This sandbox|There is no /tmp|.* is not installed in the sandbox)"
FOLDER = Path(__file__).parents[1] / "fixtures" / "course"


class Lesson(Struct, frozen=True, kw_only=True):
    """A command, or a program in `language`. `shows`: what its output has to show; `works`: it is to
    succeed, else to say what to do; `hosts`: what it asks to reach."""

    group: str
    words: str
    shows: str
    works: bool
    language: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def arguments(self) -> dict[str, object]:
        given: dict[str, object] = {"hosts": self.hosts}
        if self.language:
            return given | {"code": self.words, "language": self.language}
        return given | {"command": self.words}


class Told(Struct, frozen=True, kw_only=True):
    """How a lesson went: `ruling` in a sandbox that contains, and where nothing does."""

    lesson: Lesson
    ruling: str
    uncontained: str
    output: str = ""
    good: bool = True
    lacks: bool = False
    """It could not work, for something is not there, and the sandbox said so."""


def read_course() -> dict[str, list[Lesson]]:
    """The lessons by their groups; those of a group share a workspace."""
    found: dict[str, list[Lesson]] = {}
    for name, lesson in _read("commands.toml"):
        command, shows, *hosts = lesson
        group = found.setdefault(f"commands {name}", [])
        group.append(_make(name, command, shows, "", hosts))
    for name, lesson in _read("scripts.toml"):
        language, code, shows, *hosts = lesson
        group = found.setdefault(f"scripts {name}", [])
        group.append(_make(name, code, shows, language, hosts))
    return found


def _read(file: str) -> Iterator[tuple[str, list[Any]]]:
    for name, lessons in tomllib.loads((FOLDER / file).read_text()).items():
        for lesson in lessons:
            yield name, lesson


def _make(group: str, words: str, shows: str, language: str, hosts: list[Any]) -> Lesson:
    named = tuple(hosts[0]) if hosts else ()
    works = not shows.startswith("!")
    return Lesson(
        group=group,
        words=words,
        shows=shows.removeprefix("!"),
        works=works,
        language=language,
        hosts=named,
    )


async def take(pool: SandboxPool, lesson: Lesson, place: Path, key: str) -> Told:
    """Judge it, and run it unless a person is asked."""
    tool = _find_tool(pool, lesson)
    arguments = tool.arguments.model_validate(lesson.arguments)
    rulings = [
        judge_call(tool, arguments, "digest", Situation(mode="auto", person="ann", contained=it))
        for it in (True, False)
    ]
    ruling, uncontained = (one.ruling for one in rulings)
    if ruling != "allow":
        return Told(lesson=lesson, ruling=ruling, uncontained=uncontained, good=bool(lesson.hosts))
    context = ToolContext(workspace=place, key=key, limit=60, output=lambda _: None)
    gave = await tool.call(arguments, context)
    assert isinstance(gave, ToolOutput) and gave.command is not None
    good = gave.command.failed is not lesson.works and bool(
        re.search(lesson.shows, gave.text, re.M)
    )
    lacks = any(re.match(LACKS, line) for line in gave.text.splitlines()[-6:])
    return Told(
        lesson=lesson,
        ruling=ruling,
        uncontained=uncontained,
        output=gave.text,
        good=good or lacks,
        lacks=lacks,
    )


def _find_tool(pool: SandboxPool, lesson: Lesson) -> Tool:
    if lesson.language:
        return next(one for one in code_tools(pool) if one.name == "execute_code")
    return command_tools(pool, Background())[0]
