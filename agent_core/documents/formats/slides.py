"""PowerPoint's PPTX."""

from collections.abc import Iterator
from typing import Any, BinaryIO
from zipfile import BadZipFile

from agent_core.documents.formats.office import (
    choose_forms,
    find_diagrams,
    read_diagram,
    write_formulas,
)
from agent_core.documents.formats.tables import render_row
from agent_core.documents.refusal import Refused


def read(file: BinaryIO) -> Iterator[str]:
    """The text of each slide, its tables and its notes."""
    import pptx
    from pptx.exc import PythonPptxError

    try:
        deck = pptx.Presentation(file)
    except (PythonPptxError, BadZipFile, KeyError, ValueError) as error:
        raise Refused("it is no PowerPoint presentation, or it is damaged.") from error
    for number, slide in enumerate(deck.slides, 1):
        yield f"[Slide {number} of {len(deck.slides)}]"
        choose_forms(slide.element)
        write_formulas(slide.element)
        yield from _read_shapes(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            if notes:
                yield f"Notes: {notes}"


def _read_shapes(shapes: "object") -> Iterator[str]:
    for shape in shapes:  # type: ignore[attr-defined]  # the library has no types
        if shape.has_text_frame and shape.text_frame.text.strip():
            yield shape.text_frame.text
        elif getattr(shape, "has_table", False):
            for row in shape.table.rows:
                yield render_row(cell.text for cell in row.cells)
        elif getattr(shape, "has_chart", False):
            yield from _read_chart(shape.chart)
        elif hasattr(shape, "shapes"):
            yield from _read_shapes(shape.shapes)
        else:
            for place in find_diagrams(shape.element):
                yield from read_diagram(shape.part, place)


def _read_chart(chart: Any) -> Iterator[str]:
    """The title of a chart and its values, as a table."""
    named = chart.has_title and chart.chart_title.has_text_frame
    yield f"[Chart] {chart.chart_title.text_frame.text}" if named else "[Chart]"
    for plot in chart.plots:
        yield render_row(("", *plot.categories))
        for series in plot.series:
            yield render_row((series.name, *map(_shorten_number, series.values)))


def _shorten_number(value: float | None) -> float | int | None:
    return int(value) if isinstance(value, float) and value.is_integer() else value
