"""Settings of the context: how much of a long conversation the model sees."""

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import WholeNumber, parse_switch
from agent_core.context.limits import ContextLimits

MESSAGES = WholeNumber(least=1, mend="write a whole number of at least 1.")
ENABLED = Setting(
    "CONTEXT_COMPRESSION_ENABLED",
    True,
    parse_switch,
    "summarise older messages when a request gets long",
)
THRESHOLD = Setting(
    "CONTEXT_COMPRESSION_TOKEN_THRESHOLD",
    None,
    WholeNumber(least=1_000, mend="write a whole number of at least 1000."),
    "number of tokens above which messages are summarised; at most half of the model's window",
    default_text="half of the model's window; 60000 for one of 128000",
)
RECENT = Setting(
    "CONTEXT_COMPRESSION_PRESERVE_RECENT",
    10,
    MESSAGES,
    ("number of recent messages that are kept unchanged"),
)
LAST = Setting("COMPRESSION_PROTECT_LAST_N", None, MESSAGES, "alias that overrides it")
USUAL = {128_000: 60_000}
"""Default thresholds for well-known windows."""
TABLES: SettingTables = {"agent": (ENABLED, THRESHOLD, RECENT, LAST)}


class ContextSettings(Struct, frozen=True, kw_only=True):
    """`enabled`: older messages are summarised; `threshold`: tokens from which on, None: see
    `make_limits`; `keep`: how many of the last messages stay as they are."""

    enabled: bool = ENABLED.default
    threshold: int | None = THRESHOLD.default
    keep: int = RECENT.default

    @classmethod
    def read(cls, env: Env) -> "ContextSettings":
        """Read the settings from `env`; raises SettingsError."""
        return cls(
            enabled=ENABLED.read(env),
            threshold=THRESHOLD.read(env),
            keep=LAST.read(env) or RECENT.read(env),
        )

    def make_limits(self, window: int, by: str) -> ContextLimits:
        """Return the limits for a window of so many tokens; `by`: the summarising model."""
        usual = USUAL.get(window, window // 2)
        limit = min(self.threshold, window // 2) if self.threshold else usual
        summarised = limit if self.enabled else 0
        return ContextLimits(limit=summarised, most=window * 85 // 100, keep=self.keep, by=by)
