"""Documents that other programs made are read: their words, their tables, their parts in order."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent_core.tools.files import ReadFileArguments, read

FOLDER = Path(__file__).parent.parent / "fixtures" / "documents"
FILES = sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".md")
PROSE = ("Quarterly report", "Größe and naïve quotes: 42 apples", "Second part, last words.")
ROWS = (("Name", "Price"), ("Apple", "1.50"), ("Brötchen", "0.35"))
PLAIN = {
    "tablib.csv": ",", "excel.csv": ";", "unix.csv": '","', "tab.csv": "\t",
}  # fmt: skip
PARTS = {
    "pdf": ("[Page 1 of 2]", "[Page 2 of 2]"),
    "pptx": ("[Slide 1 of ", "[Slide 2 of "),
    "epub": ("[Part 1]", "[Part 2]"),
}


@cache
def text_of(name: str) -> str:
    """All of it, page by page."""
    text = read(ReadFileArguments(path=name), FOLDER)
    while found := re.search(r"\n\[Lines .* For more: offset=(\d+), and limit\.\]$", text):
        more = read(ReadFileArguments(path=name, offset=int(found[1])), FOLDER)
        text = text[: found.start()] + more
    return text


def find_in_order(text: str, *pieces: str) -> None:
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        assert found >= 0, f"{piece!r} is not behind character {at} of:\n{text}"
        at = found + len(piece)


def of_kinds(*kinds: str) -> list[str]:
    return [name for name in FILES if name.rpartition(".")[2] in kinds]


def test_there_are_fifty_five_of_ten_kinds() -> None:
    assert len(FILES) == 55 and len({name.rpartition(".")[2] for name in FILES}) == 10
    assert all(find_spec(name) for name in ("pypdfium2", "docx", "openpyxl", "pptx", "striprtf"))


@pytest.mark.pick("words of a foreign document", 10)
@pytest.mark.parametrize("name", of_kinds("pdf", "docx", "pptx", "odt", "epub", "rtf"))
def test_words_and_rows_of_tables_come_in_order(name: str) -> None:
    text = text_of(name)
    apart = " " if name.endswith("pdf") else " | "
    rows = [apart.join(row) for row in ROWS]
    first = PROSE[:2] if name != "epub-gen.epub" else PROSE[1:2]  # it writes the title elsewhere
    find_in_order(text, *first, *rows, PROSE[2])
    assert all(row in map(str.strip, text.splitlines()) for row in rows), text
    if name != "libreoffice.epub":  # all of it is one part
        find_in_order(text, *PARTS.get(name.rpartition(".")[2], ()))


@pytest.mark.pick("pages of a foreign document", 5)
@pytest.mark.parametrize("name", of_kinds("pdf", "pptx"))
def test_what_stands_on_another_page_is_told_as_such(name: str) -> None:
    *_, last = re.split(r"^\[(?:Page|Slide) \d+ of \d+\]$", text_of(name), flags=re.MULTILINE)
    assert PROSE[2] in last and ROWS[2][0] not in last


@pytest.mark.parametrize("name", of_kinds("xlsx"))
def test_sheets_have_their_names_and_rows(name: str) -> None:
    text = text_of(name)
    rows = ("1: Name | Price", "2: Apple | 1.5", "3: Brötchen | 0.35")
    find_in_order(text, "[Sheet Prices]", *rows, "[Sheet Words]", f"1: {PROSE[1]}")
    assert ("4:  | 1.85" in text) == (name != "pyexcelerate.xlsx"), "the sum, where there is one"


@pytest.mark.parametrize("name", of_kinds("eml"))
def test_letters_have_head_words_and_attachments(name: str) -> None:
    text = text_of(name)
    subject = "Subject: Quarterly report: Größe"
    find_in_order(text, "From: ", "a@example.com", "To: b@example.com")
    find_in_order(text, subject, "\n\n", *PROSE[1:])
    attached = {
        "nodemailer.eml": "[Attached: Preise.csv",
        "mime-parts.eml": "[Attached: prices.bin",
    }
    assert attached.get(name, "") in text and "<p>" not in text


@pytest.mark.parametrize("name", of_kinds("html", "csv"))
def test_what_is_text_is_shown_as_it_is(name: str) -> None:
    text = text_of(name)
    assert not text.startswith("\ufeff") and "binary" not in text
    if name in PLAIN:
        find_in_order(text, *(PLAIN[name].join(row) for row in ROWS))
    else:
        find_in_order(text, PROSE[1], "Brötchen", PROSE[2])
