"""Documents are read as text, each in a program of its own that may break."""

import io
import random
import re
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_core.documents import limits, reader
from agent_core.documents.damage import stop_at_damage
from agent_core.documents.formats import mail
from agent_core.documents.kinds import KINDS, find_kind
from agent_core.documents.refusal import Refused
from agent_core.errors import ToolFailed
from agent_core.tools.files import ReadFileArguments, read
from tests.fakes import documents
from tests.fakes.documents import WORDS
from tests.sampling import SEED

MADE: dict[str, Callable[[], bytes]] = {
    "a.pdf": documents.make_pdf,
    "a.docx": documents.make_docx,
    "a.xlsx": documents.make_xlsx,
    "a.pptx": documents.make_pptx,
    "a.odt": documents.make_odt,
    "a.epub": documents.make_epub,
    "a.rtf": documents.make_rtf,
    "a.eml": documents.make_eml,
}


def text_of(folder: Path, name: str, data: bytes, **wanted: int) -> str:
    (folder / name).write_bytes(data)
    return read(ReadFileArguments(path=name, **wanted), folder)


EXPECTED = {
    "a.pdf": (
        "[Page 1 of 3]\nLine of page 1, Größe\n[Page 2 of 3]\nLine of page 2, Größe\n"
        "[Page 3 of 3]\n(no text on this page: a picture or a scan)\n"
    ),
    "a.docx": (
        f"# A report\n{WORDS}\n[Table]\nName | Price\nApple | 1.5\nBrötchen | 0.35\n\n"
        "After the table\n"
    ),
    "a.xlsx": (
        "[Sheet Prices]\n1: Name | Price\n2: Apple | 1.5\n3: Brötchen | 0.35\n5:  | =SUM(B2:B3)\n"
        f"[Sheet Words]\n3:  |  | {WORDS}\n"
    ),
    "a.pptx": (
        f"[Slide 1 of 2]\nSlide title 1\n{WORDS}\nNotes: Say 1\n[Slide 2 of 2]\nSlide title 2\n"
        f"{WORDS}\nName | Price\nApple | 1.5\nBrötchen | 0.35\nNotes: Say 2\n"
    ),
    "a.odt": f"A heading\n{WORDS}\n",
    "a.epub": f"[Part 1]\nChapter 1\n{WORDS}\n[Part 2]\nChapter 2\nThe end\n",
    "a.rtf": "Größe and 42 apples\nSecond line\n",
    "a.eml": (
        "From: Änne <a@example.com>\nTo: b@example.com\nSubject: Größe\n\n"
        f"{WORDS}\n[Attached: bill.pdf, 3 bytes]\n"
    ),
}


@pytest.mark.pick("a kind of document", 4)
@pytest.mark.parametrize("name", MADE)
def test_each_kind_is_read_as_text(tmp_path: Path, name: str) -> None:
    assert text_of(tmp_path, name, MADE[name]()) == EXPECTED[name]


def test_the_lines_of_a_document_are_paged_as_those_of_a_file(tmp_path: Path) -> None:
    given = text_of(tmp_path, "a.pdf", documents.make_pdf(), offset=3, limit=1)
    assert given.startswith("[Page 2 of 3]\n") and "For more: offset=4" in given


def test_a_pdf_is_known_by_its_beginning_too(tmp_path: Path) -> None:
    assert "Line of page 1" in text_of(tmp_path, "invoice", documents.make_pdf())


@pytest.mark.parametrize("name", [name for name in MADE if name != "a.eml"])
def test_text_that_is_called_like_a_document_is_read_as_text(tmp_path: Path, name: str) -> None:
    note = f"[Its name ends in .{name[2:]}, but it is "
    assert text_of(tmp_path, name, b"just words") == f"just words\n{note}plain text.]"
    page = b" <!DOCTYPE html><p>words"
    assert text_of(tmp_path, name, page) == f"{page.decode()}\n{note}HTML.]"


