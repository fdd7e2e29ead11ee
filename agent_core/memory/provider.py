"""An additional memory of another provider: searched as a turn begins, and told of what ours
stores.

Ours remains the one that people see, correct and switch off. A failing or slow provider costs a
turn only a few seconds: the turn goes on without it, and the log says so.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol, TypeAlias

from agent_core import ambient
from agent_core.context.data_marks import mark_data
from agent_core.memory.documents import Change, ChangeOutcome, MemoryDocuments
from agent_core.memory.port import Memory
from agent_core.memory.settings import (
    PROVIDER,
    MemorySettings,
    ToolCallTemplate,
    ToolMemorySettings,
)
from agent_core.orchestration.brief import Brief
from agent_core.scope import Scope

log = logging.getLogger("turnkeeper.memory")

SECONDS = 5.0
"""Seconds that a turn waits for the provider to recall, and to store."""
MAX_WORDS = 2_000
"""Characters of a request that are looked up."""
MAX_RECALLED = 4_000
"""Maximum characters recalled by the provider for a turn."""
HEAD = "[From the memory {name}, looked up for this request.]\n{text}"
CallTool: TypeAlias = Callable[[str, str, dict[str, object]], Awaitable[str]]
"""Calls a tool of a server (its name, the tool's, arguments); its text. Raises ToolFailed."""


class MemoryProvider(Protocol):
    """Another memory. `space` identifies the owner: nothing of one space is seen in another.
    Exceptions of its methods are only logged."""

    @property
    def name(self) -> str:
        """The provider's name for the model."""

    @property
    def forgets(self) -> bool:
        """True if it can remove an entry."""

    @property
    def clears(self) -> bool:
        """True if it can remove a whole space at once."""

    async def recall(self, space: str, words: str) -> str:
        """Return its memories that are relevant to `words`, "" if there are none."""

    async def add(self, space: str, text: str) -> None:
        """Store an entry. May be repeated after a crash."""

    async def forget(self, space: str, text: str) -> None:
        """Remove an entry. May be repeated."""

    async def clear(self, space: str) -> None:
        """Remove a whole space. May be repeated."""


class ToolMemory:
    """A memory reached by tools of a server (MCP)."""

    def __init__(self, settings: ToolMemorySettings, call: CallTool) -> None:
        self._settings, self._call = settings, call

    @property
    def name(self) -> str:
        """The server's."""
        return self._settings.server

    async def recall(self, space: str, words: str) -> str:
        """See `MemoryProvider`. Raises ToolFailed."""
        text = await self._use(self._settings.recall, space=space, words=words[:MAX_WORDS])
        return text.strip()[:MAX_RECALLED]

    @property
    def forgets(self) -> bool:
        """A tool for it is set."""
        return self._settings.remove is not None

    @property
    def clears(self) -> bool:
        """A tool for it is set."""
        return self._settings.clear is not None

    async def add(self, space: str, text: str) -> None:
        """See `MemoryProvider`. Raises ToolFailed."""
        await self._use(self._settings.add, space=space, text=text)

    async def forget(self, space: str, text: str) -> None:
        """See `MemoryProvider`. Raises ToolFailed."""
        await self._use(self._settings.remove, space=space, text=text)

    async def clear(self, space: str) -> None:
        """See `MemoryProvider`. Raises ToolFailed."""
        await self._use(self._settings.clear, space=space)

    async def _use(self, template: ToolCallTemplate | None, **fields: str) -> str:
        if template is None:
            return ""
        arguments = {name: _fill(value, fields) for name, value in template.arguments.items()}
        return await self._call(self._settings.server, template.tool, arguments)


def find_provider(
    settings: MemorySettings, servers: Mapping[str, bool], call: CallTool
) -> MemoryProvider | None:
    """Return the provider that is set, None if there is none. `servers`: those of tools, and
    whether people sign in there. Raises SettingsError."""
    wanted = settings.provider
    if wanted is None or not settings.enabled:
        return None
    if wanted.server not in servers:
        raise PROVIDER.error("", f"there is no server {wanted.server} in MCP_SERVERS.")
    if servers[wanted.server]:
        raise PROVIDER.error("", f"{wanted.server} is used by each person for themselves (auth).")
    return ToolMemory(wanted, call)


class ProvidedMemory:
    """`own`, an `agent_core.memory.port.Memory`, whose changes are passed to a provider too. `own`
    notes removals itself; `settle` has the provider make them."""

    def __init__(
        self,
        own: Memory,
        provider: MemoryProvider,
        space: str,
        settle: Callable[[], Awaitable[object]],
    ) -> None:
        self._own, self._provider, self._space = own, provider, space
        self._settle = settle

    @property
    def off(self) -> bool:
        """People have switched it off: the provider is not asked either."""
        return self._own.off

    @property
    def personal(self) -> bool:
        """True if ours has a USER.md."""
        return self._own.personal

    async def read(self) -> MemoryDocuments:
        """Return our documents."""
        return await self._own.read()

    async def change(self, change: Change, key: str) -> ChangeOutcome:
        """Change ours; then tell the provider."""
        outcome = await self._own.change(change, key)
        if outcome.shown and change.action != "add":
            await self._settle()
        if outcome.shown and change.action != "remove":
            await self._try(self._provider.add(self._space, change.text))
        return outcome

    async def recall(self, words: str) -> str:
        """Return the provider's memories that are relevant to `words`, as data; "" if there are
        none, or it fails."""
        if self.off or not words.strip():
            return ""
        text = await self._try(self._provider.recall(self._space, words))
        name = self._provider.name
        return HEAD.format(name=name, text=mark_data(text)) if text else ""

    async def _try(self, work: Awaitable[str | None]) -> str:
        try:
            async with ambient.limit(SECONDS):
                return await work or ""
        except Exception as error:  # noqa: BLE001  # boundary: third-party code
            why = {"provider": self._provider.name, "kind": type(error).__name__}
            log.warning("memory_provider_failed", extra=why)
            return ""


async def add_recalled(scope: Scope, brief: Brief, memory: ProvidedMemory) -> Brief:
    """Add the provider's relevant memories to the brief."""
    words = brief.said or brief.request_text()
    text = await scope.once("recalled", partial(memory.recall, words), kind=str)
    return brief.append(text, words) if text else brief


def _fill(value: object, fields: dict[str, str]) -> object:
    """`value` with fields in the place of their names in braces, and nothing else read in it."""
    match value:
        case str():
            for name, text in fields.items():
                if value == f"{{{name}}}":
                    return text
            head, brace, rest = value.partition("{")
            name, close, tail = rest.partition("}")
            if not brace or not close or name not in fields:
                return value
            return f"{head}{fields[name]}{_fill(tail, fields)}"
        case list():
            return [_fill(one, fields) for one in value]
        case dict():
            return {key: _fill(one, fields) for key, one in value.items()}
        case _:
            return value
