"""Decides whether a read-only command could show a file with secrets that it does not name.

A wildcard may match such a file, and a search of folders meets everything in them. Where a tier
contains, it masks these files; this is for commands without one, and tells nothing about the disk.
"""

import re
from functools import cache

from agent_core.tools import secret_files

_SECRET_NAMES = (
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json"),
    *("secrets.json", "secrets.yml", "secrets.yaml", "secrets.toml", "service-account.json"),
    *("kubeconfig", "*?.pem", "*?.p12", "*?.pfx", "*?.kdbx", "*?.key", "*?.jks", "*?.ppk"),
    *("*?.keystore", "client_secret*.json", "_netrc", "*?.env", "*?.tfvars", "*?.ovpn", "*?.p8"),
    *("*?.kdb", "*?.tfstate", "secring.gpg", "wallet.dat", "ssh_host_rsa_key", "*?.tfvars.json"),
    *("*?.keytab", "*?.keyring", "*?.1pux", "token.pickle"),
)
"""Names for secrets that do not begin with a dot: no shell's wildcard matches one that does."""
_TELLING = re.compile(
    r"passw|passphrase|secret|token|api.?key|access.?key|\bkeys?\b|private|credential|akia|aws_"
    r"|bearer|begin |(?-i:\bBEGIN\b)|ssh-|jwt|_url|\bdsn\b|export"
    r"|(?<![a-z])aws|postgres|mysql|mongodb|amqp|redis:|\bghp|github_pat|xox[abp]|hooks.slack"
    r"|sk_(?:live|test)|authorization",
    re.IGNORECASE,
)
"""Words that somebody searches for who wants a secret."""
_TOLD = ("password", "passwd", "passphrase", "secret", "token", "credential", "bearer", "private")
MIN_TOLD = 4
"""Minimum letters of a pattern that finds one of these words by a part of it."""
_CLASS = r"\[\^?\]?(?:[^\]\[\\\n]|\\.)*\]"
_PLAIN = re.compile(
    rf"(?:(?:\.|{_CLASS})(?:[*+]\??|\?)?|[\w ,:;/#@\"'<>=!%&~()-]\+?|\\[sSwWdD][*+?]?"
    r"|\\[.()bBn\[\]{}$^*+?|/])*"
)
"""An expression in which each letter has to be there."""
_SETTING = re.compile(
    r"(?-i:[A-Z]+_[A-Z_\d]+|^[A-Z]{3,}=)|^\W{0,8}(?:host(?:name)?|port|user(?:name)?|login|email|region"
    r"|database|db|endpoint|account|client.?id|node.?env|environment|env)\b\W{0,8}$",
    re.IGNORECASE,
)
"""Names of settings beside which a secret often is in a file with secrets."""
_COPY = re.compile(r"[0-9a-f?]{64}|(?=.*\*)[0-9a-f?*]{1,130}")
"""Matches what may be the name of a snapshot's copy: 64 digits of a digest."""
_CHOICE = re.compile(r"\[[^\]]*\]?")
_SIGNS = re.compile(r"[.()\[\]{}$^*+?|\\]")
_ANY = re.compile(rf"\\.|{_CLASS}")
"""Matches what stands for arbitrary characters."""


def could_be_secret(glob: str) -> bool:
    """Return True if a path with wildcards may match a file with secrets, or one below a hidden
    folder."""
    *folders, last = glob.removeprefix("./").split("/")
    if folders[:1] == [".github"]:  # its content is published
        return secret_files.names_secret_file(last)
    kept = any(map(secret_files.is_keeper, folders))
    return kept or _part_could_be_secret(last) or any(map(_could_be_hidden, folders))


def could_be_kept(kind: str) -> bool:
    """Return True if a matching name may be that of a file with secrets, in any folder, or of a
    snapshot's copy of one."""
    last = kind.rpartition("/")[2].casefold()
    meets = any(can_meet(last, name) for name in secret_files.KEPT)
    return meets or could_be_secret(kind) or bool(_COPY.fullmatch(_CHOICE.sub("?", last)))


def _could_be_hidden(part: str) -> bool:
    """Return True for a folder's name that may be one for secrets, counting only those that are so
    by themselves, or hidden."""
    if not set("*?[") & set(part):
        return secret_files.is_secret(part)
    return part.startswith((".", "["))


@cache
def _part_could_be_secret(part: str) -> bool:
    if not set("*?[") & set(part) or part.startswith((".", "[")):
        return _could_be_hidden(part)
    loose = _CHOICE.sub("?", part).casefold()
    own = secret_files.drop_copy_marks(loose)
    return any(can_meet(one, name) for one in {loose, own} for name in _SECRET_NAMES)


def can_meet(one: str, other: str) -> bool:
    """Some name fits both patterns. As long as both together, squared."""
    known: dict[tuple[int, int], bool] = {}
    waiting = [(0, 0)]
    while waiting:
        at, to = waiting.pop()
        if (at, to) in known:
            continue
        known[at, to] = True
        if at == len(one) and to == len(other):
            return True
        first, second = one[at : at + 1], other[to : to + 1]
        if first == "*":
            waiting.append((at + 1, to))
        if second == "*":
            waiting.append((at, to + 1))
        if first and second:
            if "*" not in (first, second):
                if first == second or "?" in (first, second):
                    waiting.append((at + 1, to + 1))
            elif first == "*" and second != "*":
                waiting.append((at, to + 1))
            elif second == "*" and first != "*":
                waiting.append((at + 1, to))
    return False


def is_plain_search(pattern: str, *, fixed: bool = False) -> bool:
    """Return True if the matches of `pattern` are no secrets by their words: each part of it has
    letters of its own, and none is a telling word. `fixed`: its characters are literal."""
    if _TELLING.search(pattern):
        return False
    if len(pattern) > 200:
        return False
    if fixed:
        pattern = _SIGNS.sub(r"\\\g<0>", pattern)
        return all(map(_is_harmless, pattern.split("\n")))
    parts = re.split(r"(?<!\\)\|", pattern.replace(r"\|", "|"))
    return all(map(_is_harmless, parts))


def names_setting(pattern: str) -> bool:
    """Return True if `pattern` finds settings that files with secrets have too."""
    return any(map(_SETTING.search, pattern.replace(r"\|", "|").split("|")))


def _is_harmless(part: str) -> bool:
    bare = part.removeprefix("^").removesuffix("$")
    count = sum(char.isalnum() for char in _ANY.sub("", bare))
    if not _PLAIN.fullmatch(bare) or count < 3:
        return False
    return (count < MIN_TOLD and "[" not in bare) or not _finds_told(bare)


def _finds_told(plain: str) -> bool:
    """Return True if the expression finds a telling word by a part of it, as `oken` and `pass.*`
    do."""
    try:
        search = re.compile(plain, re.IGNORECASE).search
    except re.error:  # grep takes a lone bracket literally
        search = re.compile(re.escape(plain), re.IGNORECASE).search
    return any(map(search, _TOLD))
