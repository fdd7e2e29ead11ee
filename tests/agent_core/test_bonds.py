"""What an approval is bound to: a contained call to its words, another one to all that it may run.
Generated: commands that run something, each with each way to change what they run."""

import os
import random
import socket
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from agent_core.messages import ToolCall
from agent_core.policy import Bond, Grant, Situation
from agent_core.sandboxes.commands.background import Background
from agent_core.tools import sources
from agent_core.tools.code.bash import Bash, BashArguments, bash_tool
from agent_core.tools.code.execute import PythonArguments, code_tools
from agent_core.tools.facts import find_call_bond, judge_call
from agent_core.tools.shell import RunCommandArguments, shell_tool
from agent_core.tools.sources import MAX_BYTES, read_sources, read_surroundings
from agent_core.tools.toolbox import Prepared, bind, bind_digest, is_bound
from tests.fakes.sandboxes import bwrap_sandbox, unsafe_sandbox
from tests.sampling import dice

TIERS = {"isolated": bwrap_sandbox(), "none": unsafe_sandbox()}
RUNS = (
    "sh run", "make", "make test", "npm test", "npm run build", "python3 -m app", "python3 main.py",
    "cargo run", ". lib.sh", "sh $PWD/x.sh", 'sh "$PWD/x.sh"', "cd a && cd b && sh x.sh",
    "sh {x,y}.sh", "F=x; sh $F.sh", "find . -name '*.sh' -exec sh {} +", "sh x.sh; : m/*",
    "bash build", "./run",
)  # fmt: skip
FILES = (
    "run", "Makefile", "package.json", "app/__main__.py", "app/deep/er/module.py", "main.py", "x.sh",
    "lib.sh", "a/b/x.sh", "y.sh", "build", "helper.py", "notes.md", ".git/config", ".git/hooks/pre",
)  # fmt: skip


def write_new(path: Path) -> None:
    path.with_name(f"new-{path.name}").write_text("new")


def overwrite(path: Path) -> None:
    before = path.stat()
    path.write_text("b")  # as long as before
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(path: Path) -> None:
    path.unlink()


def swap(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere")


def make_executable(path: Path) -> None:
    path.chmod(0o755)


CHANGES: tuple[Callable[[Path], None], ...] = (overwrite, remove, swap, make_executable, write_new)


def plant(folder: Path) -> Path:
    workspace = folder / "workspace"
    for name in FILES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("a")
        (workspace / name).chmod(0o644)
    return workspace


def prepare(command: str, tier: str = "isolated", **more: object) -> Prepared:
    arguments = RunCommandArguments.model_validate({"command": command, **more})
    tool = shell_tool(TIERS[tier], Background())
    call = ToolCall(id="c", name=tool.name, arguments="{}")
    return Prepared(call=call, tool=tool, arguments=arguments)


def bond_of(item: Prepared, situation: Situation) -> Bond:
    return find_call_bond(item.tool, item.arguments, situation)


class CallState(Struct, frozen=True, kw_only=True):
    """All that an approval of a command may be bound to. `files`: names and what stands there."""

    command: str = "make $KEY"
    cwd: str = ""
    background: bool = False
    hosts: tuple[str, ...] = ()
    tier: str = "isolated"
    secrets: frozenset[str] = frozenset()
    contained: bool = False
    files: tuple[tuple[str, str], ...] = ()

    def lend(self) -> frozenset[str]:
        return self.secrets & {"KEY"} if "KEY" in self.command else frozenset()

    def find_meant(self) -> tuple[object, ...]:
        """What has to be the same for the approval to hold."""
        given = self.command, self.cwd, self.background, self.hosts, self.tier
        alone = self.contained and self.tier != "none" and not (self.hosts or self.lend())
        return (*given, self.lend(), alone, () if alone else self.files)


def draw_state(chance: random.Random, before: CallState | None = None) -> CallState:
    """Any state, or `before` with up to two things of it drawn anew, which may be the same."""
    drawn: dict[str, object] = {
        "command": chance.choice(("make $KEY", "make", "sh run", "sh run; echo $KEY")),
        "cwd": chance.choice(("", "", "a")),
        "background": chance.random() < 0.3,
        "hosts": chance.choice(((), (), ("a.test",))),
        "tier": chance.choice(("isolated", "isolated", "none")),
        "secrets": frozenset(chance.sample(("KEY", "OTHER"), chance.randint(0, 2))),
        "contained": chance.random() < 0.5,
        "files": tuple((name, chance.choice("ab")) for name in ("run", "Makefile", "app/x.py")),
    }
    if before is None:
        return CallState(**drawn)  # type: ignore[arg-type]
    return replace(before, **{name: drawn[name] for name in chance.sample(sorted(drawn), 2)})


async def bind_state(state: CallState, at: Path) -> tuple[str, Bond, Prepared]:
    """Its digest, in the workspace `at`, which is as it says."""
    for name, text in state.files:
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text)
    more = {"cwd": state.cwd, "background": state.background, "hosts": state.hosts}
    item = prepare(state.command, state.tier, **more)
    secrets = tuple(sorted(state.secrets))
    bond = bond_of(item, replace(BARE, secrets=secrets, contained=state.contained))
    return (await bind_digest(item, at, bond)).digest, bond, item


