"""Any text, in any view, is drawn soon on each platform, and within what that one takes."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.views import View
from tests.attacks.text_grammar import ATOMS, DRAWN, ODDITIES, make_views
from tests.fakes.discord_schema import check_message as check_discord
from tests.fakes.slack_schema import check_chunk
from tests.fakes.slack_schema import check_message as check_slack
from tests.fakes.telegram_schema import check_payload as check_telegram
from tests.sampling import dice

LENGTHS = (1, 4, 25, 80)
MAX_SECONDS = 2.0
"""Of this process, for one view; most take a thousandth."""


def find_wrong(platform: str, payload: dict[str, Any]) -> Iterator[str]:
    """What the platform would refuse."""
    match platform:
        case "telegram" | "telegram, rich":
            yield from check_telegram(payload)
        case "discord":
            names = [one["name"] for one in payload.get("files", ())]
            sent = {name: value for name, value in payload.items() if name != "files"}
            if names:
                sent["attachments"] = [{"id": str(n), "filename": x} for n, x in enumerate(names)]
            yield from check_discord(sent | {"nonce": "n", "enforce_nonce": True}, names, new=True)
        case "slack" if "files" not in payload:
            yield from check_slack(payload)
            for chunk in payload.get("stream", {}).get("chunks", ()):
                yield from check_chunk(chunk)


def find_refused(view: View) -> Iterator[str]:
    for platform, draw in DRAWN.items():
        began = time.process_time()
        drawn = draw(view)
        took = time.process_time() - began
        for payload in drawn if isinstance(drawn, tuple) else ():
            if isinstance(payload, bytes):
                yield from (
                    f"{platform}: {one}" for one in find_wrong(platform, json.loads(payload))
                )
        if took > MAX_SECONDS:
            yield f"{platform}: {took:.1f} s"


def many_are_taken(part: str, count: int) -> None:
    for n in range(count):
        chance = dice("any text", part, n)
        text = "".join(chance.choices(ATOMS + ODDITIES, k=chance.choice(LENGTHS)))
        for view in make_views(text):
            wrong = list(find_refused(view))
            assert not wrong, f"{type(view).__name__}, {n}, {text[:80]!r}: {wrong[:3]}"


def test_a_few_texts_in_every_view() -> None:
    many_are_taken("few", 3)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["a", "b", "c", "d"])
def test_hundreds_of_texts_in_every_view(part: str) -> None:
    many_are_taken(part, 100)
