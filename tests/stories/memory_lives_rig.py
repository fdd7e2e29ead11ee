"""Lives of a gateway whose agent stores something and takes it out again."""

import json
from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.context.surroundings import strip_surroundings
from agent_core.memory.recall import strip_recalled
from agent_core.memory.tool import memory_tool
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.orchestration.brief import Hands
from agent_core.tools.toolbox import Toolbox
from gateway.conversation.agent import PolicyContext
from gateway.services.memory import Memories
from gateway.views import ReplyView
from tests.fakes.world import Life, ScriptedAgent

TEA, FALCON = "Ann likes tea.", "It is called Falcon."
STEPS = {
    "keep": {"action": "add", "target": "user", "text": TEA},
    "name": {"action": "add", "target": "memory", "text": FALCON},
    "drop": {"action": "remove", "target": "user", "old_text": "tea"},
}


async def alone(account: str) -> frozenset[str]:
    return frozenset({account})


class RememberingAgent(ScriptedAgent):
    """`keep name` stores two entries, `drop` takes one out: by the tool, each in a round."""

    memories: Memories

    def __init__(self, life: Life) -> None:
        super().__init__(life.ledger, life.points, life.folder)
        self.toolbox = Toolbox((memory_tool(), self._tool("note", "effect")))
        life.prepares.append(lambda: life.equip(memory=self.memories))

    def hands(self, circumstances: PolicyContext) -> Hands:
        person, _ = circumstances.asker()
        shelf = self.memories.open_for(circumstances.conversation, person, lambda: False)
        return replace(super().hands(circumstances), memory=shelf)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        last = max(n for n, one in enumerate(messages) if one.role == "user")
        text = strip_surroundings(text_of(messages[last]))
        self._ledger.note("read", text=text)
        words = strip_recalled(text).split()
        done = sum(one.role == "tool" for one in messages[last:])
        if done == len(words):
            return [Text(text=f"{strip_recalled(text)}: ok")]
        arguments = json.dumps(STEPS[words[done]])
        return [ToolCall(id=f"{words[done]}-{last}", name="memory", arguments=arguments)]


class PointedDirectory:
    """Points before and after each write of a document."""

    def __init__(self, life: Life) -> None:
        self._life = life

    async def get(self, key: str) -> bytes | None:
        return await self._life.store.get(key)

    async def put(self, key: str, body: bytes | None, expected: bytes | None = None) -> bool:
        self._life.points.hit("put")
        stood = await self._life.store.put(key, body, expected)
        self._life.ledger.note("put", stood=stood, body=(body or b"").decode())
        self._life.points.hit("putten")
        return stood

    async def keys(self, prefix: str) -> tuple[str, ...]:
        return await self._life.store.keys(prefix)


async def keep_and_forget(life: Life) -> None:
    """Two are kept; the agent drops one of them, its person the other."""
    await life.say("m1", "keep name")
    await finals(life, "keep name: ok")
    await life.say("m2", "drop")
    await finals(life, "drop: ok")
    await life.quiet()
    await life.command("f1", "memory forget 1")
    await life.quiet()


async def finals(life: Life, text: str) -> None:
    def there() -> bool:
        views = life.screen().values()
        return any(
            isinstance(v, ReplyView) and v.state == "final" and v.text == text for v in views
        )

    await life.until(there)


class Refusing:
    """A memory that has broken down, or is like the file that it is."""

    name, forgets, clears = "mem", True, False

    def __init__(self, holds: Sequence[str] = (), *, broken: bool = False) -> None:
        self.holds, self.broken, self.asked = list(holds), broken, 0

    async def recall(self, space: str, words: str) -> str:
        return ""

    async def add(self, space: str, text: str) -> None:
        self.holds.append(text)

    async def forget(self, space: str, text: str) -> None:
        self.asked += 1
        if self.broken:
            raise ValueError("out of order")
        self.holds = [one for one in self.holds if one != text]

    async def clear(self, space: str) -> None:
        raise AssertionError("it says that it cannot")
