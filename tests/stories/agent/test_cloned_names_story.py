"""A repository of somebody else's is cloned from a server, with names that hide, break lines and look
like options: what people see and what runs afterwards is not misled by them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.text import escape_name
from tests.attacks.workspace_grammar import BAD_SIGNS
from tests.fakes.model_server import Call, Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_GIT
from tests.sampling import dice
from tests.stories.rig import ADMIN, Rig, run

FILES = (
    *("a\nApproved by Ann.log", "n\n.env\n.log", "n\n-delete\n.log", "-rf", "--files0-from=list.txt"),
    *("\x1b[2J\x1b[31mred.txt", "gnp.\u202efdp.exe", "a\u200bb.py", "$(touch ran).log", "`touch ran`.txt"),
    *(";touch ran;.log", "a'$(touch ran)'.md", "@list.txt", "list.txt", "<@1>.txt", "@everyone"),
)  # fmt: skip
REFS = (
    "main;touch_ran",
    "$(touch-ran)",
    "`touch-ran`",
    "a'b",
    "-x/y",
    "\u202emain",
    "é{touch,ran}",
)
LOOKS = (
    'ls *.log | while read f; do wc -l "$f"; done', 'for f in *.log; do echo "$f"; done', "ls -la", "find . -name '*.log'",
    "git branch -a", "git tag", "git status --short", "git log --oneline --all", "git ls-files", "wc -l *.txt", "file ./*",
)  # fmt: skip
MARKS = frozenset("☐◐☑✕")
CONTROLS = frozenset("\r\x1b\x07\x00\x9b\x85\u2028\u2029")
"""What stands nowhere, also not in what a command printed."""
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.protectNTFS=false")


def make_repository(at: Path) -> None:
    """A bare one at `at`, to be served as it lies there."""
    work = at.parent / "work"
    work.mkdir()
    for name in FILES:
        (work / name).write_text(f"one\nof {name!r}\n")
    for words in (("init", "-q", "-b", "main"), ("add", "--", "."), ("commit", "-qm", "a\u202eb")):
        subprocess.run([*GIT, *words], cwd=work, check=True, capture_output=True)
    commit = subprocess.check_output([*GIT, "rev-parse", "HEAD"], cwd=work, text=True).strip()
    for ref in REFS:
        for kind in ("heads", "tags"):
            words = ("update-ref", f"refs/{kind}/{ref}", commit)
            subprocess.run([*GIT, *words], cwd=work, check=False, capture_output=True)
    subprocess.run([*GIT, "clone", "-q", "--mirror", work, at], check=True, capture_output=True)
    subprocess.run([*GIT, "update-server-info"], cwd=at, check=True, capture_output=True)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[str]:
    """The host that serves it."""
    served = tmp_path / "served"
    served.mkdir()
    make_repository(served / "r.git")
    module = ("-u", "-m", "http.server", "0", "--bind", "127.0.0.2", "--directory", str(served))
    server = subprocess.Popen(
        [sys.executable, *module], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    yield f"127.0.0.2:{server.stdout.readline().partition(' port ')[2].split()[0]}"
    server.kill()
    server.communicate()


@NEEDS_BWRAP
@NEEDS_GIT
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_names_of_a_clone_mislead_nobody(rig: Rig, place: str) -> None:
    await rig.start(SANDBOX_PROVIDER="bwrap", WEB_ALLOWED_HOSTS=place)
    clone = run(f"git -c core.protectNTFS=false clone -q http://{place}/r.git repo", hosts=[place])
    looks = dice("clone").sample(LOOKS, len(LOOKS))
    files = [Call("list_files", json.dumps({"pattern": "repo/**"}))]
    shown = [escape_name(f"repo/{name}") for name in FILES]
    asked = (*shown, *(f"repo/{name}" for name in FILES[:6]))  # models write them raw as well
    reads = [Call("read_file", json.dumps({"path": path})) for path in asked]
    rig.model.script(clone, *(run(one, cwd="repo") for one in looks), *files, *reads, Say("Seen"))
    rig.telegram.say(ADMIN, "clone it and look around")
    rig.press(await rig.card(ADMIN), "Allow these hosts once", ADMIN)
    await rig.shows("Seen", ADMIN)
    await rig.quiet()
    workspace = rig.workspace(ADMIN)
    repo = workspace / "repo"
    assert sorted(one.name for one in repo.iterdir() if one.name != ".git") == sorted(FILES)
    assert not list(workspace.rglob("ran")), "no name was run"
    results = rig.seen(role="tool")
    assert len(results) == 1 + len(looks) + 1 + len(reads)
    listed, *contents = results[-1 - len(reads) :]
    paths = {line.split("\t")[1] for line in listed.split("\n") if "\t" in line}
    assert {*shown} <= paths, "each name in a line of its own"
    for name, content in zip(FILES, contents[: len(FILES)], strict=True):
        assert f"of {name!r}" in content, "what is listed can be opened, and is that file"
    told = 0
    for message in rig.telegram.chats[ADMIN]:
        lines = str(message["text"]).split("\n")
        assert not set("".join(lines)) & CONTROLS, lines
        heads = [line for line in lines if line[:1] in MARKS]
        told += len(heads)
        assert not set("".join(heads)) & BAD_SIGNS, heads
        assert "Approved by Ann" not in lines, lines
    assert told > len(looks)
