"""Updates that come late, again and in any order: each one is one turn."""

import random

import pytest

from gateway import clock
from tests.fakes.telegram_server import TelegramServer
from tests.stories.rig import PERSON, Json, Rig

TEXTS = tuple(f"message {n}" for n in range(8))
SECRET = "a-long-random-text"


def shuffled(telegram: TelegramServer, seed: int) -> None:
    """Each update three times, in some order."""
    order = random.Random(seed)
    updates = [made_of(telegram, n, text) for n, text in enumerate(TEXTS)]
    for update in order.sample(updates * 3, len(updates) * 3):
        telegram.redeliver(update)


def made_of(telegram: TelegramServer, number: int, text: str) -> Json:
    person = {"id": PERSON, "is_bot": False, "first_name": f"U{PERSON}", "language_code": "en"}
    chat = {"id": PERSON, "type": "private", "first_name": f"U{PERSON}"}
    message = {"message_id": 500 + number, "from": person, "chat": chat, "text": text}
    return {"update_id": 9000 + number, "message": message | {"date": int(clock.now())}}


async def each_once(rig: Rig) -> None:
    """Every message was answered by one turn, and nothing else was said."""
    for text in TEXTS:
        await rig.shows(f"ack {text}")
    await rig.quiet()
    assert sorted(rig.said()) == sorted(f"ack {text}" for text in TEXTS)
    asked = [rig.seen(n)[-1] for n in range(len(rig.model.requests))]
    assert sorted(asked) == sorted(TEXTS)


@pytest.mark.parametrize("seed", range(3))
async def test_polled_three_times_in_any_order(rig: Rig, seed: int) -> None:
    """The server drops answers, fails, says 409 and answers late besides."""
    rig.telegram.drop("getUpdates", times=2)
    rig.telegram.fail("getUpdates", 502, after_effect=True)
    rig.telegram.fail("getUpdates", 409, description="Conflict: terminated by other getUpdates")
    shuffled(rig.telegram, seed)
    await rig.start()
    await each_once(rig)
    shuffled(rig.telegram, seed + 50)  # and once more when all is long over
    rig.telegram.say(PERSON, "last")
    await rig.shows("ack last")
    await rig.quiet()
    assert len(rig.said()) == len(TEXTS) + 1


async def test_polled_again_after_a_crash(rig: Rig) -> None:
    shuffled(rig.telegram, 7)
    await rig.start()
    await rig.shows("ack ")
    await rig.crash()
    shuffled(rig.telegram, 8)
    await rig.start()
    for text in TEXTS:
        await rig.shows(f"ack {text}")
    await rig.quiet()
    answers = [said for said in rig.said() if "Possibly sent twice" not in said]
    assert sorted(set(rig.said())) == sorted(rig.said()), "no answer twice without saying so"
    assert len(TEXTS) - 1 <= len(answers) <= len(TEXTS)


@pytest.mark.parametrize("seed", range(2))
async def test_pushed_three_times_in_any_order(rig: Rig, seed: int, unused_tcp_port: int) -> None:
    """By webhook, while the store is not open yet (503) and after."""
    url = f"http://127.0.0.1:{unused_tcp_port}/telegram/webhook"
    hook = {"TELEGRAM_WEBHOOK_URL": url, "TELEGRAM_WEBHOOK_SECRET": SECRET}
    rig.telegram.fail("setWebhook", 500)
    await rig.start(**hook, TURNKEEPER_PORT=str(unused_tcp_port))
    await rig.telegram.wait(lambda: rig.telegram.webhook is not None)
    shuffled(rig.telegram, seed)
    await each_once(rig)
    assert not rig.telegram.made("getUpdates")
