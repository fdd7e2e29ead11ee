"""What people see on each platform stands within its screen, on a desktop and on a phone.

`python -m tests.stories.drawing FOLDER` draws the same pictures, for people to look at.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.browser import browse
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.stories.drawing.markup import LOOKS
from tests.stories.drawing.telling import STORIES, draw, write_contact_sheets
from tests.stories.surfaces.chat_stories import NOT_APPLICABLE, SURFACES

pytestmark = [NEEDS_CHROMIUM, pytest.mark.timeout(180)]


def pictures() -> list[Any]:
    """Each story wherever it can be told; a quick run takes one on each platform."""
    return [
        pytest.param(
            name, on, id=f"{name}-{on}", marks=[*told.needs, pytest.mark.pick(f"look {on}")]
        )
        for name, told in STORIES.items()
        for on in SURFACES
        if (name, on) not in NOT_APPLICABLE
    ]


@pytest.mark.parametrize(("name", "on"), pictures())
async def test_nothing_stands_out_of_a_screen(name: str, on: str, tmp_path: Path) -> None:
    async with browse() as tab:
        seen = await draw(name, on, tmp_path, tab)
        assert tab.errors == []
    assert len(seen) == len(LOOKS)
    for look, one in zip(LOOKS, seen, strict=True):
        assert any(one["texts"])
        assert (one["out"], max(one["wide"], default=0)) == ([], 0), look.name
    write_contact_sheets(tmp_path)
    sheet = (tmp_path / f"{on}.html").read_text()
    assert all(f"{name}.{on}.{look.name}.png" in sheet for look in LOOKS)
