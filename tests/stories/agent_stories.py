"""What the whole agent does, told on all surfaces (`test_both_surfaces`): few stories, each long."""

import contextlib
import json
from collections.abc import AsyncIterator

from tests.fakes.model_server import Call, Json, Say, Slow, Step
from tests.fakes.web_pages import served
from tests.gateway.process import KEY
from tests.stories.budget_rig import PRICES, looks
from tests.stories.memory_rig import TEA, memory
from tests.stories.plan_rig import ASK, CHAIN, plan
from tests.stories.research_rig import fact, thinks, web_of
from tests.stories.rig import write
from tests.stories.surfaces import Held, Surface
from tests.stories.surfaces.story import delivered, story

# ---- research --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def hosts(_: Surface) -> AsyncIterator[dict[str, str]]:
    """A little web that knows what three hosts cost."""
    async with served() as site:
        for n, name in enumerate(("Alpha", "Beta", "Gamma")):
            words = " ".join(f"{name.lower()}{word}" for word in ("one", "two", "three", "four"))
            site.put(f"/{name}", name, f"{words}. " * 6, fact(name, n))
        yield web_of(site)


def researches(body: Json) -> Step:
    shown = [str(message["content"]) for message in body["messages"]]
    before = [text for text in shown[:-1] if "[Synthesis]" in text]
    return Say(thinks(shown[-1], before[-1] if before else ""), words=50)


@story("asked to", "reported", beside=hosts, long=True)
async def research(s: Surface) -> None:
    """Stages tick; an answer with numbered sources, and its report as a file."""
    s.answers(**{"": [researches]})
    await s.command("/mode research")
    await s.shows("Mode: research")
    await s.rest("asked to")
    await s.say("Which hosts are cheap?")
    await s.shows("One host [1]. One host [2]. One host [3].")
    await s.rest("reported")
    (report,) = s.rig.home.glob("workspaces/*/reports/*")
    for n, name in enumerate(("Alpha", "Beta", "Gamma")):
        assert f"“{fact(name, n)}”" in report.read_text()
    assert any(f"[{report.name}, " in shown for shown in s.screen())
    await s.command("/mode task")
    await s.shows("No mode is set")


# ---- what is kept ----------------------------------------------------------------------------


@story("remembered", "known", "forgotten", long=True)
async def memories(s: Surface) -> None:
    """What is remembered is said, is known in the next conversation, and is forgotten on
    request."""
    s.answers(
        thirsty=[memory("add", TEA, "user"), Say("Noted.")], Hello=[Say("Hello, some tea?")],
        Forget=[memory("remove", target="user", old="tea"), Say("It is gone.")],
    )  # fmt: skip
    await s.say("I am thirsty: I like tea")
    await s.shows("Noted.")
    await s.rest("remembered")
    await s.command("/new")
    await s.shows("New conversation")
    await s.say("Hello again")
    await s.shows("some tea?")
    assert TEA in s.rig.seen(role="user")[-1]
    await s.rest("known")
    await s.command("/memory")
    await s.shows("1. ")
    await s.say("Forget it")
    await s.shows("It is gone.")
    await s.rest("forgotten")
    await s.command("/memory")
    await s.shows("Nothing is remembered")


@story("made", "undone", "retried", "resumed", long=True)
async def taken_back(s: Surface) -> None:
    """/undo with its file, /retry, /new, /resume."""
    s.answers(
        garden=[Say("Tulips and a pond.")], list=[write("list.txt", "tulips"), Say("Written.")],
        poem=[Say("A bad poem.")], bike=[Say("The chain is loose.")], fish=[Say("Three.")],
    )  # fmt: skip
    await s.say("Plan the garden")
    await s.shows("Tulips and a pond.")
    await s.say("Make a list")
    await s.shows("Written.")
    (made,) = s.rig.home.glob("workspaces/*/list.txt")
    await s.rest("made")
    await s.command("/undo")
    await s.shows("Restored files: list.txt")
    assert not made.exists()
    await s.rest("undone")
    await s.say("Write a poem")
    await s.shows("A bad poem.")
    s.mind.lines["poem"] = [Say("A good poem.")]
    await s.command("/retry")
    await s.shows("A good poem.")
    await s.rest("retried")
    await s.command("/new")
    await s.shows("New conversation")
    await s.say("Fix the bike")
    await s.shows("The chain is loose.")
    await s.command("/resume pond")
    await s.shows("1. Plan the garden")
    await s.command("/resume 1")
    await s.shows("Continuing from")
    await s.rest("resumed")
    await s.say("And the fish?")
    await s.shows("Three.")


