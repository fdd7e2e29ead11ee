"""Markdown split for short messages: nothing lost, nothing too long, fences and tables whole."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.telegram.entities import from_markdown
from adapters.text import FENCE, measure_utf16, pieces, split, split_end
from tests.sampling import examples

FRAGMENTS = st.sampled_from(
    ["word ", "A sentence. ", "\n", "\n\n", "```python\n", "```\n", "~~~~\n", "| a | b |\n"]
    + ["|---|---|\n", "| 1 | 2 |\n", "# H\n", "é𝕏👩‍👧 ", "x" * 30, "- item\n", "  ", "`c`", "\r\n"]
)
MARKDOWN = st.lists(FRAGMENTS | st.text(max_size=8), max_size=60).map("".join)


@settings(max_examples=examples(400), deadline=None)
@given(MARKDOWN, st.integers(2, 160))
def test_the_bodies_are_the_text_and_every_part_fits(text: str, limit: int) -> None:
    parts = list(pieces(text, limit, measure_utf16))
    assert "".join(part.body for part in parts) == text
    assert all(part.body for part in parts)
    # a character outside the BMP is two units and cannot be halved
    assert all(measure_utf16(part.text) <= limit or len(part.body) == 1 for part in parts)


@settings(max_examples=examples(200), deadline=None)
@given(MARKDOWN, st.integers(80, 400))
def test_only_fences_and_table_headers_are_added(text: str, limit: int) -> None:
    for part in pieces(text, limit, measure_utf16):
        lines = part.opening.split("\n")
        assert part.opening == "" or FENCE.match(part.opening) or "|" in lines[0]
        assert part.opening in ("", f"{lines[0]}\n") or f"{lines[1]}\n" in part.opening
        assert set(part.closing) <= set("`~\n")


def test_short_and_empty_texts_stay() -> None:
    assert split("hello", 10) == ["hello"]
    assert split("", 10) == []


def test_paragraphs_before_lines_before_sentences_before_words() -> None:
    assert split("one two\nthree\n\nfour five\nsix", 22) == ["one two\nthree\n\n", "four five\nsix"]
    assert split("one two three\nfour five six", 20) == ["one two three\n", "four five six"]
    assert split("One two. Three four.", 12) == ["One two. ", "Three four."]
    assert split("alpha beta gamma delta", 12) == ["alpha beta ", "gamma delta"]
    assert split("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_a_heading_stays_with_its_text() -> None:
    text = "Some words come first here.\n\n# Title\n\nand the text"
    assert split(text, 40) == ["Some words come first here.\n\n", "# Title\n\nand the text"]


def test_a_cut_fence_is_closed_and_opened_again() -> None:
    text = "Intro.\n\n~~~~py x=1\na = 1\nb = 2\nc = 3\n~~~~\nBye."
    assert split(text, 40) == [
        "Intro.\n\n~~~~py x=1\na = 1\nb = 2\n~~~~",
        "~~~~py x=1\nc = 3\n~~~~\nBye.",
    ]


def test_a_long_line_of_code_is_cut_inside_its_fence() -> None:
    for part in split("```sh\n" + "x" * 100 + "\n```", 60):
        assert part.startswith("```sh\n")
        assert part.endswith("\n```")


def test_a_cut_table_repeats_its_header_and_keeps_its_rows() -> None:
    head, row = "| a | b |\n|---|---|\n", "| 1 | 2 |\n"
    parts = split("Rows:\n\n" + head + row * 7, 60)
    assert parts[0] == "Rows:\n\n" + head + row * 3
    assert parts[1] == head + row * 4


def test_hostile_blanks_cost_no_time() -> None:
    started = time.process_time()
    split("a|b\n-" + " " * 50_000 + "x|", 4096)
    list(from_markdown("\n" * 50_000 + "||" + "|" * 4000))
    assert time.process_time() - started < 2


CODE = st.sampled_from(["```python\n", "~~~~\n", "````\n"])
LINES = st.lists(st.sampled_from(["x = 1\n", "say ``` here\n", "y\n"]), min_size=90, max_size=200)


@settings(max_examples=examples(100), deadline=None)
@given(
    MARKDOWN.filter(lambda text: "`" not in text and "~" not in text), CODE, LINES, st.booleans()
)
def test_the_end_of_a_text_that_is_split_alone_is_still_code(
    before: str, opening: str, lines: list[str], is_over: bool
) -> None:
    """As a growing answer is shown whose beginning is in messages above."""
    text = f"{before}\n{opening}{''.join(lines)}"
    if is_over:
        text += opening.replace("python", "") + "and after it\n" * 60
    end = split_end(text, 80, measure_utf16)[-1]
    assert (
        bool(FENCE.match(end)) == bool(FENCE.match(split(text, 80, measure_utf16)[-1])) != is_over
    )
    assert measure_utf16(end) <= 80
