"""What `make run` does in a new clone: it installs what running needs, says so, and starts; and
that what the documentation says of installing it is so."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import cast

import pytest
import yaml

from gateway.__main__ import PATIENCE, warm_imports
from gateway.cli.main import MISUSED, _parser, main
from gateway.texts import say
from gateway.wiring.agent_default import TurnkeeperAgent

ROOT = Path(__file__).parents[2]
NEEDED = ("Makefile", "pyproject.toml", "constraints.txt")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone, as far as make looks at it."""
    for name in NEEDED:
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def list_commands(clone: Path, target: str) -> list[str]:
    """What make would do for a target."""
    words = ("make", "--no-print-directory", "-n", "PYTHON=python3", target)
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def install(clone: Path, *made: str) -> None:
    for name in made:
        (clone / ".venv").mkdir(exist_ok=True)
        (clone / ".venv" / name).touch()


def test_run_installs_what_running_needs_and_says_so(clone: Path) -> None:
    done = list_commands(clone, "run")
    (pip,) = (line for line in done if " pip install " in line and " -e " in line)
    assert "'.[documents]'" in pip and "--quiet" not in pip and "-c constraints.txt" in pip
    assert any(line.startswith('echo "Installing') for line in done)
    assert done[-1] == "exec .venv/bin/turnkeeper run"
    (pip,) = (
        line for line in list_commands(clone, "check") if " pip install " in line and " -e " in line
    )
    assert "'.[dev]'" in pip


def test_what_is_installed_is_not_installed_again(clone: Path) -> None:
    install(clone, "runs")
    assert list_commands(clone, "run") == ["exec .venv/bin/turnkeeper run"]
    assert any(" pip install " in line for line in list_commands(clone, "check"))
    done = list_commands(clone, "check")
    assert "touch .venv/runs .venv/ready" in done, "what tests need holds what running needs"


PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
COMMAND = re.compile(r"(?:^ {4,}|`|bin/|gateway |\$ )turnkeeper ([a-z]+)", re.MULTILINE)
IN_SLACK = {"whoami", "hello"}
"""What `/turnkeeper` is followed by there, and what is said to it."""


def test_the_commands_of_the_documentation_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    named = {word for page in PAGES for word in COMMAND.findall(page.read_text())} - IN_SLACK
    assert {"run", "init", "doctor", "link", "pair", "backup", "dead"} <= named
    for word in sorted(named):
        with pytest.raises(SystemExit) as ended:
            main([word, "--help"])
        assert ended.value.code == 0, word
    assert "usage: turnkeeper run" in capsys.readouterr().out


LINE = re.compile(r"^ *(?:\$ |\.venv/bin/|docker compose exec gateway )?turnkeeper ([a-z].*)", re.M)
OPTION = re.compile(r"(?<=\s)(--?\w[\w-]*)(?: (\"[^\"]*\"|[^-\s\]][^\s\]]*))?")
BARE = {"--json", "--github", "--plain", "--given", "--write", "--force", "--package"}
"""Options that are followed by nothing of theirs."""


def list_usages() -> list[str]:
    """Each line of the documentation that shows a command, without what it says of it."""
    lines = [one for page in PAGES for one in LINE.findall(page.read_text())]
    shown = (re.split(r" {3,}| # | < |  …", one)[0].strip() for one in lines)
    return sorted({one for one in shown if " | " not in re.sub(r"\[[^\]]*\]", "", one)})


def spell_usages(usage: str) -> list[list[str]]:
    """What people write then: without and with what may be left out, options in any place."""
    spelt = []
    for text in (re.sub(r" \[[^\]]*\]", "", usage), re.sub(r"\[([^|\]]*)[^\]]*\]", r"\1", usage)):
        options: list[list[str]] = []
        for name, value in OPTION.findall(text):
            bare = name in BARE or not value
            options.append([name] if bare else [name, value.strip('"')])
            text = text.replace(name if bare else f"{name} {value}", "", 1)
        words = shlex.split(text)
        head = 2 if words[0] in ("jobs", "policy") else 1
        given = [word for one in options for word in one]
        spelt.append([*words[:head], *given, *words[head:]])
        spelt.append([*words, *given])
        if len(words) > head:
            spelt.append([*words[: head + 1], *given, *words[head + 1 :]])
    return spelt


