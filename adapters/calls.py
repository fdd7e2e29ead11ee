"""A call that waits for approval as people read it: what is approved looks like what will run."""

import msgspec


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


HIDDEN = {
    code: _escape(code)
    for code in (
        *range(0x7F, 0xA0),
        0xAD,
        0x061C,
        0x180E,
        0x200B,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        0xFEFF,
        *range(0xE0000, 0xE0080),
    )
}
"""Characters that turn or hide text, by what is shown for them: how JSON writes them."""


def visible(text: str) -> str:
    """`text` with its hidden characters shown."""
    return text.translate(HIDDEN)


def laid_out(arguments: str) -> str:
    """All of a call's arguments, "" without any: as readable JSON, to which only blanks are added,
    or the bare command of a call that has nothing else and hides nothing."""
    try:
        command = _command(arguments)
        text = command or msgspec.json.format(arguments, indent=2)
    except msgspec.DecodeError:
        text = arguments.strip()
    return "" if text == "{}" else visible(text)


def _command(arguments: str) -> str:
    """The command if it is the only argument and nothing of it would be lost on people."""
    if arguments.count('"command"') != 1:
        return ""
    known = msgspec.json.decode(arguments)
    if not isinstance(known, dict) or list(known) != ["command"]:
        return ""
    command = known["command"]
    if not isinstance(command, str) or command != command.strip():
        return ""
    plain = all(one.isprintable() or one == "\n" for one in command)
    return command if plain else ""
