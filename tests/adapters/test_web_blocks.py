"""A growing text is drawn block by block: what was drawn stays as the whole is drawn in the end."""

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from adapters.web.blocks import FinishedBlocks, count_units
from adapters.web.render import draw_answer

BLOCKS = st.sampled_from([
    "Plain **words** here.",
    "Two\nlines",
    "# A head",
    "```python\na = 1\n\n\nb = 2\n```",
    "~~~\n```\n\nstill code\n~~~",
    "> quoted\n> more",
    "| a | b |\n| - | - |\n| 1 | 2 |",
    "- one\n- two\n  - inner",
    "1. first\n\n2. second",
    "-----",
    "end 🎉 of it",
])  # fmt: skip


@given(blocks=st.lists(BLOCKS, min_size=1, max_size=8), step=st.integers(1, 40))
def test_what_is_drawn_piece_by_piece_is_what_the_whole_is(blocks: list[str], step: int) -> None:
    text = "\n\n".join(blocks)
    drawn, at, finished = "", 0, FinishedBlocks()
    for end in (*range(step, len(text), step), len(text)):
        cut = finished.follow(text[:end])
        drawn += draw_answer(text[at:cut]) if cut > at else ""
        at = cut
    assert drawn + draw_answer(text[at:]) == draw_answer(text)


SIGNS = st.sampled_from(
    [
        "a",
        "\n",
        "\n\n",
        " ",
        "\t",
        "```",
        "````\n",
        "```py\n",
        "~~~",
        "- ",
        "*",
        "1",
        "1.",
        "2) ",
        "#",
    ]
)


@given(signs=st.lists(SIGNS, max_size=30), step=st.integers(1, 7))
def test_it_finds_what_a_reading_from_the_beginning_finds(signs: list[str], step: int) -> None:
    text, finished = "".join(signs), FinishedBlocks()
    for end in (*range(step, len(text), step), len(text)):
        assert finished.follow(text[:end]) == read_from_the_beginning(text[:end])


def read_from_the_beginning(text: str) -> int:
    cut = 0
    for edge in re.finditer(r"\n[ \t]*\n(?=\S)", text):
        item = re.compile(r"[-*+](\s|\Z)|\d{1,9}([.)](\s|\Z)|\Z)").match(text, edge.end())
        opened = ""
        for found in re.finditer(
            r"^ {0,3}(`{3,}|~{3,})(.*)$", text[cut : edge.end()], re.MULTILINE
        ):
            if not opened:
                opened = found[1]
            elif found[1].startswith(opened) and not found[2].strip():
                opened = ""
        if not item and not opened:
            cut = edge.end()
    return cut


def test_a_long_block_takes_linear_time() -> None:
    """A model may write one block of code for minutes; each word of it is an event."""
    text, finished = "```\n" + "def f():\n    pass\n\n" * 20_000, FinishedBlocks()
    began = time.process_time()
    for end in range(0, len(text), len(text) // 200):
        assert finished.follow(text[:end]) == 0
    assert time.process_time() - began < 3


def test_only_whole_blocks_are_finished() -> None:
    for text, end in (
        ("one two", 0), ("one\n\n", 0), ("one\n\nt", 5), ("```\na\n\nb\n\nc", 0),
        ("- a\n\n- b\n\n- c", 0),
    ):  # fmt: skip
        assert FinishedBlocks().follow(text) == end


def test_units_are_those_of_the_page() -> None:
    assert count_units("a🎉\ud800b") == 5
