"""Why a person is asked, and what 'always' would allow, in the person's language. Pure.

The policy speaks English, to the model and the audit. Its sentences are the English texts of the
catalogue, so that they are found there; what is not found (words of hooks and of other policies)
stays as it is.
"""

import re
from functools import cache

import msgspec

from agent_core.questions import Proposal
from gateway.people.texts import ENGLISH, ReasonKey
from gateway.texts import pattern, say

ISOLATING = frozenset({"secret", "shell", "shell-unisolated"})
"""Lines of the policy whose detail begins with the isolation. Of the others it is a preview: what
will be written is shown as it will be."""
_COVERED = frozenset({"covers_call", "covers_given", "covers_behind", "covers_bound"})
"""Said of a rule here, by nobody else: what reads like one is no such text."""
_TOUCHES: tuple[ReasonKey, ...] = ("does_click", "does_type", "does_choose", "does_press")
"""What the browser's tools do to a page: said of their calls, of nothing else."""
_LACKING: dict[str, ReasonKey] = {"label": "does_nothing", "page": "does_nowhere"}
"""What is said in place of a field of theirs that is not there."""
_BEHIND = " · in the background"
_APART = _COVERED | {*_TOUCHES, *_LACKING.values()}
_AS_OF = re.compile(r" · as of [0-9a-f]{16}\Z")


def reason(words: str, language: str) -> str:
    """A sentence of the policy in `language`."""
    for key, form in _forms().items():
        if found := form.fullmatch(words):
            fields = found.groupdict()
            if "why" in fields:
                fields["why"] = reason(fields["why"], language)
            return say(key, language, **fields)
    return words


def detail(proposal: Proposal, language: str) -> str:
    """What else is to be seen of a call; of it the policy's sentences in `language`."""
    touches = proposal.tool.startswith("browser_")
    if proposal.line not in ISOLATING:
        return _touch(proposal.detail, language) if touches else proposal.detail
    first, newline, rest = proposal.detail.partition("\n")
    sentences = re.split(r"(?<=\.) ", first)
    rest = _touch(rest, language) if touches else rest
    return " ".join(reason(one, language) for one in sentences) + newline + rest


def _touch(words: str, language: str) -> str:
    """What a touch of a page would do; the same words of the page, in the same order."""
    for key in _TOUCHES:
        if found := _form(ENGLISH[key]).fullmatch(words):
            fields = found.groupdict()
            for name, other in _LACKING.items():
                if fields.get(name) == ENGLISH[other]:
                    fields[name] = say(other, language)
            return say(key, language, **fields)
    return words


def covers(proposal: Proposal, language: str) -> str:
    """What 'always' would allow, as people read it; the rule that is stored stays as it is."""
    rule = proposal.rule
    if not rule.startswith("= "):
        return reason(rule, language)
    as_of = f" · as of {proposal.digest[:16]}"  # no words of a command end with what binds them
    bound = bool(proposal.digest) and rule.endswith(as_of)
    words = rule.removeprefix("= ").removesuffix(as_of if bound else "")
    behind = words.endswith(_BEHIND) and _runs_on(proposal.arguments)
    words = words.removesuffix(_BEHIND) if behind else words
    return _exactly(_called(proposal.tool, words, language), language, behind=behind, bound=bound)


def allowed(tool: str, rule: str, language: str) -> str:
    """What a rule allows that was stored, of which no more than its words is known."""
    if not rule.startswith("= "):
        return reason(rule, language)
    words = _AS_OF.sub("", rule.removeprefix("= "))
    bound, behind = words != rule.removeprefix("= "), words.endswith(_BEHIND)
    call = _called(tool, words.removesuffix(_BEHIND), language)
    return _exactly(call, language, behind=behind, bound=bound)


def _exactly(call: str, language: str, *, behind: bool, bound: bool) -> str:
    if behind:
        call = say("covers_behind", language, call=call)
    if bound:
        call = say("covers_bound", language, call=call)
    return say("covers_call", language, call=call)


def _runs_on(arguments: str) -> bool:
    try:
        given = msgspec.json.decode(arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return False
    return bool(given.get("background"))


def _called(tool: str, words: str, language: str) -> str:
    """A command as it is; arguments by name, each as JSON writes it, without those not given."""
    try:
        given = msgspec.json.decode(words, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return f"{tool} {words}"
    named = ((name, bytes(value).decode()) for name, value in given.items())
    told = ", ".join(f"{name} {value}" for name, value in named if value != "null")
    return say("covers_given", language, tool=tool, given=told) if told else tool


@cache
def _forms() -> dict[ReasonKey, re.Pattern[str]]:
    return {key: _form(text) for key, text in ENGLISH.items() if key not in _APART}


def _form(text: str) -> re.Pattern[str]:
    return re.compile(pattern(text), re.DOTALL)
