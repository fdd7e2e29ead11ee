"""Renders why a person is asked, and what 'always' would allow, in their language. Pure.

The policy speaks in phrases (`agent_core.phrases`). A text without one is kept: words of a hook, of
another policy, or of an older version.
"""

from collections.abc import Sequence

import msgspec

from agent_core.phrases import Phrase
from agent_core.questions import Coverage, Lasting, Offer, Proposal, Risk, list_choices
from gateway.delivery.phrasing import say_phrase
from gateway.texts import Key, say
from gateway.texts.tool_names import name_tool
from gateway.texts.tools import TOOL_NAMES

MAX_BESIDE = 100
"""Maximum characters of a command that a card repeats where it says what an answer covers."""
RISKS: dict[Risk, Key] = {"low": "risk_low", "medium": "risk_medium", "high": "risk_high"}


def describe_reason(proposal: Proposal, language: str) -> str:
    """Describe why the call needs approval."""
    return say_phrase(proposal.why, language) if proposal.why is not None else proposal.reason


def describe_detail(proposal: Proposal, language: str) -> str:
    """Describe further details of the call; from older versions with the tool's words."""
    if not (proposal.notes or proposal.preview):
        return proposal.detail
    return " ".join(say_phrase(one, language) for one in proposal.notes)


def describe_preview(proposal: Proposal, language: str) -> str:
    """Describe the effect of the call as its tool tells it."""
    preview = proposal.preview
    return say_phrase(preview, language) if isinstance(preview, Phrase) else preview


def describe_choice(proposals: Sequence[Proposal], choice: Lasting, language: str) -> str:
    """Describe what a lasting answer covers for all these calls on one card; "" if it is not
    offered."""
    if choice not in list_choices(proposals):
        return ""
    offers = (one for each in proposals for one in each.list_offers() if one.choice == choice)
    return "\n".join(dict.fromkeys(_describe_beside(one, language) for one in offers))


def _describe_beside(offer: Offer, language: str) -> str:
    """Describe an offer; a longer call is not repeated, as it is on the card already."""
    covers = offer.covers
    if covers is None or not covers.words or _is_short(covers.words):
        return describe_offer(offer, language)
    return _describe_extent(say("covers_this", language), covers, language)


def _is_short(words: str) -> bool:
    return len(words) <= MAX_BESIDE and "\n" not in words


def describe_offer(offer: Offer, language: str) -> str:
    """Describe what a rule would allow; the stored rule stays as it is."""
    if offer.covers is None:
        return offer.pattern
    return describe_coverage(offer.tool, offer.covers, language)


def describe_coverage(tool: str, covers: Coverage, language: str) -> str:
    """Describe what a rule for `tool` allows."""
    if covers.phrase is not None:
        return say_phrase(covers.phrase, language)
    if covers.risk is not None:
        risk = say(RISKS[covers.risk], language)
        return say("grant_risk", language, tool=name_tool(tool, language), risk=risk)
    call = say("covers_call", language, call=_describe_call(tool, covers.words, language))
    return _describe_extent(call, covers, language)


def _describe_extent(call: str, covers: Coverage, language: str) -> str:
    """Describe `call` with what the rule is bound to."""
    if covers.background:
        call = say("covers_behind", language, call=call)
    if covers.files:
        call = say("covers_files", language, call=call, files=", ".join(covers.files))
    elif covers.bound:
        call = say("covers_bound", language, call=call)
    return call


def _describe_call(tool: str, words: str, language: str) -> str:
    """Write a command as it is, and other arguments by name, as JSON, without those not given."""
    name = name_tool(tool, language)
    try:
        given = msgspec.json.decode(words, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        runs_commands = TOOL_NAMES.get(tool) == "tool_run_command"
        return words if runs_commands else f"{name} {words}"
    named = ((name, bytes(value).decode()) for name, value in given.items())
    told = ", ".join(f"{name} {value}" for name, value in named if value != "null")
    return say("covers_given", language, tool=name, given=told) if told else name
