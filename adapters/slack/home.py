"""App Home: the person's waiting questions, running work, and jobs.

Published when it is opened, and, while somebody may be looking at it, soon after a change.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from adapters.slack import parse
from adapters.slack.blocks import Block, buttons, header, rich, run, section
from adapters.slack.markup import clip
from adapters.slack.moments import make_runs
from adapters.slack.people import SlackPeople
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, RateLimited, StoreFailed
from gateway.messages import Conversation, Sender
from gateway.moment_texts import map_words
from gateway.ports import Look, Overview, OverviewEntry
from gateway.texts import Key, say
from gateway.texts.signs import visible
from gateway.views import Button

log = logging.getLogger("adapters.slack")

PACE, LOOKED_AT = 3.0, 1_800.0
"""Minimum seconds between two looks at changes; seconds for which an opened home is updated."""
MOST, TEXT = 200, 400


def home(overview: Overview, language: str) -> dict[str, object]:
    """The view of an overview. Pure."""
    parts: tuple[tuple[Key, Sequence[OverviewEntry]], ...] = (
        ("home_waits", overview.waits),
        ("home_runs", overview.runs),
        ("home_jobs", overview.jobs),
    )
    blocks: list[Block] = []
    if overview.note:
        blocks.append(rich([section([run(overview.note)])]))
    for key, entries in parts:
        if entries:
            blocks.append(header(say(key, language)))
        for entry in entries:
            blocks += _entry(entry, language, len(blocks))
    nothing = rich([section([run(say("home_quiet", language))])])
    return {"type": "home", "blocks": blocks or [nothing]}


def _entry(entry: OverviewEntry, language: str, place: int) -> Iterator[Block]:
    shown = map_words(entry.text, visible)
    yield rich([section(make_runs(clip(shown, TEXT)) or [run("…")])])
    given = [*entry.buttons]
    if entry.stops:
        given.append(Button(label=say("plan_stop", language), token=parse.STOP, style="bad"))
    bearing = [
        msgspec.structs.replace(one, token=parse.write_home_token(entry.conversation, one.token))
        for one in given
    ]
    for n, row in enumerate(buttons(bearing)):
        yield row | {"block_id": f"{place}-{n}"}


class _Open(Struct, kw_only=True):
    """An opened home. `until`: `clock.monotonic()` at which updates end."""

    where: Conversation
    until: float
    shown: bytes = b""


class Homes:
    """The homes of one app that were opened lately."""

    def __init__(self, wire: SlackWire, people: SlackPeople, look: Look | None) -> None:
        self._wire, self._people, self._look = wire, people, look
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._stirred = asyncio.Event()

    def open_home(self, user: str, where: Conversation) -> None:
        """Keep it updated from now on."""
        self._open[user] = _Open(where=where, until=clock.monotonic() + LOOKED_AT)
        self._open.move_to_end(user)
        if len(self._open) > MOST:
            self._open.popitem(last=False)
        self._stirred.set()

    def stir(self) -> None:
        """Note a change."""
        if self._open:
            self._stirred.set()

    async def keep(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            pause = PACE
            for user, opened in list(self._open.items()):
                if opened.until < clock.monotonic():
                    del self._open[user]
                    continue
                try:
                    await self._publish(user, opened)
                except RateLimited as error:
                    pause = max(pause, error.retry_after)
                    self._stirred.set()
                except (DeliveryError, StoreFailed) as error:
                    log.info("slack_no_home", extra={"why": str(error)})
            await clock.wait(pause)

    async def _publish(self, user: str, opened: _Open) -> None:
        if self._look is None:
            return
        asked = Sender(platform="slack", id=user, unplaced=True)
        person = await self._people.resolve_sender(asked)
        found = home(await self._look(opened.where, person), person.language)
        shown = msgspec.json.encode(found)
        if shown != opened.shown:
            await self._wire.call("views.publish", {"user_id": user, "view": found})
            opened.shown = shown
