"""Secret files are out of reach of what runs in a sandbox, unless a call names them."""

import os
import sys
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.errors import ToolFailed
from agent_core.policy import Situation
from agent_core.sandboxes.masks import (
    MAX_MASKS,
    find_secret_files,
    has_committed,
    is_unchanged,
)
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import Permits
from agent_core.sandboxes.tier import Tier
from agent_core.tools import secret_files
from agent_core.tools.code.bash import BashArguments
from agent_core.tools.code.execute import PythonArguments
from agent_core.tools.contract import Tool
from agent_core.tools.facts import judge_call
from agent_core.tools.shell import RunCommandArguments
from tests.fakes.sandboxes import BWRAP, DOCKER, make_sandboxes

PART = ambient.part_file_times
hides = pytest.mark.parametrize("tier", [BWRAP, DOCKER], indirect=True)
VALUE = "tok-5e3c0f"
NAMES = (
    *(".env", ".env.production", ".ENV", "sub/.npmrc", "a b/.git-credentials", "keys/id_rsa"),
    *("cert.pem", "deep/er/.netrc", ".aws/credentials", ".ssh/id_ed25519", "sub/x.p12"),
)
READERS = {
    "wildcard": "cat * .[a-z]* */* */.* */*/* */*/.* .*/*",
    "grep": "grep -r '' .",
    "find": "find . -type f -exec cat {} +",
    "tar": "tar cf - . | strings",
    "copy": "cp -r . /tmp/all; find /tmp/all -type f -exec cat {} +",
    "link": "for n in $(find . -name .turnkeeper -prune -o -type f -print); do ln $n /tmp/l; "
    "ln -f $n here; cat here; done",
    "python": 'python3 -c \'import os\nfor d, _, fs in os.walk("."):\n  for f in fs:\n    try: '
    'print(open(os.path.join(d, f), "rb").read())\n    except OSError: pass\'',
    "renamed": "mv sub s2; mv deep d2; mv .env plain; cat s2/* s2/.* d2/er/.* plain",
    "git": "git init -q; git add -A; git -c user.name=a -c user.email=a@b commit -qm x; "
    "git ls-files | while read n; do git show HEAD:$n; done; git diff; git log -p",
    "remount": "umount .env; mount --bind /workspace /tmp; cat .env /tmp/.env",
    "removed": "rm -f .env; cat .env; mv cert.pem c; cat c",
}


def plant(workspace: Path) -> None:
    """Secret files, and one that is none."""
    for name in NAMES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"KEY={VALUE}\n")
    (workspace / "notes.txt").write_text("nothing secret\n")


async def read(pool: SandboxPool, workspace: Path, command: str, *, reveals: bool = False) -> str:
    done = await pool.run(command, workspace, 30, lambda _: None, Permits(reveals=reveals))
    return done.output


@hides
@pytest.mark.parametrize("how", READERS)
async def test_no_command_reads_them(tier: Tier, tmp_path: Path, how: str) -> None:
    plant(tmp_path)
    pool = make_sandboxes(tier)
    told = await read(pool, tmp_path, f"{READERS[how]}\ncat notes.txt")
    assert VALUE not in told and "nothing secret" in told
    assert (tmp_path / ".env").read_text() == f"KEY={VALUE}\n"
    assert VALUE in await read(pool, tmp_path, "cat .env", reveals=True)
    assert VALUE not in await read(pool, tmp_path, "cat .env")


@hides
async def test_what_comes_later_is_hidden_and_what_a_command_makes_is_not(
    tier: Tier, tmp_path: Path
) -> None:
    pool = make_sandboxes(tier)
    assert "mine" in await read(pool, tmp_path, "echo mine > .env; cat .env")
    assert "mine" in await read(pool, tmp_path, "cat .env; sleep 30 & echo begun")
    (tmp_path / "incoming").mkdir()
    os.utime(tmp_path)
    (tmp_path / "incoming" / ".env").write_text(VALUE)
    told = await read(pool, tmp_path, "cat incoming/.env")
    assert VALUE not in told and "a secret file came: incoming/.env" in told
    assert "Nothing can be read here" in told


