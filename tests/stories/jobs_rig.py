"""What stories about jobs share: a clock that can be set, and ways to make, fire and see a job."""

import json
import time

from agent_core import ambient
from agent_core.ambient import SystemClock
from gateway.jobs_port import Asker, Job, JobPorts, JobRequest, JobRun
from gateway.messages import Conversation, Sender
from tests.fakes.model_server import Call, Json, Say
from tests.stories.rig import GROUP, PATIENCE, PERSON, Rig, mention

DAY = 86_400.0
TITLE = "Open incidents"


class Shifted(SystemClock):
    """The machine's clock, set to another time."""

    offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset  # noqa: TID251  # a clock


def schedule(**more: object) -> Call:
    wanted = {
        "action": "create", "title": TITLE, "prompt": "List the open incidents.",
        "schedule": "0 9 * * *", "zone": "Europe/Berlin",
    } | more  # fmt: skip
    return Call("schedule_job", json.dumps(wanted))


def jobs_of(rig: Rig) -> JobPorts:
    found = rig.host.services.jobs
    assert found is not None
    return found


async def only(rig: Rig) -> Job:
    (job,) = await jobs_of(rig).store.list_jobs()
    return job


async def runs(rig: Rig) -> list[JobRun]:
    job = await only(rig)
    return list(await jobs_of(rig).store.runs(job.id, 100))


def card_of(rig: Rig, text: str, chat: int = PERSON) -> Json:
    """The newest message with buttons that holds `text`."""
    shown = rig.telegram.chats[chat]
    return [m for m in shown if text in m["text"] and m.get("reply_markup")][-1]


async def make(rig: Rig, chat: int = PERSON, **more: str) -> Job:
    rig.model.script(schedule(**more), Say("It stands."))
    if chat == GROUP:
        rig.telegram.say(chat, "@test_bot every day at 9", PERSON, True, **mention(""))
    else:
        rig.telegram.say(chat, "every day at 9 send me the open incidents")
    card = await rig.card(chat)
    rig.press(card, "Confirm")
    await rig.shows("It stands.", chat)
    await rig.quiet()
    return await only(rig)


async def pass_until(rig: Rig, clock: Shifted, moment: float) -> None:
    clock.offset = moment - time.time()  # noqa: TID251  # a clock
    jobs_of(rig).bell.set()


async def fire(rig: Rig, clock: Shifted) -> None:
    await pass_until(rig, clock, (await only(rig)).next_due + 1)


async def settled(rig: Rig, state: str) -> JobRun:
    """The newest run, once it is that far."""
    async with ambient.limit(PATIENCE):
        while True:
            found = await runs(rig)
            if found and found[0].state == state:
                return found[0]
            await ambient.wait(0.01)


OWNER = Sender(platform="web", id="owner", name="owner")


HOME = Conversation(platform="web", account="local", channel="owner~c1", private=True)


async def own(rig: Rig) -> Job:
    asker = Asker(conversation=HOME, sender=OWNER, role="admin")
    wish = JobRequest(
        title="Look", prompt="Look around.", schedule="0 9 * * *", zone="Europe/Berlin"
    )
    return await jobs_of(rig).drafts.make(await jobs_of(rig).drafts.draft(wish, asker), "mine")
