"""Renders views as Bot API payloads: one JSON object a message, with its `method`. Pure.

A payload has its method's arguments except the chat; the adapter makes an edit out of it. `rich`:
whether the server has rich messages; both forms show the same.
"""

from functools import partial
from typing import assert_never

import msgspec

from adapters.calls import (
    CallDescription,
    describe_call,
    describe_scope,
    fold_decided,
    write_calls_file,
)
from adapters.links import show_targets, tell_targets
from adapters.telegram import answers, progress
from adapters.telegram.entities import (
    LIMIT,
    Marked,
    convert_whole,
    from_markdown,
    join_texts,
    name_mentions,
    split_marked,
    style_text,
)
from adapters.telegram.payloads import (
    ForceReply,
    Keyboard,
    NoReply,
    keyboard,
    messages,
    write_moments,
)
from adapters.text import measure_utf16, split_end
from adapters.words import RISKS
from adapters.written import shorten_growing, show_signs
from gateway.command_texts import NamedCommand, write_in_view
from gateway.moment_texts import has_moment
from gateway.texts import say
from gateway.texts.signs import visible
from gateway.views import (
    CARD_MARKS,
    Activity,
    ApprovalCard,
    Button,
    CardState,
    ChoiceCard,
    FormCard,
    Media,
    Notice,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    View,
    show_doubt,
)

EXPANDABLE = "expandable_blockquote"
MAX_OUTCOME = 1_000
"""Characters of what became of a question, on its card."""


def write_command(command: NamedCommand, bot: str = "") -> str:
    """Write the command for the bot of that name, "" where there is only one."""
    arguments = f" {command.arguments}" if command.arguments else ""
    return f"/{command.name}{f'@{bot}' if bot else ''}{arguments}"


def render(view: View, *, rich: bool = False, bot: str = "") -> tuple[bytes, ...]:
    """Render `view` as native payloads in order; () if there is nothing to show. `bot`: the bot's
    name in a group, where other bots may have the same commands."""
    plain = partial(write_command, bot=bot)
    write = partial(_write_command, bot=bot)
    view = shorten_growing(show_doubt(view), LIMIT)
    view = write_in_view(show_targets(view), write, plain, moments=True)
    view = show_signs(view)
    return tuple(
        write_moments(one) if has_moment(one.decode()) else one
        for one in _payloads(view, rich=rich)
    )


def _payloads(view: View, *, rich: bool) -> tuple[bytes, ...]:
    match view:
        case ReplyView():
            return answers.reply(view, rich=rich)
        case Activity():
            return progress.activity(view, rich=rich)
        case PlanView():
            return progress.plan(view, rich=rich)
        case ApprovalCard():
            return _approval(view)
        case ChoiceCard():
            card = split_marked(_card(view.text, view.state, view.outcome))
            own = Button(label=say("something_else", view.language), token=view.token)
            buttons = (*view.buttons, own) if view.token else view.buttons
            return messages(card, _keyboard(buttons, view.state))
        case FormCard():
            # no part of what is sent since then may be new
            sent = split_marked(convert_whole(view.text))
            card = split_marked(_card(view.text, view.state, view.outcome))[: max(1, len(sent))]
            return messages(card, _make_field(view.language, view.state))
        case Media():
            return answers.media(view)
        case ReportView():
            return answers.report(view, rich=rich)
        case Notice():
            mark = Marked("✕ ") if view.tone == "error" else Marked("")
            card = split_marked(
                join_texts([mark + convert_whole(view.text), name_mentions(view.mentions)])
            )
            return messages(card, keyboard(view.buttons), quiet=view.quiet)
        case SaidView():
            return ()
    assert_never(view)


def _write_command(command: NamedCommand, bot: str) -> str:
    """Write a bare command, which a tap sends, or code, which a tap copies."""
    written = write_command(command, bot)
    return f"`{written}`" if command.arguments else written


