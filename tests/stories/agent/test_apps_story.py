"""Apps of the frameworks run for real: begun, written, installed by one press, started, and seen by
the link that the person gets. Their packages are those of this machine."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.fakes.installed_packages import InstalledPackages, find_modules
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_NPM
from tests.fakes.ports import free_port
from tests.stories.rig import ADMIN, Rig

FASTAPI = """from fastapi import FastAPI

app = FastAPI()


@app.get("/")
def count():
    return {"cups": 3}
"""
FLASK = """from flask import Flask

app = Flask(__name__)


@app.get("/")
def count():
    return {"cups": 3}
"""
EXPRESS = """import express from "express";

const app = express();
app.get("/", (request, response) => response.json({ cups: 3 }));
app.listen(process.env.PORT, "127.0.0.1");
"""
SECONDS = 240
"""For an installation on a busy machine."""
MODULES = find_modules("express")
NEEDS_EXPRESS = pytest.mark.skipif(
    MODULES is None, reason="needs the npm package express (npm install -g express)"
)


def _name_python(program: str) -> str:
    said = [program, "-c", "import sys; print(sys.version_info[:2])"]
    try:
        return subprocess.run(said, capture_output=True, text=True, check=True).stdout.strip()
    except OSError:
        return ""


SAME_PYTHON = pytest.mark.skipif(
    _name_python("/usr/bin/python3") != str(sys.version_info[:2]),
    reason=f"needs the package python3 of the version that runs the tests: {sys.version_info[:2]}",
)


@pytest.fixture
def index() -> Iterator[InstalledPackages]:
    index = InstalledPackages(MODULES, "express")
    yield index
    index.close()


def use(index: InstalledPackages, home: Path) -> None:
    """An index of the operator's own, in the sandbox's HOME."""
    home.mkdir(parents=True)
    host = index.place.partition(":")[0]
    pip = home / ".config" / "pip"
    pip.mkdir(parents=True)
    url = f"http://{index.place}/simple/"
    (pip / "pip.conf").write_text(f"[global]\nindex-url = {url}\ntrusted-host = {host}\n")
    (home / ".npmrc").write_text(f"registry=http://{index.place}/\n")


async def look_at(link: str) -> str:
    """What a person sees who opens the link."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as person:
        async with person.post(link) as answer:
            return await answer.text()


@pytest.mark.slow
@NEEDS_BWRAP
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("framework", "file", "code"),
    [
        pytest.param("FastAPI", "main.py", FASTAPI, marks=SAME_PYTHON),
        pytest.param("Flask", "main.py", FLASK, marks=SAME_PYTHON),
        pytest.param("Express", "server.js", EXPRESS, marks=(NEEDS_NPM, NEEDS_EXPRESS)),
    ],
    ids=["fastapi", "flask", "express"],
)
async def test_an_app_is_installed_by_one_press_and_seen_by_a_button(
    framework: str, file: str, code: str, rig: Rig, index: InstalledPackages
) -> None:
    project, port = "apps/tea", str(free_port())
    rig.model.script(
        Call("create_app_project", json.dumps({"name": "tea", "framework": framework})),
        Call("app_write_file", json.dumps({"project": project, "path": file, "content": code})),
        Call("app_install_packages", json.dumps({"project": project})),
        Call("app_start_server", json.dumps({"project": project})),
        Say("It runs."),
    )
    await rig.start(
        SANDBOX_PROVIDER="bwrap",
        SANDBOX_HOSTS=index.place,
        WEB_ALLOWED_HOSTS=index.place,
        PREVIEW_PORT=port,
        PREVIEW_PUBLIC_URL=f"http://127.0.0.1:{port}",
    )
    use(index, rig.workspace(ADMIN) / ".turnkeeper" / "sandbox" / "home")
    rig.telegram.say(ADMIN, "make me an app that counts cups")
    rig.press(await rig.card(ADMIN), "Allow these hosts once", ADMIN)
    async with asyncio.timeout(SECONDS):
        await rig.telegram.wait_text(ADMIN, "It runs.", SECONDS)
    await rig.quiet()
    assert not rig.cards(ADMIN), "the hosts of packages are all that is asked for"
    card = await rig.shows("tea is running.", ADMIN)
    ((button,),) = card["reply_markup"]["inline_keyboard"]
    assert json.loads(await look_at(button["url"])) == {"cups": 3}, rig.seen(role="tool")
