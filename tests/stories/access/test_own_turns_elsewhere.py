"""On Slack and Discord too, in the threads of a channel: steer, interrupt and stop reach one's own
turns and all for admins; a denial keeps its numbers; who may not is told; words that only look like
a command are words."""

import asyncio

import pytest

from gateway.conversation.session import Session
from gateway.texts import say
from tests.fakes import discord_server, slack_server
from tests.fakes.model_server import Call, Say
from tests.stories.discord_rig import ADMIN, CHANNEL, FRIEND, PERSON, DiscordRig
from tests.stories.discord_rig import DM as DISCORD_DM
from tests.stories.rig import PATIENCE, Rig, write
from tests.stories.slack_rig import DEV, DM, SlackRig

LIST = Call("list_files")
WHO = ("own", "admin", "other")


class OnSlack:
    """Ann's thread in a channel, by mentions and commands with the bot's name."""

    people = {"own": "U0ANN", "admin": "U0ADM", "other": "U0BOB"}

    def __init__(self, rig: SlackRig) -> None:
        self.rig, self.thread = rig, ""

    async def begin(self, text: str) -> None:
        self.thread = self.rig.slack.mention(DEV, text)[0]["event"]["ts"]

    async def say(self, who: str, text: str) -> None:
        self.rig.slack.mention(DEV, text, self.people[who], self.thread)

    async def shows(self, text: str) -> None:
        await self.rig.shows(text, DEV)

    def read(self) -> str:
        return "\n".join(self.rig.said(DEV))

    def labels(self) -> list[str]:
        return [one for m in self.rig.slack.channels[DEV] for one in slack_server.labels(m)]


class OnDiscord:
    """The same in the thread of a task."""

    people = {"own": PERSON, "admin": ADMIN, "other": FRIEND}

    def __init__(self, rig: DiscordRig) -> None:
        self.rig, self.thread = rig, ""

    async def begin(self, text: str) -> None:
        self.thread = (await self.rig.discord.say(CHANNEL, f"@bot {text}", PERSON))["id"]

    async def say(self, who: str, text: str) -> None:
        await self.rig.discord.say(self.thread, f"@bot {text}", self.people[who])

    async def shows(self, text: str) -> None:
        await self.rig.discord.shows(self.thread, text)

    def read(self) -> str:
        return "\n".join(self.rig.read(self.thread))

    def labels(self) -> list[str]:
        shown = self.rig.discord.chats[self.thread]
        return [one for m in shown for one in discord_server.labels(m)]


Place = OnSlack | OnDiscord


@pytest.fixture(params=["slack", "discord"])
def place(request: pytest.FixtureRequest) -> Place:
    """A person's thread; the gateway has not started."""
    rig = request.getfixturevalue(request.param)
    return OnSlack(rig) if request.param == "slack" else OnDiscord(rig)


async def begun(place: Place) -> tuple[asyncio.Event, Session]:
    """In her thread Ann's turn waits for its model until the event is set."""
    rig: Rig = place.rig
    await rig.start()
    await place.begin("hello")
    await place.shows("Hello.")
    await rig.quiet()
    gate = rig.model.gate = asyncio.Event()
    await place.say("own", "one")
    await rig.model.wait_inflight(1, PATIENCE)
    (session,) = rig.host.sessions.values()
    return gate, session


async def set_mode(place: Place, session: Session, word: str) -> None:
    await place.say("admin", f"/mode {word}")
    await place.rig.until(lambda: session.state.row.settings.arrival == word)


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_steered(place: Place, who: str) -> None:
    rig: Rig = place.rig
    rig.model.script(Say("Hello."), LIST, Say("first done"), Say("second done"))
    gate, session = await begun(place)
    await set_mode(place, session, "steer")
    await place.say(who, "but otherwise")
    await rig.until(lambda: len(session.state.queue) == 1)
    rig.model.gate = None
    gate.set()
    await place.shows("first done")
    if who == "other":
        await place.shows("second done")
    await rig.quiet()
    assert ("but otherwise" in str(rig.seen(2, role="user"))) == (who != "other")


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_interrupted(place: Place, who: str) -> None:
    rig: Rig = place.rig
    rig.model.script(Say("Hello."), LIST, Say("first done"), Say("second done"))
    gate, session = await begun(place)
    first = session.state.active
    assert first is not None
    await set_mode(place, session, "interrupt")
    await place.say(who, "something else")
    if who == "other":
        await rig.until(lambda: len(session.state.queue) == 1)
        assert not first.closed, "it goes on"
    else:
        await rig.until(lambda: first.closed)
    rig.model.gate = None
    gate.set()
    await rig.quiet()
    assert first.row.status == ("done" if who == "other" else "cancelled")