BARE = Situation(mode="auto", person="A")
CONTAINED = Situation(mode="ask", person="A", contained=True)


@pytest.mark.parametrize("command", RUNS)
async def test_what_may_run_anything_is_bound_to_every_source(command: str, tmp_path: Path) -> None:
    """Whatever changes of them, an approval and an 'always' of before hold no more."""
    for n, (name, change) in enumerate(product(FILES, CHANGES)):
        if change is write_new and name.startswith(".git/config"):
            continue
        if n % len(RUNS) != RUNS.index(command):
            continue  # every change is tried, spread over the commands
        workspace = plant(tmp_path / str(n))
        item = prepare(command)
        bond = bond_of(item, BARE)
        assert bond.kind == "sources"
        known = await bind_digest(item, workspace, bond)
        verdict = judge_call(item.tool, item.arguments, known.digest, BARE, known.sources)
        assert verdict.bound
        change(workspace / name)
        now = await bind_digest(item, workspace, bond)
        assert now.digest != known.digest, (name, change)
        assert not await is_bound(item, workspace, known.digest, bond)
        if verdict.always:
            grant = Grant(tool="run_command", pattern=verdict.always, person="A", lasting=True)
            given = replace(BARE, rules=(grant,))
            for seen, ruling in ((known, "allow"), (now, "ask")):
                again = judge_call(item.tool, item.arguments, seen.digest, given, seen.sources)
                assert again.ruling == ruling


WRITES = (
    "echo a >> notes.md", "echo a>>notes.md", "date 2>> notes.md; wc -l notes.md",
    "cat main.py | tee -a notes.md", "mkdir -p a/b && touch a/b/c > notes.md",
    "for i in 1 2; do echo $i >> notes.md; done", "cat <<E >> notes.md\na\nE",
)  # fmt: skip
RUNS_AND_WRITES = (
    "sh run >> notes.md", "> notes.md sh run", "echo $(python3 main.py) >> notes.md",
    "find . -exec sh {} \\; > notes.md", "echo a > >(sh)", "tee a | sh", "echo a | sh > notes.md",
    "echo a >> .bashrc", "echo a > .git/hooks/pre", "touch AGENTS.md", "mkdir ../out",
    "echo a > $F", "echo a > *.sh", "echo a >| notes.md", "tee -x a", "echo a >",
)  # fmt: skip


async def test_what_only_writes_is_granted_whatever_its_file_has_become(tmp_path: Path) -> None:
    """It runs no file of the workspace: what it appended to by itself is not asked about anew."""
    wide = replace(CONTAINED, hosts=frozenset({"a.test"}))
    for n, command in enumerate((*WRITES, *RUNS_AND_WRITES)):
        item, workspace = prepare(command), plant(tmp_path / str(n))
        seen = await bind_digest(item, workspace, bond_of(item, wide))
        offers = judge_call(item.tool, item.arguments, seen.digest, wide, seen.sources).offers
        rules = tuple(Grant(tool=o.tool, pattern=o.pattern, person="A") for o in offers)
        (workspace / "notes.md").write_text("more")
        now = await bind_digest(item, workspace, bond_of(item, wide))
        given = replace(wide, rules=rules)
        again = judge_call(item.tool, item.arguments, now.digest, given, now.sources)
        allowed = command in WRITES
        assert (again.ruling == "allow", bool(offers) or not allowed) == (allowed, True), command
        assert now.digest != seen.digest or command in RUNS_AND_WRITES, "one press is for one state"


