"""Which resources a message names."""

import pytest

from agent_core.errors import ToolFailed
from agent_core.mcp.mentions import MAX_MENTIONS, find_mentions
from agent_core.mcp.prompts import read_arguments
from agent_core.mcp.server_facts import PromptFacts
from agent_core.messages import Mention


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("read @notes:book://a/b, please", "book://a/b"),
        ("(@notes:memo:1)", "memo:1"),
        ("@notes:x.", "x"),
        ("@notes:file:///a%20b?c=d#e!", "file:///a%20b?c=d#e"),
        ("ann@notes:x", None),
        ("https://a@notes:80/", None),
        ("@other:x", None),
        ("@notes: x", None),
        ("@notes:...", None),
        ("@notes:wiki://Emma_(novel)", "wiki://Emma_(novel)"),
        ("(see @notes:wiki://Emma_(novel)).", "wiki://Emma_(novel)"),
        ("[@notes:list://[a], then]", "list://[a]"),
        ("@Notes:x", None),
    ],
)
def test_what_is_named(text: str, named: str | None) -> None:
    found = find_mentions([text], ["notes"])
    assert found == ((Mention(server="notes", uri=named),) if named else ())


def test_each_once_and_not_too_many() -> None:
    text = " ".join(f"@a:{n} @a:{n}" for n in range(100))
    assert find_mentions([text, text], ["a"]) == tuple(
        Mention(server="a", uri=str(n)) for n in range(MAX_MENTIONS)
    )


@pytest.mark.parametrize("blank", [" ", "  ", "\n"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("praise", "praise"),
        ("a/b:c", "a/b:c"),
        ("weekly report", '"weekly report"'),
        ("weekly report", "“weekly report”"),
        ("weekly report", "„weekly report“"),
        ("it's", "it's"),
    ],
)
@pytest.mark.parametrize("words", ["", "Momo", 'book="Emma and Momo" tone=warm'])
def test_a_prompt_is_run_by_its_name(name: str, said: str, words: str, blank: str) -> None:
    found = find_mentions([blank.join(("/prompt notes", said, words)).strip()], ["notes"])
    assert found == (Mention(server="notes", prompt=name, words=words),)


def test_a_long_text_takes_no_time() -> None:
    assert find_mentions(["@a:x" + ")" * 1_900 + "(" * 90, "/prompt a " + '"' * 200_000], ["a"])
    assert find_mentions(["@a:" * 200_000, "@" * 200_000, "@a" * 200_000], ["a"])


PROMPT = PromptFacts(name="p", required=("a",), optional=("b",))


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("a=1 b=2", {"a": "1", "b": "2"}),
        ("a='one two'", {"a": "one two"}),
        ("a=“one two” b=„x y“", {"a": "one two", "b": "x y"}),
        ("one two", {"a": "one two"}),
        ("x=1", {"a": "x=1"}),
        ("it's", {"a": "it's"}),
        ("a=1 x=2", None),
        ("b=1", None),
        ("", None),
    ],
)
def test_words_become_arguments(words: str, given: dict[str, str] | None) -> None:
    if given is not None:
        assert read_arguments(PROMPT, words) == given
        return
    with pytest.raises(ToolFailed, match=r"it takes: a=… \[b=…\]"):
        read_arguments(PROMPT, words)


def test_a_prompt_without_arguments_takes_none() -> None:
    assert read_arguments(PromptFacts(name="p"), "") == {}
    with pytest.raises(ToolFailed, match="no arguments"):
        read_arguments(PromptFacts(name="p"), "x")
