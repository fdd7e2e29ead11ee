"""Tool servers (MCP) in chats: the list of servers, and their prompts as commands."""

from gateway.feature import Command, Feature, on_press
from gateway.features.servers.commands import (
    mean_prompt,
    note_signed_in,
    run_prompt,
    show_servers,
)
from gateway.features.servers.texts import TEXTS
from gateway.messages import PluginPress

FEATURE = Feature(
    name="servers",
    commands=(
        Command(name="mcp", run=show_servers),
        Command(name="prompt", run=run_prompt, mean=mean_prompt),
    ),
    presses=(on_press(PluginPress, note_signed_in, None),),
    texts=TEXTS,
)
