"""Standing rules in plain words, and their revocation: by a button below the list, or by
`/permissions drop 2`."""

from functools import partial

from msgspec.structs import replace

from agent_core import ambient
from agent_core.text import parse_number
from gateway.access.standing import drop_rule, read_rules
from gateway.command_texts import OwnText
from gateway.conversation.permission import describe_mode
from gateway.delivery import reasons
from gateway.feature import Call, Context
from gateway.messages import (
    ButtonPressed,
    FormSubmitted,
    RulePress,
    Sender,
    digest,
    rule_token,
)
from gateway.moment_texts import mark_moment
from gateway.store.rows import Changes, InboxRow, OutboxRow, Rule
from gateway.texts import Key, say
from gateway.texts.signs import quote_verbatim
from gateway.texts.tool_names import name_tool
from gateway.views import Button, ChoiceCard, Notice, View

CARD = "permissions"
MAX_BUTTONS = 20
NEWEST = 40
"""Views that are looked through for older lists."""
_RISKS: dict[str, Key] = {
    "risk:low": "risk_low",
    "risk:medium": "risk_medium",
    "risk:high": "risk_high",
}


async def permissions(call: Call) -> str:
    """Show the list, or revoke a rule of it."""
    context = call.context
    language, words = call.language, call.words
    rules = await _list_rules(context, call.command.sender)
    mode = describe_mode(call)
    if call.option == "drop":
        n = (parse_number(words[1]) or 0) if len(words) == 2 else 0
        if not 1 <= n <= len(rules):
            return say("grants_usage", language)
        by, rule = call.command.sender, rules[n - 1]
        if not await context.services.access.may_act_for(rule.person, by, call.role):
            return say("grant_not_yours", language)
        what = quote_verbatim(describe_allowed(rule, language))
        told = Notice(text=say("grant_dropped", language, what=what))
        await _drop(context, rule, by, call.seq, told)
        return ""
    if words:
        return say("grants_usage", language)
    if not rules:
        return f"{mode}\n{say('grants_none', language)}"
    card = _card(context, rules, mode, language)
    context.finish(call.seq, context.draw(call.seq, CARD, card))
    return ""


async def press(
    context: Context, row: InboxRow, pressed: ButtonPressed | FormSubmitted, asked: RulePress
) -> None:
    """Take a rule back."""
    sender, language = pressed.sender, pressed.sender.language
    rules = {_name(rule): rule for rule in await _list_rules(context, sender)}
    role = context.services.access.role(sender)
    rule = rules.get(asked.rule)
    if rule is None:
        word = say("grant_elsewhere" if pressed.anywhere else "grant_gone", language)
        context.state.show(
            Changes(views=await _redraw_lists(context, sender), row=context.state.row)
        )
    elif not await context.services.access.may_act_for(rule.person, sender, role):
        word = say("grant_not_yours", language)
    else:
        await _drop(context, rule, sender, row.seq)
        word = say("grant_dropped", language, what=describe_allowed(rule, language))
        context.state.tell(pressed.press, word)
        return
    context.state.acknowledge(row.seq, pressed.press, word)


async def _drop(
    context: Context, rule: Rule, by: Sender, seq: int, told: Notice | None = None
) -> None:
    """Revoke the rule in one commit with the row, the lists that show it and the reply, so that a
    crash revokes it or changes nothing."""
    await context.state.flush()
    settings = context.state.row.settings
    if rule not in settings.rules:
        await drop_rule(context.services.store, rule, context.state.conversation)
    kept = tuple(one for one in settings.rules if one != rule)
    context.state.configure(replace(settings, rules=kept))
    views = await _redraw_lists(context, by)
    if told is not None:
        views += (context.state.want(f"row-{seq}", "notice", told, 1, final=True),)
    audit = context.state.audit(by.key, "rule_dropped", f"{rule.tool} {rule.pattern} {rule.person}")
    context.state.show(Changes(done=(seq,), views=views, row=context.state.row, audit=(audit,)))


async def _list_rules(context: Context, sender: Sender) -> tuple[Rule, ...]:
    """Return the rules that hold here: for this conversation, and 'always' rules given here or by
    the sender."""
    settings, services = context.state.row.settings, context.services
    people = {*settings.people, *await services.access.accounts(sender.key)}
    standing = await read_rules(services.store, people, context.state.conversation)
    return (*(one.rule for one in standing), *settings.rules)


async def _redraw_lists(context: Context, sender: Sender) -> tuple[OutboxRow, ...]:
    """The newest lists here as they are now."""
    rules = await _list_rules(context, sender)
    await context.state.flush()
    store, rows = context.services.store, list[OutboxRow]()
    for shown in await store.latest(context.state.conversation.id, NEWEST):
        if shown.name == CARD:
            rows += await context.state.redraw(shown.turn, CARD, partial(_as_now, context, rules))
    return tuple(rows)


def _as_now(context: Context, rules: tuple[Rule, ...], view: View) -> View:
    if not isinstance(view, ChoiceCard) or not view.buttons:
        return view
    return _card(context, rules, view.heading, view.language)


def _card(context: Context, rules: tuple[Rule, ...], mode: str, language: str) -> ChoiceCard:
    """Build the card of all rules, each with its number and a button to revoke it."""
    private, old = context.state.conversation.private, context.state.row.settings.rules
    if not rules:
        text = f"{mode}\n{say('grants_none', language)}".strip()
        return ChoiceCard(question="", text=text, language=language, heading=mode)
    described = (describe_rule(rule, language, private=private, old=rule in old) for rule in rules)
    lines = [
        say("grant_line", language, n=n, what=OwnText(what)) for n, what in enumerate(described, 1)
    ]
    buttons = tuple(
        Button(label=say("grant_drop", language, n=n), token=rule_token(_name(rule)))
        for n, rule in enumerate(rules[:MAX_BUTTONS], 1)
    )
    rows = (mode, say("grants_are", language), *lines, say("grants_usage", language))
    text = "\n".join(filter(None, rows))  # lists of older versions have no heading
    return ChoiceCard(question="", text=text, buttons=buttons, language=language, heading=mode)


def describe_rule(rule: Rule, language: str, *, private: bool, old: bool = False) -> str:
    """Describe what the rule allows, where and how long, since when and by whom, as far as known.
    `old`: stored for this conversation alone."""
    always: Key = "grant_always" if old else "grant_private" if private else "grant_group"
    pieces = [
        quote_verbatim(describe_allowed(rule, language)),
        say(always if rule.lasting else "grant_here", language),
        say("grant_since", language, when=_show_day(rule.at)) if rule.at else "",
        say("grant_by", language, name=quote_verbatim(rule.by)) if rule.by else "",
        "" if private else say("grant_whose", language, person=rule.person),
    ]
    return ", ".join(filter(None, pieces))


def _show_day(at: float) -> OwnText:
    return OwnText(mark_moment(at, f"{ambient.utc(at):%Y-%m-%d}"))


def describe_allowed(rule: Rule, language: str) -> str:
    """Describe what may run by the rule."""
    tool = name_tool(rule.tool, language)
    if rule.pattern in _RISKS:
        risk = say(_RISKS[rule.pattern], language)
        return say("grant_risk", language, tool=tool, risk=risk)
    if rule.covers is None:
        return f"{tool}: {rule.pattern}"
    words = reasons.describe_coverage(rule.tool, rule.covers, language)
    return words if rule.covers.phrase is None else f"{tool}: {words}"


def _name(rule: Rule) -> str:
    """Return the rule's stable name for a button."""
    return digest("\n".join((rule.tool, rule.pattern, rule.person, str(rule.lasting))).encode())
