"""The backend over a real host: what the HTTP API sees of a conversation."""

from pathlib import Path

import pytest

from gateway.access.access import AllowLists
from gateway.access.policy import Policy
from gateway.messages import MessageReceived, Sender
from gateway.ports import Shown, account_scope, person_scope
from gateway.views import Abilities, ReplyView
from gateway.wiring.web_backend import GatewayBackend
from tests.fakes.world import ANN, ROOM, Life


def said(event: str, text: str) -> MessageReceived:
    return MessageReceived(conversation=ROOM, sender=ANN, event=event, message=event, text=text)


async def test_a_message_its_views_and_its_conversation(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.living():
        backend = GatewayBackend(life.host)
        async with backend.watch(ROOM.id) as live:
            await backend.accept([said("m1", "hello")])
            shown = await anext(live)
            while not (isinstance(shown, Shown) and isinstance(shown.view, ReplyView)):
                shown = await anext(live)
        await life.quiet()
        assert isinstance(shown, Shown)
        latest = await backend.latest(ROOM.id, 10)
        assert [one.view for one in latest if isinstance(one.view, ReplyView)] == [
            ReplyView(text="ack hello")
        ]
        assert await backend.views(ROOM.id, 0, 10) == tuple(sorted(latest, key=lambda one: one.rev))
        assert await backend.views(ROOM.id, latest[-1].rev, 10) == ()
        (summary,) = await backend.recent(account_scope(ROOM), 10)
        assert (summary.conversation, summary.title, summary.state) == (ROOM.id, "hello", "idle")
        assert await backend.recent(person_scope("web:ann"), 10) == ()


async def test_what_waits(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.living():
        life.agent.delays["model"] = 30.0
        life.adapter.abilities = Abilities(own_messages=False)
        backend = GatewayBackend(life.host)
        await backend.accept([said("m1", "first")])
        await life.until(lambda: life.ledger.all("model"))
        await backend.accept([said("m2", "second")])
        await backend.accept([said("m2", "second")])
        standing = await backend.read_standing(ROOM.id)
        assert [(one.name, one.text) for one in standing.waiting] == [("Ann", "second")]
        assert standing.state == "running"


@pytest.mark.parametrize(("person", "role"), [("ann", "user"), ("root", "admin"), ("eve", None)])
async def test_roles_are_those_in_force_now(tmp_path: Path, person: str, role: str | None) -> None:
    life = Life(tmp_path)
    async with life.living():
        backend, sender = GatewayBackend(life.host), Sender(platform="test", id=person)
        assert await backend.find_role(sender) == role
        lists = {"test": AllowLists(admins=frozenset({person}))}
        life.services.access.replace_lists(lists, Policy())
        assert await backend.find_role(sender) == "admin"
