"""What people see on each platform stands within its screen, on a desktop and on a phone, and is
written for people.

`python -m tests.stories.drawing FOLDER` draws the same pictures, for people to look at.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.texts.tools import TOOL_NAMES
from tests.fakes.browser import browse
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.stories.drawing.markup import LOOKS
from tests.stories.drawing.telling import STORIES, draw, write_contact_sheets
from tests.stories.surfaces.chat_stories import NOT_APPLICABLE, SURFACES

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(180)]

NAMES = [name for name in TOOL_NAMES if "_" in name]
"""Of tools that are called otherwise by people; the rest are words, or commands."""
ODD = {
    "markdown that is not read": re.compile(r"\*\*\w|~~\w|^#{1,6} \w|^\|.*\|$"),
    "a platform's markup": re.compile(r"<t:|<!date|<@\d|</\w+:\d"),
    "a mark of ours": re.compile(r"[\ufdd0-\ufdef]"),
    "a time as a log has it": re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d|T\d\d)"),
    "an id": re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b|\b\d{10,}\b"),
    "a tool's own name": re.compile(rf"^\W*({'|'.join(NAMES)})\b(?!\()"),
    "a value of the code": re.compile(r": (?:None|True|False|null)$"),
}
"""What people should not be shown."""
KNOWN = {
    "rich": "an answer that has all of it on purpose",
}


AWAY = "net::ERR_CONNECTION_REFUSED"
"""What the browser notes while a story starts its gateway again and the page asks on."""


def find_odd(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        for what, pattern in ODD.items():
            if pattern.search(line):
                yield f"{what}: {line[:120]}"


def pictures() -> list[Any]:
    """Each story wherever it can be told; a quick run takes two."""
    return [
        pytest.param(name, on, id=f"{name}-{on}", marks=[*told.needs, pytest.mark.pick("look")])
        for name, told in STORIES.items()
        for on in SURFACES
        if (name, on) not in NOT_APPLICABLE
    ]


@pytest.mark.parametrize(("name", "on"), pictures())
async def test_nothing_stands_out_of_a_screen_or_is_meant_for_machines(
    name: str, on: str, tmp_path: Path
) -> None:
    async with browse() as tab:
        seen = await draw(name, on, tmp_path, tab)
        assert [one for one in tab.errors if AWAY not in one] == []
    assert len(seen) == len(LOOKS)
    for look, one in zip(LOOKS, seen, strict=True):
        assert any(one["texts"])
        assert (one["out"], max(one["wide"], default=0)) == ([], 0), look.name
        assert name in KNOWN or not [odd for text in one["texts"] for odd in find_odd(text)]
    write_contact_sheets(tmp_path)
    sheet = (tmp_path / f"{on}.html").read_text()
    assert all(f"{name}.{on}.{look.name}.png" in sheet for look in LOOKS)


@pytest.mark.parametrize(
    "line",
    [
        "Approved by Ann, 2026-11-25 07:18 UTC.", "Due \ufdd5\ufde1", "The **table**, as you asked.",
        "It ends at cfed45c689a6.", "☑ run_command: ls", "<t:1790000000:f>", "Meal: False",
    ],
)  # fmt: skip
def test_what_is_meant_for_machines_is_found(line: str) -> None:
    assert list(find_odd(line))


@pytest.mark.parametrize(
    "line",
    [
        "☑ Run code: list_files()", "Plan the garden, 2026-11-25", "2 * 3 * 4", "a decade facade",
        "Open the preview", "#1 of 3", "Write a file: a_b.txt",
    ],
)  # fmt: skip
def test_what_people_write_is_left_alone(line: str) -> None:
    assert not list(find_odd(line))
