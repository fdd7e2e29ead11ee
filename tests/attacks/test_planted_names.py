"""Wildcards that may run unasked meet names which are options: no program is misled by one."""

import shutil
from pathlib import Path

import pytest

from agent_core.tools.shell_reading.verbs import VERBS
from agent_core.tools.shell_words import Understood, understand
from tests.attacks.planted_grammar import list_lines, list_names, make_planted_world, plant
from tests.attacks.reading_grammar import CANARY, list_files, run_line
from tests.sampling import take

WRITTEN = "sort"
"""A program that obeys such names; it is asked about, so nothing else shows that they work."""


def list_understood(verb: str) -> list[str]:
    if shutil.which(verb) is None:
        return []
    return [one for one in list_lines(verb) if isinstance(understand(one), Understood)]


def find_harm(line: str, name: str, here: Path) -> str:
    """What the line does that it may not, with a file of that name beside it."""
    file = plant(here, name)
    if file is None:
        return ""
    before = list_files(here.parent)
    shown = CANARY in run_line(line, "bash", here)
    changed = list_files(here.parent) != before
    if changed:
        shutil.rmtree(here.parent)
        make_planted_world(here.parent)
    else:
        file.unlink()
        if file.parent != here:
            shutil.rmtree(file.parent)
    return f"{line} by {name}: {'shown ' * shown}{'changed' * changed}" if shown or changed else ""


def test_a_name_can_be_an_option(tmp_path: Path) -> None:
    here = make_planted_world(tmp_path / "world")
    assert find_harm(f"{WRITTEN} *.txt", "--output=list.txt", here)
    assert find_harm("diff */*.txt", "--from-file=../list.txt", here)
    assert find_harm("strings */*", "@../list.txt", here)
    assert not find_harm("ls *", "--output=list.txt", here)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_program_that_a_wildcard_may_be_given_obeys_names(tmp_path: Path) -> None:
    here = make_planted_world(tmp_path / "world")
    tries = [
        (line, name)
        for verb in sorted(VERBS)
        for line in list_understood(verb)
        for name in list_names(verb)
    ]
    assert len(tries) > 5_000
    chosen = take(tries, 4_000, "planted")
    assert [harm for line, name in chosen if (harm := find_harm(line, name, here))] == []
