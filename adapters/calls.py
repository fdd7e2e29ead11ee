"""A call that waits for approval as people read it: what is approved looks like what will run."""

import msgspec

from gateway.texts import say
from gateway.views import ApprovalCard


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


HIDDEN = {
    code: _escape(code)
    for code in (
        *range(0x7F, 0xA0),
        0xAD,
        0x034F,
        0x061C,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        0x200B,
        0x200E,
        0x200F,
        *range(0x2028, 0x202F),
        *range(0x2060, 0x2070),
        0x2800,
        0x3164,
        *range(0xFE00, 0xFE0F),
        0xFEFF,
        0xFFA0,
        *range(0xE0000, 0xE0080),
        *range(0xE0100, 0xE01F0),
    )
}
"""Characters that turn or hide text, by what is shown for them: how JSON writes them."""

MAX_BESIDE = 16
"""Arguments beside code that are looked for in the call's text; with more it is shown as JSON."""


def visible(text: str) -> str:
    """`text` with its hidden characters shown."""
    return text.translate(HIDDEN)


def describe_scope(view: ApprovalCard) -> str:
    """What the answers that last would cover, a line each; "" if there is none."""
    if view.rule == view.here != "":
        return say("both_cover", view.language, rule=view.rule)
    here = say("here_covers", view.language, rule=view.here) if view.here else ""
    rule = say("always_covers", view.language, rule=view.rule) if view.rule else ""
    return "\n".join(filter(None, (here, rule)))


def format_arguments(arguments: str) -> str:
    """All of a call's arguments, "" without any: as readable JSON, to which only blanks are added,
    or the bare command of a call that has nothing else and hides nothing; code stands below what
    else there is."""
    try:
        if bare := _bare(arguments):
            return visible(bare)
        text = msgspec.json.format(arguments, indent=2)
    except (msgspec.DecodeError, RecursionError):
        text = arguments.strip()
    return "" if text == "{}" else visible(text)


def _bare(arguments: str) -> str:
    """The command, or the code, if nothing of the call would be lost on people."""
    named = [name for name in ("command", "code") if arguments.count(f'"{name}"') == 1]
    known = msgspec.json.decode(arguments) if len(named) == 1 else None
    if not isinstance(known, dict) or named[0] not in known:
        return ""
    shown = known.pop(named[0])
    if len(known) > (MAX_BESIDE if "code" in named else 0):
        return ""
    twice = any(arguments.count(f'"{name}"') != 1 for name in known)
    if not isinstance(shown, str) or not shown.strip() or twice:
        return ""
    plain = all((one.isprintable() or one == "\n") and ord(one) not in HIDDEN for one in shown)
    if not plain or (shown != shown.strip() and "command" in named):
        return ""
    rest = msgspec.json.encode(known).decode() if known else ""
    return f"{rest}\n{shown}".strip("\n")
