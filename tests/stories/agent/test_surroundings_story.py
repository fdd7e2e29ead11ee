"""What the model is told with each message: when, by whom and where it was written, and where
commands run; only what changed, and never in place of what it saw before."""

from datetime import UTC, datetime

from agent_core import ambient
from tests.fakes.model_server import Say
from tests.stories.jobs_rig import Shifted
from tests.stories.rig import ADMIN, GROUP, PERSON, Rig, mention


async def ask(rig: Rig, text: str, chat: int = PERSON, user: int = 0, thread: int = 0) -> list[str]:
    """The lines that came with `text`."""
    asked = len(rig.model.requests)
    group = {"user": user, "group": True, **mention("")} if chat == GROUP else {}
    rig.telegram.say(chat, f"@test_bot {text}" if group else text, thread=thread, **group)
    await rig.until(lambda: len(rig.model.requests) > asked)
    await rig.quiet()
    words, _, lines = rig.sent(role="user")[-1].partition("\n\n")
    assert words.endswith(text)
    return lines.splitlines()


def only_added(rig: Rig) -> bool:
    bodies = [one.body["messages"] for one in rig.model.requests]
    pairs = zip(bodies, bodies[1:], strict=False)
    return all(later[: len(one)] == one for one, later in pairs)


async def test_the_first_message_tells_all_and_the_next_what_changed(
    rig: Rig, clock: Shifted
) -> None:
    clock.offset = datetime(2027, 3, 5, 12, 0, 5, tzinfo=UTC).timestamp() - ambient.now()
    await rig.start()
    assert await ask(rig, "hello") == [
        "[Now: Friday 2027-03-05 12:00 UTC; the person's time zone is not known]",
        "[Person: U11, user]",
        "[Place: telegram, private chat]",
        "[Sandbox: unsafe-subprocess: not isolated, commands reach this machine and the network]",
    ]
    rig.telegram.say(PERSON, "/timezone Asia/Tokyo")
    await rig.shows("Your time zone is now Asia/Tokyo")
    clock.offset += 60.0
    assert await ask(rig, "and now") == ["[Now: Friday 2027-03-05 21:01 Asia/Tokyo (UTC+0900)]"]
    await rig.crash()
    await rig.start(TELEGRAM_ADMIN_USERS=f"{PERSON},{ADMIN}")
    _, *changed = await ask(rig, "as an admin")
    assert changed == ["[Person: U11, admin]"]
    assert only_added(rig) and len(rig.model.requests) == 3


async def test_a_new_conversation_is_told_all_again_and_people_see_none_of_it(rig: Rig) -> None:
    await rig.start()
    first = await ask(rig, "hello")
    rig.telegram.say(PERSON, "/new")
    await rig.quiet()
    assert (await ask(rig, "hello again"))[1:] == first[1:]
    rig.model.script(Say("said anew"))
    rig.telegram.say(PERSON, "/retry")
    await rig.shows("said anew")
    await rig.quiet()
    assert rig.sent(role="user")[-1].count("[Now: ") == 1, "what was told then is told anew"
    rig.telegram.say(PERSON, "/resume")
    await rig.shows("hello")
    await rig.quiet()
    assert not any("[Now: " in text or "[Place: " in text for text in rig.said())


async def test_a_group_tells_who_asks_and_of_its_threads(rig: Rig) -> None:
    await rig.start(TELEGRAM_ALLOWED_CHATS="*")
    lines = await ask(rig, "hello", GROUP, PERSON)
    assert "[Place: telegram, group]" in lines and "[Person: U11, user]" in lines
    assert (await ask(rig, "me too", GROUP, ADMIN))[1:] == ["[Person: U13, admin]"]
    lines = await ask(rig, "and here", GROUP, PERSON, thread=5)
    assert "[Place: telegram, group, a thread]" in lines
