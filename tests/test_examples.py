"""The examples run, without a key and as they are given."""

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from examples.run_job import run_job
from tests.fakes.model_server import Call, Say
from tests.stories.jobs_rig import own
from tests.stories.rig import PERSON, Rig

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TOKEN = "a-token-for-the-page-and-the-api"
SAID = {
    "library_agent": ("Created note.txt", "[tool]", "note.txt"),
    "own_tool": ("Emma, Dracula, Ulysses", "asked for:", "was ordered"),
}
ELSEWHERE = {"run_job", "plain_adapter"}
"""Run below, and by `tests/contracts/test_adapters.py`."""


async def run(*words: str) -> str:
    """What an example prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


@pytest.mark.parametrize("name", SAID)
async def test_an_example_runs(name: str) -> None:
    said = await run(f"examples.{name}")
    for text in SAID[name]:
        assert text in said


async def test_a_job_is_run_by_the_api(rig: Rig) -> None:
    await rig.start(TURNKEEPER_TOKEN=TOKEN)
    job = await own(rig)
    rig.model.script(Say("all quiet"))
    done = await run_job(rig.url, TOKEN, job.id, pause=0.02)
    assert (done["state"], done["text"]) == ("done", "all quiet")


async def test_a_skill_folder_is_a_skill(rig: Rig) -> None:
    shutil.copytree(EXAMPLES / "skills", rig.home / "skills")
    await rig.start()

    def invoke(**params: str) -> Call:
        return Call("invoke_skill", json.dumps({"skill_id": "letters", "params": params}))

    rig.model.script(invoke(), invoke(file="greeting.txt"), Say("Good day, …"))
    rig.telegram.say(PERSON, "write a letter")
    await rig.shows("Good day, …")
    read, file = rig.seen(role="tool")
    assert "Begin with the greeting" in json.loads(read)["text"]
    assert "Good day" in json.loads(file)["text"]


def test_the_page_about_features_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "adding-a-feature.md").read_text()
    folder = EXAMPLES / "feature_ping"
    shown = [block for _, block in re.findall(r"```(python|toml)\n(.*?)```", page, re.DOTALL)]
    files = ("turnkeeper_ping/texts.py", "turnkeeper_ping/feature.py", "pyproject.toml")
    assert shown == [(folder / name).read_text() for name in files]


def test_all_examples_are_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SAID.keys() | ELSEWHERE
    page = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in page for path in EXAMPLES.glob("*.py"))
