"""Settings of tools: how long commands may take, hooks, servers and sets of tools."""

from typing import Literal, TypeAlias, get_args

from agent_core.config.declaration import Setting, SettingTables
from agent_core.config.kinds import NO_WORDS, ChatUrl, Choice, Json, WholeNumber, split_commas
from agent_core.sandboxes.buckets import settings as buckets

ExecutionMode = Literal["standard", "codeact"]
McpEntries: TypeAlias = tuple[dict[str, object], ...]

MAX_SECONDS = Setting(
    "COMMAND_MAX_SECONDS",
    600,
    WholeNumber(least=1, most=86_400, mend="write whole seconds, from 1 to 86400."),
    "seconds that a command may take, in the background too; a call that asks for more is refused",
)
SNAPSHOT_HOURS = Setting(
    "SNAPSHOT_RETENTION_HOURS",
    24,
    WholeNumber(least=1, most=8_760, mend="write whole hours, from 1 to 8760."),
    "hours for which a conversation's files are kept as they were before and after a request, so "
    "that `/undo` can take it back",
)
SNAPSHOT_BYTES = Setting(
    "SNAPSHOT_MAX_SIZE_BYTES",
    100_000_000,
    WholeNumber(least=1, most=100_000_000_000, mend="write bytes, as a whole number from 1."),
    "bytes that are kept of one such state. Where there are more, folders that programs make anew "
    "(`node_modules`, `.venv`, caches) are left out, the largest first; if that is not enough, a "
    "person is asked before commands run",
)
PREVIEW_PORT = Setting(
    "PREVIEW_PORT",
    0,
    WholeNumber(most=65_535, mend="write a number from 0 (any free) to 65535."),
    "where people look at apps that run in a sandbox, on this machine; 0 takes any free port",
)
PREVIEW_HOST = Setting(
    "PREVIEW_HOST",
    "127.0.0.1",
    str,
    "the address at which that port listens; in a container `0.0.0.0`, so that it can be "
    "published. Requests under another name than that of `PREVIEW_PUBLIC_URL` or loopback are "
    "refused",
)
PREVIEW_URL = Setting(
    "PREVIEW_PUBLIC_URL",
    "",
    ChatUrl(example="https://preview.example.org"),
    "how people reach that port from elsewhere, through a proxy of yours: an address of its own, "
    "with a host that nothing else uses, such as `https://preview.example.org`. It is the base of "
    "the buttons by which chats open apps and the browser. Not set: there are no such buttons, and "
    "the links are good on the gateway's machine",
    secret="password",
)
HOOKS = Setting(
    "HOOKS",
    NO_WORDS,
    split_commas,
    "functions of yours that are asked about tool calls, `package.module:function` with commas "
    "between them; see below",
)
SKILLS = Setting(
    "SKILLS",
    NO_WORDS,
    split_commas,
    "skills of yours with code, `package.module:function` with commas between them: "
    "[skills.md](skills.md#adding-one-with-code)",
)
MCP_SERVERS: Setting[McpEntries] = Setting(
    "MCP_SERVERS",
    (),
    Json(
        of=McpEntries,
        example='[{"name": "notes", "command": "notes-server", "args": ["--stdio"]}]',
    ),
    "JSON, a list of MCP servers whose tools the agent may use: [mcp.md](mcp.md)",
)
SETS: Setting[dict[str, tuple[str, ...]]] = Setting(
    "TOOLSETS",
    {},
    Json(of=dict[str, tuple[str, ...]], example='{"safe": ["read_file", "@web"]}'),
    'JSON, named sets of tools: `{"safe": ["read_file", "list_*", "@web"]}`',
)
PLACES: Setting[dict[str, str]] = Setting(
    "TOOLSETS_FOR",
    {},
    Json(of=dict[str, str], example='{"telegram": "safe", "role:viewer": "safe"}'),
    'JSON, which set holds where: `{"telegram": "safe", "role:viewer": "safe"}`',
)
EXECUTION_MODE: Setting[ExecutionMode] = Setting(
    "EXECUTION_MODE",
    "standard",
    Choice(words=get_args(ExecutionMode), mend="use standard or codeact."),
    "`codeact`: each request shows `execute_script`, by which the model writes scripts that call "
    "tools; `standard`: it is found by `find_tools`, and shown by the profiles that write code",
)
TABLES: SettingTables = {
    "running": (
        MAX_SECONDS,
        SNAPSHOT_HOURS,
        SNAPSHOT_BYTES,
        *buckets.TABLE,
        PREVIEW_PORT,
        PREVIEW_HOST,
        PREVIEW_URL,
        HOOKS,
    ),
    "tools": (EXECUTION_MODE, SKILLS, MCP_SERVERS, SETS, PLACES),
}
