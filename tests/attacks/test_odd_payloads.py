"""Payloads drawn from the platforms' descriptions, then spoilt: each is read soon and without an
error, and what is made of it can be stored and has an address that can be read again."""

import json
import random
import time
from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from adapters.discord import menu, receive
from adapters.discord import parse as discord
from adapters.discord.memory import DiscordMemory
from adapters.incoming import clean_strings
from adapters.slack import parse as slack
from adapters.slack.live import about
from adapters.telegram import parse as telegram
from gateway.messages import Inbound, read_conversation
from tests.attacks.payload_grammar import (
    BOT,
    Json,
    draw_event,
    draw_slack,
    draw_update,
    spoil,
)
from tests.sampling import SEED, dice, examples

MAX_SECONDS = 0.5
"""Of this process, for a payload of some 100,000 characters."""
MAX_BODY = 1 << 20
"""Characters of a payload; more are not read."""
CHANNELS = (discord.NOWHERE, discord.Channel(opens=True), discord.Channel(parent="60"))
TELEGRAM_ME = telegram.TelegramBot(id=BOT, username="helper")
DISCORD_ME = discord.DiscordBot(id=str(BOT), name="helper", application="4002")
SLACK_ME = slack.SlackBot(user="U0BOT", team="T0TEAM", bot="B0BOT")


def judge(inbound: Inbound | None) -> bool:
    """Whether anything was said; it can be stored, and found again."""
    if inbound is None:
        return False
    kept = msgspec.json.decode(msgspec.json.encode(inbound), type=Inbound)
    assert kept == inbound
    assert read_conversation(inbound.conversation.id) == inbound.conversation
    return True


def read_telegram(update: Json) -> bool:
    telegram.update_id(update)
    telegram.read_me(update.get("message"))
    return judge(telegram.parse(update, TELEGRAM_ME))


def read_discord(kind: str, event: Json) -> bool:
    memory = DiscordMemory(None)
    memory.note_read(event)
    memory.remember_language(event)
    msgspec.json.encode(menu.answer(event))
    menu.make_choices([(discord.command_of(event), discord.read_typed(event))])
    for one in receive.read_deletions(event, memory.said):
        judge(one)
    discord.read_channel(event.get("channel"))
    discord.read_me(event.get("author"), event.get("application"))
    discord.read_own_role(event.get("mention_roles"), str(BOT))
    discord.read_quotes([event, event.get("message")], str(BOT))
    discord.conversation_of(event, DISCORD_ME, discord.NOWHERE)
    judge(discord.parse(kind, discord.mention_bot(event, DISCORD_ME, "5"), DISCORD_ME))
    return any([judge(discord.parse(kind, event, DISCORD_ME, channel)) for channel in CHANNELS])


def read_slack(kind: str, payload: Json) -> bool:
    clean_strings(payload)
    slack.read_action(payload)
    slack.home_opened(payload, SLACK_ME)
    about.read(payload)
    judge(about.read_question(payload, SLACK_ME))
    if isinstance(event := payload.get("event"), dict):
        judge(slack.read_back(event, "C0DEV", SLACK_ME))
    return judge(slack.parse(kind, payload, SLACK_ME))


def draw(platform: str, chance: random.Random) -> Callable[[], bool]:
    """A payload, mostly a spoilt one, as it arrives; and how it is read."""
    match platform:
        case "telegram":
            kind, payload = "", draw_update(chance)
        case "discord":
            kind, payload = draw_event(chance)
        case _:
            kind, payload = draw_slack(chance)
    if chance.random() < 0.8:
        spoil(payload, chance)
    sent = as_sent(payload)
    match platform:
        case "telegram":
            return partial(read_telegram, sent)
        case "discord":
            return partial(read_discord, kind, sent)
    return partial(read_slack, kind, sent)


def as_sent(payload: Json) -> Json:
    """What a reader of JSON makes of it; nothing, where it is too deep or long to be read."""
    try:
        body = json.dumps(payload)
        return json.loads(body) if len(body) < MAX_BODY else {}
    except RecursionError:
        return {}


PLATFORMS = pytest.mark.parametrize("platform", ["telegram", "discord", "slack"])


@PLATFORMS
@seed(SEED)
@settings(max_examples=examples(90), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_any_payload_is_read(platform: str, chance: random.Random) -> None:
    draw(platform, chance)()


@PLATFORMS
def test_a_sample_is_read_soon(platform: str) -> None:
    many_are_read(platform, 300)


@pytest.mark.slow
@PLATFORMS
def test_thousands_are_read_soon(platform: str) -> None:
    many_are_read(platform, 20_000)


def many_are_read(platform: str, count: int) -> None:
    read = 0
    for n in range(count):
        reading = draw(platform, dice(platform, count, n))
        began = time.process_time()
        read += reading()
        assert time.process_time() - began < MAX_SECONDS, f"{platform}, {count}, {n}"
    assert read > count / 10, "most of what is drawn is not even looked at"
