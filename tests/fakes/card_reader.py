"""The words that people see of a drawn card, whatever a platform makes them of."""

import json

_WORDS = frozenset({"text", "content", "title", "body", "whole", "what", "outcome", "notes"})
_LISTS = frozenset({"facts", "warnings"})


def read_words(payload: str) -> str:
    """All words of a payload: JSON, or several in a line each."""
    return "\n".join(word for one in payload.splitlines() for word in _list_words(json.loads(one)))


def _list_words(value: object, *, shown: bool = False) -> list[str]:
    if isinstance(value, str):
        return [value] if shown else []
    if isinstance(value, dict):
        pairs = [(name, inside) for name, inside in value.items() if name != "value"]
        return [
            word
            for name, inside in pairs
            for word in _list_words(inside, shown=name in _WORDS or name in _LISTS)
        ]
    if isinstance(value, list):
        return [word for inside in value for word in _list_words(inside, shown=shown)]
    return []
