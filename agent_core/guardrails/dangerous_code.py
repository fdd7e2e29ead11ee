"""Recognises commands and code that nobody wants to run: they wipe a disk, fork without end, or run
a download.

A hint for people; the sandbox is the border.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Literal

from pydantic import BaseModel

from agent_core.tools.web.addresses import Unreachable, read_url, why_closed

ToolScanner = Literal["url", "code"]
MOST = 200_000
"""Characters of code that are looked at."""
MAX_DEPTH = 6
_SIGNS = (
    *("rm ", "rm\t", "mkfs", "/dev/", "wipefs", "shred", "format ", "rmtree", "fork", "|:", "| :"),
    *("curl", "wget", "fetch", "iwr", "urlopen", "requests", "httpx", "Invoke-", "Remove-Item"),
    *("del ", "rd ", "rmdir ", "base64", "chmod", "preserve-root", "&"),
)
_ROOT = (
    r"[\"']?(?:/|/\*|~|~/\*?|\$\{?HOME\}?/?\*?|/(?:bin|boot|dev|etc|home|lib|opt|root|sbin|srv|"
    r"usr|var)"
    r"(?:/\*?)?|[A-Za-z]:\\\\?\*?)[\"']?(?=\s|[;&|)\"']|$)"
)
_ENDS = r"(?:ba|da|z|k|fi)?sh\b|python[\d.]*\b|perl\b|ruby\b|node\b|php\b|iex\b|source\b"
_CODE = (
    # wipe a disk
    rf"\brm\s+(?:-{{1,2}}[\w-]+\s+){{1,6}}(?:[^\s;|&]{{1,200}}\s+){{0,4}}?(?:--\s+)?{_ROOT}"
    r"|--no-preserve-root"
    r"|\bmkfs(?:\.\w+)?\s+[^\n;|&]{0,80}/dev/|\bwipefs\b[^\n;|&]{0,60}/dev/|\bshred\b[^\n;|"
    r"&]{0,60}/dev/"
    r"|\bdd\b[^\n;|&]{0,120}\bof=/dev/(?:sd|hd|nvme|vd|xvd|mmcblk|disk|mem)"
    r"|>\s{0,4}/dev/(?:sd[a-z]|hd[a-z]|nvme|vd[a-z]|xvd|mmcblk|mem)"
    r"|\bshutil\.rmtree\(\s{0,4}(?:(?:os\.path\.expanduser|Path|"
    r"pathlib\.Path)\(\s{0,4})?[\"'](?:/|~/?|"
    r"/(?:bin|boot|etc|home|lib|root|usr|var)/?)[\"']"
    r"|\bshutil\.rmtree\(\s{0,4}(?:Path|pathlib\.Path)\.home\(\)"
    r"|\bchmod\s+(?:-\w+\s+){0,3}(?:-R|--recursive)\s+(?:[0-7]{3,4}|[\w+=,-]+)\s+/(?=\s|[;&|]|$)"
    r"|\bformat\s+[A-Za-z]:|\b(?:del|rd|rmdir)\s+/[sq]\s+(?:/[sq]\s+)?[A-Za-z]:\\"
    r"|\bRemove-Item\b[^\n;|]{0,80}-Recurse[^\n;|]{0,80}[A-Za-z]:\\"
    # fork without end
    r"|(?<!\w)([\w:.]{1,40})\s{0,4}\(\)\s{0,4}\{\s{0,4}\1\s{0,4}\|\s{0,4}\1\s{0,4}&"
    r"|\bwhile\s+(?:True|1|true)\s{0,4}[:;][^\n]{0,40}\n?[^\n]{0,40}\bos\.fork\(\)"
    r"|\bfork\s+while\s+(?:fork|1|true)\b"
    # run a download
    rf"|\b(?:curl|wget|fetch)\b[^\n;]{{0,400}}?\|"
    rf"\s{{0,4}}(?:sudo\s+)?(?:env\s+)?(?:/[\w/]{{1,30}}/)?(?:{_ENDS})"
    rf"|\b(?:{_ENDS}|eval|\.)\s+(?:-c\s+)?[\"']?(?:<\(|\$\(|`)\s{{0,4}}(?:curl|wget)\b"
    r"|\b(?:exec|eval)\(\s{0,4}(?:compile\(\s{0,4})?(?:requests\.get|urllib\.request\.urlopen|"
    r"urlopen|"
    r"httpx\.get)\("
    r"|\b(?:iex|Invoke-Expression)\b[^\n]{0,80}\b(?:iwr|Invoke-WebRequest|DownloadString)\b"
    r"|\b(?:iwr|Invoke-WebRequest)\b[^\n]{0,120}\|\s{0,4}(?:iex|Invoke-Expression)\b"
    r"|\bbase64\s+(?:-\w+|--decode)[^\n;]{0,80}\|\s{0,4}(?:sudo\s+)?(?:ba|z|da)?sh\b"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20}):")
_CLOSED_SCHEMES = frozenset(
    ("file", "gopher", "dict", "ldap", "ldaps", "jar", "netdoc", "tftp", "smb", "javascript",
     "vbscript", "view-source")
)  # fmt: skip


def find_dangerous_code(text: str) -> bool:
    """`text`, a command or a program, wipes, breeds, or runs a download."""
    text = text[:MOST]
    return any(sign in text for sign in _SIGNS) and _compile_code().search(text) is not None


@cache
def _compile_code() -> re.Pattern[str]:
    """Compile at the first use, so that the start is not delayed."""
    return re.compile(_CODE, re.MULTILINE)


def find_closed_url(arguments: BaseModel, places: frozenset[str] = frozenset()) -> bool:
    """Return True if an argument is the URL of a file, or of this machine or network, unless it is
    one of `places` (`host:port`), which the operator opened."""
    return any(_is_closed(text, places) for text in _list_texts(arguments.model_dump()))


def _is_closed(text: str, places: frozenset[str]) -> bool:
    text = text.strip()
    found = _SCHEME.match(text)
    if found is None:
        return False
    scheme = found[1].lower()
    if scheme in _CLOSED_SCHEMES:
        return "://" in text[:40] or scheme in ("file", "javascript", "vbscript", "view-source")
    if scheme not in ("http", "https", "ws", "wss") or "\n" in text:
        return False
    try:
        target = read_url(f"http{text[2:]}" if scheme.startswith("ws") else text)
    except Unreachable:
        return not any(one.isspace() for one in text)
    return why_closed(target) is not None and target.place not in places


def _list_texts(value: object, depth: int = 0) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() if depth < MAX_DEPTH:
            for one in value.values():
                yield from _list_texts(one, depth + 1)
        case list() | tuple() if depth < MAX_DEPTH:
            for one in value:
                yield from _list_texts(one, depth + 1)
        case _:
            return
