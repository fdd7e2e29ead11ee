"""What a newcomer without keys sees, at the page and in Slack: the demo model's plan, tool call and approval."""

from pathlib import Path

import msgspec
import pytest

from adapters.web.words import WORDS
from agent_core.messages import ToolCall, user
from agent_core.models.demo import DemoModel
from agent_core.models.port import ModelRequest, ToolSpec
from agent_core.orchestration.routes.classifier import classify
from agent_core.tools.secret_files import holds_settings
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.rig import living, quick
from tests.stories.surfaces import Slack, Surface, Web

ON = pytest.mark.parametrize("on", [Web, Slack])


@ON
async def test_the_demo_shows_a_plan_a_tool_call_and_an_approval(
    on: type[Surface], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        page = on(rig)
        await page.open(OPENAI_API_KEY="", PRO_MODEL="", PERMISSION_ASK_ALL="on")
        try:
            await page.say("Show me a plan, please")
            for tool in ("Plan", "List files", "Write a file", "Read a file"):
                await page.card(tool)
                await page.press("Approve once")
            await page.shows("The plan is finished.")
            await page.settle()
            (checklist,) = [s for s in page.screen() if " 3/3" in s and "◐" not in s]
            assert "☑ 3. Read the note again" in checklist
            assert "A note about the files" in checklist and "Show me" not in checklist
            (note,) = rig.home.glob("workspaces/*/plan.txt")
            assert "step of a plan" in note.read_text()
            assert any("The plan is finished" in s for s in page.screen())
            assert sum(s.count("(demo model") for s in page.screen()) <= 1, "it says so once"
            await page.say("list")
            await page.card("List files")
            await page.press("Approve once")
            await page.settle()
            assert sum(s.count("(demo model") for s in page.screen()) == 1
            await page.command("/model openai/gpt-9")
            await page.shows("Only the demo model is available")
        finally:
            await page.close()


TOOLS = tuple(
    ToolSpec(name=one, description="", parameters={})
    for one in ("task_planning", "write_file", "schedule_job", "list_files", "run_command")
)


@pytest.mark.parametrize("language", WORDS.list_codes())
async def test_the_pages_examples_lead_there_in_every_language(language: str) -> None:
    """By the demo's script, and by the rules that route a request to a real model."""
    assert classify(WORDS.say("try_plan", language)) == "complex"
    for name, tool in (
        ("try_plan", "task_planning"),
        ("try_approval", "write_file"),
        ("try_job", "schedule_job"),
    ):
        said = (user(WORDS.say(name, language)),)
        request = ModelRequest(model="demo", system="", messages=said, tools=TOOLS)
        *_, call = (await DemoModel(delay=0).complete(request, lambda _: None)).parts
        assert isinstance(call, ToolCall) and call.name == tool
        if name == "try_approval":
            path = msgspec.json.decode(call.arguments)["path"]
            assert path in WORDS.say(name, language) and holds_settings(path)


@pytest.mark.pick("examples of the page")
@pytest.mark.parametrize("language", WORDS.list_codes())
@NEEDS_BWRAP
async def test_an_example_is_asked_about_also_where_the_sandbox_contains_all(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        page = Web(rig)
        await page.open(OPENAI_API_KEY="", PRO_MODEL="", SANDBOX_PROVIDER="bwrap")
        try:
            await page.command("/mode auto")
            await page.settle()
            await page.say(WORDS.say("try_approval", language))
            await page.card(".vscode/settings.json")
            await page.press("Approve once")
            await page.shows("Created .vscode/settings.json")
            (settings,) = rig.home.glob("workspaces/*/.vscode/settings.json")
            assert "formatOnSave" in settings.read_text()
        finally:
            await page.close()


@ON
async def test_the_demo_schedules_a_job_that_reports(
    on: type[Surface], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        page = on(rig)
        await page.open(OPENAI_API_KEY="", PRO_MODEL="")
        try:
            await page.say("Report every day, please")
            await page.card("The files, every working day")
            await page.press("Confirm")
            await page.shows("is scheduled. Next")
            await page.settle()
            await page.command("/jobs run 1")
            await page.shows("list_files")
            await page.settle()
            assert any(
                "The files, every working day" in one and "gave" in one for one in page.screen()
            )
        finally:
            await page.close()


@ON
async def test_times_are_those_of_the_persons_client_until_they_choose_others(
    on: type[Surface], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        page = on(rig)
        page.zone = "Asia/Tokyo"
        await page.open(OPENAI_API_KEY="", PRO_MODEL="")
        try:
            await page.say("Report every day, please")
            await page.card("(Asia/Tokyo)")
            assert not any("timezone" in one for one in page.screen())
            await page.press("Cancel")
            await page.command("/timezone")
            await page.shows("Your time zone is Asia/Tokyo")
            await page.command("/timezone Europe/Berlin")
            await page.shows("is now Europe/Berlin")
            await page.settle()
            await page.say("Report every day, please")
            await page.card("(Europe/Berlin)")
        finally:
            await page.close()


@pytest.mark.parametrize(
    ("tier", "mode", "asked"),
    [
        ("unsafe-subprocess", "/mode auto", True),
        pytest.param("bwrap", "/mode auto", False, marks=NEEDS_BWRAP),
        pytest.param("bwrap", "/mode ask", True, marks=NEEDS_BWRAP),
    ],
)
@pytest.mark.slow
async def test_the_demo_says_when_a_command_is_asked_about(
    tier: str, mode: str, asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick(monkeypatch)
    async with living(tmp_path) as rig:
        page = Web(rig)
        await page.open(OPENAI_API_KEY="", PRO_MODEL="", SANDBOX_PROVIDER=tier)
        try:
            await page.say("What can you do?")
            await page.shows("in mode ask, or where the sandbox does not contain it, you are asked")
            await page.command(mode)
            await page.settle()
            await page.say("Now run it")
            if asked:
                await page.card("Run a command")
                await page.press("Approve once")
            await page.shows("hello from the sandbox")
        finally:
            await page.close()