@pytest.mark.parametrize("command", RUNS)
async def test_what_is_contained_is_bound_to_its_words_alone(command: str, tmp_path: Path) -> None:
    workspace = plant(tmp_path)
    item = prepare(command)
    bond = bond_of(item, CONTAINED)
    assert bond == Bond(kind="words")
    known = await bind_digest(item, workspace, bond)
    for name in FILES:
        overwrite(workspace / name)
    assert await is_bound(item, workspace, known.digest, bond)
    verdict = judge_call(item.tool, item.arguments, known.digest, CONTAINED)
    assert not verdict.bound and " as of " not in verdict.always
    other = await bind_digest(prepare(f"{command} "), workspace, bond)
    assert other.digest != known.digest


def test_network_secrets_and_no_isolation_bind_what_is_contained() -> None:
    wide = (
        (prepare("make", hosts=("a.test",)), CONTAINED),
        (prepare("make"), replace(CONTAINED, hosts=frozenset({"a.test"}))),
        (prepare("make $KEY"), replace(CONTAINED, secrets=("KEY",))),
        (prepare("make; cat .env"), CONTAINED),
        (prepare("make"), replace(CONTAINED, exposed=True)),
        (prepare("git log -p; make"), replace(CONTAINED, committed=True)),
        (prepare("make", "none"), CONTAINED),
        (prepare("make"), replace(CONTAINED, contained=False)),
    )
    for item, situation in wide:
        assert bond_of(item, situation).kind == "sources", item.arguments
    for command in ("ls", "cat a.txt"):
        assert bond_of(prepare(command), BARE).kind == "named"
    assert bond_of(prepare("git status"), BARE).kind == "sources", "it runs what its config names"


async def test_secrets_folder_and_tier_are_part_of_it(tmp_path: Path) -> None:
    workspace = plant(tmp_path)
    now = replace(BARE, secrets=("KEY",))
    seen = []
    for item in (
        prepare("make $KEY"), prepare("make $KEY", cwd="a"), prepare("make $KEY", "none"),
        prepare("make $KEY", background=True), prepare("make $KEY", hosts=("a.test",)),
    ):  # fmt: skip
        for situation in (BARE, now):
            bond = bond_of(item, situation)
            seen.append((await bind_digest(item, workspace, bond)).digest)
    assert len(set(seen)) == len(seen), "a secret that was set meanwhile is another call, too"


async def test_a_shell_that_stays_is_bound_to_where_it_is(tmp_path: Path) -> None:
    workspace, place = plant(tmp_path), ["a"]
    tool = bash_tool(Bash(TIERS["isolated"], Background().shells, 60))
    moved = replace(tool, place=lambda workspace: place[0], bind=None)
    call = ToolCall(id="c", name="bash", arguments="{}")
    item = Prepared(call=call, tool=moved, arguments=BashArguments(command="make"))
    for situation in (BARE, CONTAINED):
        bond = bond_of(item, situation)
        known = (await bind_digest(item, workspace, bond)).digest
        place[0] += "b"
        assert not await is_bound(item, workspace, known, bond)


async def test_an_approval_of_an_older_version_holds(tmp_path: Path) -> None:
    workspace = plant(tmp_path)
    for situation in (BARE, CONTAINED):
        item = prepare("sh x.sh")
        for old in (bind(item, workspace), bind(item, workspace, by_path=True)):
            assert await is_bound(item, workspace, old, bond_of(item, situation))
    overwrite(workspace / "x.sh")
    assert not await is_bound(item, workspace, old, bond_of(item, BARE))


async def test_of_too_many_files_nothing_holds_for_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, item = plant(tmp_path), prepare("make")
    monkeypatch.setattr(sources, "MAX_FILES", len(FILES) - 1)
    bond = bond_of(item, BARE)
    known = await bind_digest(item, workspace, bond)
    assert known.sources is not None and not known.sources.whole
    verdict = judge_call(item.tool, item.arguments, known.digest, BARE, known.sources)
    assert verdict.ruling == "ask" and verdict.offers == ()
    assert await is_bound(item, workspace, known.digest, bond), "once, it does"
    overwrite(workspace / "Makefile")
    assert not await is_bound(item, workspace, known.digest, bond)


def test_few_files_are_named(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "package.json").write_text("{}")
    (workspace / "cat.png").write_text("")
    (workspace / ".pytest_cache").mkdir()
    (workspace / ".pytest_cache" / "x").write_text("")
    found = read_sources(workspace)
    assert found.files == ("package.json",) and found.whole
    item = prepare("npm test")
    verdict = judge_call(item.tool, item.arguments, "d" * 64, BARE, found)
    assert [one.covers.files for one in verdict.offers if one.covers] == [("package.json",)] * 2
    for n in range(sources.MAX_NAMED):
        (workspace / f"{n}.js").write_text("")
    assert read_sources(workspace).files == ()


