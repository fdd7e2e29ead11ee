"""A story for each profile through the real gateway, and a shell that stays across its lives."""

import io
import json
import signal

import pytest
from PIL import Image

from agent_core.context.data_marks import strip_marks
from agent_core.mcp import servers
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.fakes.processes import a_mark, gone, there
from tests.fakes.sandboxes import unsafe_sandbox
from tests.fakes.telegram_server import TelegramServer
from tests.fakes.telegram_wire import Json
from tests.fakes.waiting import PATIENCE
from tests.gateway.process import START, World
from tests.stories.mcp_rig import find, stdio, through
from tests.stories.rig import ADMIN, PERSON, Rig, token
from tests.stories.surfaces.web import Web

NO_PYTHON = pytest.mark.skipif(
    "python" not in unsafe_sandbox().programs, reason="needs python3 among the system's programs"
)
TIERS = pytest.mark.parametrize(
    "tier", [pytest.param("bwrap", marks=NEEDS_BWRAP), "unsafe-subprocess"]
)
ANEW = "the one before is gone (the gateway was started anew), with its variables"


def call(name: str, **given: object) -> Call:
    return Call(name, json.dumps(given))


async def chosen(rig: Rig, profile: str, **settings: str) -> None:
    """The admin's private chat, where only what could do harm is asked."""
    await rig.start(**settings)
    rig.telegram.say(ADMIN, f"/mode {profile}")
    said = await rig.shows(f"Profile: {profile}", ADMIN)
    assert "It needs" not in said["text"], "all that it is made for is there"


async def approve(telegram: TelegramServer, done: list[int], person: int = ADMIN) -> None:
    """Approve the card that is not among those that are `done`."""

    def cards() -> list[Json]:
        open_now = [m for m in telegram.chats[person] if m["message_id"] not in done]
        return [m for m in open_now if asks(m)]

    await telegram.wait(lambda: bool(cards()), START)
    (card,) = cards()
    done.append(card["message_id"])
    telegram.press(person, card["message_id"], token(card, "Approve"), person)


def asks(message: Json) -> bool:
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    return any(button["callback_data"].startswith("q:") for row in rows for button in row)


def tools(rig: Rig, n: int = -1) -> set[str]:
    return {tool["function"]["name"] for tool in rig.model.requests[n].body["tools"]}


# ---- one for each ------------------------------------------------------------------------


@pytest.mark.pick("a shell that stays")
@TIERS
async def test_swe_works_in_a_shell_that_stays(rig: Rig, tier: str) -> None:
    await chosen(rig, "swe", SANDBOX_PROVIDER=tier)
    rig.model.script(
        call("bash", command="mkdir src; cd src; export NAME=World"),
        call(
            "str_replace_editor", command="create", path="src/go.sh", file_text='echo "Hi $NAME"\n'
        ),
        call("bash", command="sh go.sh > out; cat out"),
        call("terminate", status="success", answer="It greets."),
    )
    rig.telegram.say(ADMIN, "write a greeter")
    done: list[int] = []
    asked = tier != "bwrap"  # there the sandbox contains what runs in it
    for _ in range(2 * asked):
        await approve(rig.telegram, done)
    await rig.shows("It greets.", ADMIN)
    assert rig.seen(-1, "tool")[-1] == "Hi World\n[exit code 0]"
    assert {"bash", "str_replace_editor", "terminate"} <= tools(rig)
    await rig.quiet()
    await rig.crash()
    rig.model.script(call("bash", command='echo "[$NAME] $(basename "$PWD")"'), Say("A new one."))
    await rig.start(SANDBOX_PROVIDER=tier)
    rig.telegram.say(ADMIN, "and now")
    if asked:
        rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await rig.shows("A new one.", ADMIN)
    said = rig.seen(-1, "tool")[-1]
    assert said.startswith("[A new shell, in src: ") and ANEW in said
    assert said.endswith("\n[] src\n[exit code 0]")
    await rig.quiet()


