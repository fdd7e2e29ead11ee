"""What is tried: for each mechanism a request, and a model that gives it something to do."""

import contextlib
import itertools
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from msgspec.structs import replace

from agent_core.context import budget, stuck
from agent_core.context.room import Room
from agent_core.errors import ModelFailed
from agent_core.memory.documents import Change, Outcome, Remembered
from agent_core.memory.recall import HEAD, block
from agent_core.memory.tool import memory_tool
from agent_core.messages import calls_of, text_of
from agent_core.models.fallback import Chain, Keys, Route
from agent_core.models.port import Request
from agent_core.models.providers import Endpoint
from agent_core.orchestration import orchestrator
from agent_core.orchestration.routes.classifier import classify
from agent_core.orchestration.verify import Finding
from agent_core.research import evidence
from agent_core.research.means import Means
from agent_core.tools.decorator import tool
from agent_core.tools.files import file_tools
from agent_core.tools.finding.tools import finding_tools
from agent_core.tools.send import Kept
from agent_core.tools.web.fetch import Fetched
from agent_core.tools.web.search import Hit
from agent_core.tools.web.tools import Web
from benchmarks.agent.course import Course, Run, Said, Scripted

Work = Callable[[Course, bool], Awaitable[None]]
Gain = Literal["calls", "tokens", "tools", "right"]

ASKED = (
    "First write what was agreed to a.md, then the costs to b.md, and finally the risks to c.md."
)
REPORT = "First read the three reports, then compare their figures, and then write report.md."
SIMPLE = (
    "What is a lease?", "Translate 'good morning' into French.", "How many days has March?",
    "Name three rivers in Spain.", "What does HTTP 404 mean?", "Who wrote Faust?",
)  # fmt: skip
OK = '{"ok": true}'
FACT = "The staging host is called falcon-7."
ON_THE_PAGE = "The tower has a height of 324 metres, antennas included."
INVENTED = "The tower was moved to Lyon in 1999."


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`fired` of a run: the mechanism did something. `gain`: what is better with it."""

    name: str
    model: Literal["good", "forgetful", "false", "repetitive", "erring", "endless", "failing"]
    work: Work
    fired: Callable[[Run], bool]
    gain: Gain


@contextlib.contextmanager
def switched_off(on: bool, module: ModuleType, **values: object) -> Iterator[None]:
    """`values` in place of what `module` has, unless `on`."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in () if on else values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@tool(repetition="pure")
def look(n: int = 0) -> str:
    """Look at entry n."""
    return "nothing new"


@tool(repetition="pure")
def fetch_entry(n: int) -> str:
    """Fetch entry n."""
    raise ValueError(f"entry {n} is locked")


@tool(repetition="pure")
def read_log(n: int) -> str:
    """Read part n of the log."""
    return f"part {n}: " + "a line of the log that says little. " * 120


def last(request: Request) -> str:
    return text_of(request.messages[-1])


def made(request: Request, name: str = "") -> int:
    """Calls in the request so far."""
    calls = (call for message in request.messages for call in calls_of(message))
    return sum(call.name == name or not name for call in calls)


def steps(*rows: str, **more: object) -> str:
    """A plan whose steps follow each other."""
    before: list[str] = []
    listed = []
    for n, row in enumerate(rows, 1):
        listed.append({"id": f"s{n}", "description": row, "needs": before, **more})
        before = [f"s{n}"]
    return json.dumps({"steps": listed})


# ---- which way, and a plan ---------------------------------------------------------------


async def classifier(course: Course, on: bool) -> None:
    """Simple questions; without the rules each would be planned."""

    def mind(request: Request) -> Said:
        text = last(request)
        if "[Planning]" in text:
            return steps("think about it", "say it")
        return OK if text.startswith("Step: ") else "An answer."

    answers = []
    for text in SIMPLE:
        route = "simple" if on and classify(text) == "simple" else "planned"
        answers.append((await course.turn(mind, text, route=route)).text)
    course.run.right = all(answers)


