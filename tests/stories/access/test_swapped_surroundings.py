"""What is approved is what runs, also where it is not the workspace that is another one by then, but
what programs find in a sandbox's HOME and /tmp. Judged by what ran."""

import json
import shlex

import pytest

from gateway.services.vault import Vault
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.stories.rig import ADMIN, Rig

EVIL = "evil.txt"
PYTHON = "$(python3 -Sc 'import site; print(site.getusersitepackages())')"
WAYS = {
    "a program of the PATH": ("cat .env", "~/.local/bin/cat", "#!/bin/sh\ntouch {}\n"),
    "a program that is named": ("/tmp/run .env", "/tmp/run", "#!/bin/sh\ntouch {}\n"),
    "a script in /tmp": ("sh /tmp/run.txt .env", "/tmp/run.txt", "touch {}\n"),
    "a script in HOME": ("sh ~/run .env", "~/run", "touch {}\n"),
    "a script by a variable": ('sh "$HOME/run" .env', "~/run", "touch {}\n"),
    "a script that a script runs": ("sh run.sh; cat .env", "/tmp/a.sh", "touch {}\n"),
    "settings of git": (
        "git init -q .; git status; cat .env", "~/.gitconfig", '[core]\n\tfsmonitor = "touch {}; false"\n',
    ),
    "what python begins with": (
        "python3 -c 'print(open(\".env\").read())'", f"{PYTHON}/usercustomize.py", "open('{}', 'w')\n",
    ),
    "what a shell begins with": ("bash -lc 'cat .env'", "~/.bash_profile", "touch {}\n"),
    "a lent secret": ("echo $DEPLOY_KEY | cut -c1", "~/.local/bin/cut", "#!/bin/sh\ntouch {}\n"),
    "a host": ("sh run.sh", "/tmp/a.sh", "touch {}\n"),
}  # fmt: skip


def plant(file: str, text: str) -> Call:
    """A command that nobody is asked about, for the sandbox contains it."""
    made = text.replace("\\", "\\\\").replace("\n", "\\n")
    command = f"f={file}; mkdir -p ${{f%/*}}; printf {shlex.quote(made)} > $f; chmod +x $f"
    return Call("run_command", json.dumps({"command": command}))


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "way", [pytest.param(one, marks=pytest.mark.pick("around")) for one in WAYS]
)
async def test_what_programs_find_is_another_one_by_then_and_does_not_run(
    rig: Rig, way: str
) -> None:
    command, file, text = WAYS[way]
    hosts = ["example.com"] if way == "a host" else []
    asked = Call("run_command", json.dumps({"command": command, "hosts": hosts}))
    rig.model.script(plant(file, text.replace("{}", "good.txt")), asked)
    await rig.start(SANDBOX_PROVIDER="bwrap")
    workspace = rig.workspace(ADMIN)
    workspace.mkdir(parents=True)
    (workspace / ".env").write_text("KEY=1\n")
    (workspace / "run.sh").write_text(". /tmp/a.sh\n")
    Vault(rig.home).keep(rig.where(ADMIN).id, "DEPLOY_KEY", "a-key-of-the-tests-0123456789")
    rig.telegram.say(ADMIN, "Do it")
    card = await rig.card(ADMIN)
    assert not list(workspace.rglob("good.txt"))
    rig.model.script(plant(file, text.replace("{}", EVIL)), Say("Planted."))
    rig.telegram.say(ADMIN, "And meanwhile")
    await rig.shows("Planted.", ADMIN)
    rig.model.script(Say("over"))
    rig.press(card, "Allow these hosts once" if hosts else "Approve once", ADMIN)
    await rig.until(lambda: "over" in str(rig.said(ADMIN)[-1:]) or is_another(rig, card))
    for again in rig.cards(ADMIN):
        rig.press(again, "Deny", ADMIN)
    await rig.shows("over", ADMIN)
    assert list(workspace.rglob(EVIL)) == []


TOLD = {
    "a function": "cut() { touch evil.txt; }",
    "an alias": "shopt -s expand_aliases; alias cut='touch evil.txt;'",
    "a trap": "trap 'touch evil.txt' DEBUG",
    "a function that is handed on": "cut() { touch evil.txt; }; export -f cut",
}


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "told", [pytest.param(one, marks=pytest.mark.pick("told")) for one in TOLD]
)
async def test_a_shell_that_was_told_something_else_meanwhile_is_asked_about(
    rig: Rig, told: str
) -> None:
    asked = (
        "bash -c 'echo $DEPLOY_KEY | cut -c1'"
        if "export" in TOLD[told]
        else "echo $DEPLOY_KEY | cut -c1"
    )
    rig.model.script(run_in_shell("true; : > known"), run_in_shell(asked))
    await rig.start(SANDBOX_PROVIDER="bwrap")
    workspace = rig.workspace(ADMIN)
    Vault(rig.home).keep(rig.where(ADMIN).id, "DEPLOY_KEY", "a-key-of-the-tests-0123456789")
    rig.telegram.say(ADMIN, "Do it")
    card = await rig.card(ADMIN)
    rig.model.script(run_in_shell(TOLD[told]), Say("Planted."))
    rig.telegram.say(ADMIN, "And meanwhile")
    await rig.shows("Planted.", ADMIN)
    for left in workspace.rglob(EVIL):  # a trap ran with what set it
        left.unlink()
    rig.model.script(Say("over"))
    rig.press(card, "Approve once", ADMIN)
    await rig.until(lambda: "over" in str(rig.said(ADMIN)[-1:]) or is_another(rig, card))
    for again in rig.cards(ADMIN):
        rig.press(again, "Deny", ADMIN)
    await rig.shows("over", ADMIN)
    assert list(workspace.rglob(EVIL)) == []


def run_in_shell(command: str) -> Call:
    return Call("bash", json.dumps({"command": command}))


@pytest.mark.pick("around")
@NEEDS_BWRAP
async def test_what_is_only_kept_there_brings_no_second_card(rig: Rig) -> None:
    asked = Call("run_command", json.dumps({"command": "cat .env; sh run.sh"}))
    rig.model.script(plant("/tmp/a.sh", "touch good.txt\n"), asked)
    await rig.start(SANDBOX_PROVIDER="bwrap")
    workspace = rig.workspace(ADMIN)
    workspace.mkdir(parents=True)
    (workspace / ".env").write_text("KEY=1\n")
    (workspace / "run.sh").write_text(". /tmp/a.sh\n")
    rig.telegram.say(ADMIN, "Do it")
    card = await rig.card(ADMIN)
    kept = "mkdir -p ~/.cache/a ~/.npm/_logs; date | tee /tmp/log /tmp/out.json ~/.cache/a/b ~/.npm/_logs/c"
    rig.model.script(Call("run_command", json.dumps({"command": kept})), Say("Kept."))
    rig.telegram.say(ADMIN, "And meanwhile")
    await rig.shows("Kept.", ADMIN)
    rig.model.script(Say("over"))
    rig.press(card, "Approve once", ADMIN)
    await rig.shows("over", ADMIN)
    assert (workspace / "good.txt").exists()


def is_another(rig: Rig, card: dict[str, object]) -> bool:
    return any(one["message_id"] != card["message_id"] for one in rig.cards(ADMIN))
