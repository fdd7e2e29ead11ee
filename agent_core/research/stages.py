"""Answers of the model on the way through a research, as values."""

from msgspec import Struct

from agent_core.orchestration.side_calls import Unusable, find_json
from agent_core.research.depths import DEPTHS, KINDS, DepthName, Kind
from agent_core.research.writing import Labels

QUERY, LABEL, TITLE = 200, 80, 100


class Frame(Struct, frozen=True, kw_only=True):
    """The frame of a research."""

    title: str
    kind: Kind
    depth: DepthName
    queries: tuple[str, ...]
    labels: Labels = Labels()


class ResearchRequest(Struct, frozen=True, kw_only=True):
    """Explicit options; None: the model chooses."""

    kind: Kind | None = None
    depth: DepthName | None = None


def plain_frame(question: str, wish: ResearchRequest) -> Frame:
    """Return the frame to use if the model gave no valid one: a search for the question itself."""
    line = " ".join(question.split())
    return Frame(
        title=line[:TITLE],
        kind=wish.kind or "technical",
        depth=wish.depth or "standard",
        queries=(line[:QUERY],),
    )


def read_frame(text: str, question: str, wish: ResearchRequest) -> Frame:
    """The frame that the model wrote down. Raises Unusable."""
    found = find_json(text)
    if not isinstance(found, dict) or not (queries := lines(found.get("queries"))):
        raise Unusable('The field "queries" has to be a list of texts.')
    plain = plain_frame(question, wish)
    kind = next((one for one in KINDS if one == found.get("kind")), plain.kind)
    depth = next((one for one in DEPTHS if one == found.get("depth")), plain.depth)
    kind, depth = wish.kind or kind, wish.depth or depth
    return Frame(
        title=_line(found.get("title"))[:TITLE] or plain.title,
        kind=kind,
        depth=depth,
        queries=queries[: DEPTHS[depth].queries],
        labels=_labels(found.get("labels")),
    )


def read_queries(text: str) -> tuple[str, ...]:
    """Parse the next queries. Raises Unusable."""
    found = find_json(text)
    rows = found.get("queries") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise Unusable('The field "queries" has to be a list of texts.')
    return lines(rows)


def read_themes(text: str) -> bool:
    """True for a synthesis that can be built on. Raises Unusable."""
    found = find_json(text)
    if not isinstance(found, dict) or not isinstance(found.get("themes"), list):
        raise Unusable('The field "themes" has to be a list.')
    return True


def lines(rows: object) -> tuple[str, ...]:
    """The texts in a list, each once."""
    texts = (_line(row)[:QUERY] for row in rows) if isinstance(rows, list) else ()
    return tuple(dict.fromkeys(filter(None, texts)))


def _labels(rows: object) -> Labels:
    if not isinstance(rows, dict):
        return Labels()
    words = {name: _line(rows.get(name))[:LABEL] for name in Labels.__struct_fields__}
    return Labels(**{name: word for name, word in words.items() if word})


def _line(value: object) -> str:
    return " ".join(str(value).split()) if isinstance(value, str) else ""
