"""Views to Bot API payloads: one JSON object a message, with its `method`. Pure.

A payload is what sendMessage takes besides the chat; the adapter makes an edit out of it.
"""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from adapters.telegram.rich import (
    LIMIT,
    MOST_ENTITIES,
    Entity,
    Rich,
    cut,
    from_markdown,
    joined,
    one_markdown,
    styled,
)
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    CardState,
    ChoiceCard,
    FormCard,
    LineState,
    Media,
    Notice,
    PlanView,
    ProposalLine,
    Reply,
    Report,
    Said,
    ToolLine,
    View,
)

LINE_MARKS: dict[LineState, str] = {
    "waiting": "☐",
    "running": "◐",
    "done": "☑",
    "failed": "✕",
    "denied": "✕",
    "stopped": "✕",
    "unknown": "?",
}
LINE_WORDS: dict[LineState, str] = {
    "failed": "failed",
    "denied": "denied",
    "stopped": "stopped",
    "unknown": "outcome unknown",
}
CARD_MARKS: dict[CardState, str] = {
    "open": "☐",
    "approved": "☑",
    "answered": "☑",
    "denied": "✕",
    "expired": "✕",
    "cancelled": "✕",
}
STYLES = {"plain": "", "good": "success", "bad": "danger"}

SUMMARY, OUTPUT, WORDS = 200, 600, 1000
"""Most characters of a tool line's summary, of an output and of the words in an Activity."""
OUTPUTS = 3
FOLDED = 240
"""Arguments longer than this are shown folded."""
NARROW = 18
"""Two buttons share a row when both labels are at most this long."""

