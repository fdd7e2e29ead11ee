"""Killed at every point: a call that waits for its person to sign in, and goes on once they are."""

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.mcp.oauth.grants import SignInOffer
from agent_core.mcp.oauth.questions import ask_sign_in
from agent_core.questions import Decision
from agent_core.tools.toolbox import Toolbox
from gateway.messages import plugin_token
from gateway.services.sign_ins import FEATURE, SIGNED_IN
from gateway.views import ChoiceCard, ReplyView
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.world import ROOM, Ledger, Life, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean, finals

LINK = "https://gateway.example/servers/signin/x"


class SignedAgent(ScriptedAgent):
    """`note` needs a sign-in, which the file `signed` stands for."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.ledger, life.points, life.folder)

        async def enter() -> Decision | None:
            self._points.hit("entrance")
            if (life.folder / "signed").exists():
                return None
            return ask_sign_in("notes", SignInOffer(link=LINK))

        tools = self.toolbox.tools
        self.toolbox = Toolbox(
            replace(one, entrance=enter) if one.name == "note" else one for one in tools
        )


def prepare(life: Life) -> None:
    life.agent = SignedAgent(life)


async def story(life: Life) -> None:
    await life.say("m1", "do note|look")
    await life.until(lambda: life.cards() or finals(life, ""))
    await life.quiet()
    (life.folder / "signed").touch()
    await life.press("back", plugin_token(FEATURE, SIGNED_IN, "notes"))
    await life.until(lambda: finals(life, ""))
    await life.quiet()
    await assert_clean(life, 1)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen(ROOM)
    tools = Counter(line["name"] for line in ledger.all("tool"))
    assert tools["note"] <= 1 and tools["look"] >= 1, f"{label}: {tools}"
    cards = [v for v in screen.values() if isinstance(v, ChoiceCard)]
    still = [card for card in cards if card.state == "open"]  # one that was sent twice, in doubt
    assert len(cards) - len(still) == 1 and len(still) <= 1, f"{label}: {cards}"
    assert LINK in cards[0].text, f"{label}: {cards}"
    final = [v for v in screen.values() if isinstance(v, ReplyView) and v.state == "final"]
    assert final, f"{label}: {screen}"
    answers = {reply.text for reply in final}
    ran = any("note ok" in text for text in answers)
    lost = any("unknown" in text.lower() for text in answers)
    assert ran or lost, f"{label}: it runs once, or nobody knows: {answers}"


@pytest.mark.timeout(240)
@some_and_every()
def test_killed_at_every_point_the_call_waits_and_runs_once(some: int) -> None:
    points = count_points(story, prepare)
    assert points["names"].count("entrance") == 2, points
    killed_everywhere(points, story, check, prepare, some=some, hit=0.8)
