"""Files that go along when work is handed over, and how often it may be."""

import os
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.handoffs import artifacts
from agent_core.handoffs.artifacts import collect
from agent_core.handoffs.count import MAX_HANDOFFS, count_handoff
from agent_core.journal import Journal
from agent_core.orchestration.drive import drive
from agent_core.scope import Scope, Turn
from tests.agent_core.scope_rig import Disk


def names(workspace: Path, *patterns: str) -> list[str]:
    return [one.path for one in (collect(workspace, patterns) if patterns else collect(workspace))]


def test_the_newest_files_that_fit(tmp_path: Path) -> None:
    for n in range(14):
        (tmp_path / f"{n}.txt").write_text(f"text {n}")
        os.utime(tmp_path / f"{n}.txt", (n, n))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.csv").write_text("a,b")
    (tmp_path / "image.png").write_bytes(b"\0")
    found = names(tmp_path)
    assert len(found) == artifacts.MAX_FILES and found[0] == "sub/deep.csv"
    assert found[1:] == [f"{n}.txt" for n in range(13, 4, -1)] and "image.png" not in found
    assert names(tmp_path, "sub/*") == ["sub/deep.csv"]
    assert names(tmp_path, "*.png") == ["image.png"]


def test_what_is_too_large_or_outside_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_BYTES", 10)
    (tmp_path / "big.txt").write_text("x" * 11)
    with pytest.raises(ToolFailed, match="too large"):
        collect(tmp_path)
    (tmp_path / "a.txt").write_text("x" * 6)
    (tmp_path / "b.txt").write_text("x" * 6)
    assert len(collect(tmp_path)) == 1
    secret = tmp_path.parent / "secret.txt"
    secret.write_text("SECRET")
    (tmp_path / "link.txt").symlink_to(secret)
    assert "link.txt" not in names(tmp_path)
    for pattern in ("../*.txt", "/etc/*", "~/*"):
        with pytest.raises(ToolFailed):
            collect(tmp_path, [pattern])
    with pytest.raises(ToolFailed, match="No file"):
        collect(tmp_path, ["*.nothing"])


async def test_three_times_a_turn_over_all_branches_and_lives() -> None:
    disk = Disk()
    failed: list[str] = []

    class Nobody:
        def live(self, event: object) -> None: ...

        def take_steers(self) -> tuple[tuple[int, str], ...]:
            return ()

    async def branch(scope: Scope) -> bool:
        try:
            await count_handoff(scope)
        except ToolFailed as error:
            failed.append(str(error))
            return False
        return True

    async def code(scope: Scope, past: object) -> dict[str, bool]:
        return await scope.parallel({name: branch for name in "abcd"})

    for _ in range(2):
        turn = Turn("t", Journal(list(disk.records), disk.write), Nobody())
        went = await drive(turn, code)  # type: ignore[arg-type]
        await turn.journal.barrier()
        assert sorted(went.values()) == [False, True, True, True]  # type: ignore[attr-defined]
    assert len(disk.records) == MAX_HANDOFFS + 1 and len(failed) == 2
