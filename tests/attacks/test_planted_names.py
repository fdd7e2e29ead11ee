"""Wildcards that may run unasked meet names which are options: no program is misled by one."""

import re
import shutil
import subprocess
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


MISSING = "no_such_file"


def find_looked_for(name: str, option: str, here: Path) -> str:
    """The option, if the program takes the word after it for the name of a file."""
    command = [name, option, MISSING]
    try:
        ended = subprocess.run(
            command, input=b"", cwd=here, capture_output=True, timeout=10, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    said = ended.stderr.decode(errors="replace")
    return f"{name} {option}" if re.search(rf"{MISSING}\W.*No such file", said) else ""


def test_a_word_after_an_option_that_takes_one_is_no_file(tmp_path: Path) -> None:
    """Otherwise a file is shown that was not looked at: `od -w` has its value in the same word."""
    assert find_looked_for("cat", "-n", tmp_path)
    found = []
    for name, verb in VERBS.items():
        if shutil.which(name) is not None:
            letters = sorted(set(verb.valued) - {*verb.placed, *verb.counted})
            options = [f"-{one}" for one in letters]
            options += [one for one, count in verb.takes if count == 1]
            found += [find_looked_for(name, option, tmp_path) for option in options]
    assert not list(filter(None, found))