@pytest.mark.pick("a document by another name", 2)
@pytest.mark.parametrize("name", [name for name in MADE if name != "a.eml"])
def test_a_document_is_known_by_what_it_is(tmp_path: Path, name: str) -> None:
    other = ".xlsx" if name != "a.xlsx" else ".pdf"
    given = text_of(tmp_path, f"b{other}", MADE[name]())
    head, rest = given.split("\n", 1)
    assert head.startswith(f"[Its name ends in {other}, but it is a") and rest == EXPECTED[name]
    assert text_of(tmp_path, "c", MADE[name]()) == EXPECTED[name]


def test_what_no_document_is_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"is a ZIP archive of 7 files \(0, 1, 2, 3, 4, …\)"):
        text_of(tmp_path, "a.docx", documents.pack({str(n): "" for n in range(7)}))
    assert "binary (PNG image, " in text_of(tmp_path, "a.pdf", b"\x89PNG\r\n\x1a\n\0\0")


def test_a_scan_is_told_as_one(tmp_path: Path) -> None:
    assert "it is a scan, or pictures" in text_of(tmp_path, "a.pdf", documents.make_scan())


@pytest.mark.parametrize("name", documents.LOCKED)
def test_one_with_a_password_is_told_as_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolFailed, match="it is locked with a password. Ask for a copy without"):
        text_of(tmp_path, name, documents.LOCKED[name]())


@pytest.mark.parametrize(
    ("stream", "what"), [("WordDocument", "a Word file as before 2007"), ("Odd", "OLE container")]
)
def test_an_office_file_of_old_is_told_as_one(tmp_path: Path, stream: str, what: str) -> None:
    with pytest.raises(ToolFailed, match=what):
        text_of(tmp_path, "a.docx", documents.make_ole(stream))


def test_a_document_of_like_lines_is_no_bomb(tmp_path: Path) -> None:
    data = documents.make_odt(("the same again",) * 50_000)
    assert len(data) < 20_000 and "the same again" in text_of(tmp_path, "a.odt", data)


@pytest.mark.parametrize("charset", ["utf-8", "no-such-set"])
@pytest.mark.parametrize("html", [False, True])
def test_mail_in_any_character_set(tmp_path: Path, charset: str, html: bool) -> None:
    given = text_of(tmp_path, "a.eml", documents.make_eml(html=html, charset=charset))
    assert "42 apples" in given and "no()" not in given and "bill.pdf" in given


def test_of_a_letter_with_many_parts_the_first_are_listed() -> None:
    attached = "".join(
        f"Content-Type: a/b; name=f{n}.pdf\nContent-Disposition: attachment\n\nabc\n--b\n"
        for n in range(900)
    )
    head = "Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nthe words\n--b\n"
    lines = list(mail.read(io.BytesIO((head + attached).encode())))
    listed = [line for line in lines if line.startswith("[Attached: f")]
    assert "the words" in lines and listed[0] == "[Attached: f0.pdf, 3 bytes]"
    assert len(listed) == mail.MAX_PARTS - 1
    assert lines[-1].startswith("[60") and lines[-1].endswith(" more parts are not listed.]")


ODD_HEADERS = [
    *(f"To: {one}" for one in ("a@", ":;", "a@[", "<>", "[", "(" * 3_000, "a:b@c;" * 3_000)),
    *(f"From: {one * 20_000}" for one in ('"', ",", "a@b, ", "<", "=?utf-8?q?a?= ")),
    "Date: Mon, 01 Jan 99999999999999999999 00:00:00 +0000",
    f"Subject: {'a ' * 50_000}",
    *(f"Content-Type: {one}" for one in (";", "text", '"' * 20_000, "(" * 3_000)),
    *(f"Content-Disposition: {one}" for one in (";", "a; filename*=x'", "(" * 3_000)),
    "Content-Transfer-Encoding: ;;",
    *(
        f"Content-Type: text/plain; charset={one}"
        for one in ("idna", "undefined", '"a\0b"', "\xff")
    ),
    "Content-Type: text/plain; charset=punycode",
]


