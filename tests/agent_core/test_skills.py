"""Skills alone: what they are held to, how they call models, tools and each other, folders without
code, and what the built-in ones make. A scripted model, a journal in memory."""

import asyncio
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import pytest
from aiohttp import ClientSession, CookieJar, web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_core import Agent
from agent_core.context.data_marks import mark_data
from agent_core.errors import AgentError, ModelFailed, ToolFailed
from agent_core.events import SkillEnded
from agent_core.journal import Replied, ToolFinished
from agent_core.messages import text_of
from agent_core.policy import Verdict
from agent_core.sandboxes.commands.background import Background
from agent_core.sandboxes.previews.server import PreviewServer
from agent_core.settings import ModelSettings, SettingsError
from agent_core.skills.apps.frameworks import FRAMEWORKS, MANIFEST, STACKS, starter_files
from agent_core.skills.apps.tools import app_tools, resolve_path
from agent_core.skills.built_in.all import built_in
from agent_core.skills.built_in.fences import code_in, strip_code_blocks
from agent_core.skills.context import DEEPEST
from agent_core.skills.contract import (
    Schema,
    SkillContext,
    SkillMetadata,
    ToolSkill,
    Values,
    fields,
    text,
)
from agent_core.skills.direct import direct
from agent_core.skills.files import add
from agent_core.skills.folders import LONG, find_skills
from agent_core.skills.images.painter import Painter
from agent_core.skills.images.settings import ImageSettings
from agent_core.skills.images.tool import ImageArguments, image_tool
from agent_core.skills.registry import Skills
from agent_core.skills.slides import tool as slides
from agent_core.skills.slides.deck import Deck, DeckSlide, outline, write_deck
from agent_core.skills.tools import skill_tools
from agent_core.tools.backups import RollbackArguments, roll_back
from agent_core.tools.contract import ToolContext
from agent_core.tools.files import file_tools
from agent_core.tools.send import FileStore
from agent_core.tools.shell import command_tools
from tests.agent_core.library_rig import provider
from tests.agent_core.skills_rig import SkillRig
from tests.fakes.model_server import Call, ModelServer, Say
from tests.fakes.ports import free_port
from tests.fakes.sandboxes import unsafe_sandbox

WHAT = fields({"what": text("")})
DONE = fields({"done": {"type": "string"}})


@asynccontextmanager
async def serving(
    reply: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """A provider that answers so; its address."""
    app = web.Application()
    app.router.add_post("/v1/images/generations", reply)
    async with TestServer(app, host="127.0.0.1") as server:
        yield str(server.make_url("/v1"))


def skill(name: str, run: object, output: Schema = DONE, **more: object) -> ToolSkill:
    about = SkillMetadata(
        id=name, description=f"Does {name}.", category="code", parameters=WHAT, output_schema=output
    )
    return ToolSkill(metadata=about, run=run, **more)  # type: ignore[arg-type]


async def echo(context: SkillContext, params: Values) -> Values:
    return {"done": params["what"]}


# ---- the contract ----------------------------------------------------------------------------


async def test_what_a_skill_gives_is_an_event(tmp_path: Path) -> None:
    world = SkillRig(tmp_path, skill("echo", echo))
    assert await world.invoke("echo", what="hi") == {"done": "hi"}
    assert world.told == [SkillEnded(skill="echo", output='{"done":"hi"}')]


@pytest.mark.parametrize(
    "params", [{}, {"what": ""}, {"what": 3}, {"what": "x", "more": 1}], ids=str
)
async def test_params_have_to_fit(tmp_path: Path, params: Values) -> None:
    world = SkillRig(tmp_path, skill("echo", echo))
    with pytest.raises(ToolFailed, match='The params of echo do not fit.*Schema: {"type"'):
        await world.invoke("echo", **params)
    assert not world.told, "it never began"


async def test_what_it_gives_has_to_fit(tmp_path: Path) -> None:
    world = SkillRig(tmp_path, skill("echo", echo, fields({"other": {"type": "string"}})))
    with pytest.raises(ToolFailed, match="What echo gave does not fit"):
        await world.invoke("echo", what="hi")
    (told,) = world.told
    assert not told.ok and "does not fit" in told.output


async def test_an_unknown_skill_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="There is no skill 'nope'. Skills: echo"):
        await SkillRig(tmp_path, skill("echo", echo)).invoke("nope")