@NO_PYTHON
async def test_data_ends_with_a_picture_and_a_report(rig: Rig) -> None:
    await chosen(rig, "data")
    folder = rig.workspace(ADMIN)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sales.csv").write_text("shop,sold\nNorth,10\nSouth,12\nNorth,9\n")
    rig.model.script(
        call("normal_python_execute", code="print(10 + 12 + 9)", code_type="process"),
        call("visualization_preparation", path="sales.csv", title="Sold by shop"),
        call("data_visualization", path="sales.chart.json", caption="Sold by shop"),
        call("terminate", status="success", answer="# Report\nNorth sold most: 19 of 31."),
    )
    rig.telegram.say(ADMIN, "which shop sells most? sales.csv")
    rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await rig.shows("North sold most", ADMIN)
    computed, prepared, drawn = rig.seen(-1, "tool")
    assert computed == "31\n[exit code 0]" and "shop: text, 2 different" in prepared
    assert '"kind": "bar"' in prepared and "given to the person: sales.png" in drawn
    await rig.quiet()
    (photo,) = [m for m in rig.telegram.chats[ADMIN] if m.get("shows") == "photo"]
    data = rig.telegram.uploads[photo["message_id"]][0].data
    with Image.open(io.BytesIO(data)) as picture:
        assert (picture.format, picture.size) == ("PNG", (1200, 750))
    assert (folder / "sales.png").read_bytes() == data
    assert "a report" in rig.seen(-1, "system")[0], "the profile asks for one"


@NO_PYTHON
async def test_general_computes_asks_and_ends(rig: Rig) -> None:
    await chosen(rig, "general")
    rig.model.script(
        call("python_execute", code="print(6 * 7)"),
        call("ask_human", inquire="Which colour?"),
        call("terminate", status="success", answer="42, in blue."),
    )
    rig.telegram.say(ADMIN, "compute and paint")
    rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await rig.shows("Which colour?", ADMIN)
    rig.telegram.say(ADMIN, "blue")
    await rig.shows("42, in blue.", ADMIN)
    assert rig.seen(-1, "tool") == ["42\n[exit code 0]", "blue"]
    assert {"python_execute", "str_replace_editor", "ask_user", "terminate"} <= tools(rig)
    assert "ask_human" not in tools(rig)
    await rig.quiet()
    assert [text for text in rig.said(ADMIN) if "colour" in text] == ["Which colour?"], "once"


@NEEDS_BWRAP
@NO_PYTHON
async def test_sandboxed_has_a_computer_of_its_own(rig: Rig) -> None:
    await chosen(rig, "sandboxed", SANDBOX_PROVIDER="bwrap")
    picture = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(picture, "PNG")
    program = f"open('red.png', 'wb').write({picture.getvalue()!r})"
    rig.model.script(
        call("sandbox_files", action="write", path="draw.py", content=program),
        call(
            "sandbox_shell", command="python3 draw.py; (echo > /dev/tcp/1.1.1.1/53) || echo alone"
        ),
        call("sandbox_vision", path="red.png"),
        call("terminate", status="success", answer="It is red."),
    )
    rig.telegram.say(ADMIN, "draw something")
    await rig.shows("It is red.", ADMIN)
    assert rig.seen(-1, "tool")[1].endswith("alone\n[exit code 0]")
    sent = json.dumps(rig.model.requests[-1].body["messages"])
    assert "image/png;base64,iVBOR" in sent, "the model sees it"
    assert not {"bash", "run_command", "write_file"} & tools(rig)
    await rig.quiet()


async def test_sandboxed_says_what_is_missing_where_nothing_isolates(rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="unsafe-subprocess")
    rig.telegram.say(ADMIN, "/mode sandboxed")
    said = await rig.shows("Profile: sandboxed", ADMIN)
    assert "It needs sandbox_shell, sandbox_files, sandbox_vision, which is not" in said["text"]
    await rig.quiet()


