"""What servers ask people in the middle of a call, as people meet it in a chat."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.mcp import connection, servers
from tests.fakes.mcp_server import Http
from tests.fakes.model_server import Call, Calls, Json, Say
from tests.fakes.waiting import PATIENCE
from tests.stories.mcp_rig import note, stdio
from tests.stories.rig import PERSON, Rig


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(connection, "FIRST", 0.1)
    monkeypatch.setattr(servers, "MEET", PATIENCE)
    return rig


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Http]:
    server = Http(tmp_path / "note").start()
    yield server
    server.stop()


def effects(rig: Rig) -> list[str]:
    return note(rig).read_text().splitlines() if note(rig).exists() else []


async def begin(rig: Rig, tool: str, *then: Say | Call, **settings: str) -> Json:
    """A person has let the tool run, and its server's question is there."""
    rig.model.script(Call(tool), *(then or (Say("done"),)))
    await rig.start(**(settings or {"MCP_SERVERS": stdio(rig)}))
    rig.telegram.say(PERSON, "do it")
    rig.press(await rig.card(), "Approve once")
    return await rig.shows("in its own words")


async def test_a_form_is_asked_field_by_field(rig: Rig) -> None:
    card = await begin(rig, "notes__book")
    assert "The server notes asks" in card["text"] and "city" in card["text"].casefold()
    assert "Enter no passwords" in card["text"]
    assert "[press] (http://evil.example)" in card["text"], "no link of the server's is one"
    await rig.quiet()
    rig.telegram.say(PERSON, "Ulm")
    await rig.shows("A whole number (1…9)")
    rig.telegram.say(PERSON, "twenty")
    await rig.shows("That does not fit")
    rig.telegram.say(PERSON, "3")
    rig.press(await rig.shows("Seat"), "aisle")
    rig.press(await rig.shows("The server suggests"), "No")
    card = await rig.shows("Send this to the server notes?")
    assert all(one in card["text"] for one in ("Ulm", "3", "aisle", "☐"))
    rig.press(card, "Send")
    await rig.shows("done")
    gave = rig.seen(role="tool")[-1]
    assert "Trip(city='Ulm', days=3, seat='aisle', meal=False)" in gave
    assert effects(rig) == ["book begins", "book accept"]
    await rig.quiet()
    assert any("Send this" in said and ": Send" in said for said in rig.said()), "its label, kept"


@pytest.mark.pick("a form that is declined")
@pytest.mark.parametrize("how", ["at a text", "at a choice", "by a stop"])
async def test_a_form_is_declined(rig: Rig, how: str) -> None:
    await begin(rig, "notes__book")
    if how == "by a stop":
        rig.telegram.say(PERSON, "/stop")
        await rig.shows("Stopped")
        await rig.quiet()
        assert effects(rig) == ["book begins"], "the call is over"
        assert not rig.host.services.agent.servers._calls._held  # type: ignore[attr-defined]
        return
    if how == "at a text":
        rig.telegram.say(PERSON, "-")
    else:
        rig.telegram.say(PERSON, "Ulm")
        await rig.shows("A whole number")
        rig.telegram.say(PERSON, "3")
        rig.press(await rig.shows("Seat"), "Decline")
    await rig.shows("done")
    assert "decline" in rig.seen(role="tool")[-1]
    assert effects(rig) == ["book begins", "book decline"]
    await rig.quiet()


@pytest.mark.pick("cut off in a form")
@pytest.mark.parametrize("how", ["stop", "crash"])
async def test_cut_off_in_a_question_its_call_is_not_made_again(rig: Rig, how: str) -> None:
    await begin(rig, "notes__book", Say("I cannot know"))
    await rig.quiet()
    await (rig.stop() if how == "stop" else rig.crash())
    await rig.start(MCP_SERVERS=stdio(rig))
    rig.telegram.say(PERSON, "Ulm")
    await rig.shows("I cannot know")
    assert "Outcome unknown" in rig.seen(role="tool")[-1]
    assert effects(rig) == ["book begins"]
    await rig.quiet()


async def test_a_form_that_asks_for_a_secret_is_not_shown(rig: Rig) -> None:
    rig.model.script(Call("notes__log_in"), Say("done"))
    await rig.start(MCP_SERVERS=stdio(rig, allow=["log_in"]))
    rig.telegram.say(PERSON, "log in")
    await rig.shows("done")
    gave = rig.seen(role="tool")[-1]
    assert "decline" in gave and "it asks for a secret, which no form may" in gave
    assert rig.cards() == []
    await rig.quiet()


@pytest.mark.pick("a page that is opened")
@pytest.mark.parametrize("tool", ["settle_bill", "need_page"])
async def test_a_page_is_opened_by_the_person(rig: Rig, tool: str) -> None:
    card = await begin(rig, f"notes__{tool}")
    assert "https://pay.example/" in card["text"] and "The page is at pay.example" in card["text"]
    rig.press(card, "I opened it")
    await rig.shows("done")
    gave = rig.seen(role="tool")[-1]
    assert ("paid: accept" if tool == "settle_bill" else "the page was there") in gave
    await rig.quiet()


async def test_a_page_that_is_not_opened_ends_the_call(rig: Rig) -> None:
    rig.press(await begin(rig, "notes__need_page"), "Decline")
    await rig.shows("done")
    assert "the person did not open it" in rig.seen(role="tool")[-1]
    await rig.quiet()


async def test_two_calls_at_once_are_asked_for_by_neither(rig: Rig) -> None:
    """By the older protocol none can say whose question it is."""
    rig.model.script(Calls((Call("notes__book"), Call("notes__book"))), Say("done"))
    await rig.start(MCP_SERVERS=stdio(rig, allow=["book"]))
    rig.telegram.say(PERSON, "book both")
    await rig.shows("done")
    gave = "".join(rig.seen(role="tool"))
    assert "Call it again, alone" in gave
    await rig.quiet()


async def test_a_server_by_http_is_reached_so_that_it_can_ask(rig: Rig, http: Http) -> None:
    rig.model.script(Call("web__book"), Call("web__book"), Say("done"))
    url = json.dumps([{"name": "web", "url": http.url, "allow": ["book"]}])
    await rig.start(MCP_SERVERS=url)
    rig.telegram.say(PERSON, "book it")
    await rig.shows("in its own words")
    assert "call it again" in rig.seen(role="tool")[-1]
    rig.telegram.say(PERSON, "-")
    await rig.shows("done")
    assert "decline" in rig.seen(role="tool")[-1]
    await rig.quiet()
