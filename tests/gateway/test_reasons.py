"""Whatever the policy says to a person has words in each language; a rule is read, not decoded."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest
from pydantic import BaseModel

from agent_core import phrases, policy
from agent_core.journal import QuestionAsked, ToolFinished, ToolStarted
from agent_core.messages import ToolCall
from agent_core.orchestration.made_calls import CALLS
from agent_core.phrases import phrase
from agent_core.policy import Situation, Verdict
from agent_core.questions import Approval, Coverage, Proposal
from agent_core.tools.browser import acts
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.facts import judge_call
from gateway.delivery import reasons
from gateway.delivery.fold import ViewFold
from gateway.features.approvals.grants import describe_allowed
from gateway.store.rows import Rule
from gateway.texts import CATALOGUE
from gateway.texts.reasons import ENGLISH
from gateway.views import Activity, ApprovalCard

DIGEST = "0123456789abcdef0123"
Access = Literal["read", "write", "shell", "network", "person"]


class Given(BaseModel):
    """The arguments of any tool."""

    command: str = ""
    path: str = "a.txt"
    timeout: int = 5
    background: bool = False
    hosts: tuple[str, ...] = ()
    url: str = ""


async def _never(arguments: BaseModel, context: ToolContext) -> str:
    raise AssertionError(f"{arguments} ran in {context}")


def made(access: Access, *, isolated: bool = False) -> Tool:
    return Tool(
        name="it", description="", arguments=Given, repetition="effect", access=access,
        call=_never, limit=60, isolated=isolated,
    )  # fmt: skip


def verdicts() -> Iterator[Verdict]:
    """One verdict of each line of the policy, and of each of its forms."""
    asks = Situation(mode="ask", person="p", secrets=("KEY",))
    bare, shut = made("shell"), made("shell", isolated=True)
    for access in ("read", "write", "network", "person"):
        yield judge_call(made(access), Given(), DIGEST, asks)  # type: ignore[arg-type]  # from the tuple
    yield judge_call(made("read"), Given(), DIGEST, Situation(mode="ask", person="p", ask_all=True))
    for path in ("../x", "a\u202eb", ".env", ".git/config", ".turnkeeper/x", "x" * 300):
        yield judge_call(made("write"), Given(path=path), DIGEST, asks)
    for tool in (bare, shut):
        yield judge_call(tool, Given(command="ls", timeout=600), DIGEST, asks)
        yield judge_call(tool, Given(command="echo $KEY"), DIGEST, asks)
        for command in ("ls", "./run.sh"):
            for behind in (False, True):
                given = Given(command=command, background=behind)
                yield judge_call(tool, given, DIGEST, asks)
    yield judge_call(shut, Given(hosts=("a.test",)), DIGEST, asks)
    for url in ("http://me@a.test/", "http://10.0.0.1/"):
        yield judge_call(made("network"), Given(url=url), DIGEST, asks)
    viewer = msgspec.structs.replace(asks, role=policy.VIEWER)
    yield judge_call(made("write"), Given(), DIGEST, viewer)
    contained = Situation(mode="auto", person="p", contained=True)
    yield judge_call(shut, Given(command="./run.sh"), DIGEST, contained)
    unsaved = msgspec.structs.replace(contained, unsaved="9 GB")
    yield judge_call(shut, Given(command="./run.sh"), DIGEST, unsaved)
    first = judge_call(shut, Given(command="ls"), DIGEST, asks)
    grant = policy.Grant(tool="it", pattern=first.always, person="p")
    granted = Situation(mode="ask", person="p", rules=(grant,))
    yield judge_call(shut, Given(command="ls"), DIGEST, granted)


def asked(verdict: Verdict) -> Proposal:
    return Proposal(
        call_id="c", tool="it", arguments="{}", digest=DIGEST, risk=verdict.risk,
        reason=verdict.reason, offers=verdict.offers, detail=verdict.detail, line=verdict.rule,
        why=verdict.why, notes=verdict.notes, preview=verdict.preview,
    )  # fmt: skip


def test_every_line_of_the_policy_has_german_words() -> None:
    found = list(verdicts())
    lines = {policy.HOSTS, *re.findall(r'\brule="([\w-]+)"', inspect.getsource(policy))}
    assert {one.rule for one in found} == lines, "a line of the policy that is not looked at here"
    for one in found:
        if one.ruling == "allow":
            assert one.rule in ("person", "read", "granted", "contained"), (
                "nobody reads why it is allowed"
            )
            continue
        call = asked(one)
        said = reasons.describe_reason(call, "de")
        assert said != one.reason, one.rule
        assert reasons.describe_reason(call, "en") == one.reason, "as the policy says it"
        shown = reasons.describe_detail(call, "de").split(". ")
        left = set(shown) & set(one.detail.split(". ")) - {""}
        assert not left, f"{one.rule}: {left}"
        assert reasons.describe_detail(call, "en") == one.detail
        english = re.search(r"\b(the|it|is|not|only|runs|of)\b", " ".join((said, *shown)))
        assert english is None, f"{one.rule}: {english}"


def test_each_phrase_of_the_policy_is_in_the_catalogue() -> None:
    own = {"covers_call", "covers_given", "covers_behind", "covers_bound", "covers_files"}
    assert {key: text for key, text in ENGLISH.items() if key not in own} == phrases.REASONS


def test_what_has_no_phrase_stays() -> None:
    call = Proposal(
        call_id="c", tool="t", arguments="{}", digest="d", risk="low", reason="Not on Fridays.",
        rule="shell rm *", detail="Isolation: none.", line="hook",
    )  # fmt: skip
    assert reasons.describe_reason(call, "de") == "Not on Fridays."
    assert reasons.describe_choice((call,), "always", "de") == "shell rm *"
    assert reasons.describe_detail(call, "de") == "Isolation: none."


def test_a_preview_is_shown_as_it_will_be_written() -> None:
    diff = "Isolation: none.\n+Isolation: none."
    call = Proposal(
        call_id="c", tool="t", arguments="{}", digest="d", risk="low", reason="", detail=diff,
        line="shell", preview=diff,
    )  # fmt: skip
    assert reasons.describe_preview(call, "de") == diff and not reasons.describe_detail(call, "de")
    both = msgspec.structs.replace(call, notes=(phrase("isolated_not"),))
    assert reasons.describe_preview(both, "de") == diff
    assert reasons.describe_detail(both, "de") == "Abschottung: keine."


@pytest.mark.parametrize(
    ("tool", "covers", "english", "german"),
    [
        ("run_command", Coverage(words="ls -la"), "exactly ls -la",
         "genau ls -la"),
        (
            "delete_file", Coverage(words='{"path":"a.txt","line":null,"n":3}'),
            'exactly delete_file with path "a.txt", n 3', 'genau delete_file mit path "a.txt", n 3',
        ),
        (
            "run_command", Coverage(words="./a.sh", background=True, bound=True),
            "exactly ./a.sh, in the background, while the files that it may run stay as they are",
            "genau ./a.sh, im Hintergrund, solange die Dateien, die dabei laufen können, "
            "gleich bleiben",
        ),
        ("run_command", Coverage(words="echo a · in the background"),
         "exactly echo a · in the background",
         "genau echo a · in the background"),
        ("find", Coverage(phrase=phrase("covers_search")), "any web search",
         "jede Suche im Netz"),
        ("look", Coverage(phrase=phrase("covers_pages", place="a.org")), "pages of a.org",
         "Seiten von a.org"),
    ],
)  # fmt: skip
def test_what_always_covers_is_readable(
    tool: str, covers: Coverage, english: str, german: str
) -> None:
    call = Proposal(
        call_id="c", tool=tool, arguments="{}", digest=DIGEST, risk="low", reason="",
        rule="= as it is stored", covers=covers,
    )  # fmt: skip
    assert reasons.describe_choice((call,), "always", "en") == english
    assert reasons.describe_choice((call,), "always", "de-AT") == german


def test_cards_and_refusals_are_in_the_persons_language() -> None:
    fold = ViewFold(language="de")
    verdict = judge_call(
        made("shell", isolated=True), Given(command="ls"), DIGEST, Situation(mode="ask", person="p")
    )
    fold.add(QuestionAsked(key="a", id="q", at=0.0, question=Approval(proposals=(asked(verdict),))))
    card = fold.shapes["ask:a"].view
    assert isinstance(card, ApprovalCard)
    assert card.proposals[0].reason == "Es sieht nur nach."
    assert card.proposals[0].detail == "Abschottung: nur der Arbeitsordner, kein Netz."
    assert card.rule == "genau it ls"
    assert card.here == "it: jeder Aufruf (geringes Risiko)"
    call = ToolCall(id=f"{CALLS}1", name="write_file", arguments="{}")
    fold.add(ToolStarted(key="s", call=call, digest="d", token="t"))
    denied = phrase("why_denied", why=phrase("why_long_path"))
    fold.add(
        ToolFinished(
            key="f",
            call_id=call.id,
            name=call.name,
            digest="d",
            content=str(denied),
            outcome="denied",
            shown=denied,
        )
    )
    activity = fold.shapes["activity"].view
    assert isinstance(activity, Activity)
    assert activity.lines[-1].output == "Abgelehnt: Der Pfad ist zu lang."


def test_a_question_stored_before_lines_were_is_read() -> None:
    found = next(one for one in map(asked, verdicts()) if one.notes and one.offers)
    now = msgspec.structs.replace(found, offers=(), rule="= ls", covers=Coverage(words="ls"))
    stored = json.loads(msgspec.json.encode(now))
    assert msgspec.convert(stored, Proposal) == now and now.notes and now.covers is not None
    for name in ("line", "why", "notes", "preview", "covers"):
        del stored[name]
    old = msgspec.convert(stored, Proposal)
    assert old.line == "" and reasons.describe_detail(old, "de") == old.detail != ""
    assert reasons.describe_reason(old, "de") == old.reason
    assert reasons.describe_choice((old,), "always", "de") == old.rule


def test_a_rule_is_told_by_its_value_and_an_older_one_as_it_was_stored() -> None:
    old = msgspec.json.decode(b'{"tool":"run_command","pattern":"= ls","person":"p"}', type=Rule)
    assert describe_allowed(old, "de") == "Einen Befehl ausführen: = ls"
    now = msgspec.structs.replace(old, covers=Coverage(words="ls"))
    assert describe_allowed(now, "de") == "genau ls"
    search = Coverage(phrase=phrase("covers_search"))
    assert describe_allowed(msgspec.structs.replace(old, covers=search), "en") == (
        "Run a command: any web search"
    )


def test_no_text_speaks_of_turns() -> None:
    for language, word in (("en", r"\b[Tt]urns?\b"), ("de", r"\bZ(ug|uges|ugs|üge)\b")):
        for key, text in CATALOGUE.read(language).items():
            assert not re.search(word, text), f"{key}: {text}"


TOUCHED: dict[str, tuple[dict[str, object], str, str]] = {
    "click": (
        {"action": "click_element", "index": 3}, "https://a.example/x",
        "Klicken: [3] Sign in auf https://a.example/x",
    ),
    "type": (
        {"action": "input_text", "index": 3, "text": "me on “it”"}, "https://a.example/x",
        "Tippen: „me on “it”“ in [3] Sign in auf https://a.example/x",
    ),
    "choose": (
        {"action": "select_dropdown_option", "index": 7, "text": "Blue"}, "https://a.example/x",
        "Wählen: „Blue“ in [7] nichts, was auf der Seite ist auf https://a.example/x",
    ),
    "press": ({"action": "send_keys", "keys": "Enter"}, "", "Drücken: Enter auf keiner Seite"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOUCHED)
def test_what_the_browser_would_do_is_told_in_the_persons_language(name: str) -> None:
    given, url, german = TOUCHED[name]
    preview = acts.preview(acts.Act.model_validate(given), url, {"3": "Sign in"})
    touch = Proposal(
        call_id="1", tool="browser_use", arguments="{}", reason="", risk="medium", digest=DIGEST,
        detail=str(preview), line="network", preview=preview,
    )  # fmt: skip
    assert reasons.describe_preview(touch, "en") == str(preview) != ""
    assert reasons.describe_preview(touch, "de") == german
