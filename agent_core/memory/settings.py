"""Settings of the memory."""

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import Json, WholeNumber, parse_switch

CHARACTERS = WholeNumber(
    least=100, most=20_000, mend="write a whole number of characters, from 100 to 20000."
)
LIMIT_HELP = (
    "maximum size of MEMORY.md and USER.md in characters; a full one must be shortened before "
    "more is added"
)
ENABLED = Setting(
    "MEMORY_ENABLED",
    True,
    parse_switch,
    ("`off`: nothing is stored in memory, and existing entries are not used"),
)
MEMORY_LIMIT = Setting("MEMORY_CHAR_LIMIT", 2_200, CHARACTERS, LIMIT_HELP)
USER_LIMIT = Setting("USER_CHAR_LIMIT", 1_375, CHARACTERS, LIMIT_HELP)


class ToolCallTemplate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call of a server's tool. In its arguments `{words}`, `{text}` and `{space}` are filled."""

    tool: str
    arguments: dict[str, object]


class ToolMemorySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool server used as memory: the tools to search, to add and to remove an entry, and to
    remove a whole space."""

    server: str
    recall: ToolCallTemplate
    add: ToolCallTemplate | None = None
    remove: ToolCallTemplate | None = None
    clear: ToolCallTemplate | None = None


PROVIDER: Setting[ToolMemorySettings | None] = Setting(
    "MEMORY_PROVIDER",
    None,
    Json(
        of=ToolMemorySettings,
        example='{"server": "mem", "recall": {"tool": "find", "arguments": {"q": "{words}"}}}',
    ),
    "JSON, a server of `MCP_SERVERS` as an additional memory: [agent.md](agent.md#another-memory)",
)
TABLES: SettingTables = {"memory": (ENABLED, MEMORY_LIMIT, USER_LIMIT, PROVIDER)}


class MemorySettings(Struct, frozen=True, kw_only=True):
    """`enabled`: there is a memory; `memory` and `user`: maximum characters of MEMORY.md and
    USER.md; `provider`: the additional memory."""

    enabled: bool = ENABLED.default
    memory: int = MEMORY_LIMIT.default
    user: int = USER_LIMIT.default
    provider: ToolMemorySettings | None = None

    @classmethod
    def read(cls, env: Env) -> "MemorySettings":
        """Read the settings from `env`; raises SettingsError."""
        return cls(
            enabled=ENABLED.read(env),
            memory=MEMORY_LIMIT.read(env),
            user=USER_LIMIT.read(env),
            provider=PROVIDER.read(env),
        )