@pytest.mark.parametrize("head", ODD_HEADERS, ids=lambda head: head[:40])
def test_an_odd_header_costs_neither_the_words_nor_time(head: str) -> None:
    letter = f"{head}\nReply-To: me\n\nthe words\xff".encode("latin-1")
    began = time.process_time()
    assert "the words" in "\n".join(mail.read(io.BytesIO(letter)))
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Content-Type: message/rfc822\n\nSubject: Inner\n\nthe words", "Subject: Inner\n\nthe w"),
        ("Content-Type: text/calendar; name=a.ics\n\nBEGIN", "[Attached: a.ics, 5 bytes]"),
        ('Content-Type: x/y; name="a\u202eb.pdf"\n\nab', "[Attached: a\\u202Eb.pdf, 2 bytes]"),
        ("Content-Type: text/html\n\n ", "[Attached: "),
    ],
)
def test_all_parts_of_a_letter_are_read_or_told(content: str, told: str) -> None:
    part = f"{content}\n--b\n" if "html" not in content else f"{content}\n--b\n{content}\n--b\n"
    whole = f"Subject: s\n{content}".encode()
    parts = f"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n{part}".encode()
    assert told in "\n".join(mail.read(io.BytesIO(parts)))
    assert told in "\n".join(mail.read(io.BytesIO(whole))) or "html" in content


# ---- what is made to break its reader -------------------------------------------------------

HOSTILE: dict[str, Callable[[], bytes]] = {
    "bomb.docx": documents.make_bomb,
    "bomb.xlsx": documents.make_bomb,
    "bomb.pptx": documents.make_bomb,
    "bomb.epub": documents.make_bomb,
    "entities.odt": documents.make_entity_bomb,
}


