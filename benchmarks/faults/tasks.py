"""Sixty tasks of five families, each with a model that knows how to do them: what it is shown decides
what it does next, so a step that failed is done again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.context.compression import SYSTEM as SUMMARISE
from agent_core.messages import ToolOutput, ToolResult, calls_of, text_of
from agent_core.models.port import ModelRequest
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.decorator import tool
from agent_core.tools.files import file_tools
from benchmarks.agent.course import Said

SIZES = range(1, 13)
DID = "did "
"""Begins a line of a summary: a step and what it gave, as JSON."""
PAD = "\n~~ "
"""Begins what a result holds besides."""
Step = tuple[str, dict[str, object]]
Act = Callable[[list[str]], Step | str]
"""The next call, or the answer, by the results so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """`check`: whether the answer and the files in the folder are right. `prepare`: what stands
    there before."""

    name: str
    text: str
    act: Act
    check: Callable[[str, Path], bool]
    prepare: Callable[[Path], None] = lambda folder: None

    def make_mind(self) -> Callable[[ModelRequest], Said]:
        """What a model does that makes no mistake. It knows what it is shown; asked to summarise,
        it writes down what it was shown before."""
        seen: dict[str, str] = {}

        def think(request: ModelRequest) -> Said:
            if request.system == SUMMARISE:
                return "\n".join(
                    f"{DID}{msgspec.json.encode(one).decode()}" for one in seen.items()
                )
            known = _find_results(request)
            seen.update(known)
            return self._act(known)

        return think

    def _act(self, known: dict[str, str]) -> Said:
        results: list[str] = []
        while not isinstance(step := self.act(results), str):
            if (found := known.get(repr(step))) is None:
                return (step,)
            results.append(found)
        return step


def _find_results(request: ModelRequest) -> dict[str, str]:
    """What calls gave that went well, by name and arguments."""
    calls = {call.id: call for message in request.messages for call in calls_of(message)}
    lines = [line for message in request.messages for line in text_of(message).splitlines()]
    told = (line.removeprefix(DID) for line in lines if line.startswith(DID))
    found: dict[str, str] = dict(msgspec.json.decode(one, type=tuple[str, str]) for one in told)
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and not part.error and part.call_id in calls:
                call = calls[part.call_id]
                step = (call.name, msgspec.json.decode(call.arguments))
                found.setdefault(repr(step), part.content.partition(PAD)[0])
    return found


@tool(repetition="pure")
def look_up(key: str) -> str:
    """Look up what stands under a key."""
    return find_value(key)


def find_value(key: str) -> str:
    """What stands under a key. Raises ValueError."""
    name, _, n = key.partition("-")
    if not n.isdecimal():
        raise ValueError(f"there is no key {key}")
    if name == "link":
        return "end of it" if int(n) >= 100 else f"link-{int(n) + 7}"
    return str(int(n) * 13 % 97)


TOOLS: tuple[Tool, ...] = (look_up, *file_tools())


def pad_tool(one: Tool, size: int) -> Tool:
    """The tool; what it gives holds so many characters more that nobody needs."""
    words = ("much that nobody needs to know " * (size // 30 + 1))[:size]

    async def call(arguments: BaseModel, context: ToolContext) -> str | ToolOutput:
        gave = await one.call(arguments, context)
        if isinstance(gave, ToolOutput):
            return replace(gave, text=f"{gave.text}{PAD}{words}", shown=None)
        return f"{gave}{PAD}{words}"

    return replace(one, call=call)


def _sum(n: int) -> Task:
    total = sum(k * 13 % 97 for k in range(n))

    def act(results: list[str]) -> Step | str:
        if len(results) < n:
            return "look_up", {"key": f"part-{len(results)}"}
        return f"I looked all of them up. The sum of the {n} is {sum(map(int, results))}"

    return Task(
        name=f"sum-{n}",
        text=f"Add up what stands under part-0 to part-{n - 1}.",
        act=act,
        check=lambda text, _: text.endswith(f" is {total}"),
    )


def _chain(n: int) -> Task:
    start = 100 - 7 * (n - 1)

    def act(results: list[str]) -> Step | str:
        if results and results[-1] == "end of it":
            return f"I followed the links. The chain has a length of {len(results)}"
        return "look_up", {"key": results[-1] if results else f"link-{start}"}

    return Task(
        name=f"chain-{n}",
        text=f"How long is the chain that begins at link-{start}?",
        act=act,
        check=lambda text, _: text.endswith(f" of {n}"),
    )


def _copy(n: int) -> Task:
    def prepare(folder: Path) -> None:
        for k in range(n):
            (folder / f"from-{k}.txt").write_text(f"word {k}\n")

    def act(results: list[str]) -> Step | str:
        k, wrote = divmod(len(results), 2)
        if k == n:
            return f"The files are read and written. Files copied: {n}"
        if wrote:
            return "write_file", {"path": f"to-{k}.txt", "content": results[-1].upper()}
        return "read_file", {"path": f"from-{k}.txt"}

    def check(text: str, folder: Path) -> bool:
        files = [folder / f"to-{k}.txt" for k in range(n)]
        there = all(one.is_file() and one.read_text().startswith("WORD") for one in files)
        return there and text.endswith(f": {n}")

    return Task(
        name=f"copy-{n}",
        text=f"Copy from-0.txt to from-{n - 1}.txt in capitals to to-0.txt and so on.",
        act=act,
        check=check,
        prepare=prepare,
    )


def _write(n: int) -> Task:
    def act(results: list[str]) -> Step | str:
        if len(results) < n:
            k = len(results)
            return "write_file", {"path": f"dir/{k}.py", "content": f"print({k})\n"}
        return f"The programs are written. Programs there are now: {n}"

    def check(text: str, folder: Path) -> bool:
        there = all((folder / f"dir/{k}.py").read_text() == f"print({k})\n" for k in range(n))
        return there and text.endswith(f": {n}")

    return Task(
        name=f"write-{n}", text=f"Write {n} programs that print their number.", act=act, check=check
    )


def _search(n: int) -> Task:
    def prepare(folder: Path) -> None:
        for k in range(n):
            (folder / f"note-{k}.txt").write_text("yes\n" if k % 3 else "no\n")

    def act(results: list[str]) -> Step | str:
        if not results:
            return "list_files", {"pattern": "note-*.txt"}
        if len(results) <= n:
            return "read_file", {"path": f"note-{len(results) - 1}.txt"}
        found = sum("yes" in one for one in results[1:])
        return f"I read every note. The notes that say yes are {found}"

    total = sum(bool(k % 3) for k in range(n))
    return Task(
        name=f"search-{n}",
        text=f"How many of the {n} notes say yes?",
        act=act,
        check=lambda text, _: text.endswith(f" are {total}"),
        prepare=prepare,
    )


TASKS = tuple(make(n) for make in (_sum, _chain, _copy, _write, _search) for n in SIZES)
