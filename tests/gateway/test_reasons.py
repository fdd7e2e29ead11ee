"""Whatever the policy says to a person has words in each language; a rule is read, not decoded."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

import msgspec
import pytest
from pydantic import BaseModel

from agent_core import policy
from agent_core.journal import Asked, ToolFinished, ToolStarted
from agent_core.messages import ToolCall
from agent_core.policy import Situation, Verdict, decide
from agent_core.questions import Approval, Proposal
from agent_core.skills.contract import CALLS
from agent_core.tools import paths, shell_words
from agent_core.tools.browser import acts
from agent_core.tools.contract import Tool, ToolContext
from gateway.people import reasons
from gateway.people.texts import ENGLISH, GERMAN
from gateway.present import Fold
from gateway.texts import LANGUAGES
from gateway.views import Activity, ApprovalCard

DIGEST = "0123456789abcdef0123"
Access = Literal["read", "write", "shell", "network", "person"]


class Given(BaseModel):
    """The arguments of any tool."""

    command: str = ""
    path: str = "a.txt"
    timeout: int = 5
    background: bool = False


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
        yield decide(made(access), Given(), DIGEST, asks)  # type: ignore[arg-type]  # from the tuple
    yield decide(made("read"), Given(), DIGEST, Situation(mode="ask", person="p", ask_all=True))
    for path in ("../x", "a\u202eb", ".env", ".turnkeeper/x", "x" * 300):
        yield decide(made("write"), Given(path=path), DIGEST, asks)
    for tool in (bare, shut):
        yield decide(tool, Given(command="ls", timeout=600), DIGEST, asks)
        yield decide(tool, Given(command="echo $KEY"), DIGEST, asks)
        for command in ("ls", "./run.sh"):
            for behind in (False, True):
                given = Given(command=command, background=behind)
                yield decide(tool, given, DIGEST, asks)
    first = decide(shut, Given(command="ls"), DIGEST, asks)
    grant = policy.Grant(tool="it", pattern=first.always, person="p")
    granted = Situation(mode="ask", person="p", rules=(grant,))
    yield decide(shut, Given(command="ls"), DIGEST, granted)


def asked(verdict: Verdict) -> Proposal:
    return Proposal(
        call_id="c", tool="it", arguments="{}", digest=DIGEST, risk=verdict.risk,
        reason=verdict.reason, rule=verdict.always, detail=verdict.detail, line=verdict.rule,
    )  # fmt: skip


def test_every_line_of_the_policy_has_german_words() -> None:
    found = list(verdicts())
    lines = set(re.findall(r'\brule="([\w-]+)"', inspect.getsource(policy)))
    assert {one.rule for one in found} == lines, "a line of the policy that is not looked at here"
    for one in found:
        if one.ruling == "allow":
            assert one.rule in ("person", "read", "granted"), "nobody reads why it is allowed"
            continue
        said = reasons.reason(one.reason, "de")
        assert said != one.reason, one.rule
        assert reasons.reason(one.reason, "en") == one.reason, "English is what the policy says"
        shown = reasons.detail(asked(one), "de").split(". ")
        left = set(shown) & set(one.detail.split(". ")) - {""}
        assert not left, f"{one.rule}: {left}"
        assert reasons.detail(asked(one), "en") == one.detail
        english = re.search(r"\b(the|it|is|not|only|runs|of)\b", " ".join((said, *shown)))
        assert english is None, f"{one.rule}: {english}"


def texts_of(module: ModuleType, *functions: str) -> Iterator[str]:
    """What a module gives as a reason: what is raised, or returned by `functions`."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            returned = (one.value for one in ast.walk(node) if isinstance(one, ast.Return))
            yield from filter(None, map(_sample, returned))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_Strange":
            yield _sample(node.args[0])
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "NotUnderstood":
            yield from filter(None, (_sample(one.value) for one in node.keywords))


def _sample(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_sample(value) or "7X7" for value in values)
        case _:
            return ""


def test_every_reason_not_to_understand_a_command_and_to_refuse_a_path_has_german_words() -> None:
    clauses = [*texts_of(shell_words), *texts_of(policy)]
    paths_ = list(texts_of(paths, "refused", "leaves"))
    assert len(clauses) > 20 and len(paths_) >= 5
    for text in (*clauses, *paths_):
        said = reasons.reason(text, "de")
        assert said != text, text
        assert ("7X7" in said) == ("7X7" in text), "what varies is kept"
        assert reasons.reason(text, "fr") == text


