"""Lines that are taken to only read are run, where they can do no harm: none shows what stands in a
secret file, and none changes a file."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import PolicyChecker
from tests.attacks.case_lists import read_cases
from tests.attacks.flow_grammar import make_flow
from tests.attacks.reading_grammar import CANARY, list_files, make_line, make_world, run_line
from tests.sampling import dice, take

CHECKER = PolicyChecker(ModelSettings.read({}))


def is_allowed(command: str) -> bool:
    call = {"tool": "run_command", "args": {"command": command}, "mode": "auto", "tier": "none"}
    return CHECKER.judge_call(json.dumps(call).encode()).decision == "allow"


def find_harm(line: str, here: Path, before: dict[str, bytes]) -> list[str]:
    """What the line did that it may not, by any of two shells."""
    found = []
    for shell in ("bash", "dash"):
        if CANARY in run_line(line, shell, here):
            found.append(f"{shell} showed a secret: {line}")
        if list_files(here.parent) != before:
            found.append(f"{shell} changed a file: {line}")
    return found


def run_allowed(lines: list[str], at: Path, *, cut: bool = False) -> tuple[int, list[str]]:
    """How many of the lines are allowed, and what these did that they may not."""
    here = make_world(at, cut=cut)
    before = list_files(at)
    allowed = [line for line in lines if is_allowed(line)]
    return len(allowed), [harm for line in allowed for harm in find_harm(line, here, before)]


def draw_lines(chance: random.Random, count: int) -> list[str]:
    return list(dict.fromkeys(make_line(chance) for _ in range(count)))


def test_a_world_shows_what_harms(tmp_path: Path) -> None:
    here = make_world(tmp_path)
    before = list_files(tmp_path)
    assert find_harm("cat $(ls -A)", here, before)
    assert find_harm("touch x", here, before)
    assert find_harm("cat ../outside.txt; true", here, list_files(tmp_path))


def test_what_is_allowed_only_reads(tmp_path: Path) -> None:
    cut = dice("names").random() < 0.5
    allowed, harms = run_allowed(draw_lines(dice("lines"), 120), tmp_path, cut=cut)
    assert allowed and harms == []


def test_no_flow_of_commands_does_harm(tmp_path: Path) -> None:
    chance = dice("flows")
    allowed, harms = run_allowed([make_flow(chance) for _ in range(250)], tmp_path)
    assert allowed and harms == []


@pytest.mark.slow
def test_of_thousands_of_flows_none_does_harm(tmp_path: Path) -> None:
    chance = dice("more flows")
    allowed, harms = run_allowed([make_flow(chance) for _ in range(5_000)], tmp_path)
    assert allowed > 300 and harms == []


@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True], ids=["names", "names of more lines"])
def test_of_thousands_of_lines_none_does_harm(tmp_path: Path, cut: bool) -> None:
    allowed, harms = run_allowed(draw_lines(dice("thousands", cut), 8_000), tmp_path, cut=cut)
    assert allowed > 300 and harms == []


@pytest.mark.slow
def test_the_reading_lines_of_the_list_do_no_harm(tmp_path: Path) -> None:
    here = make_world(tmp_path)
    before = list_files(tmp_path)
    waits = ("sleep", "until ", "while !", "while [")
    lines = [one for one in read_cases("shell_reading") if not any(map(one.__contains__, waits))]
    harms = []
    for line in take(lines, 600, "list"):
        try:
            harms += find_harm(line, here, before)
        except subprocess.TimeoutExpired:
            harms.append(f"did not end: {line}")
    assert harms == []
