"""All tools work wherever the data folder lies, whatever it is called."""

import itertools
import json
import os
import re
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_CHROMIUM, NEEDS_LANDLOCK
from tests.fakes.ports import free_port
from tests.gateway.process import PERSON, START, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAMES = {
    "long": "long" * 50,
    "deep": "/".join(["deep"] * 40),
    "blanks": " two  words ",
    "quotes": 'it\'s "said"',
    "shell": "$HOME;&|<>`id`*?[a]{b,c}!#~",
    "format": "100% {0} %s \\n\\x41",
    "dashes": "-rf --help",
    "colon": "a:b,c=d@e",
    "letters": "Tee-Küche 茶 🍵",
    "decomposed": "Ku\u0308che",
    "line end": "a\nb",
    "link": "link",
}
TIERS = {"bwrap": NEEDS_BWRAP, "landlock": NEEDS_LANDLOCK, "docker": (), "unsafe-subprocess": ()}
FILE = "tea menu.txt"


def call(name: str, /, **given: object) -> Call:
    return Call(name, json.dumps(given))


READS = f"from turnkeeper import read_file\nprint(read_file(path='{FILE}'))"
STEPS = [
    (call("write_file", path=FILE, content="green\n"), f"Created {FILE} (6 bytes)"),
    (call("read_file", path=FILE), "\ngreen\n"),
    (call("run_command", command=f"cat '{FILE}'; echo and mint >> '{FILE}'"), "\ngreen\n[exit code 0]"),
    (call("execute_code", language="python", code=f"print(open('{FILE}').read())"), "\nand mint\n"),
    (call("execute_script", code=READS), "and mint"),
    (call("create_app_project", name="tea", framework="static"), "Began apps/tea"),
    (call("app_write_file", project="apps/tea", path="index.html", content="<p>tea</p>"), "Created"),
    (call("app_start_server", project="apps/tea"), "The person has a link to look at port 8080"),
    (call("browser_use", action="go_to_url", url="{model}/"), "It answered 404"),
    (call("browser_use", action="extract_content", goal="what is said"), "404: Not Found"),
    (call("send_file", paths=[FILE]), f"Given to the person: {FILE} (15 bytes)"),
]  # fmt: skip
"""Calls, and words of their results."""


@pytest.fixture
def home(world: World, request: pytest.FixtureRequest) -> Path:
    place = world.folder / NAMES[request.param]
    if request.param == "link":
        (world.folder / "elsewhere").mkdir()
        place.symlink_to(world.folder / "elsewhere")
    return place / "data"


@NEEDS_CHROMIUM
@pytest.mark.parametrize(
    ("home", "tier"),
    [
        pytest.param(name, tier, marks=TIERS[tier], id=f"{name}, {tier}")
        for name, tier in zip(NAMES, itertools.cycle(TIERS), strict=False)
    ],
    indirect=["home"],
)
async def test_all_tools_work(
    world: World, home: Path, tier: str, request: pytest.FixtureRequest
) -> None:
    port = str(free_port())
    given = {
        "TURNKEEPER_HOME": str(home), "SANDBOX_PROVIDER": tier, "PREVIEW_PORT": port,
        "PREVIEW_PUBLIC_URL": f"http://127.0.0.1:{port}", "TELEGRAM_ADMIN_USERS": str(PERSON),
        "WEB_ALLOWED_HOSTS": world.model_url.removeprefix("http://"),
    }  # fmt: skip
    if tier == "docker":
        given["DOCKER_HOST"] = request.getfixturevalue("browser_engine")
    await world.start(**given)
    pressed: set[str] = set()
    for n, (step, words) in enumerate(STEPS):
        asked = Call(step.name, step.arguments.replace("{model}", world.model_url))
        world.model.script(asked, Say(f"done {n}"))
        world.telegram.say(PERSON, f"do {n}")

        def is_done(n: int = n) -> bool:
            world.approve_new(pressed)
            texts = (str(one.get("text")) for one in world.telegram.chats[PERSON])
            return any(f"done {n}" in text for text in texts)

        await world.telegram.wait(is_done, START)
        (*_, result) = (
            one for one in world.model.requests[-1].body["messages"] if one["role"] == "tool"
        )
        assert words in result["content"], step.name
    world.telegram.say(PERSON, "/undo")
    await world.telegram.wait_text(PERSON, "is undone", START)
    for words in (("doctor",), ("dead",), ("backup", "kept.tar")):
        code, said = await world.command(*words, **given)
        assert code == 0 and "Traceback" not in said, said
    log = world.runs[-1].log
    assert " info " in log and not re.findall(r"^\S+ error .*|^Traceback", log, re.MULTILINE)


async def test_a_name_that_is_no_text_is_refused(world: World) -> None:
    """It could not be told to anybody."""
    place = world.folder / os.fsdecode(b"caf\xe9")
    code, said = await world.command("run", TURNKEEPER_HOME=str(place))
    assert code == 2 and "TURNKEEPER_HOME" in said and "it is not UTF-8" in said
    assert not place.exists()
