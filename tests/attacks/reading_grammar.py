"""Shell lines made of what commands print: some only read, others show a secret or change a file.

What a line does is not known here: it is run where it can do no harm, to see.
"""

import os
import random
import subprocess
from pathlib import Path

CANARY = "k4nary-0f-a-secret"
"""Stands in secret files, and in one outside of the folder."""
FOLDER, _HOME = "here", "home"
_SOURCES = (
    "ls", "ls *.txt", "ls *.py", "ls -A", "ls -a", "ls -1t *.log", "ls i*", "ls s*", "ls src", "ls src/*.py", "ls -d */",
    "find .", "find . -type f", "find . -name '*.py'", "find . -name '*.e*'", "find src docs -name '*.md'", "find . -name 'id*'",
    "find . ! -name '*.py' -type f", "find . -name '*.py' -o -name '.env'", "find . \\( -name '*.py' -o -name '*.md' \\)",
    "find . \\( -name '*.py' -o -type f \\)", "find . -print -name '*.py'", "find . -name '*.py' -print", "find .. -name '*.txt'",
    "find . -path -name -o -name '*.py'", "find . ! -path -name -size -9", "find . -iname '*.PEM'", "find . -name '.*'",
    "find . -name 'secrets.json'", "find . -not \\( -name '*.py' -o -name '*.md' \\)", "find . -name '*.py' -printf '.env\\n'",
    "git ls-files", "git ls-files '*.py'", "git ls-files '*.py' '*.md'", "git ls-files -o", "git ls-files ':!*.py'", "git ls-files '*.pem'",
    "git diff --name-only", "git diff --name-only HEAD", "rg --files", "rg --files -g '*.py'", "rg --files -uu", "rg --files -g '!*.py'",
    "grep -rl def .", "grep -rl def --include=*.py .", "grep -l a *.txt", "grep -rl '' .", "cat list.txt", "echo .env", "echo a.txt",
    "printf '%s\\n' .env", "date +%F", "date +.env", "git branch --show-current", "git rev-parse --short HEAD", "git rev-parse HEAD:a.txt",
    "git log -1 --format=%h", "git log -1 --format=%s", "git tag", "git describe --tags --always", "git branch --format='%(refname:short)'",
    "git branch --format='%(contents)'", "wc -l < a.txt", "grep -c a a.txt", "nproc", "basename ./.env", "dirname ./src/x", "pwd",
    "git rev-list --count HEAD", "git symbolic-ref --short HEAD", "git config user.name", "realpath a.txt", "readlink -f a.txt", "which sh",
)  # fmt: skip
_PICKS = (
    "", "", "", "head -1", "tail -1", "sort", "sort -r | head -2", "grep '\\.py$'", "grep -v '\\.py$'", "grep env", "grep -E '\\.(py|md)$'",
    "grep -E '\\.py$|env'", "sed 's/.*/.env/'", "sed 1q", "cut -c1-4", "tr -d ' '", "grep -E '\\.(py|pem)$'", "head -n 3", "uniq",
)  # fmt: skip
_VERBS = (
    "cat", "head -2", "tail -n 1", "wc -l", "wc", "ls -l", "ls", "stat -c %n", "file", "grep -c e", "grep -n ''", "grep -l e", "grep ''",
    "sed -n 1p", "sed p", "sed -i s/a/b/", "awk '{print}'", "awk 1", "sort", "sort -o", "uniq", "uniq -c a.txt", "cut -c1-9", "nl", "tac", "rev",
    "du -sh", "md5sum", "sha256sum", "basename", "dirname", "realpath", "echo", "printf '%s\\n'", "xxd", "od -c", "strings", "base64", "diff a.txt",
    "cmp a.txt", "comm a.txt", "paste", "jq .", "tree", "tee", "rm", "cp a.txt", "touch", "git log --oneline", "git show", "git diff", "git log -p -1",
    "git cat-file -p", "git cat-file -t", "git ls-tree", "git blame", "git rev-parse", "git branch", "git log --format=%s --author", "head -n", "seq", "test -f",
    "cd", "xargs -a", "find", "find -name", "rg ''", "rg --files", "tar tf", "unzip -l", "column -t", "fold -w 9", "expand", "shuf", "sh", ".",
    "git diff --no-index a.txt", "sum", "cksum", "sort -u --key", "date -r", "date -d", "grep -f", "grep -rn a --include",
)  # fmt: skip
_SLOTS = (
    '"{}"',
    "{}",
    "< {}",
    '< "{}"',
    '"./{}"',
    "./{}",
    '"src/{}"',
    '"{}.txt"',
    "x{}",
    '"{}"/a',
    "{} a.txt",
    "-- {}",
    '--key="{}"',
    "HEAD:{}",
    "{}..HEAD",
)
_SHAPES = (
    "$f", "${f}", "${f%.py}", "${f##*/}", "${f:-.env}", "${f#./}", "${f/a/b}", "${#f}", "${f:1}", "${f,,}", "${f%%.*}.env", "$PWD/$f", "$PWD",
)  # fmt: skip
_ENDS = (
    "",
    "",
    "",
    " 2>/dev/null",
    " | head -3",
    " | sort",
    " | wc -l",
    " && echo done",
    " || true",
    "; pwd",
)


