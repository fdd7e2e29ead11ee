"""Whatever is written to `turnkeeper policy`: an answer for each line, soon, and no exception."""

import json
import time

from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from agent_core.tools.shell_reading.mentions import names_secret
from agent_core.tools.shell_words import Understood, split_plainly, understand
from gateway.wiring.policy_check import PolicyChecker
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
SHELL = st.lists(
    st.sampled_from(
        ("ls", "cat", "sed", "awk", "jq", "find", "git", "xargs", "grep", "echo", "test", "[", "]")
        + (" ", "\n", "\t", "'", '"', "\\", "$", "${", "}", "$((", "))", "(", ")", "<", ">", "|", "&")
        + (";", "#", "*", "?", "-e", "-exec", "{}", "--", "-", "/", "s/a/b/", "{print}", ".env", "@{1}")
        + ("-print0", "-0", "<<", "2>&1", ">/dev/null", "\u202e", "\ud800", "\x00", "ü", "＄", "=", "~")
    ),
    max_size=40,
).map("".join)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | SHELL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
TOOLS = st.sampled_from(
    ("run_command", "bash", "read_file", "write_file", "read_page", "a__b", "none", "", "execute_code")
)  # fmt: skip
CALLS = st.fixed_dictionaries(
    {"tool": TOOLS | VALUES, "args": st.dictionaries(
        st.sampled_from(("command", "path", "url", "content", "code", "cwd", "timeout", "hosts")), VALUES
    ) | VALUES},
    optional={"mode": st.sampled_from(("ask", "auto", "x")), "tier": st.sampled_from(("none", "bwrap", ""))},
)  # fmt: skip
DECISIONS = {"allow", "ask", "deny"}


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(
    st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode(errors="replace"))
)
def test_any_line_has_an_answer(line: bytes) -> None:
    for judge in (CHECKER.judge_call, CHECKER.judge_url, CHECKER.judge_path):
        assert judge(line).decision in DECISIONS


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(CALLS)
def test_any_call_has_an_answer(call: dict[str, object]) -> None:
    answer = CHECKER.judge_call(json.dumps(call).encode())
    assert answer.decision in DECISIONS and answer.rule


@seed(SEED)
@settings(max_examples=examples(600), deadline=None)
@given(SHELL)
def test_any_command_is_read(command: str) -> None:
    understand(command)
    split_plainly(command)
    names_secret(command)


def test_a_bracket_that_closes_nothing_ends_the_reading() -> None:
    for closed in ("( {} )", "ls $( {} )", "<({}); ls", "( {} ); ls", "ls `{}`"):
        for begun in ("{", "if", "if ls; then", "while read x; do", "!", "(", "&&"):
            assert not isinstance(understand(closed.replace("{}", begun)), Understood)


def test_no_command_takes_long() -> None:
    parts = (
        "'",
        '"',
        "\\ ",
        "$((",
        "[",
        "[[:a:]",
        "(>",
        "(a>",
        "s/a/b/;",
        "/a/,",
        "-exec ls ; ",
        "*?",
    )
    for verb in (
        "sed '{}'",
        "awk '{{{}}}'",
        "jq '{}'",
        "find . {}",
        "grep '{}' a",
        "echo {}",
        "{}.env",
    ):
        for part in parts:
            command = verb.format(part * (980 // len(part)))
            began = time.process_time()
            understand(command)
            names_secret(command * 20)
            assert time.process_time() - began < 0.5, command[:40]
