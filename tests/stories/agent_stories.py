"""What the whole agent does, told on all surfaces (`test_both_surfaces`): few stories, each long."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from agent_core.sandboxes.detect import MissingTier
from gateway.wiring import sandboxes
from tests.fakes.model_server import Call, Fail, Json, Say, Slow, Step
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_GIT
from tests.fakes.oauth_server import SignedServer
from tests.fakes.package_server import NAME, WORDS, PackageServer
from tests.fakes.web_pages import served
from tests.gateway.process import KEY
from tests.stories.budget_rig import PRICES, looks
from tests.stories.mcp_rig import stdio
from tests.stories.memory_rig import TEA, memory
from tests.stories.plan_rig import ASK, CHAIN, plan
from tests.stories.research_rig import fact, thinks, web_of
from tests.stories.rig import write
from tests.stories.sign_in_rig import DONE, LINK, Visitor, publish, settings
from tests.stories.surfaces import Held, Surface
from tests.stories.surfaces.story import story

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


# ---- models ----------------------------------------------------------------------------------


@story("listed", "chosen")
async def model_chosen(s: Surface) -> None:
    """The models that can answer are buttons; a press changes the card, and who answers next."""
    s.rig.model.models = ["fake-model", "fake-large", "text-embedding-3"]
    s.answers(Hello=[lambda body: Say(f"Hello from {body['model']}.")])
    await s.command("/model")
    await s.shows("The model here is openai/fake-model")
    await s.rest("listed")
    await s.press("openai/fake-large")
    await s.shows("The model here is openai/fake-large")
    await s.rest("chosen")
    await s.say("Hello")
    await s.shows("Hello from fake-large.")


# ---- the network -----------------------------------------------------------------------------

GIT_HOST = "127.0.0.2"
"""Loopback, and not what programs reach without the proxy."""


@contextlib.asynccontextmanager
async def git_host(s: Surface) -> AsyncIterator[dict[str, str]]:
    """A host of repositories, which commands in a sandbox have to be let to."""
    server = PackageServer(s.rig.home.parent / "served", GIT_HOST)
    try:
        yield {
            "SANDBOX_PROVIDER": "bwrap",
            "WEB_ALLOWED_HOSTS": f"{GIT_HOST}:{server.port}",
        }
    finally:
        server.close()


def clone(host: str, folder: str, *hosts: str) -> Call:
    command = f"git clone -q http://{host}/{NAME}.git {folder} && cat {folder}/greeting.txt"
    return Call("run_command", json.dumps({"command": command, "hosts": hosts}))


@story("asked", "opened", beside=git_host, needs=(NEEDS_BWRAP, NEEDS_GIT), long=True)
async def network_opened(s: Surface) -> None:
    """A host is opened by one press, for this conversation: the next command needs none. What is
    not opened is not reached, and the model is told how to ask."""
    host = s.beside["WEB_ALLOWED_HOSTS"]
    s.answers(
        Get=[clone(host, "one", host), Say("Cloned.")],
        Again=[clone(host, "two"), Say("Cloned again.")],
        Else=[clone("other.example", "three"), Say("It is shut.")],
    )  # fmt: skip
    await s.say("Get it")
    await s.card("Data can leave to")
    await s.rest("asked")
    s.look("while it asks")
    await s.press("Allow them in this conversation")
    await s.shows("Cloned.")
    assert WORDS in s.rig.seen(role="tool")[-1]
    await s.rest("opened")
    await s.say("Again, please")
    await s.shows("Cloned again.")
    assert WORDS in s.rig.seen(role="tool")[-1]
    await s.say("Else?")
    await s.shows("It is shut.")
    assert "[Not reached: other.example is not open" in s.rig.seen(role="tool")[-1]
    await s.command("/permissions")
    await s.shows("commands that connect to")


# ---- no sandbox ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def no_tier(_: Surface) -> AsyncIterator[dict[str, str]]:
    """A machine on which no sandbox works."""

    async def find_tier(name: str, docker_host: str, e2b: object, groups: object) -> MissingTier:
        return MissingTier({"bwrap": "bwrap is not installed (package bubblewrap)"})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandboxes, "find_tier", find_tier)
        yield {"SANDBOX_PROVIDER": "auto"}


@story("refused", beside=no_tier, long=True)
async def no_tier_found(s: Surface) -> None:
    """Nothing runs, and nobody is asked whether it may: the model is told what is missing, and so
    is who asks for the status. Files can be written still."""
    command = Call("run_command", json.dumps({"command": "rm -rf build && make"}))
    s.answers(
        Build=[command, Say("It cannot be built here.")],
        Write=[write("note.txt", "by hand"), Say("Written.")],
    )  # fmt: skip
    await s.say("Build it")
    await s.shows("It cannot be built here.")
    assert "Install bubblewrap" in s.rig.seen(role="tool")[-1]
    assert "bwrap is not installed" in s.rig.seen(role="tool")[-1]
    await s.rest("refused")
    await s.say("Write it down")
    await s.shows("Written.")
    await s.settle()  # the answer's stream may show it before the call is counted
    await s.command("/status")
    await s.shows("Sandbox: none works on this machine")


# ---- scripts ---------------------------------------------------------------------------------

SCRIPT = """from turnkeeper import *
list_files()
run_command('echo one >> made.txt')
print('done')"""


@story("command asked", differs="command asked", long=True)
async def script_with_calls(s: Surface) -> None:
    """Each call of a script has its line, and is asked about where it has to be; the script waits.
    Cut off while it waits, it is not run again: what was allowed meanwhile is not run either, and
    the model is told."""
    code = json.dumps({"code": SCRIPT})
    s.answers(Script=[Call("execute_script", code), Say("I have seen what came of it.")])
    await s.say("Script it")
    await s.card("Run code, high risk")
    await s.press("Approve once")
    await s.shows("Approved once by")
    await s.card("Run a command, high risk")
    await s.rest("command asked")
    s.look("while the script waits")
    await s.press("Approve once")
    await s.shows("I have seen what came of it.")
    (told,) = s.rig.seen(role="tool")
    made = [path.read_text() for path in s.rig.home.glob("workspaces/*/made.txt")]
    if s.crash_at == "command asked":
        assert told.startswith("Outcome unknown") and "a person allowed it" in told
        assert made == [], "nothing of the script goes on without it"
    else:
        assert json.loads(told)["success"] and made == ["one\n"]


@contextlib.asynccontextmanager
async def trips(s: Surface) -> AsyncIterator[dict[str, str]]:
    """A server that asks people where to."""
    yield {"MCP_SERVERS": stdio(s.rig)}


@story("city asked", differs="city asked", beside=trips, long=True)
async def server_asks(s: Surface) -> None:
    """A server's form is asked field by field, and sent as a whole. Cut off meanwhile, its call is
    not made again, and the model is told."""
    s.answers(Book=[Call("notes__book"), Say("That was the trip.")])
    await s.say("Book it")
    await s.card("book of notes")
    await s.press("Approve once")
    await s.card("in its own words")
    await s.rest("city asked")
    s.look("while it asks")
    await s.fill_in("Ulm")
    if s.crash_at == "city asked":
        await s.shows("That was the trip.")
        (told,) = s.rig.seen(role="tool")
        assert told.startswith("Outcome unknown")
        return
    await s.card("A whole number")
    await s.fill_in("3")
    await s.card("Seat")
    await s.press("aisle")
    await s.card("The server suggests")
    await s.press("No")
    await s.card("Send this")
    await s.rig.quiet()
    s.look("before it is sent")
    await s.press("Send")
    await s.shows("That was the trip.")
    (told,) = s.rig.seen(role="tool")
    assert "days=3, seat='aisle', meal=False" in told


@contextlib.asynccontextmanager
async def signed_notes(s: Surface) -> AsyncIterator[dict[str, str]]:
    """A server that each person signs in at."""
    server = SignedServer(s.rig.folder / "note").start()
    try:
        yield settings(server)
    finally:
        server.stop()


@story("asked to sign in", "signed in", beside=signed_notes)
async def signs_in(s: Surface) -> None:
    """A call of a server that the person is not signed in at waits for that, by a link that is
    theirs; once they are, it goes on by itself. Afterwards nobody is asked."""
    s.answers(
        Publish=[Call("notes__sign_in"), publish("one"), Say("It is published.")],
        Another=[publish("two"), Say("So is that.")],
    )  # fmt: skip
    await s.say("Publish it")
    await s.card("wants you to sign in")
    await s.rest("asked to sign in")
    s.look("while it waits")
    links = [found[0] for text in s.screen() if (found := LINK.search(text))]
    assert DONE in await Visitor().sign_in(links[-1])
    await s.shows("It is published.")
    await s.rest("signed in")
    await s.say("Another one")
    await s.shows("So is that.")
    assert (s.rig.folder / "note").read_text() == "publish one\npublish two\n"


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
    await s.press("1. Plan the garden")
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


@story("failed", "cut short", "stopped", settings={"AGENT_MAX_TURNS": "3"})
async def tried_again(s: Surface) -> None:
    """What failed is asked again, what was cut short goes on, by a button that goes then."""
    s.answers(
        weather=[Fail(401)], everywhere=looks(3), Budget=[Say("This is what I know.")],
        Continue=[Say("And this is the rest.")], Count=[Slow(0.02, "word " * 2000)],
    )  # fmt: skip
    await s.say("How is the weather?")
    await s.shows("rejected the API key")
    await s.rest("failed")
    s.look("what failed")
    s.mind.lines["weather"] = [Say("Two degrees.")]
    await s.press("Retry")
    await s.shows("Two degrees.")
    await s.say("Look everywhere")
    await s.shows("Stopped: the limit")
    await s.rest("cut short")
    s.look("what was cut short")
    await s.press("Continue")
    await s.shows("And this is the rest.")
    await s.say("Count")
    await s.grows("word word")
    await s.stop()
    await s.shows("Stopped here.")
    await s.rest("stopped")


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
