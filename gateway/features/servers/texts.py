"""What people read about servers of tools, by language."""

from pathlib import Path
from typing import Literal

from gateway.texts.languages import Texts

DATA = Path(__file__).parent / "data"

ServersKey = Literal[
    "servers_none", "server_tools", "server_away", "prompt_usage", "prompt_unknown", "command_mcp",
    "command_prompt",
]  # fmt: skip

ENGLISH: dict[ServersKey, str] = {
    "servers_none": "No servers of tools are set up here (MCP_SERVERS).",
    "server_tools": "{server}: {tools}",
    "server_away": "{server}: not there now.",
    "prompt_usage": "Write {/prompt …} <server> <prompt> <name>=<value>, with quotes around values "
    "that have spaces.",
    "prompt_unknown": "There is no server {server} here. {/mcp} lists those that there are.",
    "command_mcp": "List the servers of tools and their prompts",
    "command_prompt": "Run a prompt of a server",
}

GERMAN: dict[ServersKey, str] = {
    "servers_none": "Hier sind keine Server mit Werkzeugen eingerichtet (MCP_SERVERS).",
    "server_tools": "{server}: {tools}",
    "server_away": "{server}: gerade nicht da.",
    "prompt_usage": "Schreiben Sie {/prompt …} <Server> <Prompt> <Name>=<Wert>, mit Anführungs"
    "zeichen um Werte mit Leerzeichen.",
    "prompt_unknown": "Einen Server {server} gibt es hier nicht. {/mcp} zeigt, welche es gibt.",
    "command_mcp": "Server mit Werkzeugen und ihre Prompts zeigen",
    "command_prompt": "Einen Prompt eines Servers ausführen",
}

TEXTS: Texts[ServersKey] = Texts({"en": ENGLISH, "de": GERMAN}, DATA)
