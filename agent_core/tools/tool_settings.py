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
    "maximum time limit of a command in seconds, also in the background; calls that ask for more "
    "are refused",
)
SNAPSHOT_HOURS = Setting(
    "SNAPSHOT_RETENTION_HOURS",
    24,
    WholeNumber(least=1, most=8_760, mend="write whole hours, from 1 to 8760."),
    "hours for which snapshots of a conversation's files before and after each request are kept "
    "for `/undo`",
)
SNAPSHOT_BYTES = Setting(
    "SNAPSHOT_MAX_SIZE_BYTES",
    100_000_000,
    WholeNumber(least=1, most=100_000_000_000, mend="write bytes, as a whole number from 1."),
    "maximum size of one snapshot in bytes. Above it, folders that programs can recreate "
    "(`node_modules`, `.venv`, caches) are omitted, the largest first; if that is not enough, "
    "commands need an approval",
)
PREVIEW_PORT = Setting(
    "PREVIEW_PORT",
    0,
    WholeNumber(most=65_535, mend="write a number from 0 (any free) to 65535."),
    "local port for previews of apps that run in a sandbox; `0`: any free port",
)
PREVIEW_HOST = Setting(
    "PREVIEW_HOST",
    "127.0.0.1",
    str,
    "listen address of that port; `0.0.0.0` in a container, so that it can be published. "
    "Requests for host names other than that of `PREVIEW_PUBLIC_URL` or loopback are refused",
)
PREVIEW_URL = Setting(
    "PREVIEW_PUBLIC_URL",
    "",
    ChatUrl(example="https://preview.example.org"),
    "public URL of that port behind your reverse proxy, on a host used for nothing else, such as "
    "`https://preview.example.org`: the base of the buttons that open apps and the browser from "
    "chats. Not set: there are no such buttons, and links work only on the gateway's machine",
    secret="password",
)
HOOKS = Setting(
    "HOOKS",
    NO_WORDS,
    split_commas,
    "your functions that review tool calls, `package.module:function` separated by commas; see "
    "below",
)
SKILLS = Setting(
    "SKILLS",
    NO_WORDS,
    split_commas,
    "your skills with code, `package.module:function` separated by commas: "
    "[skills.md](skills.md#adding-one-with-code)",
)
MCP_SERVERS: Setting[McpEntries] = Setting(
    "MCP_SERVERS",
    (),
    Json(
        of=McpEntries,
        example='[{"name": "notes", "command": "notes-server", "args": ["--stdio"]}]',
    ),
    "JSON list of MCP servers whose tools the agent may use: [mcp.md](mcp.md)",
)
SETS: Setting[dict[str, tuple[str, ...]]] = Setting(
    "TOOLSETS",
    {},
    Json(of=dict[str, tuple[str, ...]], example='{"safe": ["read_file", "@web"]}'),
    'JSON, named tool sets: `{"safe": ["read_file", "list_*", "@web"]}`',
)
PLACES: Setting[dict[str, str]] = Setting(
    "TOOLSETS_FOR",
    {},
    Json(of=dict[str, str], example='{"telegram": "safe", "role:viewer": "safe"}'),
    'JSON, which tool set applies where: `{"telegram": "safe", "role:viewer": "safe"}`',
)
EXECUTION_MODE: Setting[ExecutionMode] = Setting(
    "EXECUTION_MODE",
    "standard",
    Choice(words=get_args(ExecutionMode), mend="use standard or codeact."),
    "`codeact`: every request includes `execute_script`, with which the model writes scripts "
    "that call tools; `standard`: the model finds it through `find_tools`, and profiles that "
    "write code include it",
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
