"""Settings of what a model sees of a long conversation."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from agent_core.config.switch import read_switch
from agent_core.context.room import ContextLimits
from agent_core.models.providers import SettingsError


class ContextSettings(BaseModel):
    """`enabled`: older messages are summarised; `threshold`: tokens from which on; `keep`: how
    many of the last messages stay as they are."""

    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    threshold: int = Field(default=60_000, ge=1_000)
    keep: int = Field(default=10, ge=1)

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "ContextSettings":
        """From `env`; raises SettingsError."""
        names = ("COMPRESSION_PROTECT_LAST_N", "CONTEXT_COMPRESSION_PRESERVE_RECENT")
        keep = next((name for name in names if env.get(name, "").strip()), names[-1])
        return cls(
            enabled=read_switch(env, "CONTEXT_COMPRESSION_ENABLED", True, SettingsError),
            threshold=_number(env, "CONTEXT_COMPRESSION_TOKEN_THRESHOLD", 60_000, 1_000),
            keep=_number(env, keep, 10, 1),
        )

    def room(self, window: int, by: str) -> ContextLimits:
        """For a model with a window of so many tokens; `by`: the model that summarises."""
        summarised = min(self.threshold, window // 2) if self.enabled else 0
        return ContextLimits(limit=summarised, most=window * 85 // 100, keep=self.keep, by=by)


def _number(env: Mapping[str, str], name: str, default: int, least: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise SettingsError(name, text, f"write a whole number of at least {least}.")
    return int(text)
