"""Two people and a stranger, three platforms, an hour drawn from a grammar of what people do: what
was for the agent is answered or told, and to nobody else; no stranger is heard, no rights widen, no
call breaks a platform's schema."""

import gc
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.sampling import examples
from tests.stories.hours_grammar import Deed, hours
from tests.stories.hours_rig import live

MANY = 500_000
"""Objects that may be frozen beside those in use, about 150 MB."""
CHECKS = settings(
    deadline=None,
    database=None,
    phases=(Phase.generate,),  # an hour that fails fails slowly: its deeds are in the message
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(300)
@settings(CHECKS, max_examples=examples(6))
@given(hours)
def test_an_hour_of_people(deeds: list[Deed]) -> None:
    live_somewhere(deeds)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("_part", range(15))
@settings(CHECKS, max_examples=334)
@given(deeds=hours)
def test_many_hours_of_people(deeds: list[Deed], _part: int) -> None:
    live_somewhere(deeds)


class Heap:
    """What gateways of this process froze: each freezes also what the last ones left."""

    most = MANY

    @classmethod
    def thaw(cls) -> None:
        if gc.get_freeze_count() > cls.most:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            cls.most = gc.get_freeze_count() + MANY


def live_somewhere(deeds: list[Deed]) -> None:
    Heap.thaw()
    with tempfile.TemporaryDirectory() as folder:
        live(Path(folder), deeds)
