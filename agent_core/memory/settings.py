"""Settings of the memory."""

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import WholeNumber, parse_switch

CHARACTERS = WholeNumber(
    least=100, most=20_000, mend="write a whole number of characters, from 100 to 20000."
)
LIMIT_HELP = (
    "characters that MEMORY.md and USER.md may have; a full one has to be shortened before more "
    "is added"
)
ENABLED = Setting(
    "MEMORY_ENABLED", True, parse_switch, "`off`: nothing is remembered, and what is stays unread"
)
MEMORY_LIMIT = Setting("MEMORY_CHAR_LIMIT", 2_200, CHARACTERS, LIMIT_HELP)
USER_LIMIT = Setting("USER_CHAR_LIMIT", 1_375, CHARACTERS, LIMIT_HELP)
TABLES: SettingTables = {"memory": (ENABLED, MEMORY_LIMIT, USER_LIMIT)}


class MemorySettings(Struct, frozen=True, kw_only=True):
    """`enabled`: there is a memory; `memory` and `user`: characters that MEMORY.md and USER.md
    may have."""

    enabled: bool = ENABLED.default
    memory: int = MEMORY_LIMIT.default
    user: int = USER_LIMIT.default

    @classmethod
    def read(cls, env: Env) -> "MemorySettings":
        """From `env`; raises SettingsError."""
        return cls(
            enabled=ENABLED.read(env), memory=MEMORY_LIMIT.read(env), user=USER_LIMIT.read(env)
        )
