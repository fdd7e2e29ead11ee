"""Why a person is asked, and what 'always' would allow, in the person's language. Pure.

The policy speaks English, to the model and the audit. Its sentences are the English texts of the
catalogue, so that they are found there; what is not found (words of hooks and of other policies)
stays as it is.
"""

import re
from functools import cache
from string import Formatter

import msgspec

from agent_core.questions import Proposal
from gateway.people.texts import ENGLISH, ReasonKey
from gateway.texts import say

ISOLATING = frozenset({"secret", "shell", "shell-unisolated"})
"""Lines of the policy whose detail begins with the isolation. Of the others it is a preview: what
will be written is shown as it will be."""
_COVERED = frozenset({"covers_call", "covers_given", "covers_behind", "covers_bound"})
"""Said of a rule here, by nobody else: what reads like one is no such text."""
_BEHIND = " · in the background"


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
    if proposal.line not in ISOLATING:
        return proposal.detail
    first, newline, rest = proposal.detail.partition("\n")
    sentences = re.split(r"(?<=\.) ", first)
    return " ".join(reason(one, language) for one in sentences) + newline + rest


def covers(proposal: Proposal, language: str) -> str:
    """What 'always' would allow, as people read it; the rule that is stored stays as it is."""
    rule = proposal.rule
    if not rule.startswith("= "):
        return reason(rule, language)
    as_of = f" · as of {proposal.digest[:16]}"  # no words of a command end with what binds them
    bound = bool(proposal.digest) and rule.endswith(as_of)
    words = rule.removeprefix("= ").removesuffix(as_of if bound else "")
    behind = words.endswith(_BEHIND) and _runs_on(proposal.arguments)
    call = _called(proposal.tool, words.removesuffix(_BEHIND) if behind else words, language)
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
    return {key: _form(text) for key, text in ENGLISH.items() if key not in _COVERED}


def _form(text: str) -> re.Pattern[str]:
    """What finds the text, and in it the values of its fields."""
    pieces = Formatter().parse(text)
    return re.compile(
        "".join(
            re.escape(words) + (f"(?P<{name}>.+)" if name else "") for words, name, *_ in pieces
        ),
        re.DOTALL,
    )
