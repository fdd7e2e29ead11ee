"""Documents of each kind, and such as are made to break whoever reads them."""

import io
import zipfile
from collections.abc import Callable, Sequence
from email.message import EmailMessage

WORDS = "Zufall und Größe: 42 apples — naïve 'quotes' & <tags>"
ROWS = (("Name", "Price"), ("Apple", 1.5), ("Brötchen", 0.35))


def make_pdf(pages: int = 3) -> bytes:
    """Pages with one line each; the last one shows nothing that is text."""
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    out = io.BytesIO()
    with PdfPages(out) as pdf:
        for n in range(1, pages + 1):
            figure = Figure()
            if n < pages:
                figure.text(0.1, 0.5, f"Line of page {n}, Größe")
            pdf.savefig(figure)
    return out.getvalue()


def make_docx(words: str = WORDS) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("A report", 1)
    document.add_paragraph(words)
    table = document.add_table(rows=0, cols=2)
    for row in ROWS:
        for cell, value in zip(table.add_row().cells, row, strict=True):
            cell.text = str(value)
    document.add_paragraph("After the table")
    return _save(document)


def make_xlsx(last_row: int = 0) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    for row in ROWS:
        sheet.append(row)
    sheet["B5"] = "=SUM(B2:B3)"
    book.create_sheet("Words")["C3"] = WORDS
    if last_row:
        sheet.cell(last_row, 1, "far away")
    return _save(book)


def make_pptx() -> bytes:
    import pptx

    deck = pptx.Presentation()
    for n in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = f"Slide title {n}"
        slide.placeholders[1].text = WORDS
        slide.notes_slide.notes_text_frame.text = f"Say {n}"
    table = slide.shapes.add_table(3, 2, 0, 0, 10**6, 10**6).table
    for r, row in enumerate(ROWS):
        for c, value in enumerate(row):
            table.cell(r, c).text = str(value)
    return _save(deck)


def make_chart() -> bytes:
    """A slide with a chart of two series."""
    import pptx
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    data, deck = CategoryChartData(), pptx.Presentation()
    data.categories = ["North", "South"]
    data.add_series("2025", (1.5, 2))
    data.add_series("2026", (None, 3))
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    made = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 9, 9, data)
    made.chart.chart_title.text_frame.text = "Sales"
    return _save(deck)