@hides
async def test_a_shell_that_stays_reads_none_that_comes_later(tier: Tier, tmp_path: Path) -> None:
    pool = make_sandboxes(tier)
    shell = await pool.open_shell(tmp_path, 30)

    async def ask(command: str) -> str:
        return (await shell.run(command, 30, lambda _: None)).done.output

    assert "mine" in await ask("echo mine > own.pem; cat *.pem")
    assert "mine" in await ask("cat *.pem"), "its own"
    (tmp_path / "theirs.pem").write_text(VALUE)
    with pytest.raises(ToolFailed, match=r"Not run: .*: theirs\.pem"):
        await ask("cat *.pem")
    assert not shell.alive
    shell = await pool.open_shell(tmp_path, 30)
    assert VALUE not in await ask("cat *.pem; true")


@pytest.mark.parametrize("tier", [BWRAP], indirect=True)
async def test_what_comes_right_behind_a_command_is_hidden(
    tier: Tier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, parted = make_sandboxes(tier), list[float]()

    async def part() -> float:
        parted.append(await PART())
        return parted[-1]

    monkeypatch.setattr(ambient, "part_file_times", part)
    for n in range(8):
        assert f"mine {n}" in await read(pool, tmp_path, f"echo mine {n} > own.pem; cat own.pem")
        (tmp_path / f"{n}.pem").write_text(VALUE)
        told = await read(pool, tmp_path, "cat *.pem")
        assert VALUE not in told and f"a secret file came: {n}.pem" in told
        (tmp_path / "own.pem").unlink()
    assert len(parted) >= 8, "after each command that brought something"


async def test_what_is_written_after_a_moment_has_a_later_time(tmp_path: Path) -> None:
    for n in range(50):
        (tmp_path / f"before{n}").touch()
        moment = await ambient.part_file_times()
        (tmp_path / f"after{n}").touch()
        times = [(tmp_path / f"{name}{n}").stat().st_ctime for name in ("before", "after")]
        assert times[0] <= moment < times[1]


@pytest.mark.parametrize("tier", [BWRAP], indirect=True)
async def test_a_command_that_brings_nothing_waits_for_no_clock(
    tier: Tier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def part() -> float:
        waits.append(await PART())
        return waits[-1]

    monkeypatch.setattr(ambient, "part_file_times", part)
    pool = make_sandboxes(tier)
    await read(pool, tmp_path, "true")
    for n in range(8):
        await PART()
        waits.clear()
        assert await read(pool, tmp_path, "true") == "" and not waits
        (tmp_path / f"{n}.pem").write_text(VALUE)
        told = await read(pool, tmp_path, "cat *.pem")
        assert VALUE not in told and f"a secret file came: {n}.pem" in told
    await PART()
    waits.clear()
    await read(pool, tmp_path, "touch x")
    assert waits


CHANGES = {
    "a file": lambda top: (top / ".env").write_text("k"),
    "a file below": lambda top: (top / "sub/deep/.env").write_text("k"),
    "a folder": lambda top: (top / "sub/new").mkdir(),
    "another name": lambda top: (top / "notes").rename(top / "sub/.npmrc"),
    "a hard link": lambda top: os.link(top / "notes", top / "sub/.netrc"),
    "a key in place": lambda top: (top / "sub/ca.pem").write_text("PRIVATE KEY"),
    "a folder gone": lambda top: (top / "sub/deep").rmdir(),
    "an old time": lambda top: ((top / ".env").touch(), os.utime(top, (1, 1))),
}


@pytest.mark.parametrize("how", CHANGES)
async def test_it_is_seen_that_something_came(how: str, tmp_path: Path) -> None:
    (tmp_path / "sub/deep").mkdir(parents=True)
    (tmp_path / "sub/ca.pem").write_text("BEGIN CERTIFICATE")
    (tmp_path / "notes").write_text("x")
    await PART()
    found = find_secret_files(tmp_path)
    assert is_unchanged(tmp_path, found)
    CHANGES[how](tmp_path)
    assert not is_unchanged(tmp_path, found)


def test_what_changed_at_this_tick_may_look_the_same_after_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for later, told in ((0, False), (1, True)):
        tick = os.lstat(tmp_path).st_ctime_ns + later
        monkeypatch.setattr(ambient, "read_file_clock", lambda tick=tick: tick)
        assert is_unchanged(tmp_path, find_secret_files(tmp_path)) == told


def test_they_are_found(tmp_path: Path) -> None:
    plant(tmp_path)
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / ".env").write_text("theirs")
    (tmp_path / "public.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / ".env.example").write_text("KEY=")
    (tmp_path / "deep" / ".pgpass").symlink_to("../notes.txt")
    (tmp_path / "deep" / ".htpasswd").symlink_to("/etc/passwd")
    found = find_secret_files(tmp_path)
    folders = {".aws", ".ssh"}
    files = {name for name in NAMES if name.partition("/")[0] not in folders}
    assert set(found.names) == files | folders | {"notes.txt"} and found.folders == folders
    assert found.complete and not has_committed(tmp_path, found)


def test_too_many_to_be_hidden_are_said_to_be(tmp_path: Path) -> None:
    for n in range(MAX_MASKS + 5):
        (tmp_path / f"{n}.pem").write_text("PRIVATE KEY")
    found = find_secret_files(tmp_path)
    assert len(found.names) == MAX_MASKS and not found.complete


@pytest.mark.parametrize("name", NAMES)
def test_one_in_a_repository_is_seen(tmp_path: Path, name: str) -> None:
    os.system(f"git init -q {tmp_path}")  # noqa: S605
    assert not has_committed(tmp_path, find_secret_files(tmp_path))
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("x")
    os.system(f"git -C {tmp_path} add -A")  # noqa: S605
    assert has_committed(tmp_path, find_secret_files(tmp_path))


# ---- the policy --------------------------------------------------------------------------------

AUTO = Situation(mode="auto", person="A", contained=True)


async def nothing(*_: object) -> str:
    return ""


def a_tool(name: str, arguments: type, *, interactive: bool = False) -> Tool:
    return Tool(
        name=name, description="", arguments=arguments, repetition="effect", access="shell",
        call=nothing, limit=120.0, isolated=True, interactive=interactive,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./.env.local",
        "cat sub/.npmrc",
        "git show HEAD:.env",
        'cat ".env"',
        "grep x<.env",
        "docker run --env-file=.env x",
        "cat ~/.ssh/id_rsa",
        "cat /workspace/.ENV",
        "cp {.env,x} /tmp",
        "tail server.pem",
    ],
)
def test_a_command_that_names_one_is_asked_about(command: str) -> None:
    assert secret_files.names_secret(command)
    wanted = RunCommandArguments(command=command)
    verdict = judge_call(a_tool("run_command", RunCommandArguments), wanted, "d", AUTO)
    assert (verdict.ruling, verdict.rule, verdict.risk) == ("ask", "secret-file", "high")
    assert not verdict.always
    code = PythonArguments(code=f"print(open({command!r}))")
    verdict = judge_call(a_tool("python_execute", PythonArguments), code, "d", AUTO)
    assert (verdict.ruling, verdict.rule) == ("ask", "secret-file")
    bash = BashArguments(command=command)
    verdict = judge_call(a_tool("bash", BashArguments, interactive=True), bash, "d", AUTO)
    assert verdict.ruling == "deny" and "run_command" in verdict.reason


@pytest.mark.parametrize(
    "command",
    [
        "cat env.txt",
        "cp .env.example x",
        "ls -la",
        "python -m venv .venv",
        "echo 'an env'",
        "pytest",
    ],
)
def test_others_are_not(command: str) -> None:
    wanted = RunCommandArguments(command=command)
    verdict = judge_call(a_tool("run_command", RunCommandArguments), wanted, "d", AUTO)
    assert verdict.ruling == "allow"


@pytest.mark.parametrize(
    ("situation", "command", "ruling"),
    [
        (Situation(mode="auto", person="A", contained=True, exposed=True), "make", "ask"),
        (Situation(mode="auto", person="A", contained=True, committed=True), "git log -p", "ask"),
        (Situation(mode="auto", person="A", contained=True, committed=True), "make", "allow"),
    ],
)
def test_where_nothing_hides_them_a_person_is_asked(
    situation: Situation, command: str, ruling: str
) -> None:
    wanted = RunCommandArguments(command=command)
    verdict = judge_call(a_tool("run_command", RunCommandArguments), wanted, "d", situation)
    assert verdict.ruling == ruling
    assert ruling == "allow" or verdict.rule == "secret-file"


def test_a_link_swapped_while_it_is_followed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("x")
    (tmp_path / ".env").symlink_to("plain")
    look = os.readlink

    def swap(path: str) -> str:
        (tmp_path / ".env").unlink()
        (tmp_path / ".env").write_text("x")
        return look(path)

    monkeypatch.setattr(os, "readlink", swap)
    now_a_file = {".env"} if sys.version_info >= (3, 13) else set()
    assert set(find_secret_files(tmp_path).changed) == now_a_file
