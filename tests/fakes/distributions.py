"""What a distribution needs of those that are installed here."""

import importlib.metadata
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def find_needed(name: str, extras: Iterable[str] = ()) -> set[str]:
    """The distributions that one needs with these extras, and those need, by their plain names."""
    found: set[tuple[str, str]] = set()
    _follow(name, ("", *extras), found)
    return {canonicalize_name(name) for name, _ in found}


def _follow(name: str, extras: tuple[str, ...], found: set[tuple[str, str]]) -> None:
    for line in importlib.metadata.distribution(name).requires or ():
        need = Requirement(line)
        held = [e for e in extras if need.marker is None or need.marker.evaluate({"extra": e})]
        if not held:
            continue
        inner = ("", *sorted(need.extras))
        if not {(need.name, e) for e in inner} <= found:
            found |= {(need.name, e) for e in inner}
            _follow(need.name, inner, found)