async def test_an_unavailable_skill_says_why_and_is_listed_so(tmp_path: Path) -> None:
    away = skill("away", echo, why_not=lambda: "Install it.")
    lame = skill("lame", echo, tools=("no_such_tool",))
    world = SkillRig(tmp_path, away, lame)
    with pytest.raises(ToolFailed, match="away cannot be used here. Install it."):
        await world.invoke("away", what="x")
    with pytest.raises(ToolFailed, match="It needs the tool no_such_tool"):
        await world.invoke("lame", what="x")
    assert world.skills.why_unusable("away") == "Install it."
    assert "no_such" in world.skills.why_unusable("no_such")


async def test_skills_work_for_each_other_but_not_without_end(tmp_path: Path) -> None:
    async def deeper(context: SkillContext, params: Values) -> Values:
        depth = int(str(params["what"])) + 1
        if depth == DEEPEST and params["what"] != "9":
            return {"done": "bottom"}
        return await context.invoke_skill("deeper", {"what": str(min(depth, 9))})

    world = SkillRig(tmp_path, skill("deeper", deeper))
    assert await world.invoke("deeper", what="0") == {"done": "bottom"}
    assert len(world.told) == DEEPEST
    with pytest.raises(ToolFailed, match="within each other are the most"):
        await world.invoke("deeper", what="3")


async def test_the_example_of_the_docs_is_a_skill(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "skills.md").read_text()
    made: dict[str, object] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], made)
    world = SkillRig(tmp_path, made["haiku_skill"]())  # type: ignore[operator]
    world.answers = ["An old silent pond"]
    assert await world.invoke("haiku", about="frogs") == {"haiku": "An old silent pond"}


async def test_a_skill_is_a_tool_of_the_library_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(context: SkillContext, params: Values) -> Values:
        await context.tool("write_file", {"path": "a.txt", "content": "x"})
        return {"done": await context.think("pro", "go")}

    monkeypatch.chdir(tmp_path)
    server = ModelServer()
    server.url = await server.start()  # type: ignore[attr-defined]
    call = Call("invoke_skill", json.dumps({"skill_id": "s", "params": {"what": "x"}}))
    server.script(call, Say("gone"), Say("Done."))
    tools = [*file_tools(), *skill_tools(Skills([skill("s", run)]))]
    agent = Agent(
        model=provider(server), tools=tools, on_question=lambda asked: "once", workspace=tmp_path
    )
    async with agent:
        events = [event async for event in agent.stream("Work.")]
    await server.close()
    assert SkillEnded(skill="s", output='{"done":"gone"}') in events
    assert (tmp_path / "a.txt").read_text() == "x"


# ---- models and tools ------------------------------------------------------------------------


async def test_a_skill_thinks_in_one_thread_for_each_tier(tmp_path: Path) -> None:
    async def run(context: SkillContext, params: Values) -> Values:
        said = [await context.think("max", "one"), await context.think("pro", "two")]
        return {"done": "".join((*said, await context.think("pro", "three")))}

    world = SkillRig(tmp_path, skill("s", run))
    world.answers = ["1", "2", "3"]
    assert await world.invoke("s", what="x") == {"done": "123"}
    first, second, third = world.requests
    assert [r.model for r in world.requests] == ["max", "pro", "pro"]
    assert [text_of(m) for m in third.messages] == ["two", "2", "three"]
    assert third.messages[: len(second.messages)] == second.messages and first.messages != second
    world.brief, world.answers = replace(world.brief, model="p/chosen"), ["1", "2", "3"]
    await world.invoke("s", what="x")
    assert {r.model for r in world.requests[3:]} == {"p/chosen"}, "who chose a model gets it"


