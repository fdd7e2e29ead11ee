"""What people's agents do all day works in a sandbox as on a machine of their own."""

from pathlib import Path

import pytest

from agent_core.sandboxes.bwrap import BwrapTier
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_GIT, NEEDS_PIP
from tests.fakes.sandboxes import make_sandboxes

GIT = "git -c user.name=a -c user.email=a@b.example"
EVERYDAY = {
    # who and where
    "whoami; id -un": "sandbox\nsandbox\n",
    "hostname": "sandbox\n",
    'cd ~ && pwd; echo "$HOME" "$USER"': "/home/user\n/home/user sandbox\n",
    "getent hosts localhost | wc -l; grep -c . /etc/passwd": "1\n2\n",
    "test -r /etc/os-release && echo there": "there\n",
    "test -t 0 || echo nobody types": "nobody types\n",
    # files
    "mkdir -p a/b && touch a/b/c && find a -type f": "a/b/c\n",
    "printf '1\\n2\\n3\\n' > n && paste -sd+ n && wc -l < n && tail -n 1 n": "1+2+3\n3\n3\n",
    "echo hi > x && sed -i s/hi/ho/ x && cat x && grep -rn ho x": "ho\n1:ho\n",
    "ln -s x l && readlink l && chmod 600 x && stat -c %a x": "x\n600\n",
    "tar czf t.tgz x && tar tzf t.tgz && gzip -kf x && zcat x.gz": "x\nho\n",
    "sort <(echo b; echo a) | tr '\\n' ' '": "a b ",
    "mktemp -d | cut -c1-9; mkfifo f && test -p f && echo pipe": "/tmp/tmp.\npipe\n",
    "dd if=/dev/zero of=big bs=1M count=20 status=none && stat -c %s big && rm big": "20971520\n",
    "head -c 8 /dev/urandom | wc -c; echo > /dev/null; test -e /dev/shm && echo shm": "8\nshm\n",
    # shells
    "(sleep 0.1; echo later) & wait; echo done": "later\ndone\n",
    "timeout 0.2 sleep 5; echo $?": "124\n",
    "sleep 30 & kill %1 && echo killed": "killed\n",
    "set -euo pipefail; false | true; echo never": "",
    "nproc > /dev/null && ulimit -n > /dev/null && echo fine": "fine\n",
    "for n in 1 2 3; do echo $n; done | awk '{s += $1} END {print s}'": "6\n",
    # Python
    "python -c 'print(1)'; python3 -c 'print(2)'": "1\n2\n",
    "python3 -c \"print('äö', __import__('sys').stdout.encoding)\"": "äö utf-8\n",
    'python3 -c "import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, 2])); p.close(); p.join()"': "[1, 2]\n",
    "python3 -c \"import threading as t; x = t.Thread(target=print, args=('t',)); x.start(); x.join()\"": "t\n",
    'python3 -c \'import sqlite3; c = sqlite3.connect("d"); c.execute("create table t (a)"); c.commit(); print(1)\'': "1\n",
    "python3 -c 'import tempfile; print(tempfile.gettempdir())'": "/tmp\n",
    "python3 -c 'import asyncio, socket; s = socket.create_server((\"127.0.0.1\", 0)); print(s.getsockname()[0])'": "127.0.0.1\n",
    "python3 -c 'import time; print(\"seen\"); time.sleep(30)' & sleep 0.7; kill %1": "seen\n",
    "python3 -c 'import socket; print(socket.if_nameindex()[0][1], socket.getaddrinfo(\"localhost\", 80)[0][4][1])'": "lo 80\n",
    "python3 -c 'import pwd, os; print(pwd.getpwuid(os.getuid()).pw_dir)'": "/home/user\n",
    "python3 - <<'X'\nprint('here')\nX": "here\n",
}
GITS = {
    f"git init -q -b main r && cd r && echo 1 > f && git add f && {GIT} commit -qm one && git log --format=%s": "one\n",
    "git -C r status --short && git -C r branch --show-current": "main\n",
    f"cd r && git switch -qc next && echo 2 > f && {GIT} commit -qam two && git diff --stat main | tail -1": " 1 file changed, 1 insertion(+), 1 deletion(-)\n",
    f"cd r && git switch -q main && {GIT} merge -q next && cat f && git clone -q . ../r2 && ls ../r2": "2\nf\n",
    "cd r && git stash list; git show HEAD:f": "2\n",
}  # fmt: skip
PIPS = {
    "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'": "/workspace/v\n",
    "pip --version | cut -d' ' -f1; pip list > /dev/null && echo listed": "pip\nlisted\n",
}  # fmt: skip


async def tell(commands: dict[str, str], place: Path) -> None:
    pool = make_sandboxes(BwrapTier())
    wrong = {}
    for command, said in commands.items():
        done = await pool.run(command, place, 25, lambda _: None)
        if done.output != said:
            wrong[command] = done
    assert not wrong


@NEEDS_BWRAP
@pytest.mark.parametrize(
    "commands",
    [
        EVERYDAY,
        pytest.param(GITS, marks=NEEDS_GIT),
        pytest.param(PIPS, marks=NEEDS_PIP),
    ],
    ids=["shell and python", "git", "pip"],
)
async def test_it_works(commands: dict[str, str], tmp_path: Path) -> None:
    await tell(commands, tmp_path)
