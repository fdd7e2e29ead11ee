"""What the page shows, and how it is judged."""

import struct
import zlib
from typing import cast

from gateway.views import (
    Button,
    Media,
    MediaFile,
    PlanStep,
    PlanView,
    StepState,
)
from tests.fakes.web_server import Room


def chart() -> bytes:
    """A small picture: bars."""
    width, height, heights = 360, 150, (60, 95, 40, 120, 80, 105)

    def pixel(x: int, y: int) -> bytes:
        bar = x // 60
        filled = 14 <= x % 60 < 46 and y >= height - heights[bar]
        return b"\x0f\x6b\x5c" if filled else b"\xff\xff\xff"

    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(width)) for y in range(height))

    def chunk(kind: bytes, body: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + end

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def plan() -> PlanView:
    steps: tuple[tuple[str, StepState, str], ...] = (
        ("Read the release notes of the last three versions", "done", ""),
        ("Run the tests", "done", "412 passed"),
        ("Build the packages", "running", ""),
        ("Publish the documentation", "pending", ""),
        ("Announce it", "skipped", "You do this yourself."),
    )
    return PlanView(
        title="Release version 2.4",
        steps=tuple(
            PlanStep(id=str(n), text=text, state=state, note=note)
            for n, (text, state, note) in enumerate(steps)
        ),
        buttons=(
            Button(label="Skip 3", token="q:p:skip"),
            Button(label="Edit", token="q:p:edit"),
            Button(label="Stop", token="q:p:stop", style="bad"),
        ),
    )


def media(room: Room) -> Media:
    room.server.outputs.mkdir(parents=True, exist_ok=True)
    (room.server.outputs / "o1").mkdir(exist_ok=True)
    (room.server.outputs / "o1/chart.png").write_bytes(chart())
    (room.server.outputs / "o1/report.csv").write_text("a,b\n1,2\n")
    files = (
        MediaFile(ref="o1/chart.png", name="Visitors by day.png", mime="image/png", size=1204),
        MediaFile(ref="o1/report.csv", name="visitors.csv", mime="text/csv", size=48_211),
    )
    return Media(files=files, caption="Visitors of the *last six days*.")


async def settle(room: Room) -> None:
    """Until what moves has moved."""
    await room.page.until("document.getAnimations().every((one) => one.effect.getTiming()"
                          ".iterations === Infinity || one.playState === 'finished')")  # fmt: skip
    await room.page.js("new Promise((done) => requestAnimationFrame(() => "
                       "requestAnimationFrame(() => done(true))))")  # fmt: skip


async def fits(room: Room) -> None:
    """Nothing sticks out to the side."""
    over = await room.page.js(
        "[document.documentElement.scrollWidth - innerWidth, document.querySelector('#scroll')"
        ".scrollWidth - document.querySelector('#scroll').clientWidth]"
    )
    assert over == [0, 0]


async def faults(room: Room, axe: str) -> list[str]:
    """What axe calls serious or critical."""
    await settle(room)
    await room.page.js(f"{axe}; true")
    found = await room.page.js(
        "axe.run(document, {resultTypes: ['violations']}).then((all) => all.violations"
        ".filter((one) => ['serious', 'critical'].includes(one.impact))"
        ".flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)} "
        "${node.failureSummary.slice(0, 300)}`)))"
    )
    return cast(list[str], found)


KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}


async def press(room: Room, *keys: str) -> None:
    for key in keys:
        await room.page.press(key, KEYS[key])


async def value(room: Room) -> object:
    return await room.page.js("document.querySelector('#text').value")


GIVE_FILES = (
    "((kind, files) => { const all = new DataTransfer(); for (const [name, size] of files) "
    "all.items.add(new File([new Uint8Array(size)], name)); const target = "
    "document.querySelector('#text'); target.dispatchEvent(kind === 'paste' ? new "
    "ClipboardEvent('paste', {clipboardData: all, bubbles: true, cancelable: true}) : new "
    "DragEvent(kind, {dataTransfer: all, bubbles: true, cancelable: true})); })"
)
"""A function of JavaScript that drops or pastes files: the kind of event, [[name, size], …]."""
