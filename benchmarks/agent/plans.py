"""Cases: which way a request takes, its plan, its checks, a new plan."""

from agent_core.messages import text_of
from agent_core.models.port import ModelRequest
from agent_core.orchestration import planned
from agent_core.orchestration.routes.classifier import classify
from agent_core.orchestration.verify import StepVerdict
from agent_core.tools.files import file_tools
from benchmarks.agent.course import Course, Said
from benchmarks.agent.script import last, steps, switched_off

ASKED = (
    "First write what was agreed to a.md, then the costs to b.md, and finally the risks to c.md."
)
REPORT = "First read the three reports, then compare their figures, and then write report.md."
SIMPLE = (
    "What is a lease?", "Translate 'good morning' into French.", "How many days has March?",
    "Name three rivers in Spain.", "What does HTTP 404 mean?", "Who wrote Faust?",
)  # fmt: skip
OK = '{"ok": true}'


async def classifier(course: Course, on: bool) -> None:
    """Simple questions; without the rules each would be planned."""

    def mind(request: ModelRequest) -> Said:
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

    def mind(request: ModelRequest) -> Said:
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


def claims_it(request: ModelRequest) -> Said:
    """Says that it wrote a file, and does so only when a plan is made anew."""
    text = last(request)
    if "[Planning]" in text or "[Planning again]" in text:
        return steps("write report.md", "tell of it", files=["report.md"])
    again = any("[Planning again]" in text_of(message) for message in request.messages)
    if again and "write report.md" in text.partition("nothing else:")[2]:
        return (("write_file", {"path": "report.md", "content": "figures"}),)
    return "I have written report.md."


async def verify(course: Course, on: bool) -> None:
    async def believed(*_: object) -> StepVerdict:
        return StepVerdict(ok=True)

    with switched_off(on, planned, verify=believed):
        await course.turn(claims_it, REPORT, file_tools(), route="planned")
    course.run.right = (course.folder / "report.md").exists()


async def replan(course: Course, on: bool) -> None:
    most = 3 if on else 0
    await course.turn(claims_it, REPORT, file_tools(), route="planned", max_replans=most)
    course.run.right = (course.folder / "report.md").exists()
