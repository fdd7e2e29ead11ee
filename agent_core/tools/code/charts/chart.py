"""The specification of a chart as a value: stored as JSON beside the data, and computed into
series."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools.code.charts.table import Column, Table

Shape: TypeAlias = Literal["line", "bar", "scatter", "histogram", "pie", "box"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
MAX_BARS = 60
MAX_SLICES = 12
MAX_SERIES = 12
MAX_POINTS = 20_000


class Chart(Struct, frozen=True, kw_only=True):
    """`data`: the CSV file's path. `x` and `y` name columns; bars and slices of the same `x` are
    added up, without `y` they count rows."""

    data: str
    kind: Shape
    x: str = ""
    y: tuple[str, ...] = ()
    title: str = ""


class Series(Struct, frozen=True, kw_only=True):
    """Values under one name; None is a gap."""

    name: str
    values: tuple[float | None, ...]


class Drawing(Struct, frozen=True, kw_only=True):
    """Everything that is drawn. `x`: labels, dates or numbers by `scale`; () for none."""

    kind: Shape
    title: str
    x_label: str
    y_label: str
    scale: Literal["number", "date", "text"]
    x: tuple[str | float | None, ...]
    series: tuple[Series, ...]


def propose_chart(table: Table, data: str, title: str) -> Chart:
    """A chart that suits the columns; the model may change it."""
    numbers = tuple(one.name for one in table.columns if one.kind == "number")
    dates = [one.name for one in table.columns if one.kind == "date"]
    words = [one for one in table.columns if one.kind == "text"]
    few = [one.name for one in words if len(set(one.cells)) <= MAX_BARS]
    if dates and numbers:
        return Chart(data=data, kind="line", x=dates[0], y=numbers[:4], title=title)
    if few:
        return Chart(data=data, kind="bar", x=few[0], y=numbers[:3], title=title)
    if len(numbers) > 1:
        return Chart(data=data, kind="scatter", x=numbers[0], y=numbers[1:2], title=title)
    if numbers:
        return Chart(data=data, kind="histogram", y=numbers, title=title)
    raise ToolFailed("No chart suits this table: it has no numbers, and no few different words.")


def make_drawing(chart: Chart, table: Table) -> Drawing:
    """Compute the chart over its table; ToolFailed with what does not fit."""
    if len(chart.y) > MAX_SERIES:
        raise ToolFailed(f"A chart shows at most {MAX_SERIES} columns.")
    columns = tuple(map(table.column, chart.y))
    for one in columns:
        if one.kind != "number":
            raise ToolFailed(f"The column {one.name!r} holds no numbers ({one.kind}).")
    match chart.kind:
        case "histogram" | "box":
            return _spread(chart, columns)
        case "bar" | "pie":
            return _sum_by_group(chart, table.column(chart.x), columns)
        case "line" | "scatter":
            return _points(chart, table.column(chart.x), columns)


def _spread(chart: Chart, columns: tuple[Column, ...]) -> Drawing:
    if not columns:
        raise ToolFailed(f"A {chart.kind} chart needs columns of numbers in y.")
    series = tuple(
        Series(name=one.name, values=tuple(v for v in one.numbers() if v is not None))
        for one in columns
    )
    label = columns[0].name if len(columns) == 1 else ""
    x_label, y_label = (label, "rows") if chart.kind == "histogram" else ("", label)
    return _make_drawing(chart, (x_label, y_label), "text", (), series)


def _sum_by_group(chart: Chart, x: Column, columns: tuple[Column, ...]) -> Drawing:
    if chart.kind == "pie" and len(columns) > 1:
        raise ToolFailed("A pie chart shows one column of numbers.")
    places = {label: n for n, label in enumerate(dict.fromkeys(x.cells))}
    most = MAX_SLICES if chart.kind == "pie" else MAX_BARS
    if len(places) > most:
        raise ToolFailed(
            f"The column {x.name!r} has {len(places):,} different values; a {chart.kind} chart "
            f"shows at most {most}. Group the data first, or choose another kind."
        )
    sums = [[0.0] * len(places) for _ in columns or (x,)]
    values = [one.numbers() for one in columns] or [(1.0,) * len(x.cells)]
    for total, numbers in zip(sums, values, strict=True):
        for label, value in zip(x.cells, numbers, strict=True):
            total[places[label]] += value or 0.0
    names = chart.y or ("rows",)
    series = tuple(Series(name=n, values=tuple(s)) for n, s in zip(names, sums, strict=True))
    if chart.kind == "pie" and (min(sums[0]) < 0 or not sum(sums[0])):
        raise ToolFailed("A pie chart needs sums above zero.")
    labels = tuple(label or "(empty)" for label in places)
    return _make_drawing(
        chart, (x.name, names[0] if len(names) == 1 else ""), "text", labels, series
    )


def _points(chart: Chart, x: Column, columns: tuple[Column, ...]) -> Drawing:
    if not columns:
        raise ToolFailed(f"A {chart.kind} chart needs columns of numbers in y.")
    if len(x.cells) > MAX_POINTS:
        raise ToolFailed(f"A {chart.kind} chart shows at most {MAX_POINTS:,} rows. Group them.")
    places: tuple[str | float | None, ...] = x.cells
    scale: Literal["number", "date", "text"] = "text"
    if x.kind == "number":
        places, scale = x.numbers(), "number"
    elif x.kind == "date":
        scale = "date"
    series = tuple(Series(name=one.name, values=one.numbers()) for one in columns)
    return _make_drawing(
        chart, (x.name, chart.y[0] if len(columns) == 1 else ""), scale, places, series
    )


def _make_drawing(
    chart: Chart,
    labels: tuple[str, str],
    scale: Literal["number", "date", "text"],
    x: tuple[str | float | None, ...],
    series: tuple[Series, ...],
) -> Drawing:
    if not any(value is not None for one in series for value in one.values):
        raise ToolFailed("There is nothing to draw: the columns hold no values.")
    return Drawing(
        kind=chart.kind,
        title=chart.title,
        x_label=labels[0],
        y_label=labels[1],
        scale=scale,
        x=x,
        series=series,
    )