async def planner(course: Course, on: bool) -> None:
    """Three things are asked for; a model that is not led forgets the last."""

    def mind(request: Request) -> Said:
        text = last(request)
        if "[Planning]" in text:
            return steps("write a.md", "write b.md", "write c.md")
        if text.startswith("Step: "):
            return OK
        done = request.messages[-1].role == "tool"
        for name in ("a.md", "b.md", "c.md"):
            if f": write {name}" in text.partition("nothing else:")[2] and not done:
                return (("write_file", {"path": name, "content": name}),)
        if text == ASKED:
            return tuple(
                ("write_file", {"path": name, "content": name}) for name in ("a.md", "b.md")
            )
        return "All is written."

    planned = on and classify(ASKED) == "complex"
    await course.turn(mind, ASKED, file_tools(), route="planned" if planned else "simple")
    course.run.right = (course.folder / "c.md").exists()


def claims_it(request: Request) -> Said:
    """Says that it wrote a file, and does so only when a plan is made anew."""
    text = last(request)
    if "[Planning]" in text or "[Planning again]" in text:
        return steps("write report.md", "tell of it", files=["report.md"])
    again = any("[Planning again]" in text_of(message) for message in request.messages)
    if again and "write report.md" in text.partition("nothing else:")[2]:
        return (("write_file", {"path": "report.md", "content": "figures"}),)
    return "I have written report.md."


async def verify(course: Course, on: bool) -> None:
    async def believed(*_: object) -> Finding:
        return Finding(ok=True)

    with switched_off(on, orchestrator, verify=believed):
        await course.turn(claims_it, REPORT, file_tools(), route="planned")
    course.run.right = (course.folder / "report.md").exists()


async def replan(course: Course, on: bool) -> None:
    most = 3 if on else 0
    await course.turn(claims_it, REPORT, file_tools(), route="planned", max_replans=most)
    course.run.right = (course.folder / "report.md").exists()


# ---- circles, errors, limits -------------------------------------------------------------


async def repetition(course: Course, on: bool) -> None:
    def mind(request: Request) -> Said:
        if "[Going in circles]" in last(request):
            return "There is nothing new."
        return "" if request.tool_choice == "none" else (("look", {"n": 1}),)

    with switched_off(on, stuck, SAME_CALLS=10**6):
        await course.turn(mind, "Watch entry 1 until it changes.", [look])
    course.run.right = bool(course.run.text)


async def rescue(course: Course, on: bool) -> None:
    def mind(request: Request) -> Said:
        text = last(request)
        if "[Planning]" in text:
            return steps("look elsewhere", "tell of it")
        if request.tool_choice == "none" or "nothing else:" in text:
            return "The entries are locked."
        return (("fetch_entry", {"n": made(request)}),)

    with switched_off(on, stuck, ERRORS=10**6):
        await course.turn(mind, "Fetch the entry.", [fetch_entry])
    course.run.right = "locked" in course.run.text


def looks_on(request: Request) -> Said:
    """Never ends of its own."""
    return "So far." if request.tool_choice == "none" else (("look", {"n": made(request)}),)


async def warning(course: Course, on: bool) -> None:
    def mind(request: Request) -> Said:
        return "This is what I have." if "[Budget]" in last(request) else looks_on(request)

    with switched_off(on, budget, SHARE=10.0):
        await course.turn(mind, "Look at all entries.", [look], max_turns=20)
    course.run.right = bool(course.run.text)


async def stop(course: Course, on: bool) -> None:
    most = 20 if on else 0
    await course.turn(looks_on, "Look at all.", [look], max_turns=most, max_rounds=60)
    course.run.right = bool(course.run.text)


async def compression(course: Course, on: bool) -> None:
    parts = itertools.count(1)

    def mind(request: Request) -> Said:
        if request.system.startswith("You summarise"):
            return "Parts of the log were read; nothing stood in them."
        n = next(parts)
        return "Nothing is in the log." if n > 24 else (("read_log", {"n": n}),)

    room = Room(limit=12_000, most=0, keep=6) if on else Room()
    await course.turn(mind, "Read the log, part by part.", [read_log], room=room)
    course.run.right = "log" in course.run.text