def test_what_is_only_called_a_picture_counts(tmp_path: Path) -> None:
    """A real one counts where the words of a command may stand for any file."""
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n 1")
    (tmp_path / "empty.png").write_bytes(b"")
    before, all_before = read_sources(tmp_path), read_sources(tmp_path, everything=True)
    picture.write_bytes(b"\x89PNG\r\n\x1a\n 2")
    assert read_sources(tmp_path) == before
    assert read_sources(tmp_path, everything=True) != all_before
    picture.write_text("touch evil")
    assert read_sources(tmp_path) != before
    picture.unlink()
    picture.symlink_to("run.sh")
    assert read_sources(tmp_path) != before


@pytest.mark.parametrize(
    ("command", "everything"),
    [
        *(
            (one, False)
            for one in ("npm test", "make -j2 build", "python3 src/app.py --x=1", "./a.sh")
        ),
        *(
            (one, True)
            for one in ("sh $(ls)", "sh x*", "ls | xargs sh", "find . -exec sh {} +", "sh `ls`")
        ),
        *(
            (one, True)
            for one in (
                "xargs -a list sh",
                "/usr/bin/xargs -a list sh",
                'sh "$x"',
                "for f in a; do sh $f; done",
                "a\nb",
            )
        ),
    ],
)
def test_words_that_may_stand_for_any_file_are_bound_to_all(command: str, everything: bool) -> None:
    bond = find_call_bond(prepare(command).tool, prepare(command).arguments, BARE)
    assert bond.kind == "sources" and bond.everything is everything


def test_code_is_bound_as_commands_are(tmp_path: Path) -> None:
    tool = next(tool for tool in code_tools(TIERS["isolated"]) if tool.name == "python_execute")
    assert find_call_bond(tool, PythonArguments(code="import helper"), BARE).kind == "sources"
    assert find_call_bond(tool, PythonArguments(code="import helper"), CONTAINED).kind == "words"


async def hold_where_nothing_changed(part: str, count: int, at: Path) -> None:
    same = other = 0
    for n in range(count):
        chance = dice("bound states", part, n)
        before = draw_state(chance)
        after = draw_state(chance, before)
        known, _, _ = await bind_state(before, at)
        now, bond, item = await bind_state(after, at)
        is_same = before.find_meant() == after.find_meant()
        assert (known == now) is is_same, (before, after)
        assert await is_bound(item, at, known, bond) is is_same, (before, after)
        same, other = same + is_same, other + (not is_same)
    assert same and other


async def test_an_approval_holds_where_nothing_that_counts_changed(tmp_path: Path) -> None:
    await hold_where_nothing_changed("few", 20, tmp_path / "workspace")


@pytest.mark.slow
async def test_so_it_does_after_hundreds_of_changes(tmp_path: Path) -> None:
    await hold_where_nothing_changed("hundreds", 600, tmp_path / "workspace")


COUNT = ("home/.gitconfig", "home/.local/bin/curl", "home/x/y.txt", "tmp/run.sh", "tmp/a/lib.so")
KEPT = ("home/.cache/pip/x", "home/.npm/_logs/x.log", "tmp/out.json", "tmp/server.log", "tmp/a/b")


@pytest.mark.parametrize("whole", [True, False], ids=["few", "many"])
def test_what_programs_obey_of_home_counts_and_what_they_keep_there_does_not(
    tmp_path: Path, whole: bool
) -> None:
    top = tmp_path / ".turnkeeper" / "sandbox"
    assert read_surroundings(tmp_path, everything=True) == ""
    for name in (*COUNT, *KEPT):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("a")
    if not whole:
        with (top / "home/large").open("wb") as file:
            file.truncate(MAX_BYTES + 1)
    for name in (*COUNT, *KEPT):
        before = [read_surroundings(tmp_path, everything=one) for one in (True, False)]
        other = top / f"{name}.new"
        other.write_text("b")
        other.replace(top / name)
        after = [read_surroundings(tmp_path, everything=one) for one in (True, False)]
        assert (before[0] != after[0]) == (name in COUNT), name
        assert (before[1] != after[1]) == (name == "home/.local/bin/curl"), name
    before_it = read_surroundings(tmp_path, everything=True)
    folder = os.open(top / "tmp", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{folder}/s.sh")  # a path that is not too long for one
        assert read_surroundings(tmp_path, everything=True) == before_it
    os.close(folder)
