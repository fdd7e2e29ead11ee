"""Formulas of an answer: readable everywhere, none of their signs lost, and sums of money left alone."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.discord.render import render as render_discord
from adapters.formulas import hold_begun, mark_formulas, write_dollars
from adapters.slack.render import render as render_slack
from adapters.telegram.render import render as render_telegram
from adapters.web.render import draw_answer
from gateway.views import ReplyView, View
from tests.sampling import examples

FENCED = "```latex\n{}\n```"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (r"Energy is $E = mc^2$, or \(a_1 + b\).", "Energy is `E = mc^2`, or `a_1 + b`."),
        ("let $n$ and $f'$ be", "let `n` and `f'` be"),
        (r"so $2x + 1$, $3 \cdot 4$", r"so `2x + 1`, `3 \cdot 4`"),
        (r"so $$x \in S$$ holds", r"so `x \in S` holds"),
        ("$$\n\\int_0^1 x\\,dx\n$$", FENCED.format(r"\int_0^1 x\,dx")),
        (r"$$\sum_i i$$", FENCED.format(r"\sum_i i")),
        (
            "- one:\n  \\[\n  a \\\\\n  b\n  \\]\n- two",
            "- one:\n  ```latex\n  a \\\\\n  b\n  ```\n- two",
        ),
        (r"\[ a^2 \] and more", "`a^2` and more"),
    ],
)
def test_a_formula_is_code(written: str, shown: str) -> None:
    assert mark_formulas(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $6, or US$5=US$6, or 4$ to 5$.",
        "It is $5 now, or $6 + tax$",
        "from $1,000 to $2,000; $5-$6; $5/month and $6/month",
        "$HOME/bin:$PATH and ${HOME}/x",
        r"\(see below\) and \[not yet\]",
        r"\[note\]",
        "`$a^2$` and `` \\(b^2\\) ``",
        "```sh\n$$\necho $a_$b\n$$\n```",
        "$$\nnever closed",
        "a `$x^2 and $y^2` b",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert mark_formulas(text) == text


@settings(max_examples=examples(500))
@given(st.text(alphabet="$\\()[]`~ab5^_ \n-", max_size=60))
def test_nothing_but_dollars_brackets_and_blanks_goes(text: str) -> None:
    def bare(shown: str) -> str:
        return "".join(one for one in shown.replace("latex", "") if one in "ab5^_")

    assert bare(mark_formulas(text)) == bare(text)
    assert bare(write_dollars(text)) == bare(text)


PIECES = (
    "$$\n", "\\[\n", "\\]\n", "a_b", "$x_1$ ", r"\(y\)", r"\[z^2\]", "$$q=1$$ ", "`$a^2$`", "``$a^2$``",
    "```sh\n$a_$b\n```\n", " and ", "\n", "$5 ", "for US$5 ", "$2x ", "+ 1$", " sum of",  ", ", "`", " $n", "\\", "- ",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.data())
def test_what_is_shown_of_a_growing_answer_only_grows(text: str, data: st.DataObject) -> None:
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    shown = [mark_formulas(hold_begun(text[:end])) for end in ends]
    for before, after in pairwise((*shown, mark_formulas(text))):
        assert after.startswith(before)


def test_what_is_no_formula_is_not_held_back_for_long() -> None:
    for text in (
        "It costs $5 for",
        "(US$5",
        "$5\n",
        "a\n$$ is\n```\nb",
        "`x` and",
        f"$HOME/{'x' * 400}",
        "\\begin",
    ):
        assert hold_begun(text) == text
    assert hold_begun("so $x_1") == "so "
    assert hold_begun("so $2x + 1 = \\alpha and") == "so "
    assert hold_begun("so\n$$\nx = 1\n$$") == "so\n"


@pytest.mark.parametrize("sign", ["$", "$a", "\\(", "$$", "\\[\n", "`", "`$", "$$\n"])
def test_many_signs_are_read_soon(sign: str) -> None:
    assert mark_formulas(sign * 20_000)
    assert hold_begun(sign * 20_000) is not None
    assert write_dollars(sign * 20_000)


def _web(view: View) -> tuple[bytes, ...]:
    assert isinstance(view, ReplyView)
    return (draw_answer(view.text).encode(),)


@pytest.mark.parametrize("render", [render_discord, render_slack, _web])
def test_no_platform_takes_its_backslashes_away(
    render: Callable[[View], tuple[bytes, ...]],
) -> None:
    text = "So \\(a\\,b\\) and\n\n$$\n\\frac{1}{3}\\,dx\n$$"
    shown = b"".join(render(ReplyView(text=text))).decode().replace("\\\\", "\\")
    assert "a\\,b" in shown and "\\frac{1}{3}\\,dx" in shown
    assert "$$" not in shown


def test_telegram_writes_them_in_signs_of_their_own() -> None:
    shown = b"".join(render_telegram(ReplyView(text="So \\(E = mc^2\\)."))).decode()
    assert "So E = mc²." in shown
