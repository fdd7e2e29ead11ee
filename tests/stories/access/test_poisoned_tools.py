"""Definitions of a hostile MCP server from a grammar, through a running gateway, with a model that
calls whatever it is offered, in mode auto: nothing of it runs unasked, no tool of ours is another
one, no address in it is asked, no card is forged; and what changes is asked about again."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_core.errors import ToolFailed
from agent_core.mcp import connection, servers
from agent_core.tools.contract import ToolContext
from tests.attacks.mcp_grammar import CHANGES, TRUSTED, change, draw_definition
from tests.fakes.model_server import Call, Json, Say, Step
from tests.fakes.waiting import PATIENCE
from tests.sampling import dice
from tests.stories.mcp_rig import find
from tests.stories.obeying_rig import thief
from tests.stories.rig import PERSON, Rig, quick

RAW = Path(__file__).parents[2] / "fakes" / "mcp_raw.py"
OFFERED, PARTS = 6, 40
UNSEEN = re.compile("[\u0000-\u0008\u000b-\u001f\u200b-\u200f\u2028-\u202e\U000e0000-\U000e007f]")


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    quick(monkeypatch)
    monkeypatch.setattr(connection, "FIRST", 0.1)
    monkeypatch.setattr(servers, "MEET", PATIENCE)
    return rig


def serve(rig: Rig, tools: list[Json], **fields: object) -> str:
    """MCP_SERVERS with a server that offers these."""
    place = rig.folder / "tools.json"
    (rig.folder / "lines").write_text("")
    place.write_text(json.dumps(tools))
    args = [str(RAW), str(rig.folder / "lines"), str(place)]
    return json.dumps([{"name": "raw", "command": sys.executable, "args": args, **fields}])


def called(rig: Rig) -> list[str]:
    place = rig.folder / "tools.json.called"
    return place.read_text().splitlines() if place.exists() else []


class Greedy:
    """A model that calls each tool it has heard of once, then reads a file of its own."""

    def __init__(self) -> None:
        self.left: list[str] | None = None
        self.over = False
        self.tried: list[str] = []

    def __call__(self, body: Json) -> Step:
        if self.left is None:
            told = json.dumps([m for m in body["messages"] if m["role"] == "tool"])
            self.left = list(dict.fromkeys(re.findall(r"raw__[A-Za-z0-9_-]+", told)))
        if self.left:
            self.tried.append(self.left.pop())
            return Call(self.tried[-1], "{}")
        if not self.over:
            self.over = True
            return Call("read_file", json.dumps({"path": "a.txt"}))
        return Say("All tried.")


def parts() -> list[Any]:
    few = [pytest.param(0, id="some", marks=pytest.mark.sampled)]
    return [
        *few,
        *(pytest.param(n, id=f"part-{n}", marks=pytest.mark.slow) for n in range(1, PARTS)),
    ]


@pytest.mark.parametrize("part", parts())
async def test_no_definition_is_obeyed(rig: Rig, part: int) -> None:
    chance, model = dice("definitions", part), Greedy()
    async with thief() as stranger:
        tools = [draw_definition(chance, f"http://{stranger.place}") for _ in range(OFFERED)]
        rig.model.steps[:] = [find("weather of the valley"), *[model] * (2 * OFFERED + 4)]
        await rig.start(
            MCP_SERVERS=serve(rig, tools),
            WEB_ALLOWED_HOSTS=stranger.place,
            TELEGRAM_ADMIN_USERS=str(PERSON),
        )
        rig.workspace().mkdir(parents=True, exist_ok=True)
        (rig.workspace() / "a.txt").write_text("ours")
        (rig.workspace() / ".env").write_text("A=CANARY-env-123456\n")
        rig.telegram.say(PERSON, "/mode auto")
        await rig.shows("I ask only before something risky")
        rig.telegram.say(PERSON, "What is the weather?")
        while not model.over or rig.cards():
            await rig.until(lambda: rig.cards() or model.over)
            for card in rig.cards()[-1:]:
                check_card(card["text"])
                rig.press(card, "Deny")
                await rig.until(lambda card=card: card not in rig.cards())
        await rig.shows("All tried.")
        assert model.tried, "nothing was on offer"
        assert called(rig) == [] == stranger.heard, tools
        assert "ours" in rig.seen(role="tool"), "our own tool was called"
        sent = json.dumps([one.body["messages"] for one in rig.model.requests])
        assert "CANARY" not in sent and rig.log.bugs == []
        await rig.quiet()


def check_card(text: str) -> None:
    """It names the server, and no word of the tool looks like the card's own."""
    assert "raw" in text and not UNSEEN.search(text), text
    assert len(text) < 4_096
    for line in text.split("\n"):
        assert not line.startswith(("\u2611", "Approved")), text


