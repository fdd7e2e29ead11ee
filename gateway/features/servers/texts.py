"""Texts about tool servers, by language."""

from pathlib import Path
from typing import Literal

from gateway.texts.languages import Texts

DATA = Path(__file__).parent / "data"

ServersKey = Literal[
    "server_sign_in", "sign_in_none", "sign_in_private", "sign_in_link", "sign_in_here",
    "signed_out",
    "servers_none", "server_tools", "server_away", "prompt_usage", "prompt_unknown", "command_mcp",
    "command_prompt",
]  # fmt: skip

ENGLISH: dict[ServersKey, str] = {
    "servers_none": "No tool servers are set up here (MCP_SERVERS).",
    "server_tools": "{server}: {tools}",
    "server_away": "{server}: not available now.",
    "prompt_usage": "Write {/prompt …} <server> <prompt> <name>=<value>, with quotes around values "
    "that have spaces.",
    "prompt_unknown": "There is no server {server} here. {/mcp} lists the available ones.",
    "server_sign_in": "{server}: you are not signed in. Write {/mcp …} signin {server}.",
    "sign_in_none": "{server} does not use personal sign-ins here.",
    "sign_in_private": "A sign-in link is for you alone. Write this to me in a private chat: /mcp "
    "signin {server}",
    "sign_in_link": "This link signs you in at {server}. Keep it to yourself: {link}",
    "sign_in_here": "This link signs you in at {server}. It opens on the gateway's machine only; "
    "an operator can change that with TURNKEEPER_PUBLIC_URL. Keep it to yourself: {link}",
    "signed_out": "Your sign-in at {server} was deleted here. To revoke it there too, use your "
    "account's settings at {server}.",
    "command_mcp": "List the tool servers and their prompts",
    "command_prompt": "Run a prompt of a server",
}

GERMAN: dict[ServersKey, str] = {
    "servers_none": "Hier sind keine Server mit Werkzeugen eingerichtet (MCP_SERVERS).",
    "server_tools": "{server}: {tools}",
    "server_away": "{server}: gerade nicht da.",
    "prompt_usage": "Schreiben Sie {/prompt …} <Server> <Prompt> <Name>=<Wert>, mit Anführungs"
    "zeichen um Werte mit Leerzeichen.",
    "prompt_unknown": "Einen Server {server} gibt es hier nicht. {/mcp} zeigt, welche es gibt.",
    "server_sign_in": "{server}: Sie sind nicht angemeldet. Schreiben Sie {/mcp …} signin "
    "{server}.",
    "sign_in_none": "Bei {server} meldet sich hier niemand an.",
    "sign_in_private": "Ein Link zum Anmelden ist nur für Sie. Schreiben Sie mir das in einem "
    "privaten Chat: /mcp signin {server}",
    "sign_in_link": "Mit diesem Link melden Sie sich bei {server} an. Geben Sie ihn niemandem: "
    "{link}",
    "sign_in_here": "Mit diesem Link melden Sie sich bei {server} an. Er öffnet sich nur auf der "
    "Maschine des Gateways; dessen Admin kann das mit TURNKEEPER_PUBLIC_URL ändern. Geben Sie "
    "ihn niemandem: {link}",
    "signed_out": "Sie sind bei {server} nicht mehr angemeldet. Ob er Sie vergessen hat, sagt er "
    "selbst.",
    "command_mcp": "Server mit Werkzeugen und ihre Prompts zeigen",
    "command_prompt": "Einen Prompt eines Servers ausführen",
}

TEXTS: Texts[ServersKey] = Texts({"en": ENGLISH, "de": GERMAN}, DATA)
