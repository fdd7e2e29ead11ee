"""Text that a model, a page or a person repeats: no card takes more than linear time for it."""

import time

import pytest

from gateway.views import View
from tests.attacks.text_grammar import ATOMS, DRAWN, Draw, make_views
from tests.sampling import dice

SMALL, LARGE = 6_000, 24_000
MAX_SECONDS = 0.6
"""Of this process, for LARGE characters; what is quadratic takes longer."""
MOST_TIMES = 9
"""Times as long as for SMALL: linear would be four."""


def measure(drawn: Draw, view: View) -> float:
    began = time.process_time()
    drawn(view)
    return time.process_time() - began


def find_slow(units: list[str], share: int = 1) -> list[str]:
    """Each surface and kind of view for which a repeated unit takes more than linear time.
    `share`: one of so many pairs of them is tried."""
    slow, chance = [], dice("surfaces", *units)
    for unit in units:
        small, large = (make_views(unit * (size // len(unit))) for size in (SMALL, LARGE))
        for one, other in zip(small, large, strict=True):
            for name, drawn in DRAWN.items():
                if chance.randrange(share):
                    continue
                first = measure(drawn, one)
                took = measure(drawn, other) if first > MAX_SECONDS / 20 else 0.0
                if took > max(MAX_SECONDS, MOST_TIMES * first):
                    slow.append(f"{name}, {type(one).__name__}, {unit!r}: {first:.2f} {took:.2f} s")
    return slow


def make_units(count: int, *seeds: object) -> list[str]:
    chance = dice("units", *seeds)
    return ["".join(chance.choices(ATOMS, k=chance.randint(1, 5))) for _ in range(count)]


def test_a_repeated_text() -> None:
    assert not find_slow(make_units(1), share=3)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_sign_and_hundreds_of_units(part: int) -> None:
    assert not find_slow([*ATOMS[part::8], *make_units(25, part)], share=2)
