"""Names, languages, time zones and user groups of people, which Slack's events leave out."""

import asyncio
import logging
import re
from collections import OrderedDict

from msgspec.structs import replace

from adapters.slack.parse import Json, SlackBot
from adapters.slack.transport import SlackWire
from gateway import clock
from gateway.errors import DeliveryError, Rejected
from gateway.messages import Sender

log = logging.getLogger("adapters.slack")

MENTIONED = re.compile(r"@([UW][A-Z0-9]{3,20})\b")
"""A person in a readable text, by the id alone."""
MAX_MENTIONED = 5
"""Maximum people of one text whose names are looked up."""
NAMING = 1.0
"""Seconds that an event waits for a name; without one it goes on."""
KNOWN, KNOWN_FOR, UNKNOWN_FOR = 2_000, 3_600.0, 60.0
"""People whose names are known; seconds for which a name holds, and for which none is asked for
after a failure."""
GROUPING = 10.0
"""Seconds that an event waits for the groups, on which rights depend. Slack repeats events after
three, and duplicates are dropped."""
GROUPS_FOR, GROUPS_AGAIN = 300.0, 10.0
"""Seconds for which the groups hold; seconds until the next try after a failure."""


class Groups:
    """The workspace's user groups with their members, requested every few minutes; none if the app
    may not read them. The last known ones hold while Slack does not answer."""

    def __init__(self, wire: SlackWire) -> None:
        self._wire = wire
        self._until = 0.0
        self._of: dict[str, tuple[str, ...]] = {}
        self.are_known = False
        self._asking = asyncio.Lock()

    async def find_groups(self, user: str) -> tuple[str, ...]:
        """The ids of the groups that `user` is in."""
        async with self._asking:  # concurrent callers wait for the same answer
            if self._until <= clock.monotonic():
                self._until = clock.monotonic() + await self._load()
        return self._of.get(user, ())

    async def _load(self) -> float:
        """Request them; return the seconds for which they hold."""
        try:
            async with clock.limit(GROUPING):
                asked = {"include_users": "true"}
                answer = await self._wire.call("usergroups.list", asked, form=True)
        except (DeliveryError, TimeoutError) as error:
            log.info("slack_no_groups", extra={"why": str(error)})
            return KNOWN_FOR if isinstance(error, Rejected) else GROUPS_AGAIN
        self._of, self.are_known = _members(answer.get("usergroups")), True
        return GROUPS_FOR


def _members(groups: object) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for group in groups if isinstance(groups, list) else ():
        about = group if isinstance(group, dict) else {}
        name, users = about.get("id"), about.get("users")
        if isinstance(name, str) and isinstance(users, list) and not about.get("date_delete"):
            for user in users:
                if isinstance(user, str):
                    found[user] = (*found.get(user, ()), name)
    return found


class SlackPeople:
    """Names, languages and zones of people, which Slack's events leave out; kept for an hour."""

    def __init__(self, wire: SlackWire) -> None:
        self._wire, self._groups = wire, Groups(wire)
        self._known: OrderedDict[str, tuple[float, Sender | None]] = OrderedDict()
        """By id: until when it holds, and the person; None while Slack tells no profile."""
        self.me: SlackBot | None = None
        """The bot, once it is known."""

    async def resolve_sender(self, sender: Sender) -> Sender:
        """Return `sender` with Slack's facts about them: the last known ones if that fails or takes
        long, unchanged if there are none."""
        named = await self._load_name(sender)
        return (
            replace(named, groups=await self._groups.find_groups(sender.id)) if sender.id else named
        )

    async def read_groups(self, person: str) -> tuple[str, ...] | None:
        """Return the person's user groups; None if Slack has not told any yet."""
        groups = await self._groups.find_groups(person)
        return groups if self._groups.are_known else None

    async def name_mentioned(self, text: str) -> str:
        """`text` with names in place of the ids of people who are mentioned in it."""
        ids = list(dict.fromkeys(MENTIONED.findall(text)))[:MAX_MENTIONED]
        if not ids:
            return text
        async with asyncio.TaskGroup() as group:  # at once: Slack waits for the reply
            asked = {
                one: group.create_task(self._load_name(Sender(platform="slack", id=one)))
                for one in ids
            }
        names = {one: task.result().name or task.result().handle for one, task in asked.items()}
        return MENTIONED.sub(lambda found: f"@{names.get(found[1]) or found[1]}", text)

    async def _load_name(self, sender: Sender) -> Sender:
        until, found = self._known.get(sender.id, (0.0, None))
        if until > clock.monotonic() or not sender.id:
            return found or sender
        lasts = KNOWN_FOR
        try:
            async with clock.limit(NAMING):
                asked = {"user": sender.id, "include_locale": "true"}
                answer = await self._wire.call("users.info", asked, form=True)
            found = _apply_name(sender, answer.get("user"), self.me)
        except (DeliveryError, TimeoutError) as error:
            log.info("slack_no_name", extra={"why": str(error)})
            lasts = UNKNOWN_FOR
        self._known[sender.id] = (clock.monotonic() + lasts, found)
        if len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return found or sender


def _apply_name(sender: Sender, user: object, me: SlackBot | None) -> Sender:
    about = user if isinstance(user, dict) else {}
    inner = about.get("profile")
    profile = inner if isinstance(inner, dict) else {}
    names = (profile.get("display_name"), profile.get("real_name"), about.get("real_name"))
    name = next((one for one in names if isinstance(one, str) and one), "")
    handle, locale, zone = about.get("name"), about.get("locale"), about.get("tz")
    places = me is not None and bool(about.get("team_id") or about.get("is_stranger"))
    return replace(
        sender,
        name=name,
        handle=handle if isinstance(handle, str) else "",
        language=locale if isinstance(locale, str) else "",
        zone=zone if isinstance(zone, str) else "",
        external=_is_elsewhere(about, me) if me is not None and places else sender.external,
        unplaced=sender.unplaced and not places,
    )


def _is_elsewhere(user: Json, me: SlackBot) -> bool:
    """Return True for a person of another organization, whom a shared channel (Slack Connect) or
    group brings. Workspaces of one Enterprise organization are not apart."""
    inner = user.get("enterprise_user")
    enterprise = inner.get("enterprise_id") if isinstance(inner, dict) else ""
    if me.enterprise and enterprise == me.enterprise:
        return False
    team = user.get("team_id")
    return user.get("is_stranger") is True or (isinstance(team, str) and team not in ("", me.team))
