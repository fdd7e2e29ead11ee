"""A new thread begins with what people chose in its channel, and with nothing that was allowed there."""

from types import SimpleNamespace
from typing import Any

import msgspec

from gateway.conversation.inbox.inherited import inherit_settings
from gateway.messages import Conversation
from gateway.store.rows import ConversationRow, ConversationSettings, PersonMode, Rule
from gateway.views import Abilities

CHANNEL = ConversationSettings(
    permission="ask",
    modes=(PersonMode(person="slack:U1", permission="ask"),),
    arrival="queue",
    mode="research",
    plans="on",
    model="lite",
    profile="coder",
    memory="off",
    rules=(Rule(tool="run_command", pattern="rm -r build", person="slack:U1"),),
    people=("slack:U1",),
    workspace="w1",
    instructions="be brief",
    tools="read",
)
CHANNEL_ID = Conversation(platform="slack", account="U", channel="C0DEV").id
KEPT_THERE = {"rules", "people", "workspace", "tools"}


class _Thread:
    """A thread of a channel whose settings are stored."""

    conversation = Conversation(platform="slack", account="U", channel="C0DEV", thread="1.0")
    adapter = SimpleNamespace(abilities=Abilities(task_threads=True))

    def __init__(self, row: ConversationRow) -> None:
        self.row = row
        self.services = SimpleNamespace(store=self)

    async def settings(self, conversation: str) -> ConversationSettings:
        return CHANNEL if conversation == CHANNEL_ID else ConversationSettings()

    def configure(self, settings: ConversationSettings) -> None:
        self.row = msgspec.structs.replace(self.row, settings=settings)


async def inherit(**row: Any) -> dict[str, object]:
    thread = _Thread(ConversationRow(**row))
    await inherit_settings(thread, ())  # type: ignore[arg-type]
    return msgspec.structs.asdict(thread.row.settings)


async def test_what_was_chosen_is_inherited_and_what_was_allowed_is_not() -> None:
    chosen, bare = msgspec.structs.asdict(CHANNEL), msgspec.structs.asdict(ConversationSettings())
    assert all(chosen[name] != bare[name] for name in chosen), "each setting is tried"
    begun = await inherit()
    assert {name for name in chosen if begun[name] != chosen[name]} == KEPT_THERE
    assert all(begun[name] == bare[name] for name in KEPT_THERE)


async def test_a_thread_with_a_past_keeps_its_own() -> None:
    bare = msgspec.structs.asdict(ConversationSettings())
    assert await inherit(end=1) == bare and await inherit(title="begun") == bare
    own = ConversationSettings(plans="off")
    assert await inherit(settings=own) == msgspec.structs.asdict(own)