def render_draft(text: str) -> dict[str, object]:
    """The end of a growing text as sendMessageDraft takes it; "" shows that the agent thinks."""
    shown = map(from_markdown, map(tell_targets, reversed(split_end(text, LIMIT, measure_utf16))))
    last = next(filter(None, shown), [Marked("")])[-1]
    draft: dict[str, object] = {"text": last.text}
    if last.entities:
        draft["entities"] = msgspec.to_builtins(list(last.entities))
    return draft


def _approval(view: ApprovalCard) -> tuple[bytes, ...]:
    """Render an open question, below the parts that are too long for it, which are folded or a
    file; a decided one in one line."""
    many, language = len(view.proposals) > 1, view.language
    calls = [(line, describe_call(line, language)) for line in view.proposals]
    full = write_calls_file(call for _, call in calls)
    attached = answers.calls_file(full, language) if full else ()
    if view.state != "open":
        decided = fold_decided(view)
        line = join_texts([style_text(decided.what, "bold"), Marked(_clip(decided.outcome))])
        return (*attached, *messages(split_marked(line)))
    asking = say("ask_many", language, n=len(view.proposals)) if many else say("ask_one", language)
    title = f"{CARD_MARKS[view.state]} {asking}"
    asker = say("asked_by", language, name=visible(view.asker)) if view.asker else ""
    folded = [] if attached else [_call_in_full(call, language) for _, call in calls]
    above = join_texts(folded, "\n\n")
    card = join_texts(
        [
            join_texts([style_text(title, "bold"), Marked(asker), _list_deciders(view)]),
            *(_proposal(line, call, language) for line, call in calls),
            Marked(visible(describe_scope(view))),
            style_text(view.outcome, "bold"),
        ],
        "\n\n",
    )
    shown = [*(split_marked(above) if above.text else ()), *split_marked(card)]
    return (*attached, *messages(shown, keyboard(_add_reason(view))))


def _list_deciders(view: ApprovalCard) -> Marked:
    """Name the deciders, who are pinged by it."""
    people = name_mentions(view.mentions)
    return Marked(f"{say('to_decide', view.language)} ") + people if people.text else people


def _call_in_full(call: CallDescription, language: str) -> Marked:
    words = f"{say('whole_call', language)}\n{call.whole}" if call.whole else ""
    return style_text(words, EXPANDABLE)


def _proposal(line: ProposalLine, call: CallDescription, language: str) -> Marked:
    return join_texts(
        [
            style_text(call.title, "bold") + f", {say(RISKS[line.risk], language)}",
            Marked(visible(line.reason)),
            *(Marked(f"{name}: ") + style_text(value, "code") for name, value in call.facts),
            style_text(call.body, "pre", "diff" if call.kind == "diff" else ""),
            *(style_text(f"⚠ {warning}", "bold") for warning in call.warnings),
            style_text(call.notes, EXPANDABLE),
        ]
    )


def _card(text: str, state: CardState, outcome: str) -> Marked:
    decided = style_text(f"{CARD_MARKS[state]} {_clip(outcome)}", "bold") if outcome else Marked("")
    return join_texts([convert_whole(text), decided], "\n\n")


def _clip(outcome: str) -> str:
    """Shorten the words of a long answer, whose own message stands in the chat."""
    return outcome if len(outcome) <= MAX_OUTCOME else f"{outcome[:MAX_OUTCOME]} […]"


def _add_reason(view: ApprovalCard) -> tuple[Button, ...]:
    """The buttons, and one more by which who presses it writes why they deny."""
    deny = next((one for one in view.buttons if one.token.endswith(":deny")), None)
    if deny is None:
        return view.buttons
    token = f"{deny.token.removesuffix('deny')}why"
    return (*view.buttons, Button(label=say("deny_reason", view.language), token=token))


def _keyboard(buttons: tuple[Button, ...], state: CardState) -> Keyboard | None:
    """Buttons while the card is open."""
    return keyboard(buttons) if state == "open" else None


def _make_field(language: str, state: CardState) -> ForceReply | NoReply:
    return ForceReply(True, False, say("your_answer", language)) if state == "open" else NoReply()
