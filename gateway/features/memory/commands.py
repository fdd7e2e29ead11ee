"""/memory: shows the memory of a conversation, forgets entries, and switches it off and on."""

from collections.abc import Sequence

from msgspec.structs import replace

from agent_core.memory.documents import Change, MemoryDocuments, Target, write_document
from agent_core.text import parse_number
from gateway.command_texts import OwnText, take_word
from gateway.feature import Call, Context, Pressed
from gateway.folded_text import fold_text
from gateway.messages import PluginPress, digest, plugin_token
from gateway.roles import at_least
from gateway.services.memory import ConversationMemory, Memories
from gateway.store.rows import InboxRow
from gateway.texts import Key, say
from gateway.views import Button, ChoiceCard

FORGET = "forget"
"""The action of the buttons of a list of entries."""
WHICH = "which"
MAX_LABEL, MAX_OFFERED = 40, 20
_Line = tuple[Target, str]


async def memory(call: Call) -> str:
    """Show the documents, or do what the command's words ask. In a group only admins clear and
    switch the shared memory."""
    context = call.context
    memories = context.services.memory
    if memories is None:
        return say("memory_none", call.language)
    chat_memory = _open_memory(context, memories, call.command.sender.key, call.language)
    word, rest = take_word(call.command.arguments)
    shared = not context.state.conversation.private and not at_least(call.role, "admin")
    match word.lower():
        case "":
            return await _show(call, chat_memory)
        case "forget":
            return await _forget(call, chat_memory, rest)
        case "clear" | "off" | "on" if rest:
            return say("memory_usage", call.language)
        case "clear" | "off" | "on" if shared:
            return say("memory_admins", call.language)
        case "clear":
            await chat_memory.clear(_key(context, call.command.event))
            told = say("memory_cleared", call.language)
            return await _tell_beside(context, chat_memory, told, call.language)
        case "off" | "on" as switch:
            setting = "off" if switch == "off" else ""
            context.state.configure(replace(context.state.row.settings, memory=setting))
            return say("memory_switched_off" if setting else "memory_switched_on", call.language)
        case _:
            return say("memory_usage", call.language)


async def _show(call: Call, chat_memory: ConversationMemory) -> str:
    context = call.context
    known, memories = await chat_memory.everything(), context.services.memory
    assert memories is not None
    work: Key = "memory_work" if chat_memory.personal else "memory_group"
    parts: list[str] = []
    for target, key, entries in (
        ("memory", work, known.memory),
        ("user", "memory_person", known.user),
    ):
        if entries:
            limit = memories.limits.memory if target == "memory" else memories.limits.user
            size = f"{len(write_document(entries)):,}"
            head = say(key, call.language, size=size, limit=f"{limit:,}")
            first = 1 if target == "memory" else len(known.memory) + 1
            lines = (f"{n}. {entry}" for n, entry in enumerate(entries, first))
            parts.append("\n".join((head, *lines)))
    shown = say("memory_shown", call.language, documents="\n\n".join(parts))
    off = say("memory_off", call.language) if chat_memory.off else ""
    return "\n\n".join(
        filter(None, (off, shown if parts else say("memory_nothing", call.language)))
    )


async def _forget(call: Call, chat_memory: ConversationMemory, words: str) -> str:
    """Forget the entry number `words`, or the only one that holds them; of several it is asked
    which, of all without words."""
    context, key = call.context, _key(call.context, call.command.event)
    if await chat_memory.is_done(key):
        return say("memory_done", call.language)
    lines = _lines(await chat_memory.everything())
    if words.isdecimal():
        n = parse_number(words)
        meant = lines[n - 1 : n] if n else []
    else:
        meant = [line for line in lines if fold_text(words) in fold_text(line[1])]
    if not meant:
        return say("memory_unknown" if words else "memory_nothing", call.language)
    if len(meant) > 1 or not words:
        return _ask_which(call, lines, meant)
    return await _drop(context, chat_memory, meant[0], (key, call.language))


def _ask_which(call: Call, lines: Sequence[_Line], meant: Sequence[_Line]) -> str:
    """List the matching entries, a button for each, with the numbers of `/memory`."""
    named = [(f"{lines.index(line) + 1}. {line[1]}", line) for line in meant]
    buttons = tuple(
        Button(
            label=label if len(label) <= MAX_LABEL else f"{label[: MAX_LABEL - 1]}…",
            token=plugin_token("memory", FORGET, f"{call.seq}.{_name(line)}"),
        )
        for label, line in named[:MAX_OFFERED]
    )
    found = OwnText("\n".join(label for label, _ in named))
    text = say("memory_several", call.language, found=found)
    card = ChoiceCard(question="", text=text, buttons=buttons, language=call.language)
    call.context.finish(call.seq, call.context.draw(call.seq, WHICH, card))
    return ""


async def press_entry(
    context: Context, row: InboxRow, pressed: Pressed, asked: PluginPress
) -> None:
    """Forget the entry that a button of the list names; the list is replaced by the reply."""
    listed, _, name = asked.argument.partition(".")
    sender, memories = pressed.sender, context.services.memory
    if memories is None or asked.action != FORGET:
        return context.state.acknowledge(row.seq, pressed.press, "")
    chat_memory = _open_memory(context, memories, sender.key, sender.language)
    key = _key(context, pressed.event)
    lines = _lines(await chat_memory.everything())
    meant = next((line for line in lines if _name(line) == name), None)
    if meant is not None:
        text = await _drop(context, chat_memory, meant, (key, sender.language))
    elif await chat_memory.is_done(key):
        text = say("memory_done", sender.language)
    else:
        word = say("memory_unknown", sender.language)
        return context.state.acknowledge(row.seq, pressed.press, word)
    return await context.replace_list(row, pressed, f"{listed}.{WHICH}", text)


async def _drop(
    context: Context, chat_memory: ConversationMemory, line: _Line, asked: tuple[str, str]
) -> str:
    """Forget an entry, once for the key of the request; return the reply in its language."""
    (target, entry), (key, language) = line, asked
    await chat_memory.apply(Change(action="remove", target=target, old=entry), key)
    told = say("memory_dropped", language, text=entry)
    return await _tell_beside(context, chat_memory, told, language)


async def _tell_beside(
    context: Context, chat_memory: ConversationMemory, told: str, language: str
) -> str:
    """Return `told`, and that another memory has not forgotten it, or cannot."""
    memories = context.services.memory
    removals = memories.removals if memories is not None else None
    if removals is None:
        return told
    if not removals.possible:
        return f"{told}\n\n{say('memory_beside_cannot', language, name=removals.name)}"
    if await chat_memory.settle():
        return told
    return f"{told}\n\n{say('memory_beside_waits', language, name=removals.name)}"


def _open_memory(
    context: Context, memories: Memories, account: str, language: str
) -> ConversationMemory:
    off = context.state.row.settings.memory == "off"
    return memories.open_for(context.state.conversation, account, lambda: off, language)


def _name(line: _Line) -> str:
    """Return a short and stable name of an entry for a button."""
    return digest("\n".join(line).encode())


def _lines(known: MemoryDocuments) -> list[_Line]:
    """Return all entries in the order of their numbers."""
    work: list[_Line] = [("memory", entry) for entry in known.memory]
    return work + [("user", entry) for entry in known.user]


def _key(context: Context, event: str) -> str:
    """Return an idempotency key: the same if the request is handled again after a crash."""
    return f"{context.state.conversation.id} {event}"
