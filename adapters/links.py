"""Links whose words are the address of another site than their target: the words tell the target,
too.

Not every client shows the target before it opens it, and a checklist or a plan's step is pressed in
passing. Other words are left alone: every link has some.
"""

import html
import re
import unicodedata
from urllib.parse import urlsplit

from msgspec.structs import replace

from adapters.formulas import rewrite_prose
from adapters.written import rewrite_written
from gateway.views import PlanView, View

_PLACE = r"[^\s()<>/?#]"
_LINK = re.compile(
    rf"\[([^\[\]\n]{{1,300}})\](?=\([ \t]{{0,9}}<?(https?://{_PLACE}{{1,300}}"
    rf"(?:\({_PLACE}{{0,300}}\){_PLACE}{{0,300}}){{0,4}})[\s()<>/?#])",
    re.IGNORECASE,
)
"""Matches a link with a complete host: in a growing answer nothing is added before that."""
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s]{1,300}"
    r"|(?:[\w-]{1,63}\.){1,8}"
    r"(?:ai|app|biz|ch|cn|com|de|dev|edu|es|example|fr|gov|info|io|it|jp|net|nl|org|ru|uk)"
    r"(?:[:/?#][^\s]{0,300})?",
    re.IGNORECASE,
)
_FILE = (
    "pdf|csv|tsv|txt|log|json|xml|ya?ml|html?|png|jpe?g|gif|webp|svg|xlsx?|docx?|pptx?|od[tsp]|ics"
    "|eml|epub|ipynb|wav|ogg|mp[34]"
)
"""Ends of files' names that are no domains."""
_LOADED = re.compile(rf"://|[\w-]\.(?!(?:{_FILE})\b(?![.:/]))[^\W\d_]{{2}}", re.IGNORECASE)
"""Matches what an app may take for an address, with or without a scheme."""
_AROUND = " *_~\"'.,;:!?()<>"
"""Characters around an address in words."""


def show_targets(view: View) -> View:
    """Add the target's host to each link in `view` that is named by another address."""
    if isinstance(view, PlanView):
        steps = tuple(replace(one, text=tell_targets(one.text)) for one in view.steps)
        return replace(view, steps=steps)
    return rewrite_written(view, tell_targets)


def tell_targets(markdown: str) -> str:
    """Add the target's host after each link in `markdown` that is named by another address."""
    return rewrite_prose(markdown, _tell) if "](" in markdown else markdown


def has_address(text: str) -> bool:
    """Return True if an app may find an address in `text`, and load a preview of it."""
    return _LOADED.search(text) is not None


def _tell(text: str) -> str:
    return _LINK.sub(_name_host, text)


def _name_host(found: re.Match[str]) -> str:
    words, target = _read_words(found[1]), _read_host(found[2])
    if not _ADDRESS.fullmatch(words) or not target:
        return found[0]
    named = _read_host(words if "://" in words else f"https://{words}")
    same = target == named or (named and target.endswith(f".{named}"))
    return found[0] if same else f"[{found[1]} ({target})]"


def _read_words(text: str) -> str:
    """Normalise words to what people read: without invisible signs, entities decoded, wide letters
    and dots as plain ones."""
    plain = "".join(one for one in html.unescape(text) if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", plain).replace("\u3002", ".").strip(_AROUND)


def _read_host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").removeprefix("www.")
    except ValueError:
        return ""