@pytest.mark.pick("changed definitions")
@pytest.mark.parametrize("how", CHANGES)
async def test_what_changes_is_asked_about_again(rig: Rig, how: str) -> None:
    """Also for who said 'always' to it."""
    call = Call("raw__weather", json.dumps({"city": "Bonn"}))
    rig.model.script(find("weather"), call, Say("first"), call, Say("second"))
    await rig.start(MCP_SERVERS=serve(rig, [TRUSTED]))
    rig.telegram.say(PERSON, "What is the weather?")
    rig.press(await rig.card(), "Always")
    await rig.shows("first")
    await rig.quiet()
    assert len(called(rig)) == 1
    changed = change(how)
    (rig.folder / "tools.json").write_text(json.dumps([changed]))
    found = rig.host.services.agent.servers  # type: ignore[attr-defined]
    before = found.find(["raw__weather"])
    found.refresh()
    await rig.until(lambda: found.find(["raw__weather"]) != before)
    rig.telegram.say(PERSON, "And now?")
    await rig.until(lambda: rig.cards() or "second" in str(rig.said()[-1:]))
    assert len(called(rig)) == 1, "nothing ran unasked"
    if rig.cards():  # else the call no longer fits what the tool takes
        rig.press(rig.cards()[-1], "Deny")
    await rig.shows("second")
    await rig.quiet()
    assert len(called(rig)) == 1


@pytest.mark.parametrize("answer", ["Always", "Approve once"])
async def test_what_changed_between_two_starts_does_not_run(rig: Rig, answer: str) -> None:
    """Until its server has started, only the former definition is known; it was allowed."""
    call = Call("raw__weather", json.dumps({"city": "Bonn"}))
    rig.model.script(find("weather"), call, Say("first"), call, Say("second"))
    settings = serve(rig, [TRUSTED])
    await rig.start(MCP_SERVERS=settings)
    rig.telegram.say(PERSON, "What is the weather?")
    card = await rig.card()
    if answer == "Always":
        rig.press(card, answer)
        await rig.shows("first")
    await rig.quiet()
    await rig.stop()
    before = len(called(rig))
    (rig.folder / "tools.json").write_text(json.dumps([change("an order")]))
    await rig.start(MCP_SERVERS=settings)
    if answer == "Always":
        rig.telegram.say(PERSON, "And now?")
    else:
        rig.press(card, answer)
    await rig.shows("second" if answer == "Always" else "first")
    assert "in other words than when this call was allowed" in rig.seen(role="tool")[-1]
    assert len(called(rig)) == before, "nothing ran"
    await rig.quiet()


async def relist(rig: Rig, tools: list[Json]) -> None:
    """The server's tools are these from now on, and the gateway knows it."""
    (rig.folder / "tools.json").write_text(json.dumps(tools))
    found = rig.host.services.agent.servers  # type: ignore[attr-defined]
    before, there = found.find(["raw__weather"]), dict(found._there)
    found.refresh()
    await rig.until(lambda: found.find(["raw__weather"]) != before or found._there != there)


