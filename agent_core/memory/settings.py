"""Settings of the memory."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from agent_core.config.switch import read_switch
from agent_core.memory.documents import Target
from agent_core.models.providers import SettingsError


class MemorySettings(BaseModel):
    """`enabled`: there is a memory; `memory` and `user`: characters that MEMORY.md and USER.md
    may have."""

    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    memory: int = Field(default=2_200, ge=100)
    user: int = Field(default=1_375, ge=100)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "MemorySettings":
        """From `env`; raises SettingsError."""
        return cls(
            enabled=read_switch(env, "MEMORY_ENABLED", True, SettingsError),
            memory=_limit(env, "MEMORY_CHAR_LIMIT", 2_200),
            user=_limit(env, "USER_CHAR_LIMIT", 1_375),
        )

    def limit(self, target: Target) -> int:
        """Characters that the document may have."""
        return self.memory if target == "memory" else self.user


def _limit(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 100 <= int(text) <= 20_000):
        raise SettingsError(name, text, "write a whole number of characters, from 100 to 20000.")
    return int(text)