async def test_an_answer_that_does_not_fit_is_asked_for_once_more(tmp_path: Path) -> None:
    async def run(context: SkillContext, params: Values) -> Values:
        return await context.think_as("pro", "go", DONE)

    world = SkillRig(tmp_path, skill("s", run))
    world.answers = ['{"done": 1}', 'Here: {"done": "yes"}']
    assert await world.invoke("s", what="x") == {"done": "yes"}
    assert "done: 1 is not of type 'string'" in text_of(world.requests[1].messages[-1])
    world.answers = ["no", "no"]
    with pytest.raises(ToolFailed, match="no answer that can be used"):
        await world.invoke("s", what="x")
    world.answers = [ModelFailed("down")]
    with pytest.raises(AgentError, match="down"):
        await world.invoke("s", what="x")
    assert [told.ok for told in world.told] == [False]


async def test_its_calls_of_tools_are_judged_like_any_other(tmp_path: Path) -> None:
    async def run(context: SkillContext, params: Values) -> Values:
        return {"done": await context.tool("write_file", {"path": "a.txt", "content": "x"})}

    world = SkillRig(tmp_path, skill("s", run))
    world.verdict = Verdict(ruling="deny", rule="t", reason="not here")
    with pytest.raises(ToolFailed, match="Denied: not here"):
        await world.invoke("s", what="x")
    assert not world.workspace.exists()
    world.brief = replace(world.brief, reach=(("read_*",),))
    with pytest.raises(ToolFailed, match="There is no tool 'write_file'"):
        await world.invoke("s", what="x")


async def test_cut_off_anywhere_it_goes_on_where_it_was(tmp_path: Path) -> None:
    async def inner(context: SkillContext, params: Values) -> Values:
        return {"done": await context.think("max", "inner")}

    async def outer(context: SkillContext, params: Values) -> Values:
        await context.think("pro", "a")
        await context.tool("write_file", {"path": "a.txt", "content": "x"})
        await context.invoke_skill("inner", {"what": "y"})
        return {"done": await context.think("pro", "b")}

    def fresh(n: int) -> SkillRig:
        return SkillRig(tmp_path / str(n), skill("outer", outer), skill("inner", inner))

    whole = fresh(0)
    whole.answers = ["1", "2", "3"]
    assert await whole.invoke("outer", what="x") == {"done": "3"}
    records = whole.disk.records
    for cut in range(len(records) + 1):
        known = records[:cut]
        world = fresh(cut + 1)
        done = sum(isinstance(one, Replied) for one in known)
        world.answers = ["1", "2", "3"][done:]  # type: ignore[assignment]
        assert await world.invoke("outer", list(known), what="x") == {"done": "3"}
        assert world.answers == [], f"after {cut}: no answer is asked for twice"
        written = any(isinstance(one, ToolFinished) for one in known)
        assert (world.workspace / "a.txt").exists() is not written
        assert world.disk.keys() == whole.disk.keys(), f"after {cut}: the same records"


# ---- folders ---------------------------------------------------------------------------------


def put(folder: Path, name: str, content: str) -> Path:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path.parent


GOOD = (
    "---\nname: {name}\ndescription: >\n  What it\n  is for.\nmetadata:\n  x: y\n---\n\nDo this.\n"
)


async def test_a_folder_gives_its_words_and_its_files_and_no_others(tmp_path: Path) -> None:
    world = SkillRig(tmp_path)
    folder = put(tmp_path, "a", GOOD.format(name="letters"))
    (folder / "more").mkdir()
    (folder / "more" / "b.txt").write_text("b" * (LONG + 5))
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    assert await world.invoke("letters") == {"text": "Do this.", "files": ["more/b.txt"]}
    read = await world.invoke("letters", file="more/b.txt")
    assert read == {"text": "b" * LONG + "\n[… cut]"}
    for name in ("link.txt", "../../secret.txt", "SKILL.md"):
        with pytest.raises(ToolFailed, match="has no file"):
            await world.invoke("letters", file=name)
    (one,) = find_skills(tmp_path / "skills")
    assert one.description == "What it is for." and not one.why_unusable()