@pytest.mark.pick("a bomb", 2)
@pytest.mark.parametrize("name", HOSTILE)
def test_bombs_are_refused_and_cost_little(tmp_path: Path, name: str) -> None:
    data = HOSTILE[name]()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(ToolFailed, match="cannot be read"):
        text_of(tmp_path, name, data)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.0


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.docx", documents.make_docx()[:-50], "it is no Word document, or it is damaged."),
        ("a.xlsx", documents.make_xlsx()[:-50], "it is no Excel workbook, or it is damaged."),
        (
            "a.pptx",
            documents.make_pptx()[:-50],
            "it is no PowerPoint presentation, or it is damaged.",
        ),
        ("a.odt", documents.make_odt()[:-50], "it is no OpenDocument text, or it is damaged."),
        ("a.epub", documents.make_epub()[:-50], "it is no EPUB, or it is damaged."),
        ("a", documents.make_epub()[:-50], "it is a ZIP archive that is damaged."),
        ("a.pdf", b"%PDF-1.7 and nothing more", "it is damaged."),
        (
            "a.docx",
            documents.make_bomb(),
            "it has 29 KB and would unpack to 30 MB in 1 files, which may be meant to do harm. It "
            "was not opened.",
        ),
    ],
)
def test_a_refusal_says_why(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        text_of(tmp_path, name, data)
    assert str(caught.value) == f"{name} cannot be read: {why}"


def test_a_sheet_with_a_cell_far_below_ends_in_time(tmp_path: Path) -> None:
    given = text_of(tmp_path, "a.xlsx", documents.make_xlsx(last_row=1_048_576))
    assert "2: Apple | 1.5" in given
    assert "far away" in given or limits.CUT in given


def test_what_was_filled_into_a_form_is_read(tmp_path: Path) -> None:
    given = text_of(tmp_path, "a.pdf", documents.make_filled_form())
    assert all(words in given for words in ("Name:", "Ann Smith", "Rome", "urgent"))


def test_the_values_of_a_chart_are_read(tmp_path: Path) -> None:
    given = text_of(tmp_path, "a.pptx", documents.make_chart())
    assert "[Chart] Sales\n | North | South\n2025 | 1.5 | 2\n2026 |  | 3\n" in given


@pytest.mark.parametrize("size", ["A1", "A1:A1", "A2:B2", "B9:A1", "", "A1:XFD1048576", None])
def test_all_cells_are_read_whatever_size_a_sheet_claims(tmp_path: Path, size: str | None) -> None:
    """Programs that write sheets row by row do not know it when they begin."""
    claims = "" if size is None else f'<dimension ref="{size}"/>'
    data = documents.edit_member(
        documents.make_xlsx(),
        "xl/worksheets/sheet1.xml",
        lambda text: re.sub(r"<dimension [^>]*/>", claims, text),
    )
    assert text_of(tmp_path, "a.xlsx", data) == EXPECTED["a.xlsx"]


def paragraph(*inner: str) -> str:
    return f"<w:p>{''.join(inner)}</w:p>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def cells(*texts: str) -> str:
    return "".join(f"<w:tc>{paragraph(run(text))}</w:tc>" for text in texts)


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
CHOICE = "http://schemas.openxmlformats.org/markup-compatibility/2006"
HELD = "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>"
BOX = "<w:r><w:pict><w:box><w:txbxContent>{}</w:txbxContent></w:box></w:pict></w:r>"
PLACES = {
    "content control": (HELD.format(paragraph(run("in it"))), "in it"),
    "control in a line": (paragraph(run("a "), HELD.format(run("name"))), "a name"),
    "control around a table": (HELD.format(f"<w:tbl><w:tr>{cells('x')}</w:tr></w:tbl>"), "x"),
    "control around a row": (
        f"<w:tbl><w:tr>{cells('x')}</w:tr>{HELD.format(f'<w:tr>{cells(chr(121))}</w:tr>')}"
        "</w:tbl>",
        "x\ny",
    ),
    "control around a cell": (
        f"<w:tbl><w:tr>{cells('x')}{HELD.format(cells('y'))}</w:tr></w:tbl>",
        "x | y",
    ),
    "tracked changes": (
        paragraph(
            run("It costs "),
            "<w:del><w:r><w:delText>5</w:delText></w:r></w:del>",
            f"<w:ins>{run('7')}</w:ins>",
            f"<w:moveFrom>{run(' then')}</w:moveFrom>",
            f"<w:moveTo>{run(' now')}</w:moveTo>",
        ),
        "It costs 7 now",
    ),
    "smart tag": (paragraph(f"<w:smartTag>{run('Berlin')}</w:smartTag>"), "Berlin"),
    "field": (paragraph(run("of "), f"<w:fldSimple>{run('May')}</w:fldSimple>"), "of May"),
    "formula": (paragraph(f'<m:oMath xmlns:m="{MATH}"><m:r><m:t>x=1</m:t></m:r></m:oMath>'), "x=1"),
    "text box": (paragraph(run("by"), BOX.format(paragraph(run("in a box")))), "by\nin a box"),
    "drawing of two forms": (
        f'<w:p><c:AlternateContent xmlns:c="{CHOICE}"><c:Choice>{BOX.format(paragraph(run("once")))}'
        f'</c:Choice><c:Fallback>{BOX.format(paragraph(run("once")))}</c:Fallback>'
        "</c:AlternateContent></w:p>",
        "once",
    ),
    "drawing whose first form has no words": (
        f'<w:p><c:AlternateContent xmlns:c="{CHOICE}"><c:Choice><w:r/></c:Choice>'
        f'<c:Fallback>{BOX.format(paragraph(run("once")))}</c:Fallback></c:AlternateContent></w:p>',
        "once",
    ),
    "block of two forms": (
        f'<c:AlternateContent xmlns:c="{CHOICE}"><c:Fallback>{paragraph(run("once"))}</c:Fallback>'
        "</c:AlternateContent>",
        "once",
    ),
    "table in a cell": (
        f"<w:tbl><w:tr>{cells('x')}<w:tc><w:tbl><w:tr>{cells('y', 'z')}</w:tr></w:tbl></w:tc></w:tr>"
        "</w:tbl>",
        "x | y, z",
    ),
}  # fmt: skip
"""By what Word calls it: XML with text at such a place, and how it is read."""


@pytest.mark.parametrize("place", PLACES)
def test_the_words_of_a_letter_are_read_wherever_they_stand(tmp_path: Path, place: str) -> None:
    inner, read_as = PLACES[place]
    data = documents.edit_member(
        documents.make_docx(),
        "word/document.xml",
        lambda text: text.replace("<w:body>", f"<w:body>{inner}", 1),
    )
    table = inner.startswith("<w:tbl") or "around a table" in place
    lines = f"[Table]\n{read_as}\n\n" if table else f"{read_as}\n"
    assert text_of(tmp_path, "a.docx", data) == lines + EXPECTED["a.docx"]


@pytest.mark.parametrize("columns", [101, 10**9, 10**40])
def test_a_cell_is_repeated_over_a_hundred_columns_at_most(tmp_path: Path, columns: int) -> None:
    cell = f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr><w:p><w:r><w:t>wide</w:t></w:r></w:p></w:tc>'
    data = documents.edit_member(
        documents.make_docx(),
        "word/document.xml",
        lambda text: text.replace("<w:body>", f"<w:body><w:tbl><w:tr>{cell}</w:tr></w:tbl>", 1),
    )
    assert text_of(tmp_path, "a.docx", data).count("wide") in {1, 100}


DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
POINTS = "".join(
    f"<d:pt><d:t><a:bodyPr/><a:p><a:r><a:t>{one}</a:t></a:r></a:p></d:t></d:pt>"
    for one in ("Plan", "Build")
)
MODEL = f'<d:dataModel xmlns:d="{DIAGRAM}" xmlns:a="{DRAWING}"><d:ptLst>{POINTS}</d:ptLst></d:dataModel>'
HOLDS = (
    f'<a:graphic xmlns:a="{DRAWING}"><a:graphicData uri="{DIAGRAM}"><d:relIds xmlns:d="{DIAGRAM}" '
    f'xmlns:r="{LINKS}" r:dm="rId77"/></a:graphicData></a:graphic>'
)
LINK = f'<Relationship Id="rId77" Type="{LINKS}/diagramData" Target="../diagrams/data1.xml"/>'
FRAME = (
    '<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="9" name="x"/><p:cNvGraphicFramePr/><p:nvPr/>'
    f"</p:nvGraphicFramePr><p:xfrm/>{HOLDS}</p:graphicFrame>"
)
SHAPE = (
    '<p:sp><p:nvSpPr><p:cNvPr id="8" name="x"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody>'
    f'<a:bodyPr xmlns:a="{DRAWING}"/><a:p xmlns:a="{DRAWING}">{{}}</a:p></p:txBody></p:sp>'
)
FORMULA = (
    '<m14:m xmlns:m14="http://schemas.microsoft.com/office/drawing/2010/main">'
    f'<m:oMath xmlns:m="{MATH}"><m:r><m:t>x=1</m:t></m:r></m:oMath></m14:m>'
)
FORMS = f'<c:AlternateContent xmlns:c="{CHOICE}"><c:Choice>{{}}</c:Choice><c:Fallback>{{}}</c:Fallback></c:AlternateContent>'
SHOWN = {
    "a diagram": (FRAME, ["Plan", "Build"]),
    "a diagram in a form": (FORMS.format(FRAME, ""), ["Plan", "Build"]),
    "two forms": (FORMS.format(SHAPE.format("<a:r><a:t>new</a:t></a:r>"), SHAPE.format("<a:r><a:t>old</a:t></a:r>")), ["new"]),
    "a second form": (FORMS.format("<p:cxnSp/>", SHAPE.format("<a:r><a:t>old</a:t></a:r>")), ["old"]),
    "a formula": (FORMS.format(SHAPE.format(FORMULA), ""), ["x=1"]),
}  # fmt: skip
"""By what PowerPoint calls it: XML on a slide, and the lines that are read."""


@pytest.mark.parametrize("place", SHOWN)
def test_the_words_of_a_slide_are_read_wherever_they_stand(tmp_path: Path, place: str) -> None:
    inner, lines = SHOWN[place]
    data = add_diagram(
        documents.make_pptx(), "ppt/slides/slide1.xml", "ppt/slides/_rels/slide1.xml.rels"
    )
    data = documents.edit_member(
        data,
        "ppt/slides/slide1.xml",
        lambda text: text.replace("</p:spTree>", f"{inner}</p:spTree>"),
    )
    given = text_of(tmp_path, "a.pptx", data).splitlines()
    second = given.index(next(one for one in given if one.startswith("[Slide 2")))
    assert [one for one in given[:second] if one in (*lines, "old")] == lines
    assert "damaged" not in str(given)


def test_the_words_of_a_letters_diagram_are_read(tmp_path: Path) -> None:
    data = add_diagram(documents.make_docx(), "word/document.xml", "word/_rels/document.xml.rels")
    inner = f"<w:p><w:r><w:drawing>{HOLDS}</w:drawing></w:r></w:p>"
    data = documents.edit_member(
        data, "word/document.xml", lambda text: text.replace("<w:body>", f"<w:body>{inner}", 1)
    )
    assert text_of(tmp_path, "a.docx", data) == "Plan\nBuild\n" + EXPECTED["a.docx"]
    gone = documents.spoil_member(data, f"{'word'}/diagrams/data1.xml", b"<a")
    assert text_of(tmp_path, "a.docx", gone) == EXPECTED["a.docx"]


def add_diagram(data: bytes, member: str, links: str) -> bytes:
    """A document with the data of a diagram, which `member` may name as rId77."""
    folder = member.split("/")[0]
    target = "../diagrams" if member.count("/") > 1 else "diagrams"
    link = LINK.replace("../diagrams", target)
    data = documents.edit_member(
        data, links, lambda text: text.replace("</Relationships>", f"{link}</Relationships>")
    )
    kind = "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml"
    part = f'<Override PartName="/{folder}/diagrams/data1.xml" ContentType="{kind}"/>'
    data = documents.edit_member(
        data, "[Content_Types].xml", lambda text: text.replace("</Types>", f"{part}</Types>")
    )
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(f"{folder}/diagrams/data1.xml", MODEL)
    return file.getvalue()


@pytest.mark.pick("a damaged document", 2)
@pytest.mark.parametrize("name", MADE)
def test_damaged_documents_are_refused_or_read_and_break_nothing(tmp_path: Path, name: str) -> None:
    whole, luck = MADE[name](), random.Random(f"{SEED}{name}")
    for n in range(3):
        data = bytearray(whole)
        if n == 0:
            data = data[: luck.randrange(8, len(data))]
        for _ in range(n * 40):
            data[luck.randrange(8, len(data))] = luck.randrange(256)
        try:
            assert isinstance(text_of(tmp_path, name, bytes(data)), str)
        except ToolFailed as failed:
            assert "cannot be read" in str(failed) and "Traceback" not in str(failed)


CUT_SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b'<dimension ref="A1:B2"/><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row'
)
SPOILT: dict[str, tuple[str, bytes | None, str]] = {
    "a.pptx": ("ppt/slides/slide2.xml", b"<a/>", "Notes: Say 1"),
    "b.pptx": ("ppt/notesSlides/notesSlide2.xml", b"<a/>", "Apple | 1.5"),
    "a.xlsx": ("xl/worksheets/sheet2.xml", CUT_SHEET, "2: Apple | 1.5"),
    "a.epub": ("OPS/two b.xhtml", None, "Chapter 1"),
}
"""By name: the member that is spoilt, its content, and words from before the damage."""


