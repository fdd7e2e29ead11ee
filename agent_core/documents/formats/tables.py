"""Tables as lines of text."""

from collections.abc import Iterable


def render_row(cells: Iterable[object], between: str = " | ") -> str:
    """Join the cells of a row; "" if all are empty."""
    texts = [" ".join(str(cell).split()) if cell is not None else "" for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return between.join(texts)
