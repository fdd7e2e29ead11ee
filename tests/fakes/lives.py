"""Lives of a gateway in forked children, killed by SIGKILL at chosen points.

The parent is warmed: everything is imported before the first fork, so a life costs milliseconds.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gateway.conversation import host
from tests.fakes.world import Life
from tests.sampling import ALL, spread

Story = Callable[[Life], Awaitable[None]]
Prepare = Callable[[Life], None]


class Died(Exception):
    """A life ended otherwise than it should."""


def run_forked(folder: Path, work: Callable[[], Any]) -> Any:
    """What `work` gives in a forked child, as JSON has it; None if it was killed. Died if it
    failed."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            (folder / "points.json").write_text(json.dumps(work()))
            code = 0
        except BaseException:
            (folder / "error.txt").write_text(traceback.format_exc())
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return None
    if os.WEXITSTATUS(status):
        raise Died((folder / "error.txt").read_text())
    return json.loads((folder / "points.json").read_text())


def life(folder: Path, story: Story, prepare: Prepare | None = None) -> dict | None:
    """Run `story` in a forked child; what it noted of its points, None if it was killed."""

    def work() -> dict:
        host.RETRY_DELAY = 0.05
        one = Life(folder)
        if prepare is not None:
            prepare(one)

        async def main() -> None:
            async with one.living():
                await story(one)

        asyncio.run(main())
        return {"count": one.points.count, "names": one.points.names}

    return run_forked(folder, work)


def count_points(story: Story, prepare: Prepare | None = None) -> dict:
    """The points of an undisturbed run."""
    folder = Path(tempfile.mkdtemp(prefix="tk-life-"))
    try:
        found = life(folder, story, prepare)
        assert found is not None
        return found
    finally:
        shutil.rmtree(folder)


def killed_at(
    kills: list[set[int]], story: Story, check: Callable[[Path, str], None], label: str,
    prepare: Prepare | None = None,
) -> bool:  # fmt: skip
    """One life for each set of kill points, then one that ends; `check` looks at the world.
    Whether the first life was killed."""
    folder = Path(tempfile.mkdtemp(prefix="tk-life-"))
    died = False
    try:
        for points in kills:

            def with_kill(one: Life, points: set[int] = points) -> None:
                one.points.kill_at = points
                if prepare is not None:
                    prepare(one)

            died = life(folder, story, with_kill) is None or died
        life(folder, story, prepare)
        check(folder, label)
        return died
    except Died as error:
        raise Died(f"{label}: {error}") from None
    finally:
        shutil.rmtree(folder)


def killed_everywhere(
    points: dict, story: Story, check: Callable[[Path, str], None],
    prepare: Prepare | None = None, *, some: int = ALL, hit: float = 0.9,
) -> None:  # fmt: skip
    """`killed_at` for each of the `points` by itself, or for `some` that the seed chooses. At least the
    part `hit` of the kills must come before the life has ended, but for one: on a slow machine
    commits go together, so that a life has fewer points than the one that was counted."""
    chosen = spread(points["count"], some, story.__module__, story.__name__)
    killed = 0
    for k in chosen:
        label = f"killed at {k} ({points['names'][k - 1]})"
        killed += killed_at([{k}], story, check, label, prepare)
    assert killed >= len(chosen) * hit - 1, f"{killed} of {len(chosen)} lives were killed"