@pytest.mark.parametrize("name", SPOILT)
def test_the_words_before_the_damage_are_read(tmp_path: Path, name: str) -> None:
    member, content, words = SPOILT[name]
    data = documents.spoil_member(MADE[f"a{name[1:]}"](), member, content)
    given = text_of(tmp_path, name, data)
    assert words in given and re.search(r"\[The rest of .* is damaged\.\]\n$", given)


HOLD_TEXT = re.compile(
    r"word/document.xml|xl/worksheets/.*|xl/sharedStrings.xml|ppt/slides/.*xml|ppt/notesSlides/.*xml|content.xml|.*xhtml"
)
"""Matches the parts with text. That of an e-book names its pages, in no other order."""
DAMAGES: dict[str, Callable[[bytes, str], bytes]] = {
    "cut": lambda data, name: documents.spoil_member(data, name, b"<a><\0&"),
    "empty": lambda data, name: documents.spoil_member(data, name, b""),
    "wrong": documents.spoil_member,
    "missing": documents.remove_member,
}


@pytest.mark.pick("a damaged part", 4)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.odt", "a.epub"])
def test_damage_of_other_parts_costs_no_words(tmp_path: Path, name: str, damage: str) -> None:
    """Such as a broken `docProps/core.xml`."""
    whole, luck = MADE[name](), random.Random(f"{SEED}{name}{damage}")
    others = [one for one in documents.list_members(whole) if not HOLD_TEXT.fullmatch(one)]
    for member in luck.sample(others, min(3, len(others))):
        given = text_of(tmp_path, name, DAMAGES[damage](whole, member))
        if damage == "missing" and member.startswith("ppt/slides/_rels/"):
            continue  # a slide without it has no notes
        lines = [one for one in EXPECTED[name].splitlines() if not one.startswith("[")]
        words = [one.lstrip("# ").removeprefix("Notes: ") for one in lines]
        assert [one for one in words if one not in given] == [], member
        assert (
            given == EXPECTED[name]
            or "Parts of this document are damaged" in given
            or (damage == "missing")
        )