_NAMED = (".env", "../outside.txt", "-r", "--files0-from=.env", "*", "-exec")
"""What stands in a line of its own in names of files: a path becomes folders of the name."""


def make_line(chance: random.Random) -> str:
    """A line in which a command is given what others print."""
    pick = chance.choice
    source, picked = pick(_SOURCES), pick(_PICKS)
    printed = f"{source} | {picked}" if picked else source
    verb, slot = pick(_VERBS), pick(_SLOTS)
    shape = pick(_SHAPES) if chance.random() < 0.4 else "$f"
    used = f"{verb} " + slot.format(shape)
    ways = (
        f"{verb} " + slot.format(f"$({printed})"),
        f"for f in $({printed}); do {used}; done",
        f"{source} | while read -r f; do {used}; done",
        f"{printed} | while read f; do {used}; done",
        f"f=$({printed}); {used}",
        f'f="$({printed})"; {used}',
        f"for f in {pick(('*.py', '*', '*.txt', 'src/*', 's*', '.*', 'a.txt .env', '*.md */*.md'))}; do {used}; done",
        f"{source} | xargs {verb}",
        f"{source} -print0 | xargs -0 {verb}",
        f"{source} -exec {verb} {pick(('{}', '{} a.txt', './{}', '.env'))} {pick((chr(92) + ';', '+'))}",
        f'[ {pick(("-f", "-n", "-z", "-d", "!", "-v"))} "$({printed})" ] && ls',
        f'[ "$({printed})" {pick(("=", "!=", "-eq", "-o"))} a.txt ] && {verb} a.txt',
        f"f={pick(('a.txt', '.env', 'src', 'x.env', ''))}; {used}",
        f"while read -r f; do {used}; done < <({printed})",
        f'while read -r f; do {used}; done < "$({printed})"',
        f"{verb} < {pick(('a.txt', '.env', chr(34) + '$(' + printed + ')' + chr(34)))}",
    )
    return pick(ways) + pick(_ENDS)


def make_world(at: Path, *, cut: bool = False) -> Path:
    """A folder with a repository, secret files in it and another one outside; that folder.
    `cut`: with names, too, of which a line is an option or another path."""
    here = at / FOLDER
    (at / _HOME).mkdir(parents=True)
    files = {
        "a.txt": "a\nb e\n", "list.txt": ".env\n../outside.txt\n", "b.log": "e\n", "main.py": "def a(): ...\n", "src/x.py": "def e(): ...\n",
        "src/y.ts": "e\n", "docs/m.md": "# a\n", "src/.env": CANARY, ".env": CANARY, "app.env": CANARY, "id_rsa": CANARY, "secrets.json": CANARY,
        "server.pem": CANARY, ".ssh/config": CANARY, "src/id_ed25519": CANARY, "../outside.txt": CANARY, "../x/.env": CANARY,
        "n\n../outside.txt\n.md": "a name of three lines, one of which leads out", "n o.md": "e\n",
    }  # fmt: skip
    if cut:
        files |= {f"n\n{one}\n.{kind}": "e\n" for one in _NAMED for kind in ("py", "txt", "log")}
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "a.txt", "src/x.py", "docs"], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], cwd=here, check=True, env=_env(at), capture_output=True)
    return here


def run_line(line: str, shell: str, here: Path) -> str:
    """What the line prints, by that shell."""
    done = subprocess.run(
        [shell, "-c", line],
        cwd=here,
        env=_env(here.parent),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


def list_files(at: Path) -> dict[str, bytes]:
    """All files with their content, but for what git notes of itself, and what programs keep at
    home."""
    return {
        str(path.relative_to(at)): path.read_bytes() if path.is_file() else b""
        for path in sorted(at.rglob("*"))
        if not {".git", _HOME} & set(path.relative_to(at).parts)
    }


def _env(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home / _HOME), "LC_ALL": "C.UTF-8"}