async def fallback(course: Course, on: bool) -> None:
    def broken(request: Request) -> Said:
        raise ModelFailed("over its capacity", "overloaded")

    def route(name: str, model: object) -> Route:
        place = Endpoint(provider=name, base_url="http://x", api_key=name)
        return Route(Keys((place,), lambda _: model, lambda: (place,)), "m")

    second = course.model(lambda request: "It is a right to write.")
    routes = (route("first", Scripted(broken, "first")), route("second", second))
    await course.turn(Chain(routes if on else routes[:1]), "What is a lease?")
    course.run.right = "write" in course.run.text.lower()


# ---- memory, many tools, sources ---------------------------------------------------------


class Notes:
    """A memory of one person."""

    off, personal = False, True

    def __init__(self) -> None:
        self.kept: tuple[str, ...] = ()

    async def read(self) -> Remembered:
        return Remembered(memory=self.kept)

    async def change(self, change: Change, key: str) -> Outcome:
        self.kept = (*self.kept, change.text)
        return Outcome(text="Kept.", shown=change.text)


async def memory(course: Course, on: bool) -> None:
    """What was told in one conversation is asked for in the next."""

    @tool(repetition="pure")
    def search_files(query: str) -> str:
        """Search the files."""
        return FACT if query == "staging 3" else "nothing"

    def mind(request: Request) -> Said:
        shown = "".join(map(text_of, request.messages))
        if "remember" in shown and not made(request):
            entry = {"action": "add", "target": "memory", "text": FACT}
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

    def named(n: int) -> object:
        def act(text: str, place: str = "", urgent: bool = False) -> str:
            return f"{n} done"

        act.__name__ = "book_meeting_room" if n == 57 else f"office_action_{n}"
        act.__doc__ = "Book a meeting room." if n == 57 else f"Do the office's action number {n}."
        return tool(act)

    many = tuple(named(n) for n in range(100))

    def mind(request: Request) -> Said:
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

    async def get(self, url: str, stay: str = "") -> Fetched:
        body = f"<html><title>The tower</title><p>{ON_THE_PAGE} {'It stands. ' * 40}</p></html>"
        return Fetched(url=url, mime="text/html", charset="utf-8", body=body.encode())


async def citations(course: Course, on: bool) -> None:
    """A model that makes up what a page says."""

    def mind(request: Request) -> Said:
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
    means = Means(web=Web(search=web, fetch=web), kept=Kept(course.folder / "kept"))
    with switched_off(on, evidence, stands=lambda *_: True):
        asked = "How high is the tower?"
        await course.turn(
            mind, asked, hands=lambda hands: replace(hands, research=means), route="research"
        )


def _circles(run: Run) -> bool:
    return "[Going in circles]" in run.told


CASES = (
    Case(name="classifier", model="good", work=classifier, gain="calls",
         fired=lambda run: "plan_overview" not in run.kinds),
    Case(name="planner", model="forgetful", work=planner, gain="right",
         fired=lambda run: "plan_overview" in run.kinds),
    Case(name="verify", model="false", work=verify, gain="right",
         fired=lambda run: "is missing or empty" in run.told),
    Case(name="re-plan", model="false", work=replan, gain="right",
         fired=lambda run: "[Planning again]" in run.told),
    Case(name="anti-repetition", model="repetitive", work=repetition, gain="calls", fired=_circles),
    Case(name="error rescue", model="erring", work=rescue, gain="calls",
         fired=lambda run: "status" in run.kinds),
    Case(name="budget warning", model="endless", work=warning, gain="calls",
         fired=lambda run: "budget" in run.kinds),
    Case(name="budget stop", model="endless", work=stop, gain="calls",
         fired=lambda run: run.calls == 21),
    Case(name="compression", model="good", work=compression, gain="tokens",
         fired=lambda run: "compressed" in run.kinds),
    Case(name="fallback", model="failing", work=fallback, gain="right",
         fired=lambda run: "fallback" in run.kinds),
    Case(name="memory", model="good", work=memory, gain="tools",
         fired=lambda run: "memory_saved" in run.kinds and HEAD in run.told),
    Case(name="tool search", model="good", work=tool_search, gain="tokens",
         fired=lambda run: "book_meeting_room: Book a meeting room." in run.told),
    Case(name="research citations", model="false", work=citations, gain="right",
         fired=lambda run: INVENTED not in run.told),
)  # fmt: skip
