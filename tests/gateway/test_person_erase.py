"""A person is erased while the gateway runs, and may begin anew; doctor says what would go."""

import pytest

from tests.fakes.model_server import Call, Hang
from tests.gateway.process import PERSON, START, World

NONCE = "zq-secret-7731-abcdef"
FRIEND = 12
PEOPLE = {"TELEGRAM_ALLOWED_USERS": f"{PERSON},{FRIEND}"}


def stored(world: World) -> bytes:
    home = world.folder / ".turnkeeper"
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


@pytest.mark.pick("a home in a process")
@pytest.mark.parametrize("state", ["parked", "running"])
async def test_a_running_gateway_erases_whom_it_talks_with(world: World, state: str) -> None:
    asked = Call("write_file", f'{{"path": "a.txt", "content": "{NONCE}"}}')
    world.model.by_text[NONCE] = [asked if state == "parked" else Hang()]
    run = await world.start(**PEOPLE)
    world.telegram.say(FRIEND, "what the friend wrote")
    await world.telegram.wait_text(FRIEND, "ack what the friend", START)
    world.telegram.say(PERSON, f"write {NONCE}")
    if state == "parked":
        await world.telegram.wait(
            lambda: any("reply_markup" in m for m in world.telegram.chats[PERSON]), START
        )
    else:
        await world.model.wait(
            lambda: any(NONCE.encode() in one.raw for one in world.model.requests), START
        )
    assert NONCE.encode() in stored(world)

    code, said = await world.command("person", "erase", f"telegram:{PERSON}", **PEOPLE)
    assert code == 1, "it was not confirmed"
    code, said = await world.command("person", "erase", f"telegram:{PERSON}", "--yes", **PEOPLE)
    assert code == 0 and "1 conversations" in said, said
    assert NONCE.encode() not in stored(world)
    assert b"what the friend wrote" in stored(world)

    world.model.by_text.clear()
    world.telegram.say(PERSON, "a new beginning")
    await world.telegram.wait_text(PERSON, "ack a new beginning", START)
    code, said = await world.command("audit", **PEOPLE)
    assert code == 0 and "erased" in said and NONCE not in said
    code, said = await world.command("audit", "verify", **PEOPLE)
    assert code == 0 and "hold" in said, said
    code, said = await world.command("doctor", **PEOPLE)
    assert code == 0 and "conversations go after 90 days; 0 are older now" in said
    assert await run.end() == 0
    assert NONCE not in run.log