async def test_a_turn_keeps_to_the_folder_as_it_was(tmp_path: Path) -> None:
    world = SkillRig(tmp_path)
    folder = put(tmp_path, "a", GOOD.format(name="letters"))
    await world.invoke("letters")
    (folder / "SKILL.md").write_text(GOOD.format(name="letters").replace("Do this", "Do that"))
    again = await world.invoke("letters", list(world.disk.records))
    assert again["text"] == "Do this."
    assert (await world.invoke("letters"))["text"] == "Do that."


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("Do this.", "does not begin with name and description"),
        ("---\nname: x\n---\nDo.", "has no description"),
        ("---\nname: X Y\ndescription: d\n---\nDo.", "small letters"),
        ("---\nname: echo\ndescription: d\n---\nDo.", "The name echo is taken"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
async def test_a_broken_folder_is_listed_with_why(
    tmp_path: Path, content: str | bytes, why: str
) -> None:
    world = SkillRig(tmp_path, skill("echo", echo))
    folder = put(tmp_path, "odd", "")
    (folder / "SKILL.md").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert why in world.skills.list_all()[-1].why_unusable()
    assert await world.invoke("echo", what="hi") == {"done": "hi"}


async def test_a_folder_with_hostile_names_and_words_is_read_within_bounds(tmp_path: Path) -> None:
    world = SkillRig(tmp_path)
    folder = put(tmp_path, "a", GOOD.format(name="letters") + "x" * 3_000_000)
    (folder / os.fsdecode(b"odd\xff.txt")).write_text("x")
    (folder / "good.txt").write_text("x")
    other = tmp_path / "skills" / os.fsdecode(b"odd\xff")
    other.mkdir()
    (other / "SKILL.md").write_text("no skill")
    given = await world.invoke("letters")
    assert given["files"] == ["good.txt"] and len(str(given["text"])) < LONG + 20
    assert [one.metadata.id for one in world.skills.list_all()] == ["letters"]


def plant_long_link(folder: Path) -> None:
    (folder.parent / "b").symlink_to("x" * 300)


def plant_long_link_within(folder: Path) -> None:
    (folder / "b").symlink_to("x" * 300)


def plant_deep_folders(folder: Path) -> None:
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit() + 100):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)


def plant_cycles(folder: Path) -> None:
    (folder / "b").symlink_to("..")
    (folder.parent / "b").symlink_to("b")
    (folder.parent / "c").symlink_to(".")


def plant_lost_link(folder: Path) -> None:
    (folder.parent / "b").mkdir()
    (folder.parent / "b" / "SKILL.md").symlink_to("y" * 300)