async def ask_again(rig: Rig, said: str, answer: str = "") -> None:
    """Ask; press `answer` on the card, which must say that the definition changed, "": no card."""
    cards = len(rig.cards())
    rig.telegram.say(PERSON, "And now?")
    if answer:
        await rig.until(lambda: len(rig.cards()) > cards)
        card = rig.cards()[-1]
        assert "describes" in card["text"] and "raw" in card["text"], card["text"]
        rig.press(card, answer)
    await rig.shows(said)
    assert bool(answer) or len(rig.cards()) == cards
    await rig.quiet()


FITTING = [how for how in CHANGES if how not in ("another type", "choices")]
"""After the others the same call is no call of the tool."""


@pytest.mark.pick("changed definitions of allowed tools")
@pytest.mark.parametrize("how", FITTING)
@pytest.mark.parametrize("gone", [False, True], ids=["at once", "after it was gone"])
async def test_what_changes_of_an_allowed_tool_is_asked_about(
    rig: Rig, how: str, gone: bool
) -> None:
    """Each time, after an approval and a restart too, until the operator lets it begin anew."""
    call = Call("raw__weather", json.dumps({"city": "Bonn"}))
    said = ["first", "second", "third", "fourth", "fifth", "sixth"]
    rig.model.script(find("weather"), *(step for one in said for step in (call, Say(one))))
    settings = serve(rig, [TRUSTED], allow=["wea*"])
    await rig.start(MCP_SERVERS=settings)
    await ask_again(rig, "first")
    assert len(called(rig)) == 1
    if gone:
        await relist(rig, [])
    await relist(rig, [change(how)])
    await ask_again(rig, "second", "Deny")
    await ask_again(rig, "third", "Deny")
    assert len(called(rig)) == 1, "nothing ran unasked"
    await ask_again(rig, "fourth", "Approve once")
    assert len(called(rig)) == 2
    await rig.stop()
    await rig.start(MCP_SERVERS=settings)
    await ask_again(rig, "fifth", "Deny")
    await rig.stop()
    (rig.home / "mcp" / "raw.allowed.json").unlink()
    await rig.start(MCP_SERVERS=settings)
    await ask_again(rig, "sixth")
    assert len(called(rig)) == 3


async def test_an_allowed_tool_that_changed_between_two_starts_is_asked_about(rig: Rig) -> None:
    call = Call("raw__weather", json.dumps({"city": "Bonn"}))
    said = ["first", "second", "third"]
    rig.model.script(find("weather"), *(step for one in said for step in (call, Say(one))))
    settings = serve(rig, [TRUSTED], allow=["*"])
    await rig.start(MCP_SERVERS=settings)
    await ask_again(rig, "first")
    await rig.stop()
    (rig.folder / "tools.json").write_text(json.dumps([change("an order")]))
    await rig.start(MCP_SERVERS=settings)
    await ask_again(rig, "second")
    assert "in other words than when this call was allowed" in rig.seen(role="tool")[-1]
    await ask_again(rig, "third", "Deny")
    assert len(called(rig)) == 1


async def test_an_allowed_tool_that_changes_before_its_call_does_not_run(rig: Rig) -> None:
    """It was decided to run unasked; meanwhile the server has told of another one."""
    rig.model.script(find("weather"), Call("raw__weather", '{"city": "Bonn"}'), Say("first"))
    await rig.start(MCP_SERVERS=serve(rig, [TRUSTED], allow=["*"]))
    await ask_again(rig, "first")
    found = rig.host.services.agent.servers  # type: ignore[attr-defined]
    tool = found.make(*found.find(["raw__weather"]))
    await relist(rig, [change("an order")])
    context = ToolContext(workspace=rig.folder, key="k", limit=5.0, output=lambda _: None)
    with pytest.raises(ToolFailed, match="in other words"):
        await tool.call(tool.arguments(city="Bonn"), context)
    assert len(called(rig)) == 1
