"""A presentation as a PPTX file. python-pptx is imported when the first one is written."""

from io import BytesIO
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.slide import Slide
    from pptx.text.text import TextFrame

MAX_SLIDES, MAX_POINTS = 40, 10
_WIDE, _HIGH, _MARGIN = 13.333, 7.5, 0.7
"""Inches of a slide of 16 to 9, and of its border."""
_INK, _ACCENT = (0x1F, 0x29, 0x37), (0x25, 0x63, 0xEB)
_COVER, _TEXT = 0, 1
"""Layouts of the default template: title slide; title and content."""


class DeckSlide(BaseModel):
    """One slide."""

    title: str = Field(min_length=1, max_length=200)
    points: list[str] = Field(default=[], max_length=MAX_POINTS)
    notes: str = Field(default="", max_length=4_000, description="For the speaker.")


class Deck(BaseModel):
    """A presentation: its cover and its slides."""

    title: str = Field(min_length=1, max_length=200)
    subtitle: str = Field(default="", max_length=300)
    slides: list[DeckSlide] = Field(min_length=1, max_length=MAX_SLIDES)


def write_deck(deck: Deck) -> bytes:
    """The presentation. Raises ImportError where python-pptx is not installed."""
    import pptx
    from pptx.util import Inches

    show = pptx.Presentation()
    show.slide_width, show.slide_height = Inches(_WIDE), Inches(_HIGH)
    show.core_properties.title = _drop_unprintable(deck.title)[:255]
    _cover(show, deck)
    for page in deck.slides:
        _page(show, page)
    content = BytesIO()
    show.save(content)
    return content.getvalue()


def outline(deck: Deck) -> str:
    """The presentation in plain words."""
    lines = [deck.title, *([deck.subtitle] if deck.subtitle else [])]
    for n, page in enumerate(deck.slides, 1):
        lines += [f"{n}. {page.title}", *(f"   - {point}" for point in page.points)]
    return "\n".join(lines)


def _cover(show: "Presentation", deck: Deck) -> None:
    slide = show.slides.add_slide(show.slide_layouts[_COVER])
    _bar(slide, 3.0, 0.08)
    _place_lines(slide, 0, (1.2, 1.7), (deck.title,), 40)
    _place_lines(slide, 1, (3.3, 1.6), (deck.subtitle,), 22)


def _page(show: "Presentation", page: DeckSlide) -> None:
    slide = show.slides.add_slide(show.slide_layouts[_TEXT])
    _bar(slide, 1.45, 0.05)
    _place_lines(slide, 0, (0.45, 0.95), (page.title,), 30)
    size = 24 if sum(map(len, page.points)) < 450 else 18
    _place_lines(slide, 1, (1.75, 5.2), tuple(page.points), size)
    if page.notes:
        notes = slide.notes_slide.notes_text_frame
        assert notes is not None, "the default template has a place for notes"
        notes.text = "\n".join(map(_drop_unprintable, page.notes.splitlines()))


def _place_lines(
    slide: "Slide", index: int, at: tuple[float, float], lines: tuple[str, ...], size: int
) -> None:
    """Put `lines` into a placeholder. `at`: its top and height, in inches; the template is made
    for narrow slides, so each one is moved."""
    from pptx.util import Inches

    shape = next(one for one in slide.placeholders if one.placeholder_format.idx == index)
    if not any(lines):
        element = shape.element
        element.getparent().remove(element)
        return
    shape.left, shape.width = Inches(_MARGIN), Inches(_WIDE - 2 * _MARGIN)
    shape.top, shape.height = Inches(at[0]), Inches(at[1])
    _write(shape.text_frame, lines, size)


def _write(frame: "TextFrame", lines: tuple[str, ...], size: int) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.text import PP_ALIGN
    from pptx.util import Pt

    frame.word_wrap = True
    for n, line in enumerate(lines):
        paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()  # type: ignore[no-untyped-call]
        paragraph.alignment = PP_ALIGN.LEFT
        paragraph.space_after = Pt(8)
        run = paragraph.add_run()
        run.text = _drop_unprintable(line)
        run.font.size = Pt(size)
        run.font.color.rgb = RGBColor(*_INK)  # type: ignore[no-untyped-call]


def _bar(slide: "Slide", top: float, height: float) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.shapes import MSO_SHAPE
    from pptx.util import Inches

    place = (Inches(_MARGIN), Inches(top), Inches(1.6), Inches(height))
    bar = slide.shapes.add_shape(MSO_SHAPE.RECTANGLE, *place)
    bar.fill.solid()
    bar.fill.fore_color.rgb = RGBColor(*_ACCENT)  # type: ignore[no-untyped-call]
    bar.line.fill.background()


def _drop_unprintable(text: str) -> str:
    """Remove characters that XML forbids."""
    return "".join(c if c.isprintable() else " " for c in text)