def test_a_book_that_lists_no_pages_is_read(tmp_path: Path) -> None:
    data = documents.spoil_member(documents.make_epub(), "OPS/book.opf", b"<package/>")
    given = text_of(tmp_path, "a.epub", data)
    assert WORDS in given and "The end" in given


def test_a_damaged_part_costs_no_other_part(tmp_path: Path) -> None:
    for name, member, words in (
        ("a.xlsx", "xl/worksheets/sheet1.xml", WORDS),
        ("a.pptx", "ppt/slides/slide1.xml", "Apple | 1.5"),
        ("a.epub", "OPS/one.xhtml", "The end"),
    ):
        for damage in (b"", b"<a", None):
            data = documents.spoil_member(MADE[name](), member, damage)
            assert words in text_of(tmp_path, name, data)


@pytest.mark.parametrize(
    ("error", "begun", "kept"),
    [
        (KeyError("a"), True, True),
        (KeyError("a"), False, False),
        *((one, True, False) for one in (Refused("a bomb"), MemoryError(), ImportError("a"))),
    ],
    ids=str,
)
def test_only_damage_leaves_what_was_read_before(error: Exception, begun: bool, kept: bool) -> None:
    """A bomb is refused whole, however much of it came first."""

    def read_some() -> Iterator[str | None]:
        yield None
        yield from ("words",) * begun
        raise error

    if kept:
        assert list(stop_at_damage(read_some(), limits.DAMAGED, from_start=False)) == [
            None,
            "words",
            limits.DAMAGED,
        ]
        return
    with pytest.raises(type(error)):
        list(stop_at_damage(read_some(), limits.DAMAGED, from_start=False))


