"""Cases: circles, errors, a turn's limits, long histories, a provider that fails."""

import itertools

from agent_core.context import budget, stuck
from agent_core.context.limits import ContextLimits
from agent_core.errors import ModelFailed
from agent_core.models.endpoint import Endpoint
from agent_core.models.fallback import Chain, Keys, Route
from agent_core.models.port import Model, ModelRequest
from agent_core.tools.decorator import tool
from benchmarks.agent.course import Course, Said, Scripted
from benchmarks.agent.script import last, made, steps, switched_off


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


async def repetition(course: Course, on: bool) -> None:
    def mind(request: ModelRequest) -> Said:
        if "[Going in circles]" in last(request):
            return "There is nothing new."
        return "" if request.tool_choice == "none" else (("look", {"n": 1}),)

    with switched_off(on, stuck, SAME_CALLS=10**6):
        await course.turn(mind, "Watch entry 1 until it changes.", [look])
    course.run.right = bool(course.run.text)


async def rescue(course: Course, on: bool) -> None:
    def mind(request: ModelRequest) -> Said:
        text = last(request)
        if "[Planning]" in text:
            return steps("look elsewhere", "tell of it")
        if request.tool_choice == "none" or "nothing else:" in text:
            return "The entries are locked."
        return (("fetch_entry", {"n": made(request)}),)

    with switched_off(on, stuck, ERRORS=10**6):
        await course.turn(mind, "Fetch the entry.", [fetch_entry])
    course.run.right = "locked" in course.run.text


def looks_on(request: ModelRequest) -> Said:
    """Never ends of its own."""
    return "So far." if request.tool_choice == "none" else (("look", {"n": made(request)}),)


async def warning(course: Course, on: bool) -> None:
    def mind(request: ModelRequest) -> Said:
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

    def mind(request: ModelRequest) -> Said:
        if request.system.startswith("You summarise"):
            return "Parts of the log were read; nothing stood in them."
        n = next(parts)
        return "Nothing is in the log." if n > 24 else (("read_log", {"n": n}),)

    room = ContextLimits(limit=12_000, most=0, keep=6) if on else ContextLimits()
    await course.turn(mind, "Read the log, part by part.", [read_log], room=room)
    course.run.right = "log" in course.run.text


async def fallback(course: Course, on: bool) -> None:
    def broken(request: ModelRequest) -> Said:
        raise ModelFailed("over its capacity", "overloaded")

    def route(name: str, model: Model) -> Route:
        place = Endpoint(provider=name, base_url="http://x", api_key=name)
        return Route(Keys((place,), lambda _: model, lambda: (place,)), "m")

    second = course.model(lambda request: "It is a right to write.")
    routes = (route("first", Scripted(broken, "first")), route("second", second))
    await course.turn(Chain(routes if on else routes[:1]), "What is a lease?")
    course.run.right = "write" in course.run.text.lower()
