"""/instructions: shows the instructions of a conversation, sets and clears those of its people."""

import asyncio

from msgspec.structs import replace

from agent_core.errors import ToolFailed
from agent_core.text import clean
from agent_core.tools.files import read_text
from gateway.command_texts import take_word
from gateway.feature import Call
from gateway.features.instructions.adding import list_operators
from gateway.features.instructions.texts import TEXTS
from gateway.roles import at_least

MAX_CHOSEN = 4_000
"""Maximum characters of people's instructions, which are part of every request."""
_QUOTES = "`'\"\u201c\u201d"
"""Around a file's name, where a platform leaves them."""
MAX_READ = 4 * MAX_CHOSEN
"""Maximum characters of a file that are counted."""


async def instructions(call: Call) -> str:
    """Show the instructions, or do what the command's words ask. In a group only admins change
    them."""
    word, rest = take_word(call.command.arguments)
    word, rest = word.lower(), rest.strip()
    shared = not call.context.state.conversation.private and not at_least(call.role, "admin")
    if not word:
        return _show(call)
    if word in ("set", "file", "clear") and shared:
        return TEXTS.say("instructions_admins", call.language)
    if word == "set" and rest:
        return _set(call, rest)
    if word == "file" and rest:
        return await _take_file(call, rest.strip(_QUOTES))
    if word == "clear" and not rest:
        settings = call.context.state.row.settings
        call.context.state.configure(replace(settings, instructions=""))
        return TEXTS.say("instructions_cleared", call.language)
    return TEXTS.say("instructions_usage", call.language)


def _show(call: Call) -> str:
    own = call.context.state.row.settings.instructions
    here = TEXTS.say("instructions_here", call.language, text=own) if own else ""
    none = "" if own else TEXTS.say("instructions_none", call.language)
    operators = list_operators(call.context)
    size = sum(map(len, operators))
    also = TEXTS.say("instructions_operator", call.language, n=f"{size:,}") if operators else ""
    return "\n\n".join(filter(None, (here, none, also)))


def _set(call: Call, text: str) -> str:
    if len(text) > MAX_CHOSEN:
        counts = {"n": f"{len(text):,}", "limit": f"{MAX_CHOSEN:,}"}
        return TEXTS.say("instructions_long", call.language, **counts)
    state = call.context.state
    state.configure(replace(state.row.settings, instructions=text))
    return TEXTS.say("instructions_set", call.language)


async def _take_file(call: Call, path: str) -> str:
    """Set the instructions from a file of the workspace as it is now; later changes of it are data
    again."""
    workspace = call.context.services.agent.workspace(call.context.state.conversation)

    try:
        read = await asyncio.to_thread(read_text, path, workspace, MAX_READ + 1)
        text = clean(read.replace("\r\n", "\n")).strip()
    except (OSError, ToolFailed):
        read = text = ""
    if len(read) > MAX_READ:
        counts = {"n": f"{MAX_READ:,}", "limit": f"{MAX_CHOSEN:,}"}
        return TEXTS.say("instructions_longer", call.language, **counts)
    if not text:
        return TEXTS.say("instructions_unread", call.language, path=path[:200])
    told = _set(call, text)
    return told if len(text) > MAX_CHOSEN else f"{told}\n\n{_show(call)}"