@pytest.mark.parametrize(
    "plant",
    [plant_long_link, plant_long_link_within, plant_deep_folders, plant_cycles, plant_lost_link],
)
def test_an_odd_folder_hides_no_other(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    put(tmp_path, "z", GOOD.format(name="letters"))
    plant(put(tmp_path, "a", GOOD.format(name="bills")))
    try:
        found = find_skills(tmp_path / "skills")
    finally:  # pytest cannot remove folders as deep as these
        subprocess.run(["rm", "-rf", tmp_path / "skills"], check=True)
    assert {"letters", "bills"} <= {one.name for one in found if not one.why_unusable()}
    assert all("cannot be read" in one.why_unusable() for one in found if one.name == "b")


async def test_a_name_given_twice_is_one_skill_and_the_other_says_why(tmp_path: Path) -> None:
    world = SkillRig(tmp_path)
    put(tmp_path, "a", GOOD.format(name="letters"))
    put(tmp_path, "b", GOOD.format(name="letters").replace("Do this", "Do that"))
    first, second = world.skills.list_all()
    assert not first.why_unusable() and "The name letters is taken" in second.why_unusable()
    assert (await world.invoke("letters"))["text"] == "Do this."
    put(tmp_path, "letters", "broken, and of that name too")
    assert (await world.invoke("letters"))["text"] == "Do this."


def test_the_name_of_a_broken_folder_forges_no_line(tmp_path: Path) -> None:
    put(tmp_path, "a\nsend_money: \u202epays", "broken")
    (one,) = find_skills(tmp_path / "skills")
    assert one.name == "a\\x0Asend_money: \\u202Epays" and "\n" not in one.why_unusable()


def test_no_folder_is_no_skill(tmp_path: Path) -> None:
    assert find_skills(tmp_path / "nowhere") == ()


# ---- the built-in ones -----------------------------------------------------------------------


def test_all_seven_are_there_and_their_schemas_are_of_objects() -> None:
    skills = built_in(ModelSettings()).list_all()
    assert {one.metadata.id for one in skills} == {
        "image_generation", "code_generation", "web_research", "data_analysis",
        "slide_generation", "app_builder", "task_planning",
    }  # fmt: skip
    for one in skills:
        for schema in (one.metadata.parameters, one.metadata.output_schema):
            assert schema["type"] == "object" and schema["additionalProperties"] is False


async def test_slides_without_their_library_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slides, "find_spec", lambda name: None)
    settings = ModelSettings()
    assert "python-pptx is not installed" in built_in(settings).why_unusable("slide_generation")


def test_signs_that_no_file_may_hold_do_not_break_a_presentation() -> None:
    deck = Deck(title="a\x00b", slides=[DeckSlide(title="c\x1bd", points=["e\vf", "", "ü 🐝"])])
    names = zipfile.ZipFile(BytesIO(write_deck(deck))).namelist()
    assert "ppt/slides/slide2.xml" in names
    assert "1. c" in outline(deck)


@pytest.mark.parametrize(
    ("env", "name", "why"),
    [
        ({}, "", "Set OPENAI_API_KEY or GEMINI_API_KEY"),
        ({"OPENAI_API_KEY": "k" * 20}, "openai/gpt-image-2.5-flare", ""),
        ({"GEMINI_API_KEY": "k" * 20}, "gemini/gemini-2.5-flash-image", ""),
        ({"OPENAI_API_KEY": "k" * 20, "IMAGE_PROVIDER": "gemini"}, None, "set GEMINI_API_KEY"),
        ({"OPENAI_API_KEY": "k" * 20, "IMAGE_MODEL": "own"}, "openai/own", ""),
        ({"OPENAI_API_KEY": "k" * 20, "BUDGET_DAY_USD": "5"}, None, "Money is limited here"),
    ],
)
def test_who_makes_pictures_follows_from_the_settings(
    env: dict[str, str], name: str | None, why: str
) -> None:
    painter = Painter(ModelSettings.read(env))
    assert why in painter.why_unusable() and bool(painter.why_unusable()) == bool(why)
    assert name is None or painter.name == name


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"[]", b"\xff", b"[" * 9_000, b'{"data":[]}', b'{"data":[{"b64_json":null}]}',
        b'{"data":[{"b64_json":"\xff"}]}', '{"data":[{"b64_json":"é"}]}'.encode(),
        b'{"data":[{"b64_json":"%%%"}]}', b'{"data":[{"url":"http://x"}]}',
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_picture_is_said(answer: bytes, tmp_path: Path) -> None:
    async def reply(request: web.Request) -> web.Response:
        return web.Response(body=answer, content_type="application/json")

    async with serving(reply) as base_url:
        env = {"OPENAI_API_KEY": "k" * 20, "OPENAI_BASE_URL": base_url}
        painter = Painter(ModelSettings.read(env))
        context = ToolContext(workspace=tmp_path, key="k", limit=9.0, output=lambda text: None)
        with pytest.raises(ToolFailed, match="picture"):
            await image_tool(painter, FileStore(tmp_path / "kept")).call(
                ImageArguments(prompt="x"), context
            )
    assert not (tmp_path / "images").exists()


