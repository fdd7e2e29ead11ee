"""/mcp lists the servers of tools, and signs in and out; /prompt runs a prompt of one."""

from agent_core import ambient
from agent_core.mcp.oauth.questions import name_sign_in
from agent_core.mcp.server_facts import PromptFacts, ServerFacts
from agent_core.questions import Answer, Decision
from gateway.conversation.decisions import Decisions
from gateway.feature import Call, Context, Meaning, Pressed, refuse_words
from gateway.features.servers.texts import TEXTS, ServersKey
from gateway.messages import PluginPress
from gateway.store.rows import InboxRow, QuestionRow
from gateway.texts.signs import quote_verbatim

MAX_TOOLS = 30
"""Tools of one server that are named."""
MAX_PROMPTS = 50
"""Prompts of one server that are named."""
MAX_NAME, MAX_LINE = 100, 400
"""Characters of a tool's name, and of a prompt with its arguments."""


async def show_servers(call: Call) -> str:
    """The servers with their tools and prompts; `signin NAME` and `signout NAME`."""
    if len(call.words) == 2 and call.option in ("signin", "signout"):
        return await (_sign_in if call.option == "signin" else _sign_out)(call, call.words[1])
    most = 2 if call.option in ("signin", "signout") else 0
    if call.command.name == "mcp" and len(call.words) > most:
        return refuse_words(call, most)
    where, sender = call.context.state.conversation, call.command.sender
    servers = await call.context.services.agent.server_directory.list_servers(where, sender)
    if not servers:
        return TEXTS.say("servers_none", call.language)
    return "\n\n".join(_describe(one, call.language) for one in servers)


async def run_prompt(call: Call) -> str:
    """Run the prompt as a message of the command's sender: its row waits as one."""
    if len(call.words) < 2:
        usage = TEXTS.say("prompt_usage", call.language)
        return f"{usage}\n\n{await show_servers(call)}"
    text = mean_prompt(call.command.arguments).text
    if not call.context.services.agent.find_mentions((text,)):
        return TEXTS.say("prompt_unknown", call.language, server=call.words[0][:50])
    return await call.queue_message(text)


def mean_prompt(arguments: str) -> Meaning:
    """The message that runs the prompt of these words."""
    return Meaning(text=f"/prompt {arguments.strip()}")


async def _sign_in(call: Call, server: str) -> str:
    where, language = call.context.state.conversation, call.language
    offer = await call.context.services.agent.server_directory.offer_sign_in(
        server, where, call.command.sender
    )
    if offer is None:
        return TEXTS.say("sign_in_none", language, server=server[:50])
    if not offer.link:
        return TEXTS.say("sign_in_private", language, server=server)
    key: ServersKey = "sign_in_here" if offer.local else "sign_in_link"
    return TEXTS.say(key, language, server=server, link=offer.link)


async def _sign_out(call: Call, server: str) -> str:
    done = call.context.services.agent.server_directory.sign_out(server, call.command.sender)
    if done:
        call.context.state.note_audit(call.command.sender.key, "server_signed_out", server[:50])
    key: ServersKey = "signed_out" if done else "sign_in_none"
    return TEXTS.say(key, call.language, server=server[:50])


async def note_signed_in(
    context: Context, row: InboxRow, pressed: Pressed, press: PluginPress
) -> None:
    """Resume the work that waits for a sign-in at a server. The tokens are checked again, so that a
    forged press has no effect."""
    who, awaited = pressed.sender, name_sign_in(press.argument)
    access = context.services.access
    waiting = [
        one
        for one in context.state.open_questions()
        if isinstance(one.question, Decision) and one.question.awaits == awaited
    ]
    mine: list[QuestionRow] = []
    for one in waiting:
        turn = context.state.turns.get(one.turn)
        if turn is not None and await access.may_act_for(turn.sender, who, "user"):
            mine.append(one)
    name = who.name or who.handle or who.id
    for one in mine:
        assert isinstance(one.question, Decision)
        text, at = one.question.options[0], ambient.now()
        answer = Answer(choice="once", text=text, by=who.key, name=name, at=at)
        await Decisions(context).decide(one, answer, row.seq)
    if not mine:
        context.state.acknowledge(row.seq, pressed.press, "")


def _describe(server: ServerFacts, language: str) -> str:
    if server.asks_sign_in:
        return TEXTS.say("server_sign_in", language, server=server.name)
    if not server.there:
        return TEXTS.say("server_away", language, server=server.name)
    names = ", ".join(quote_verbatim(one, MAX_NAME) for one in server.tools[:MAX_TOOLS]) or "—"
    more = f" (+{len(server.tools) - MAX_TOOLS})" if len(server.tools) > MAX_TOOLS else ""
    lines = [TEXTS.say("server_tools", language, server=server.name, tools=f"{names}{more}")]
    lines += [_describe_prompt(server.name, one) for one in server.prompts[:MAX_PROMPTS]]
    if len(server.prompts) > MAX_PROMPTS:
        lines.append(f"- (+{len(server.prompts) - MAX_PROMPTS})")
    return "\n".join(lines)


def _describe_prompt(server: str, prompt: PromptFacts) -> str:
    """Describe the command that runs a prompt, in a line that none of its words can end."""
    needed = [f"{one}=…" for one in prompt.required]
    left = [f"[{one}=…]" for one in prompt.optional]
    name = f'"{prompt.name}"' if len(prompt.name.split()) > 1 else prompt.name
    line = " ".join((f"/prompt {server} {name}", *needed, *left))
    about = f" — {prompt.about}" if prompt.about else ""
    return f"- {quote_verbatim(f'{line}{about}', MAX_LINE)}"
