"""/memory: shows what is remembered where it is given, forgets it, and switches it off and on."""

from msgspec.structs import replace

from agent_core.memory.documents import Change, MemoryDocuments, Target, write_document
from gateway.feature import Call
from gateway.roles import at_least
from gateway.services.memory import ConversationMemory
from gateway.texts import Key, say

_Line = tuple[Target, str]


async def memory(call: Call) -> str:
    """The documents, or what the words after the command ask for. In a group only admins clear
    and switch what all share."""
    context = call.context
    memories = context.services.memory
    if memories is None:
        return say("memory_none", call.language)
    off = context.state.row.settings.memory == "off"
    where, sender = context.state.conversation, call.command.sender
    shelf = memories.open_for(where, sender.key, lambda: off, call.language)
    word, _, rest = call.command.arguments.strip().partition(" ")
    shared = not context.state.conversation.private and not at_least(call.role, "admin")
    match word.lower():
        case "":
            return await _show(call, shelf)
        case "forget" if rest.strip():
            return await _forget(call, shelf, rest.strip())
        case "clear" | "off" | "on" if shared:
            return say("memory_admins", call.language)
        case "clear":
            await shelf.clear(_key(call))
            return await _tell_beside(call, shelf, say("memory_cleared", call.language))
        case "off" | "on" as switch:
            setting = "off" if switch == "off" else ""
            context.state.configure(replace(context.state.row.settings, memory=setting))
            return say("memory_switched_off" if setting else "memory_switched_on", call.language)
        case _:
            return say("memory_usage", call.language)


async def _show(call: Call, shelf: ConversationMemory) -> str:
    context = call.context
    known, memories = await shelf.everything(), context.services.memory
    assert memories is not None
    work: Key = "memory_work" if shelf.personal else "memory_group"
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
    off = say("memory_off", call.language) if shelf.off else ""
    return "\n\n".join(
        filter(None, (off, shown if parts else say("memory_nothing", call.language)))
    )


async def _forget(call: Call, shelf: ConversationMemory, words: str) -> str:
    """Forget the entry number `words`, or the only one that holds them."""
    if await shelf.is_done(_key(call)):
        return say("memory_done", call.language)
    lines = _lines(await shelf.everything())
    if words.isdecimal():
        meant = lines[int(words) - 1 : int(words)] if int(words) else []
    else:
        meant = [line for line in lines if words.casefold() in line[1].casefold()]
    if not meant:
        return say("memory_unknown", call.language)
    if len(meant) > 1:
        found = "\n".join(f"{lines.index(line) + 1}. {line[1]}" for line in meant)
        return say("memory_several", call.language, found=found)
    target, entry = meant[0]
    await shelf.apply(Change(action="remove", target=target, old=entry), _key(call))
    return await _tell_beside(call, shelf, say("memory_dropped", call.language, text=entry))


async def _tell_beside(call: Call, shelf: ConversationMemory, told: str) -> str:
    """`told`, and that another memory has not forgotten it, or cannot."""
    memories = call.context.services.memory
    removals = memories.removals if memories is not None else None
    if removals is None:
        return told
    if not removals.possible:
        return f"{told}\n\n{say('memory_beside_cannot', call.language, name=removals.name)}"
    if await shelf.settle():
        return told
    return f"{told}\n\n{say('memory_beside_waits', call.language, name=removals.name)}"


def _lines(known: MemoryDocuments) -> list[_Line]:
    """All entries in the order in which they are numbered."""
    work: list[_Line] = [("memory", entry) for entry in known.memory]
    return work + [("user", entry) for entry in known.user]


def _key(call: Call) -> str:
    """The same if the command is handled again after a crash."""
    context = call.context
    return f"{context.state.conversation.id} {call.command.event}"