async def test_an_answer_without_end_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.skills.images.generations.MAX_BYTES", 1_000_000)
    sent = 0

    async def reply(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1_000):
            sent += 1
            await response.write(b"x" * 100_000)
        return response

    async with serving(reply) as base_url:
        env = {"OPENAI_API_KEY": "k" * 20, "OPENAI_BASE_URL": base_url}
        with pytest.raises(ModelFailed, match="without an end"):
            await Painter(ModelSettings.read(env)).paint("x", "square")
    assert sent < 900


async def test_pictures_made_at_once_get_files_of_their_own(tmp_path: Path) -> None:
    given = [f"{n}".encode() * 9 for n in range(20)]
    paths = await asyncio.gather(
        *(asyncio.to_thread(add, tmp_path, "images/x", ".png", content) for content in given)
    )
    assert len(set(paths)) == len(given)
    assert [(tmp_path / path).read_bytes() for path in paths] == given


async def test_a_presentation_in_place_of_a_file_keeps_it(tmp_path: Path) -> None:
    """A backup is what people are told of before they allow it, and why it may need no word."""
    (tmp_path / "a.pptx").write_bytes(b"of the person")
    context = ToolContext(workspace=tmp_path, key="k", limit=9.0, output=lambda text: None)
    wanted = slides.SlidesArguments(title="t", slides=[DeckSlide(title="s")], path="a.pptx")
    await slides.slides_tool(FileStore(tmp_path / "kept")).call(wanted, context)
    assert (tmp_path / "a.pptx").read_bytes().startswith(b"PK")
    roll_back(RollbackArguments(path="a.pptx"), tmp_path)
    assert (tmp_path / "a.pptx").read_bytes() == b"of the person"


def test_a_wrong_provider_is_told_at_the_start() -> None:
    with pytest.raises(SettingsError, match="openai or gemini"):
        ImageSettings.read({"IMAGE_PROVIDER": "paint"})


def test_a_mode_begins_with_what_was_said() -> None:
    def params(mode: str, said: str, group: bool = False) -> object:
        call = direct(mode, said, group)
        return call and json.loads(call.arguments)["params"]

    assert params("image", " a barn ") == {"prompt": "a barn"}
    assert params("slide", "[Ann] bees", group=True) == {"topic": "bees"}
    assert params("app", "[x] bees") == {"description": "[x] bees"}
    assert params("data", "bees") is None and params("image", " ") is None


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_begins_with_files_that_can_be_read(framework: str) -> None:
    files = starter_files("shop", framework)  # type: ignore[arg-type]
    assert json.loads(files[MANIFEST])["framework"] == framework
    if "package.json" in files:
        assert json.loads(files["package.json"])["name"] == "shop"
    stack = STACKS[framework]  # type: ignore[index]
    assert "{" not in stack.start.format(port=1) and "127.0.0.1" in (stack.start + stack.about)


@given(st.text(max_size=30))
def test_a_file_of_an_app_stays_in_its_project(path: str) -> None:
    try:
        assert resolve_path("apps/shop", path).startswith("apps/shop/")
    except ToolFailed:
        pass


def test_a_file_above_its_project_is_refused() -> None:
    for path in ("../other/a", "/etc/passwd/../../x", ".", "a/../../shopping/b"):
        if not path.startswith("/"):
            with pytest.raises(ToolFailed, match="is not in"):
                resolve_path("apps/shop", path)


def caller(name: str, arguments: Values) -> ToolSkill:
    """A skill that makes one call."""

    async def run(context: SkillContext, params: Values) -> Values:
        return {"done": await context.tool(name, arguments)}

    return skill("caller", run)


