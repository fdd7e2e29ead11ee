"""/mcp lists the servers of tools and their prompts, /prompt runs one of those."""

from agent_core.mcp.server_facts import PromptFacts, ServerFacts
from gateway.feature import Call
from gateway.features.servers.texts import TEXTS

MAX_TOOLS = 30
"""Tools of one server that are named."""


async def show_servers(call: Call) -> str:
    """The servers with their tools and prompts."""
    servers = await call.context.services.agent.list_servers()
    if not servers:
        return TEXTS.say("servers_none", call.language)
    return "\n\n".join(_describe(one, call.language) for one in servers)


async def run_prompt(call: Call) -> str:
    """Have the prompt run like a message of who gave the command: its row waits as one."""
    if len(call.words) < 2:
        usage = TEXTS.say("prompt_usage", call.language)
        return f"{usage}\n\n{await show_servers(call)}"
    text = f"/prompt {call.command.arguments.strip()}"
    if not call.context.services.agent.find_mentions((text,)):
        return TEXTS.say("prompt_unknown", call.language, server=call.words[0][:50])
    return await call.queue_message(text)


def _describe(server: ServerFacts, language: str) -> str:
    if not server.there:
        return TEXTS.say("server_away", language, server=server.name)
    names = ", ".join(server.tools[:MAX_TOOLS]) or "—"
    more = f" (+{len(server.tools) - MAX_TOOLS})" if len(server.tools) > MAX_TOOLS else ""
    lines = [TEXTS.say("server_tools", language, server=server.name, tools=f"{names}{more}")]
    lines += [_describe_prompt(server.name, one) for one in server.prompts]
    return "\n".join(lines)


def _describe_prompt(server: str, prompt: PromptFacts) -> str:
    """How it is run, in a block that none of its words ends."""
    needed = [f"{one}=…" for one in prompt.required]
    left = [f"[{one}=…]" for one in prompt.optional]
    line = " ".join((f"/prompt {server} {prompt.name}", *needed, *left))
    about = f" — {prompt.about}" if prompt.about else ""
    return f"- `{f'{line}{about}'.replace('`', 'ˋ')}`"