def test_the_commands_are_taken_as_the_documentation_writes_them() -> None:
    usages = list_usages()
    assert len(usages) > 25 and any("jobs add NAME" in one for one in usages)
    parser = _parser()
    for usage in usages:
        for words in spell_usages(usage):
            try:
                parser.parse_args([word.replace("LINES", "5") for word in words])
            except SystemExit:
                pytest.fail(f"{usage}: {words}")


def test_what_a_command_says_is_said_without_a_bare_event_of_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNKEEPER_HOME", str(tmp_path / "home"))
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli.main", "pair", "ABC"],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.splitlines() == [say("pair_wrong")]
    assert main(["person", "erase", "bob"]) == 2 and main(["restore", "no.tar"]) == 1
    told = capfd.readouterr().err
    assert "as in telegram:123" in told and "There is no file no.tar." in told


def read_unit() -> configparser.ConfigParser:
    """The unit of systemd that the documentation shows."""
    text = (ROOT / "docs" / "install.md").read_text()
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text.partition("```ini\n")[2].partition("```")[0])
    return unit


def test_the_unit_gives_turns_their_time_and_keeps_a_mistake_from_restarting() -> None:
    service = read_unit()["Service"]
    assert service["ExecStart"].endswith("/bin/turnkeeper run")
    assert int(service["TimeoutStopSec"]) > PATIENCE + 5
    assert int(service["RestartPreventExitStatus"]) == MISUSED
    assert service["KillMode"] == "mixed", "what a stop is told to, is the gateway alone"
    text = (ROOT / "docs" / "install.md").read_text()
    lines = text.splitlines()
    calls = [n for n, line in enumerate(lines) if line.startswith("    sudo -u turnkeeper ")]
    assert [lines[n].split()[-1] for n in calls] == ["init", "link"]
    for n in calls:  # of the same .env and the same folder; in root's own that user reads nothing
        assert f"-u turnkeeper env {service['Environment']} " in lines[n]
        assert lines[n - 1] == f"    cd {service['WorkingDirectory']}"


def test_every_extra_is_told_and_the_container_runs_as_compose_runs_it() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    table = text.partition("| extra |")[2].partition("\n\n")[0]
    told = set(
        re.findall(r"`(\w+)`", "\n".join(row.split("|")[1] for row in table.splitlines()[2:]))
    )
    assert told == project["optional-dependencies"].keys() - {"dev"}
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["gateway"]
    assert service["cap_drop"] == ["ALL"] and "--cap-drop ALL" in text
    for option in service["security_opt"]:
        assert f"--security-opt {option}" in text
    assert f"-v turnkeeper:{service['volumes'][0].partition(':')[2]} " in text
    assert f"--stop-timeout {service['stop_grace_period'].removesuffix('s')} " in text


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_costs_no_traceback(tmp_path: Path, unbuffered: str) -> None:
    """As in `turnkeeper … | head`: the other end of the pipe is closed before a line is printed."""
    reads, writes = os.pipe()
    os.close(reads)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered}
    words = (sys.executable, "-m", "gateway.cli.main", "version")
    with open(writes, "wb") as output:
        done = subprocess.run(
            words, cwd=tmp_path, env=env, stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("part", ["warm", "learn_windows"])
async def test_what_is_only_faster_may_fail(part: str, caplog: pytest.LogCaptureFixture) -> None:
    """The gateway's other tasks are in the same group, which an error ends."""

    class HalfAgent:
        async def warm(self) -> None:
            assert part != "warm", "broken"

        async def learn_windows(self) -> None:
            raise RecursionError("nested too deeply")

    await warm_imports(cast(TurnkeeperAgent, HalfAgent()), asks=True)
    assert [one.message for one in caplog.records] == ["not_warm"]