async def test_an_app_is_begun_written_and_looked_at_where_commands_run(tmp_path: Path) -> None:
    background, sandbox = Background(), unsafe_sandbox()
    preview, port = PreviewServer(sandbox.connect), free_port()
    more = (*app_tools(preview), *command_tools(sandbox, background))

    async def call(tool: str, **arguments: object) -> str:
        world = SkillRig(tmp_path, caller(tool, arguments), tools=more)
        return str((await world.invoke("caller", what="x"))["done"])

    assert "Began apps/my-shop" in await call(
        "create_app_project", name="My Shop", framework="static"
    )
    page = {"project": "apps/my-shop", "path": "index.html", "content": "<p>hi</p>"}
    await call("app_write_file", **page)
    assert (tmp_path / "work" / "apps" / "my-shop" / "index.html").read_text() == "<p>hi</p>"
    with pytest.raises(ToolFailed, match="is not in apps/my-shop"):
        await call("app_write_file", **(page | {"path": "../x"}))
    assert "no packages" in await call("app_install_packages", project="apps/my-shop")
    said = await call("app_start_server", project="apps/my-shop", port=port)
    assert f"a link to look at port {port}" in said and "/open/" not in said
    async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as person:
        link = await preview.open(tmp_path / "work", port)
        async with person.post(link) as answer:
            assert "hi" in await answer.text(), "the server stays, and is seen"
    with pytest.raises(ToolFailed, match="begin it with create_app_project"):
        await call("app_start_server", project="apps/none")
    await preview.close()
    await background.close()


async def test_packages_come_from_hosts_that_a_person_is_asked_about(tmp_path: Path) -> None:
    sandbox = unsafe_sandbox()
    preview = PreviewServer(sandbox.connect)
    more = (*app_tools(preview), *command_tools(sandbox, Background()))

    async def install(*packages: str) -> str:
        asked = {"project": "apps/a", "packages": list(packages)}
        world = SkillRig(tmp_path, caller("app_install_packages", asked), tools=more)
        return str((await world.invoke("caller", what="x"))["done"])

    for path, content in starter_files("a", "Flask").items():
        file = tmp_path / "work" / "apps" / "a" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for odd in ("--index-url=x", "a b", "a;b", "$(x)"):
        with pytest.raises(ToolFailed, match="no name of a package"):
            await install(odd)


def test_code_is_what_stands_in_the_longest_block() -> None:
    said = "Here:\n```sh\nls\n```\nand\n```python\nprint('```')\nx = 1\n```\nDone."
    assert code_in(said) == "print('```')\nx = 1\n"
    assert strip_code_blocks(said) == "Here:\n\nand\n\nDone."
    assert code_in("plain") == "plain\n" and code_in("```\nno end") == "```\nno end\n"
    assert code_in("````md\n```\nx\n```\n````\t") == "```\nx\n```\n"
    assert code_in("```a\n~~~\ny\n~~~") == "y\n", "a fence that nothing closes is none"


def test_fences_without_end_hold_nothing_up() -> None:
    began = time.process_time()
    assert code_in("~~~x\n" * 40_000).startswith("~~~x\n~~~x")
    assert time.process_time() - began < 5, "once this took a minute"


async def test_code_is_written_where_it_is_wanted(tmp_path: Path) -> None:
    world = SkillRig(tmp_path, *built_in(ModelSettings()).list_all())
    world.answers = ["```python\nx = 1\n```\nRun it."]
    made = await world.invoke("code_generation", task="one", path="one.py")
    assert made == {"code": "x = 1\n", "explanation": "Run it.", "path": "one.py"}
    assert (world.workspace / "one.py").read_text() == "x = 1\n"


def test_the_marks_around_data_are_not_drawn() -> None:
    text = f"A cat like this\n{mark_data('[file: incoming/cat.png, 9 bytes]')}"
    drawn, built = direct("image", text), direct("app", text)
    assert drawn is not None and built is not None
    assert "[Data" not in drawn.arguments and "cat.png" in drawn.arguments
    assert "[Data" in built.arguments, "a model reads it"