def make_odt(texts: Sequence[str] = ("A heading", WORDS)) -> bytes:
    body = "".join(f"<text:p>{_escape(text)}</text:p>" for text in texts)
    content = (
        '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text>'
        f"{body}</office:text></office:body></office:document-content>"
    )
    return pack({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def make_epub() -> bytes:
    page = (
        "<html><head><title>no</title></head><body><h1>Chapter {n}</h1><p>{words}</p></body></html>"
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest>'
        '<item id="b" href="two%20b.xhtml"/><item id="a" href="one.xhtml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    return pack(
        {
            "META-INF/container.xml": container,
            "OPS/book.opf": package,
            "OPS/one.xhtml": page.format(n=1, words=_escape(WORDS)),
            "OPS/two b.xhtml": page.format(n=2, words="The end"),
        }
    )


def make_rtf() -> bytes:
    return rb"{\rtf1\ansi {\b Gr\'f6\'dfe} and 42 apples\par Second line}"


def make_eml(html: bool = False, charset: str = "utf-8") -> bytes:
    message = EmailMessage()
    message["From"], message["To"] = "Änne <a@example.com>", "b@example.com"
    message["Subject"] = "Größe"
    if html:
        message.set_content(f"<p>{_escape(WORDS)}</p><script>no()</script>", subtype="html")
    else:
        message.set_content(WORDS)
    message.add_attachment(b"abc", maintype="application", subtype="pdf", filename="bill.pdf")
    return bytes(message).replace(b'charset="utf-8"', f'charset="{charset}"'.encode())


def pack(members: dict[str, str | bytes]) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def spoil_member(data: bytes, name: str, content: bytes | None = None) -> bytes:
    """The archive with other content in a member; without `content` some of its bytes are wrong."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if content is not None:
            there = {one: archive.read(one) for one in archive.namelist()}
            return pack({**there, name: content})
        info = archive.getinfo(name)
    begin = info.header_offset + 30 + len(info.filename.encode())
    return data[:begin] + bytes(info.compress_size) + data[begin + info.compress_size :]


def edit_member(data: bytes, name: str, edit: Callable[[str], str]) -> bytes:
    """The archive with the text of a member as `edit` makes it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return spoil_member(data, name, edit(archive.read(name).decode()).encode())


def list_members(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.namelist()


def remove_member(data: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return pack({one: archive.read(one) for one in archive.namelist() if one != name})


def make_bomb(megabytes: int = 30) -> bytes:
    """An archive that unpacks to so much."""
    return pack({"word/document.xml": bytes(megabytes << 20)})


def make_entity_bomb() -> bytes:
    """A text whose entities would make it grow without end."""
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "boom"}">' for n in range(12))
    return pack({"content.xml": f"<!DOCTYPE x [{entities}]><x><p>&e11;</p></x>"})


def _save(document: object) -> bytes:
    out = io.BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


# ---- locked, and of old ---------------------------------------------------------------------


def make_ole(stream: str) -> bytes:
    """An OLE container, as far as it is looked at."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + stream.encode("utf-16-le")


def make_locked_pdf() -> bytes:
    """No password fits."""
    lock = b"<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>" % (b"ab" * 32, b"cd" * 32)
    return _join_pdf(b"/Encrypt 3 0 R/ID[<00><00>]", lock)


def make_filled_form() -> bytes:
    """A form of one page: a field as a program draws it, one that none has drawn, and a note."""
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(%s)/V(%s)/Rect[80 %d 200 %d]/DA(/F 12 Tf)/F 4%s>>"
    )
    drawn = b"/Tx BMC BT /F 12 Tf 2 5 Td (Ann Smith) Tj ET EMC"
    look = b"/Type/XObject/Subtype/Form/BBox[0 0 120 20]/Resources<</Font<</F 5 0 R>>>>"
    return _join_pdf(
        b"",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Annots[6 0 R 8 0 R 9 0 R]"
        b"/Resources<</Font<</F 5 0 R>>>>>>",
        _make_stream(b"BT /F 12 Tf 20 250 Td (Name:) Tj ET"),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        field % (b"name", b"Ann Smith", 240, 260, b"/AP<</N 7 0 R>>"),
        _make_stream(drawn, look),
        field % (b"town", b"Rome", 200, 220, b""),
        b"<</Type/Annot/Subtype/FreeText/Contents(urgent)/Rect[80 100 200 120]/DA(/F 12 Tf)/F 4>>",
        form=b"/AcroForm<</Fields[6 0 R 8 0 R]/DR<</Font<</F 5 0 R>>>>/DA(/F 12 Tf)>>",
    )


def _make_stream(data: bytes, about: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (about, len(data), data)


def make_scan() -> bytes:
    """A page that shows nothing that is text."""
    return _join_pdf(b"", b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>")


def _join_pdf(about: bytes, *more: bytes, form: bytes = b"") -> bytes:
    root, pages = b"<</Type/Catalog/Pages 2 0 R%s>>" % form, b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    objects, body, places = (root, pages, *more), b"%PDF-1.4\n", []
    for n, one in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (n, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer<</Size %d/Root 1 0 R%s>>" % (len(objects) + 1, about)
    end = b"startxref\n%d\n%%%%EOF" % len(body)
    return body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + trailer + end


def make_locked_odt() -> bytes:
    manifest = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    mime = "application/vnd.oasis.opendocument.text"
    return pack({"mimetype": mime, "content.xml": "\ufffd", "META-INF/manifest.xml": manifest})


def lock_zip(data: bytes) -> bytes:
    """With the mark of encryption on each of its files."""
    marked = bytearray(data)
    for magic, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = data.find(magic)
        while at >= 0:
            marked[at + place] |= 1
            at = data.find(magic, at + 4)
    return bytes(marked)


LOCKED: dict[str, Callable[[], bytes]] = {
    "a.pdf": make_locked_pdf,
    "a.xlsx": lambda: make_ole("EncryptedPackage"),
    "a.odt": make_locked_odt,
    "a.docx": lambda: lock_zip(make_docx()),
}