def test_each_text_is_found_by_itself_and_the_rest_stays() -> None:
    for key, text in ENGLISH.items():
        if not key.startswith(("covers_", "does_")) or key in ("covers_search", "covers_research"):
            filled = re.sub(r"{\w+}", "w", text)
            assert reasons.reason(filled, "de") == re.sub(r"{\w+}", "w", GERMAN[key]), key
    assert reasons.reason("Not on Fridays.", "de") == "Not on Fridays."
    assert reasons.reason("Denied: not on Fridays", "de") == "Abgelehnt: not on Fridays"


def test_a_preview_is_shown_as_it_will_be_written() -> None:
    diff = "Isolation: none.\n+Isolation: none."
    call = Proposal(
        call_id="c", tool="t", arguments="{}", digest="d", risk="low", reason="", detail=diff,
        line="write",
    )  # fmt: skip
    assert reasons.detail(call, "de") == diff
    behind = Proposal(
        call_id="c", tool="t", arguments="{}", digest="d", risk="low", reason="", detail=diff,
        line="shell",
    )  # fmt: skip
    assert reasons.detail(behind, "de") == "Abschottung: keine.\n+Isolation: none."


@pytest.mark.parametrize(
    ("tool", "arguments", "rule", "english", "german"),
    [
        ("run_command", "{}", "= ls -la", "exactly run_command ls -la", "genau run_command ls -la"),
        (
            "delete_file", "{}", '= {"path":"a.txt","line":null,"n":3}',
            'exactly delete_file with path "a.txt", n 3', 'genau delete_file mit path "a.txt", n 3',
        ),
        (
            "run_command", '{"background":true}', "= ./a.sh · in the background · as of 0123456789abcdef",
            "exactly run_command ./a.sh, in the background, while the files that it may run stay as they are",
            "genau run_command ./a.sh, im Hintergrund, solange die Dateien, die dabei laufen können, "
            "gleich bleiben",
        ),
        ("run_command", "{}", "= echo a · in the background",
         "exactly run_command echo a · in the background",
         "genau run_command echo a · in the background"),
        ("find", "{}", "any search of the web", "any search of the web", "jede Suche im Netz"),
        ("look", "{}", "pages of a.org", "pages of a.org", "Seiten von a.org"),
        ("mine", "{}", "shell rm *", "shell rm *", "shell rm *"),
    ],
)  # fmt: skip
def test_what_always_covers_is_readable(
    tool: str, arguments: str, rule: str, english: str, german: str
) -> None:
    call = Proposal(
        call_id="c", tool=tool, arguments=arguments, digest=DIGEST, risk="low", reason="",
        rule=rule,
    )  # fmt: skip
    assert reasons.covers(call, "en") == english
    assert reasons.covers(call, "de-AT") == german


def test_cards_and_refusals_are_in_the_persons_language() -> None:
    fold = Fold(language="de")
    verdict = decide(
        made("shell", isolated=True), Given(command="ls"), DIGEST, Situation(mode="ask", person="p")
    )
    fold.add(Asked(key="a", id="q", at=0.0, question=Approval(proposals=(asked(verdict),))))
    card = fold.shapes["ask:a"].view
    assert isinstance(card, ApprovalCard)
    assert card.proposals[0].reason == "Es sieht nur nach."
    assert card.proposals[0].detail == "Abschottung: nur der Arbeitsordner, kein Netz."
    assert card.rule == "genau it ls"
    call = ToolCall(id=f"{CALLS}1", name="write_file", arguments="{}")
    fold.add(ToolStarted(key="s", call=call, digest="d", token="t"))
    denied = "Denied: The path is too long."
    fold.add(
        ToolFinished(
            key="f", call_id=call.id, name=call.name, digest="d", content=denied, outcome="denied"
        )
    )
    activity = fold.shapes["activity"].view
    assert isinstance(activity, Activity)
    assert activity.lines[-1].output == "Abgelehnt: Der Pfad ist zu lang."


def test_a_question_stored_before_lines_were_is_read() -> None:
    stored = json.loads(msgspec.json.encode(asked(next(iter(verdicts())))))
    del stored["line"]
    old = msgspec.convert(stored, Proposal)
    assert old.line == "" and reasons.detail(old, "de") == old.detail


def test_no_text_speaks_of_turns() -> None:
    for language, word in (("en", r"\b[Tt]urns?\b"), ("de", r"\bZ(ug|uges|ugs|üge)\b")):
        for key, text in LANGUAGES[language].items():
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
        detail=preview, line="network",
    )  # fmt: skip
    assert reasons.detail(touch, "en") == preview != ""
    assert reasons.detail(touch, "de") == german
    other = msgspec.structs.replace(touch, tool="write_file")
    assert reasons.detail(other, "de") == preview, "what a file says is shown as it is"