# ---- limits and faults -----------------------------------------------------------------------


@story("summed up", "too much", settings={
    "AGENT_MAX_TURNS": "3", "MODEL_PRICES": PRICES, "BUDGET_TURN_USD": "0.1",
}, long=True)  # fmt: skip
async def limits(s: Surface) -> None:
    """The calls of a turn are used up: what is known is summed up. Its money is: it ends."""
    s.answers(
        everywhere=looks(3), Budget=[Say("This is what I know.")],
        costly=[Call("list_files", '{"path": "."}', tokens=5_000), Say("never heard")],
    )  # fmt: skip
    await s.say("Look everywhere")
    await s.shows("This is what I know.")
    await s.rest("summed up")
    await s.say("Now what is costly")
    await s.shows("This request has used up its budget of $0.10")
    await s.rest("too much")


@contextlib.asynccontextmanager
async def another_provider(s: Surface) -> AsyncIterator[dict[str, str]]:
    """One that is asked first, and breaks off in the middle of what it says."""
    s.fragile.script(*[Slow(text="word " * 2000)] * 20)
    url = await s.fragile.start()
    try:
        first = [{"name": "first", "base_url": f"{url}/v1", "api_key": KEY}]
        yield {
            "PRO_MODEL": "first/model", "FALLBACK_PROVIDERS": "openai/fake-model",
            "OPENAI_COMPATIBLE_PROVIDERS": json.dumps(first),
        }  # fmt: skip
    finally:
        await s.fragile.close()


@story("streaming", "answered", beside=another_provider, long=True)
async def provider_breaks_off(s: Surface) -> None:
    """What was read so far gives way to the next provider's whole answer, in the same message."""
    s.answers(everything=[Say("The whole answer.")], slowly=[Slow()])
    await s.say("Tell me everything")
    await s.grows("word word")
    await s.rest("streaming", busy=True)
    await s.grows("word word")
    s.fragile.breaks.set()
    await s.shows("The whole answer.")
    await s.rest("answered")
    assert not any("word word" in shown for shown in s.screen())


# ---- plans -----------------------------------------------------------------------------------


@story("working", "failed", long=True)
async def plan_by_buttons(s: Surface) -> None:
    """A step is skipped while it runs; the one that failed for good is retried."""
    s.answers(**{
        "[Planning again]": [Say('{"steps": []}')], "[Planning]": [CHAIN],
        "nothing else:\nfind": [Held(Say("never heard"))],
        "nothing else:\ncompare": [Say("hm")],
        "Step: ": [Say('{"ok": false, "why": "nobody there"}')],
        "[Finishing]": [Say("It did not work.")],
    })  # fmt: skip
    await s.say(ASK)
    await s.thinks()
    await s.shows("Find the hosts")
    await delivered(s)
    await s.rest("working", busy=True)
    s.look("while it works")
    await s.press("Skip 1")
    await s.shows("– 1. Find the hosts")
    s.mind.let_go()
    await s.shows("It did not work.")
    await s.rest("failed")
    s.look("what failed")
    s.answers(**{
        "[Planning]": [plan("compare: Compare them", "table < compare: Write it")],
        "nothing else:": [Say("came out")], "Step: ": [Say('{"ok": true}')],
        "[Finishing]": [Say("Now it did.")],
    })  # fmt: skip
    await s.press("Retry 2")
    await s.shows("Now it did.")
