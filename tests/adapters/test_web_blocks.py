"""A growing text is drawn block by block: what was drawn stays as the whole is drawn in the end."""

from hypothesis import given
from hypothesis import strategies as st

from adapters.web.blocks import count_units, find_finished
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
    drawn, at = "", 0
    for end in (*range(step, len(text), step), len(text)):
        cut = find_finished(text[:end], at)
        drawn += draw_answer(text[at:cut]) if cut > at else ""
        at = cut
    assert drawn + draw_answer(text[at:]) == draw_answer(text)


def test_only_whole_blocks_are_finished() -> None:
    assert find_finished("one two") == find_finished("one\n\n") == 0
    assert find_finished("one\n\nt") == 5
    assert find_finished("```\na\n\nb\n\nc") == 0
    assert find_finished("- a\n\n- b\n\n- c") == 0


def test_units_are_those_of_the_page() -> None:
    assert count_units("a🎉\ud800b") == 5
