"""Servers of tools (MCP) as people meet them: what there is, and prompts that they run."""

from gateway.feature import Command, Feature
from gateway.features.servers.commands import run_prompt, show_servers
from gateway.features.servers.texts import TEXTS

FEATURE = Feature(
    name="servers",
    commands=(Command(name="mcp", run=show_servers), Command(name="prompt", run=run_prompt)),
    texts=TEXTS,
)
