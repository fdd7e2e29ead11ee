"""Which tier is chosen, and what is said where none works."""

from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.sandboxes import detect as detection
from agent_core.sandboxes.detect import MEND, TierUnusable, detect, find_tier
from agent_core.sandboxes.landlock import calls
from agent_core.sandboxes.landlock.tier import LandlockTier
from agent_core.sandboxes.tier import Leak
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_LANDLOCK
from tests.fakes.sandboxes import make_sandboxes


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "find_abi", lambda: 0)


@pytest.fixture
def no_monty(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none() -> None:
        raise TierUnusable("it needs the extra monty")

    monkeypatch.setattr(detection, "find_monty", find_none)


@NEEDS_BWRAP
async def test_bubblewrap_comes_first() -> None:
    assert (await detect()).name == (await find_tier("auto")).name == "bwrap"


@NEEDS_LANDLOCK
async def test_landlock_comes_second(no_bwrap: None) -> None:
    tier = await detect()
    assert (tier.name, tier.isolated, tier.missing) == ("landlock", True, "")


@NEEDS_LANDLOCK
async def test_landlock_counts_only_where_it_passes(
    no_bwrap: None, no_monty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leaks(*_: object) -> tuple[Leak, ...]:
        return ("processes", "signals")

    monkeypatch.setattr("agent_core.sandboxes.pool.find_leaks", leaks)
    tier = await detect()
    assert tier.missing
    with pytest.raises(ToolFailed, match="landlock: within reach are signals"):
        await make_sandboxes(tier).run("true", Path("/"), 5, lambda _: None)
    assert (await find_tier("landlock")).name == "landlock", "whoever names it has it, and is asked"


async def test_where_none_works_nothing_runs_and_the_mend_is_told(
    no_bwrap: None, no_landlock: None, no_monty: None, tmp_path: Path
) -> None:
    pool = make_sandboxes(await detect())
    await pool.check()
    assert pool.isolated and pool.contains, "no card says that it is not, and nobody is asked"
    assert pool.name == "none" and pool.missing == MEND
    for act in (
        pool.run("touch x", tmp_path, 5, lambda _: None),
        pool.start("touch x", tmp_path, 5),
        pool.open_shell(tmp_path, 5),
    ):
        with pytest.raises(ToolFailed, match="Install bubblewrap") as told:
            await act
        assert "bwrap is not installed (package bubblewrap)" in str(told.value)
        assert "no Landlock, or not enough of it" in str(told.value)
        assert "it needs the extra monty" in str(told.value)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("name", "why"), [("bwrap", "bwrap is not installed"), ("landlock", "no Landlock")]
)
async def test_one_that_is_named_and_does_not_work_is_refused(
    name: str, why: str, no_bwrap: None, no_landlock: None
) -> None:
    with pytest.raises(TierUnusable, match=why):
        await find_tier(name)


async def test_the_one_without_isolation_is_never_found_but_by_its_name(
    no_bwrap: None, no_landlock: None
) -> None:
    assert not (await find_tier("unsafe-subprocess")).isolated
    assert (await find_tier("auto")).isolated


async def test_a_fault_says_what_a_command_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await detection.find_fault(LandlockTier(abi=1)) == (
        "This kernel has no Landlock, or not enough of it (Linux 6.2)"
    )
