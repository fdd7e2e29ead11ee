"""Hosts that a command may reach: how they are written, and the usual ones by one word. Light: the
settings need it."""

from collections.abc import Iterable

from agent_core.tools.web.addresses import Target, Unreachable, read_url

PRESETS: dict[str, tuple[str, ...]] = {
    "packages": (
        "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "crates.io",
        "index.crates.io", "static.crates.io", "proxy.golang.org", "sum.golang.org",
        "rubygems.org", "index.rubygems.org", "repo.maven.apache.org", "deb.debian.org",
    ),
    "git": (
        "github.com", "codeload.github.com", "raw.githubusercontent.com",
        "objects.githubusercontent.com", "release-assets.githubusercontent.com", "gitlab.com",
        "bitbucket.org", "codeberg.org",
    ),
}  # fmt: skip
"""The indexes of packages and the hosts of repositories, by the word for them."""
MAX_HOSTS = 40
"""Hosts of one call: both presets, and as many others."""
_USUAL_PORTS = (80, 443)


def read_hosts(words: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that `words` name, without duplicates: `name` (its ports 80 and 443),
    `name:port`, or a preset's word. ValueError names a wrong one."""
    found: list[str] = []
    for word in words:
        found += PRESETS.get(word) or (_read_host(word),)
    return tuple(dict.fromkeys(found))


def _read_host(word: str) -> str:
    if any(sign in word for sign in "/?#@*"):
        raise ValueError(f"{word!r} is no host; write its name alone, such as pypi.org.")
    try:
        target = read_url(f"https://{word}")
    except Unreachable:
        raise ValueError(f"{word!r} is no host; write its name, such as pypi.org.") from None
    host = f"[{target.host}]" if ":" in target.host else target.host
    named = word.rpartition("]")[2] if word.startswith("[") else word
    return f"{host}:{target.port}" if ":" in named else host


def admits(hosts: frozenset[str], target: Target) -> bool:
    """Return True if `target` is at one of `hosts`."""
    host = f"[{target.host}]" if ":" in target.host else target.host
    if f"{host}:{target.port}" in hosts:
        return True
    return host in hosts and target.port in _USUAL_PORTS