def test_one_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WALL", 0.01)
    began = time.monotonic()
    with pytest.raises(ToolFailed, match="takes too long"):
        text_of(tmp_path, "a.docx", documents.make_docx())
    assert time.monotonic() - began < 10


def test_one_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.pdf").open("wb") as file:
        file.write(b"%PDF-1.7")
        file.truncate(limits.MAX_BYTES + 1)
    with pytest.raises(ToolFailed, match="larger than 100 MB"):
        read(ReadFileArguments(path="a.pdf"), tmp_path)


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "find_spec", lambda name: None)
    with pytest.raises(ToolFailed, match=r"turnkeeper\[documents\]"):
        text_of(tmp_path, "a.pdf", documents.make_pdf())
    assert "A heading" in text_of(tmp_path, "a.odt", documents.make_odt())


def test_the_program_may_write_no_file_and_gets_no_secrets() -> None:
    script = (
        "import resource, os, sys; sys.argv = ['child', 'rtf']; sys.stdin = open('/dev/null');"
        "from agent_core.documents import child; child.main();"
        "print(resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_AS)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-3:] == ["(0,", "0)", str(limits.MEMORY)]


def test_every_kind_has_a_reader() -> None:
    from agent_core.documents.child import READERS

    assert set(READERS) == set(KINDS)
    for name in READERS.values():
        assert find_spec(f"agent_core.documents.formats.{name}") is not None
    assert find_kind("x.py", b"x = '%PDF-'") is None