@pytest.mark.parametrize("words", ["/stop", "/stop all"])
@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_turn_is_stopped(place: Place, who: str, words: str) -> None:
    rig: Rig = place.rig
    rig.model.script(Say("Hello."), LIST, Say("first done"))
    gate, session = await begun(place)
    first = session.state.active
    assert first is not None
    await place.say(who, words)
    if who == "other":
        await place.shows(say("stop_not_yours"))
    else:
        await rig.until(lambda: first.closed)
    rig.model.gate = None
    gate.set()
    await rig.quiet()
    assert ("first done" in place.read()) == (who == "other")


async def ask(place: Place) -> None:
    """A card waits in the thread of Ann's task."""
    await place.rig.start()
    await place.begin("write it")
    await place.rig.until(lambda: "Approve once" in place.labels())
    await place.rig.quiet()


@pytest.mark.parametrize("who", WHO)
async def test_only_ones_own_waiting_turns_end_by_stop_all(place: Place, who: str) -> None:
    place.rig.model.script(write("a.txt"))
    await ask(place)
    await place.say(who, "/stop all")
    await place.shows(say("nothing_running" if who == "other" else "stopped"))
    await place.rig.quiet()
    assert ("Approve once" in place.labels()) == (who == "other")


@pytest.mark.parametrize("reason", ["port 8080 is taken", "2 copies are enough", "nein, 2 reichen"])
async def test_a_reason_may_have_numbers(place: Place, reason: str) -> None:
    place.rig.model.script(write("a.txt"), Say("Not written."))
    await ask(place)
    await place.say("own", f"/deny {reason}")
    await place.shows("Not written.")
    await place.rig.quiet()
    assert place.rig.seen(role="tool")[-1].endswith(f": {reason}")


async def test_who_may_not_choose_the_model_hears_so(place: Place) -> None:
    await place.rig.start()
    await place.begin("/model anthropic/claude")
    await place.rig.until(
        lambda: (
            "Only an admin can choose the model" in place.read()
            or "Only an admin" in str(_read_channel(place))
        )
    )
    await place.rig.quiet()
    assert place.rig.model.requests == []


def _read_channel(place: Place) -> list[str]:
    return place.rig.read(CHANNEL) if isinstance(place, OnDiscord) else place.rig.said(DEV)


async def test_on_discord_words_that_look_like_a_command_are_words(discord: DiscordRig) -> None:
    await discord.start()
    await discord.discord.say(DISCORD_DM, "/tmp is full, why?", PERSON)
    await discord.discord.shows(DISCORD_DM, "ack /tmp is full, why?")
    await discord.quiet()


async def test_on_slack_words_that_look_like_a_command_are_words(slack: SlackRig) -> None:
    await slack.start()
    slack.slack.say(DM, "/tmp is full, why?")
    await slack.shows("ack /tmp is full, why?")
    await slack.quiet()


async def test_a_french_person_gets_french_cards(discord: DiscordRig) -> None:
    discord.model.script(Call("run_command", '{"command": "make"}'), Say("Non."))
    discord.discord.locale = "fr"
    await discord.start()
    await discord.discord.type(DISCORD_DM, "help", PERSON)  # what one types tells one's language
    await discord.discord.say(DISCORD_DM, "lance-le", PERSON)
    await discord.discord.shows(DISCORD_DM, "Rien n’isole cette commande")
    card = await discord.carded(label="Refuser")
    await discord.discord.press(card, "Refuser", PERSON)
    await discord.discord.shows(DISCORD_DM, "Refusé par")
    await discord.quiet()