HIDDEN = {
    code: f"\\u{code:04x}"
    for code in (
        0x200B,
        0x200E,
        0x200F,
        0x2060,
        0xFEFF,
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}
"""Characters that turn or hide text: what is to be approved must look like what will run."""


class _Key(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    text: str
    callback_data: str
    style: str = ""


class _Keyboard(msgspec.Struct, frozen=True):
    inline_keyboard: tuple[tuple[_Key, ...], ...]


class _ForceReply(msgspec.Struct, frozen=True):
    force_reply: bool
    selective: bool
    input_field_placeholder: str


class _Preview(msgspec.Struct, frozen=True):
    is_disabled: bool


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: str
    text: str
    entities: tuple[Entity, ...] = ()
    link_preview_options: _Preview
    reply_markup: _Keyboard | _ForceReply | None = None


_NO_PREVIEW = _Preview(True)
_ASK = _ForceReply(True, False, "Your answer")
_ENCODER = msgspec.json.Encoder()


def render(view: View) -> tuple[bytes, ...]:
    """`view` as native payloads in order; none if there is nothing to show."""
    match view:
        case Reply():
            return _reply(view)
        case Activity():
            return _messages([_activity(view)])
        case ApprovalCard():
            return _messages(cut(_approval(view)), _keyboard(view.buttons, view.state))
        case ChoiceCard():
            return _messages(
                cut(_card(view.text, view.state, view.outcome)),
                _keyboard(view.buttons, view.state),
            )
        case FormCard():
            asking = _ASK if view.state == "open" else None
            return _messages(cut(_card(view.text, view.state, view.outcome)), asking)
        case Notice():
            mark = Rich("✕ ") if view.tone == "error" else Rich("")
            return _messages(cut(mark + one_markdown(view.text)))
        case Said() | PlanView() | Media() | Report():
            return ()
    assert_never(view)


def render_draft(text: str) -> dict[str, object]:
    """The end of a growing text as sendMessageDraft takes it; "" shows that the agent thinks."""
    last = (from_markdown(text) or [Rich("")])[-1]
    draft: dict[str, object] = {"text": last.text}
    if last.entities:
        draft["entities"] = msgspec.to_builtins(list(last.entities))
    return draft


def _messages(
    texts: Sequence[Rich], markup: _Keyboard | _ForceReply | None = None
) -> tuple[bytes, ...]:
    """One payload a text that holds anything; `markup` belongs to the last."""
    shown = [rich for rich in texts if rich.text.strip()]
    return tuple(
        _ENCODER.encode(
            _Message(
                method="sendMessage",
                text=rich.text,
                entities=rich.entities[:MOST_ENTITIES],
                link_preview_options=_NO_PREVIEW,
                reply_markup=markup if rich is shown[-1] else None,
            )
        )
        for rich in shown
    )


def _reply(view: Reply) -> tuple[bytes, ...]:
    texts = from_markdown(view.text)
    if view.note:
        note = styled(view.note, "italic")
        ended = joined([*texts[-1:], note], "\n\n")
        texts = [*texts[:-1], ended] if ended.size <= LIMIT else [*texts, note]
    return _messages(texts)


def _activity(view: Activity) -> Rich:
    """One text within the limit: the oldest lines give way to their count."""
    clipped = _clip(view.words.strip(), WORDS)
    words = one_markdown(clipped)
    if words.size > 2 * WORDS:  # a table grows when its cells are padded
        words = Rich(clipped)
    speaking = {line.call_id for line in [line for line in view.lines if line.output][-OUTPUTS:]}
    lines = [_tool_line(line, shown=line.call_id in speaking) for line in view.lines]
    room = LIMIT - words.size - 40
    first = len(lines)
    while first and room >= lines[first - 1].size + 1:
        first -= 1
        room -= lines[first].size + 1
    earlier = Rich(f"{first} earlier step{'s' if first > 1 else ''}" if first else "")
    return joined([words, earlier, *lines[first:]])


def _tool_line(line: ToolLine, *, shown: bool) -> Rich:
    summary = styled(_clip(" ".join(line.summary.split()), SUMMARY), "code")
    rich = Rich(f"{LINE_MARKS[line.state]} {line.tool}")
    if summary.text:
        rich = rich + " " + summary
    if word := LINE_WORDS.get(line.state):
        rich = rich + f" ({word})"
    output = _clip(line.output.strip(), OUTPUT) if shown else ""
    return joined([rich, styled(output, "expandable_blockquote")])


def _approval(view: ApprovalCard) -> Rich:
    many = len(view.proposals) > 1
    title = f"{CARD_MARKS[view.state]} " + (
        f"May these {len(view.proposals)} calls run?" if many else "May this run?"
    )
    rule = Rich(f"“Always” covers: {view.rule}") if view.rule and view.state == "open" else Rich("")
    return joined(
        [
            joined([styled(title, "bold"), Rich(f"Asked by {view.asker}" if view.asker else "")]),
            *map(_proposal, view.proposals),
            rule,
            styled(view.outcome, "bold"),
        ],
        "\n\n",
    )


def _proposal(line: ProposalLine) -> Rich:
    return joined(
        [
            styled(_shown(line.tool), "code") + f", {line.risk} risk",
            Rich(_shown(line.reason)),
            _arguments(line.arguments),
            styled(_shown(line.detail.strip()), "expandable_blockquote"),
        ]
    )


def _arguments(arguments: str) -> Rich:
    """All of it, in readable JSON; only blanks are added, so it stays what will run."""
    try:
        text = msgspec.json.format(arguments, indent=2)
    except msgspec.DecodeError:
        text = arguments.strip()
    text = _shown(text)
    if text == "{}":
        return Rich("")
    return styled(text, "expandable_blockquote") if len(text) > FOLDED else styled(text, "pre")


def _card(text: str, state: CardState, outcome: str) -> Rich:
    decided = styled(f"{CARD_MARKS[state]} {outcome}", "bold") if outcome else Rich("")
    return joined([one_markdown(text), decided], "\n\n")


def _keyboard(buttons: Sequence[Button], state: CardState) -> _Keyboard | None:
    """Rows of one or two buttons while the card is open."""
    if state != "open" or not buttons:
        return None
    rows: list[tuple[_Key, ...]] = []
    for button in buttons:
        key = _Key(text=button.label, callback_data=button.token, style=STYLES[button.style])
        last = rows[-1] if rows else ()
        if len(last) == 1 and max(len(last[0].text), len(key.text)) <= NARROW:
            rows[-1] = (*last, key)
        else:
            rows.append((key,))
    return _Keyboard(tuple(rows))


def _clip(text: str, most: int) -> str:
    """`text`, or its beginning and how much is not shown."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def _shown(text: str) -> str:
    return text.translate(HIDDEN)