async def test_mcp_works_with_servers_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MEET", PATIENCE)
    await chosen(rig, "mcp", MCP_SERVERS=stdio(rig))
    publish = through("notes__publish", title="Hi")
    rig.model.script(find("publish"), publish, call("bash", command="ls"), Say("done"))
    rig.telegram.say(ADMIN, "publish it")
    rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await rig.shows("done", ADMIN)
    _, published, refused = rig.seen(-1, "tool")
    assert "published Hi x1" in published and "There is no tool 'bash'" in refused
    await rig.quiet()


# ---- ends of a shell ---------------------------------------------------------------------


async def test_stop_ends_what_runs_in_the_shell(rig: Rig) -> None:
    await chosen(rig, "swe")
    mark = a_mark()
    rig.model.script(call("bash", command=f"sleep {mark} & sleep {mark}"))
    rig.telegram.say(ADMIN, "serve it")
    rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await there(mark)
    rig.telegram.say(ADMIN, "/stop")
    await gone(mark)
    await rig.quiet()
    mark = a_mark()
    rig.model.script(call("bash", command=f"sleep {mark} & :"), Say("It runs."))
    rig.telegram.say(ADMIN, "again")
    rig.press(await rig.card(ADMIN), "Approve", ADMIN)
    await rig.shows("It runs.", ADMIN)
    await rig.quiet()
    await there(mark)
    await rig.stop()
    await gone(mark)


@pytest.mark.pick("a killed shell")
@TIERS
async def test_killed_in_a_command_the_next_shell_begins_where_it_was(
    world: World, tier: str
) -> None:
    done: list[int] = []
    mark = a_mark()
    world.model.script(
        call("bash", command="mkdir deep; cd deep"),
        call("bash", command=f"sleep {mark} & sleep {mark}"),
        call("bash", command='basename "$PWD"; false'),
        Say("There again."),
    )
    run = await world.start(SANDBOX_PROVIDER=tier)
    world.telegram.say(PERSON, "go deep")
    await approve(world.telegram, done, PERSON)
    await approve(world.telegram, done, PERSON)
    await there(mark)
    assert await run.end(signal.SIGKILL) == -signal.SIGKILL
    await gone(mark)
    await world.start(SANDBOX_PROVIDER=tier)
    await approve(world.telegram, done, PERSON)
    await world.telegram.wait_text(PERSON, "There again.", START)
    sent = world.model.requests[-1].body["messages"]
    said = [strip_marks(m["content"]) for m in sent if m["role"] == "tool"]
    assert said[1].startswith("Outcome unknown")
    assert said[2].startswith("[A new shell, in deep: ") and ANEW in said[2]
    assert said[2].endswith("\ndeep\n[exit code 1]")


# ---- live --------------------------------------------------------------------------------


class Watched(Web):
    """The person at the page, who keeps what running commands print."""

    printed = ""

    def _take(self, name: str, data: Json) -> None:
        if name == "terminal_output":
            assert data["turn"] and data["call_id"]
            self.printed += data["text"]
        super()._take(name, data)

    async def prints(self, text: str) -> None:
        await self._wait(lambda: text in self.printed)


@pytest.mark.parametrize("tool", ["bash", "run_command", "execute_code"])
async def test_output_is_seen_while_it_runs(rig: Rig, tool: str) -> None:
    person = Watched(rig)
    await person.open()
    work = "mkfifo go; echo on my way; read -r x < go; echo $x"
    given = {"code": work, "language": "bash"} if tool == "execute_code" else {"command": work}
    rig.model.steps.clear()  # the mind that the surface brought
    rig.model.script(through(tool, **given), Say("Done."))
    try:
        await person.say("run it")
        await person.card("go")
        await person.press("Approve once")
        await person.prints("on my way\n")
        (go,) = rig.home.rglob("go")
        go.write_text("arrived\n")
        await person.shows("Done.")
        await person.prints("on my way\narrived\n")
    finally:
        await person.close()
