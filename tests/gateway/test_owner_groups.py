"""Owners of due jobs with the groups that they have now."""

from collections.abc import Sequence
from typing import cast

import pytest

from gateway.errors import Unsent
from gateway.messages import Conversation, Inbound, JobFired, Sender
from gateway.ports import Adapter
from gateway.services.owner_groups import Found, OwnerGroups

WHERE = Conversation(platform="slack", account="B", workspace="T", channel="C")
OWNER = Sender(platform="slack", id="U1", groups=("old",))


class Asked:
    """An adapter that tells groups, or fails."""

    def __init__(self, found: Found | Exception) -> None:
        self.found, self.count = found, 0

    async def read_groups(self, conversation: Conversation, person: str) -> Found:
        self.count += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def fire(owner: Sender | None = OWNER, where: Conversation = WHERE) -> JobFired:
    return JobFired(conversation=where, event="e", job="j", due=0.0, text="", owner=owner)


@pytest.mark.parametrize(
    ("found", "groups"),
    [
        (("new",), ("new",)), ((), ()), (None, ("old",)), (Unsent("down"), ("old",)),
        (ValueError("a bug"), ("old",)),
    ],
)  # fmt: skip
async def test_they_are_those_of_now_if_they_can_be_found_out(
    found: Found | Exception, groups: tuple[str, ...]
) -> None:
    adapter, stored = Asked(found), list[Inbound]()

    async def accept(inbounds: Sequence[Inbound]) -> None:
        stored.extend(inbounds)

    owners = OwnerGroups({"slack": cast(Adapter, adapter)}, accept)
    others = (fire(None), fire(Sender(platform="slack", id="U2")))
    elsewhere = fire(where=Conversation(platform="web", account="", channel="x"))
    await owners.accept([fire(), *others, elsewhere, fire()])
    assert [one.owner and one.owner.groups for one in stored] == [  # type: ignore[union-attr]
        groups, None, (), ("old",), groups,
    ]  # fmt: skip
    assert adapter.count == 1, "many jobs of one person are due at once"


async def test_a_platform_that_is_down_holds_up_one_of_many_jobs() -> None:
    adapter, stored = Asked(Unsent("down")), list[Inbound]()

    async def accept(inbounds: Sequence[Inbound]) -> None:
        stored.extend(inbounds)

    due = [fire(Sender(platform="slack", id=f"U{n}", groups=("old",))) for n in range(200)]
    await OwnerGroups({"slack": cast(Adapter, adapter)}, accept).accept(due)
    assert stored == due and adapter.count == 1
