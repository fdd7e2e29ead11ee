"""Ranges of transcript rows: which part of a conversation its model sees."""

from gateway.store.rows import Spans


def length(spans: Spans) -> int:
    """Return the number of rows in `spans`."""
    return sum(end - start for start, end in spans)


def append_row(spans: Spans, n: int) -> Spans:
    """`spans` and the row `n` behind them."""
    if spans and spans[-1][1] == n:
        return (*spans[:-1], (spans[-1][0], n + 1))
    return (*spans, (n, n + 1))


def without_last(spans: Spans) -> Spans:
    """`spans` without the last row; there must be one."""
    start, end = spans[-1]
    return (*spans[:-1], (start, end - 1)) if end - start > 1 else spans[:-1]


def without_first(spans: Spans, count: int) -> Spans:
    """`spans` without its first `count` rows."""
    rest: list[tuple[int, int]] = []
    for start, end in spans:
        left_out = min(count, end - start)
        count -= left_out
        if start + left_out < end:
            rest.append((start + left_out, end))
    return tuple(rest)
