"""Cases: what is remembered, a tool among many, what stands on a page."""

import json

from msgspec.structs import replace

from agent_core.memory.documents import Change, ChangeOutcome, MemoryDocuments
from agent_core.memory.recall import HEAD, block
from agent_core.memory.tool import memory_tool
from agent_core.messages import text_of
from agent_core.models.port import ModelRequest
from agent_core.research import evidence
from agent_core.research.depths import ResearchDeps
from agent_core.tools.contract import Tool
from agent_core.tools.decorator import tool
from agent_core.tools.finding.tools import finding_tools
from agent_core.tools.send import FileStore
from agent_core.tools.web.port import Fetched, Hit, Web
from benchmarks.agent.course import Course, Said
from benchmarks.agent.script import last, made, switched_off

FACT = "The staging host is called falcon-7."
ON_THE_PAGE = "The tower has a height of 324 metres, antennas included."
INVENTED = "The tower was moved to Lyon in 1999."


class Notes:
    """A memory of one person."""

    off, personal = False, True

    def __init__(self) -> None:
        self.kept: tuple[str, ...] = ()

    async def read(self) -> MemoryDocuments:
        return MemoryDocuments(memory=self.kept)

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        self.kept = (*self.kept, change.text)
        return ChangeOutcome(text="Kept.", shown=change.text)


async def memory(course: Course, on: bool) -> None:
    """What was told in one conversation is asked for in the next."""

    @tool(repetition="pure")
    def search_files(query: str) -> str:
        """Search the files."""
        return FACT if query == "staging 3" else "nothing"

    def mind(request: ModelRequest) -> Said:
        shown = "".join(map(text_of, request.messages))
        if "remember" in shown and not made(request):
            entry: dict[str, object] = {"action": "add", "target": "memory", "text": FACT}
            return (("memory", entry),) if "memory" in {t.name for t in request.tools} else "Yes."
        if "Which host" not in shown or HEAD in shown:
            return "It is falcon-7." if "Which host" in shown else "I will."
        n = made(request)
        return "It is falcon-7." if n == 3 else (("search_files", {"query": f"staging {n + 1}"}),)

    notes = Notes()
    tools = (search_files, *((memory_tool(),) if on else ()))
    told = f"Please remember: {FACT}"
    await course.turn(mind, told, tools, lambda hands: replace(hands, memory=notes))
    shown = block(await notes.read(), ())
    await course.turn(mind, "\n\n".join(filter(None, ("Which host is staging?", shown))), tools)
    course.run.right = "falcon-7" in course.run.text


async def tool_search(course: Course, on: bool) -> None:
    """A hundred tools; one is needed."""

    def named(n: int) -> Tool:
        def act(text: str, place: str = "", urgent: bool = False) -> str:
            return f"{n} done"

        act.__name__ = "book_meeting_room" if n == 57 else f"office_action_{n}"
        act.__doc__ = "Book a meeting room." if n == 57 else f"Do the office's action number {n}."
        return tool(act)

    many = tuple(named(n) for n in range(100))

    def mind(request: ModelRequest) -> Said:
        if request.messages[-1].role == "tool" and made(request) == 1 + on:
            return "The room is booked."
        if on and not made(request):
            return (("find_tools", {"query": "book a meeting room"}),)
        return (("book_meeting_room", {"text": "tomorrow at ten"}),)

    tools = (*finding_tools(), *many)
    shown = ("find_tools", "call_tool") if on else tuple(one.name for one in many)
    reach = () if on else None
    asked = "Book a meeting room for tomorrow at ten."
    await course.turn(mind, asked, tools, tools=shown, reach=reach)
    course.run.right = course.run.tools >= 1 + on and bool(course.run.text)


class Tower:
    """A web of one page."""

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        return (Hit(url="https://tower.example/", title="The tower"),)

    async def get(self, url: str, stay: bool = False) -> Fetched:
        body = f"<html><title>The tower</title><p>{ON_THE_PAGE} {'It stands. ' * 40}</p></html>"
        return Fetched(url=url, mime="text/html", charset="utf-8", body=body.encode())


async def citations(course: Course, on: bool) -> None:
    """A model that makes up what a page says."""

    def mind(request: ModelRequest) -> Said:
        text = last(request)
        if request.system.startswith("You read one source"):
            rows = [{"claim": ON_THE_PAGE, "quote": ON_THE_PAGE[:40]}]
            return json.dumps({"findings": [*rows, {"claim": INVENTED, "quote": INVENTED}]})
        if "[Research]" in text:
            frame = {"title": "Tower", "kind": "technical", "depth": "quick", "queries": ["tower"]}
            return json.dumps(frame)
        if "[Synthesis]" in text:
            course.run.right = INVENTED not in text and ON_THE_PAGE in text
            return '{"themes": []}'
        return "## Summary\nIt is 324 metres high [f1].\n\n## More\nIt stands [f1]."

    web = Tower()
    means = ResearchDeps(
        web=Web(search=web, fetch=web), file_store=FileStore(course.folder / "kept")
    )
    with switched_off(on, evidence, stands=lambda *_: True):
        asked = "How high is the tower?"
        await course.turn(
            mind, asked, hands=lambda hands: replace(hands, research=means), route="research"
        )
