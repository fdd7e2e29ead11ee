"""Turns a model's text with marks (`[f3]`) into a report with numbered citations.

Only marks of known findings become citations; invented numbers and links are removed.
"""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from agent_core.orchestration.side_calls import Unworded
from agent_core.research.evidence import Finding
from agent_core.research.sources import Skipped, SourcePage

TITLE = 120
_MARK = re.compile(r"\[\s*(f\d+(?:\s*[,;]\s*f\d+)*)\s*\]", re.IGNORECASE)
_FOREIGN = re.compile(r"\[\^?\d+(?:\s*[,;–-]\s*\d+)*\](?!\()")
_TO = r"\[([^\]]{0,500})\]\([^)]{0,2000}\)"
_IMAGE = re.compile(f"!{_TO}")
_LINK = re.compile(_TO)
_REFERENCE = re.compile(r"^[ \t]*\[[^\]\n]+\]:\s*\S+.*$", re.MULTILINE)
_URL = re.compile(r"<?(?:https?://|www\.)[^\s<>)\]]+>?", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})(.*)")
_LOOSE = re.compile(r"(?<![ \t])[ \t]+([.,;:])")
_LIFTED = re.compile("\0(\\d+)\0")
_HEADING = re.compile(r"^#{1,6}\s+", re.MULTILINE)


class Labels(Struct, frozen=True, kw_only=True):
    """The report's fixed words, in the language of the question."""

    sources: str = "Sources"
    not_read: str = "Not used"
    whole: str = "The whole report is in the file"
    few: str = "This rests on few sources"


class Written(Struct, frozen=True, kw_only=True):
    """A report: the whole, and the part for the chat. `cited`: how many sources."""

    report: str
    summary: str
    cited: int


class Gathered(Struct, frozen=True, kw_only=True):
    """The material of a report. `thin`: fewer sources than its depth asks for."""

    title: str
    sources: tuple[SourcePage, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    labels: Labels = Labels()
    thin: bool = False


def check(text: str, findings: Iterable[Finding]) -> str:
    """Return a draft unchanged if it cites any known finding. Raises Unworded."""
    known = {finding.id for finding in findings}
    prose, _ = _take_out_code(text)
    cited = {mark for found in _MARK.findall(prose) for mark in _ids(found)}
    if not cited & known:
        raise Unworded("It cites no finding. Put marks such as [f1] behind what they bear.")
    if not _HEADING.search(prose):
        raise Unworded("It has no headings. Begin with the heading of the summary.")
    return text.strip()


def write_report(draft: str, gathered: Gathered) -> Written:
    """The report and its summary out of a draft with marks."""
    draft, code = _lift_code(draft)
    body = _strip_own_titles(draft)
    by_id = {finding.id: finding for finding in gathered.findings}
    cited = [by_id[mark] for found in _MARK.findall(body) for mark in _ids(found) if mark in by_id]
    order = list(dict.fromkeys(finding.source for finding in cited))
    numbers = {source: n for n, source in enumerate(order, 1)}

    def citation(found: re.Match[str]) -> str:
        known = (by_id[mark].source for mark in _ids(found[1]) if mark in by_id)
        return "".join(f"[{n}]" for n in sorted({numbers[source] for source in known}))

    body = _LOOSE.sub(r"\1", _MARK.sub(citation, body))
    body = re.sub(r"(\[\d+\])(?:\s*\1)+", r"\1", body).strip()
    listed = [
        _reference(n, gathered.sources[source], [f for f in cited if f.source == source])
        for source, n in numbers.items()
    ]
    labels = gathered.labels
    first, body = (_LIFTED.sub(code, text) for text in (_first_section(body), body))
    parts = [f"# {gathered.title}", body, f"## {labels.sources}", "\n".join(listed)]
    if gathered.skipped:
        why = "\n".join(f"- {_line(one.what)}: {_line(one.why)}" for one in gathered.skipped)
        parts += [f"## {labels.not_read}", why]
    if gathered.thin:
        parts.insert(1, f"*{labels.few} ({len(order)}).*")
    links = "\n".join(f"[{n}] {_link(gathered.sources[source])}  " for source, n in numbers.items())
    thin = f"\n\n*{labels.few} ({len(order)}).*" if gathered.thin else ""
    summary = f"{first}{thin}\n\n**{labels.sources}**\n{links}"
    return Written(report="\n\n".join(parts) + "\n", summary=summary, cited=len(order))


def _lift_code(draft: str) -> tuple[str, Callable[[re.Match[str]], str]]:
    """Replace the draft's blocks of code, in which `[0]` is no citation and `#` no heading; also
    return the function that restores each. Links are removed from code too."""
    lifted, blocks = _take_out_code(draft.replace("\0", ""))
    blocks = [_URL.sub("", block) for block in blocks]
    return lifted, lambda found: blocks[int(found[1])]


def _take_out_code(text: str) -> tuple[str, list[str]]:
    """Return `text` with a mark in place of each block of code, and the blocks. An unclosed one
    stays, with everything after it."""
    kept: list[str] = []
    blocks: list[str] = []
    mark, opened = "", 0
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        kept.append(line)
        if found is None:
            continue
        if not mark:
            mark, opened = found[1], len(kept) - 1
        elif found[1].startswith(mark) and not found[2].strip():
            blocks.append("\n".join(kept[opened:]))
            kept[opened:] = [f"\0{len(blocks) - 1}\0"]
            mark = ""
    return "\n".join(kept), blocks


def _reference(n: int, source: SourcePage, findings: Iterable[Finding]) -> str:
    """Render a numbered source with the quotes that support the report."""
    quotes = dict.fromkeys(finding.quote for finding in findings)
    return "\n".join((f"{n}. {_link(source)}", *(f"   - “{quote}”" for quote in quotes)))


def _link(source: SourcePage) -> str:
    if source.is_file:
        return f"`{_line(source.title.replace('`', ' '))}`"
    title = re.sub(r"[\[\]<>`*_|\\]", " ", source.title)
    url = source.url.replace("(", "%28").replace(")", "%29")
    return f"[{_line(title)[:TITLE] or url}]({url})"


def _strip_own_titles(draft: str) -> str:
    """The draft without titles above its headings, and without numbers and links of its own."""
    text = _REFERENCE.sub("", draft)
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(lambda found: found[0] if _MARK.fullmatch(found[0]) else found[1], text)
    text = _URL.sub("", _FOREIGN.sub("", text))
    first = _HEADING.search(text)
    return re.sub(r"^#\s+", "## ", text[first.start() if first else 0 :], flags=re.MULTILINE)


def _first_section(body: str) -> str:
    """Return the text of the first heading that has any: models begin with a title."""
    _, *sections = _HEADING.split(body)
    texts = (section.partition("\n")[2].strip() for section in sections)
    return next(filter(None, texts), body)


def _ids(found: str) -> list[str]:
    return [mark.strip().lower() for mark in re.split(r"[,;]", found)]


def _line(text: str) -> str:
    return " ".join(text.split())
