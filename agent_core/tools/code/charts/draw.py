"""Draws one chart: a drawing as JSON on standard input, a PNG on standard output.

Runs as a process of its own, so that nothing of matplotlib ever stays in the one that asks. It
imports nothing of ours, opens no file of the workspace, and limits itself.
"""

import json
import resource
import sys
from datetime import UTC, datetime
from io import BytesIO
from typing import TypedDict

from matplotlib.axes import Axes
from matplotlib.figure import Figure

SECONDS = 60
MEMORY = 4 << 30
"""Bytes of addresses, most of them never touched."""
LONG = 24
"""Characters of a label."""


class Named(TypedDict):
    """Values under a name."""

    name: str
    values: list[float | None]


class DrawingDict(TypedDict):
    """As `chart.Drawing` writes it."""

    kind: str
    title: str
    x_label: str
    y_label: str
    scale: str
    x: list[str | float | None]
    series: list[Named]


def draw(wanted: DrawingDict) -> bytes:
    """The picture as PNG."""
    figure = Figure(figsize=(8, 5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    match wanted["kind"]:
        case "line" | "scatter":
            _points(axes, wanted)
        case "bar":
            _bars(axes, wanted)
        case "pie":
            _slices(axes, wanted)
        case "histogram":
            for one in wanted["series"]:
                axes.hist(
                    _drop_gaps(one), bins="auto", alpha=0.7, label=_escape_formula(one["name"])
                )
        case _:
            values = [_drop_gaps(one) for one in wanted["series"]]
            axes.boxplot(
                values, tick_labels=[_shorten_label(one["name"]) for one in wanted["series"]]
            )
    axes.set_title(_escape_formula(wanted["title"]))
    if wanted["kind"] != "pie":
        axes.set_xlabel(_escape_formula(wanted["x_label"]))
        axes.set_ylabel(_escape_formula(wanted["y_label"]))
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    if len(wanted["series"]) > 1 and wanted["kind"] != "box":
        axes.legend()
    picture = BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()


def _points(axes: Axes, wanted: DrawingDict) -> None:
    for one in wanted["series"]:
        pairs = [
            (place, value)
            for place, value in zip(_places(wanted), one["values"], strict=True)
            if place is not None and value is not None
        ]
        if wanted["scale"] != "text":
            pairs.sort(key=lambda pair: pair[0])
        x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        name = _escape_formula(one["name"])
        if wanted["kind"] == "line":
            axes.plot(x, y, marker="o" if len(x) <= LONG else "", label=name)
        else:
            axes.scatter(x, y, s=16, alpha=0.7, label=name)
    if wanted["scale"] == "text":
        step = max(1, len(wanted["x"]) // 20)
        places = range(0, len(wanted["x"]), step)
        axes.set_xticks(list(places), [_shorten_label(str(wanted["x"][n])) for n in places])
    if wanted["scale"] == "date":
        axes.xaxis_date()
    if wanted["scale"] != "number":
        axes.tick_params("x", rotation=45)


def _places(wanted: DrawingDict) -> list[float | None]:
    """Return the positions of the points."""
    if wanted["scale"] == "text":
        return [float(n) for n in range(len(wanted["x"]))]
    if wanted["scale"] == "number":
        return [None if one is None else float(one) for one in wanted["x"]]
    return [_day(str(one)) if one else None for one in wanted["x"]]


def _day(text: str) -> float:
    """Days since 1970, as matplotlib counts; without a zone it is UTC."""
    moment = datetime.fromisoformat(f"{text}-01" if len(text) == 7 else text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 86_400


def _bars(axes: Axes, wanted: DrawingDict) -> None:
    width = 0.8 / len(wanted["series"])
    count = len(wanted["x"])
    for n, one in enumerate(wanted["series"]):
        places = [place + (n - (len(wanted["series"]) - 1) / 2) * width for place in range(count)]
        axes.bar(
            places,
            [value or 0.0 for value in one["values"]],
            width,
            label=_escape_formula(one["name"]),
        )
    turned = 45 if sum(len(str(label)) for label in wanted["x"]) > 60 else 0
    labels = [_shorten_label(str(label)) for label in wanted["x"]]
    axes.set_xticks(range(count), labels, rotation=turned, ha="right" if turned else "center")


def _slices(axes: Axes, wanted: DrawingDict) -> None:
    labels = [_shorten_label(str(label)) for label in wanted["x"]]
    axes.pie(_drop_gaps(wanted["series"][0]), labels=labels, autopct="%1.0f%%", startangle=90)


def _drop_gaps(one: Named) -> list[float]:
    return [value for value in one["values"] if value is not None]


def _shorten_label(text: str) -> str:
    return _escape_formula(text if len(text) <= LONG else f"{text[: LONG - 1]}…")


def _escape_formula(text: str) -> str:
    """Escape a text so that it is no formula."""
    return text.replace("$", r"\$")


def main() -> None:
    """Within limits: the data is anybody's."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stdout.buffer.write(draw(json.load(sys.stdin)))


if __name__ == "__main__":
    main()
