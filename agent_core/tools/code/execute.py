"""Tools that run code: execute_code, python_execute, normal_python_execute.

The code is written to a file in the workspace's own place, which a sandbox only reads, and is run
from the workspace's folder as a command is. The file is removed afterwards: the journal has it.
"""

import asyncio
import hashlib
import os
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, Field, create_model

from agent_core.errors import ToolFailed
from agent_core.messages import ToolOutput
from agent_core.sandboxes.port import Language, Permits, Sandbox
from agent_core.tools import backups, paths, secret_files, shell
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.web.host_field import HostNames

_FOLDER = f"{paths.OWN}/code"
_SUFFIX: dict[Language, str] = {
    "python": "py", "javascript": "js", "typescript": "ts", "bash": "sh",
}  # fmt: skip
_AROUND: dict[Language, str] = {"python": "PYTHONPATH=. ", "javascript": "NODE_PATH=. "}
"""So that modules of the workspace's folder are found though the code's file is not in it."""
_IMPORTED = re.compile(r"\bimport[ \t]+([\w., \t]+)")
_FROM = re.compile(r"\bfrom[ \t]+([\w.]+)[ \t]+import\b[ \t]*\(?([\w., \t\n]*)")
_REQUIRED = re.compile(r"(?:\brequire[ \t]*\(|\bfrom\b|\bimport\b)[ \t(]*['\"`]([^'\"`\n]+)['\"`]")
_JS_ENDS = ("", ".js", ".cjs", ".mjs", ".ts", ".json", "/index.js", "/package.json")


class CodeArguments(BaseModel):
    """Arguments of execute_code, but for the languages that there are."""

    code: str = Field(min_length=1)
    language: Language
    timeout: int = Field(default=shell.LIMIT, ge=1, description="Seconds.")
    hosts: HostNames = ()


class PythonArguments(BaseModel):
    """Arguments of python_execute."""

    code: str = Field(min_length=1, description="Only what is printed is seen.")
    timeout: int = Field(default=shell.LIMIT, ge=1, description="Seconds.")
    hosts: HostNames = ()


class TypedPythonArguments(PythonArguments):
    """Arguments of normal_python_execute."""

    code_type: Literal["process", "report", "others"] = "process"


def code_tools(sandbox: Sandbox, limit: int = shell.MAX_LIMIT) -> tuple[Tool, ...]:
    """The tools for the languages that `sandbox` has. `limit`: seconds that code may take."""
    languages = tuple(sandbox.programs)
    if not languages:
        return ()
    runner = _Runner(sandbox, limit)
    known = cast("type[str]", Literal.__getitem__(languages))
    arguments = create_model("Code", __base__=CodeArguments, language=(known, ...))
    said = f"Run {', '.join(languages)} code in the workspace, in a fresh process"
    tools = (runner.tool("execute_code", f"{said}.", arguments),)
    if "python" not in languages:
        return tools
    return (
        *tools,
        runner.tool(
            "python_execute", "Run Python code; what it prints is the result.", PythonArguments
        ),
        runner.tool(
            "normal_python_execute",
            "Run Python code of a data analysis: to process data, to write the report, or others. "
            "Files go to the workspace; print what you need to see.",
            TypedPythonArguments,
        ),
    )


class _Runner:
    def __init__(self, sandbox: Sandbox, limit: int) -> None:
        self._sandbox, self._limit = sandbox, limit

    def tool(self, name: str, description: str, arguments: type[BaseModel]) -> Tool:
        return Tool(
            name=name,
            description=f"{description} At most {self._limit} s. {self._sandbox.about}",
            arguments=arguments,
            repetition="effect",
            access="shell",
            call=self._call,
            bind=bind,
            limit=float(self._limit),
            isolated=self._sandbox.isolated,
        )

    async def _call(self, arguments: BaseModel, context: ToolContext) -> ToolOutput:
        wanted = read_code(arguments)
        name = f"{hashlib.sha256(context.key.encode()).hexdigest()[:12]}.{_SUFFIX[wanted.language]}"
        real = Path(os.path.realpath(context.workspace)) / _FOLDER / name
        await asyncio.to_thread(_write, context.workspace, real, wanted.code)
        words = f"{self._sandbox.programs[wanted.language]} {shlex.quote(f'{_FOLDER}/{name}')}"
        around = _AROUND.get(wanted.language, "")
        most = min(wanted.timeout, self._limit)
        try:
            done = await self._sandbox.run(
                f"{around}exec {words}",
                context.workspace,
                most,
                context.output,
                Permits(
                    hosts=context.hosts.union(wanted.hosts),
                    reveals=secret_files.names_secret(wanted.code),
                ),
            )
        finally:
            with suppress(OSError, ToolFailed):
                await asyncio.to_thread(paths.remove, context.workspace, real)
        return shell.report(done, most)


def read_code(arguments: BaseModel) -> CodeArguments:
    """The code of a call; without a language it is Python."""
    given = arguments.model_dump(include={"code", "language", "timeout", "hosts"})
    return CodeArguments.model_validate({"language": "python", **given})


def bind(arguments: BaseModel, workspace: Path) -> str:
    """Bind an approval like run_command's: to the files that the code names, and the workspace's
    modules that it imports, as they are now."""
    wanted = read_code(arguments)
    modules = [name.replace(".", "/") for name in _names(wanted.code)]
    imported = [f"{one}{end}" for one in modules for end in (".py", "/__init__.py")]
    if wanted.language in ("javascript", "typescript"):
        imported = [f"{one}{end}" for one in _REQUIRED.findall(wanted.code) for end in _JS_ENDS]
    return shell.bind(
        shell.RunCommandArguments(command="\n".join((wanted.code, *imported))), workspace
    )


def _names(code: str) -> list[str]:
    """Return the modules that the code may import, anywhere in it; a name imported from one may be
    one too."""
    found = [name for line in _IMPORTED.findall(code) for name in line.split(",")]
    for package, inner in _FROM.findall(code):
        found += (package, *(f"{package}.{name.strip()}" for name in inner.split(",")))
    return [name.split()[0] for name in found if name.strip()]


def _write(workspace: Path, real: Path, code: str) -> None:
    """Readable for whom the sandbox runs it as."""
    try:
        data = code.encode()
    except UnicodeEncodeError:
        raise ToolFailed("The code has half of a character pair; write it again.") from None
    try:
        backups.store(workspace, real, data, 0o644)
        for folder in (real.parent, real.parent.parent):
            with paths.folder(workspace, folder) as descriptor:
                os.fchmod(descriptor, 0o755)
    except OSError as error:
        raise paths.as_tool_failure(_FOLDER, error) from None
