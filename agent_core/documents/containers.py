"""Inspects ZIP archives and OLE containers."""

import zipfile
from typing import BinaryIO

from agent_core.documents.damage import ARCHIVE_FAULTS
from agent_core.documents.kinds import Kind
from agent_core.documents.limits import HARMLESS, MAX_MEMBERS, MAX_RATIO, MAX_UNPACKED
from agent_core.documents.refusal import LOCKED, Refused

_PARTS: dict[Kind, str] = {"docx": "word/", "xlsx": "xl/", "pptx": "ppt/"}
_NAMED_PARTS: dict[Kind, str] = {**_PARTS, "odt": "content.xml", "epub": "OPS/"}
_OPEN_DOCUMENT, _EPUB = b"application/vnd.oasis.opendocument.", b"application/epub"
_MANIFEST, _CONTAINER = "META-INF/manifest.xml", "META-INF/container.xml"
_SHOWN, _MAX_MIME, _MAX_MANIFEST = 5, 128, 1 << 20
_OLD: tuple[tuple[str, str], ...] = (
    ("WordDocument", "a Word file as before 2007 (DOC). Ask for it as DOCX, or convert it"),
    ("Workbook", "an Excel file as before 2007 (XLS). Ask for it as XLSX, or convert it"),
    ("PowerPoint Document", "a PowerPoint file as before 2007 (PPT). Ask for PPTX, or convert it"),
    ("__nameid_version1.0", "a message of Outlook (MSG). Ask for it as EML, or as a PDF"),
)
_CONVERT = " (LibreOffice: soffice --headless --convert-to)"


def open_archive(file: BinaryIO, named: Kind | None) -> Kind:
    """Return the kind of document in the archive; raises Refused. `named`: the kind by its name,
    for an archive too damaged to tell."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            _check_size(members)
            kind = _find_inside(archive) or _find_named(archive, named)
    except zipfile.BadZipFile as error:
        if named is None:
            raise Refused("it is a ZIP archive that is damaged.") from error
        return named  # its own reader reports the error
    if kind is not None:
        return kind
    names = [member.filename for member in members]
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    count = f"{len(names):,} file" + ("s" if len(names) != 1 else "")
    raise Refused(f"it is a ZIP archive of {count} ({shown}) and no document. Unpack it first.")


def _check_size(members: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive that unpacks to too much, by its own table, which is enforced when
    unpacking."""
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members) or 1
    swollen = size > HARMLESS and size > packed * MAX_RATIO
    if len(members) > MAX_MEMBERS or size > MAX_UNPACKED or swollen:
        raise Refused(
            f"it has {packed >> 10:,} KB and would unpack to {size >> 20:,} MB in {len(members):,} "
            "files, which may be meant to do harm. It was not opened."
        )


def _find_inside(archive: zipfile.ZipFile) -> Kind | None:
    if any(member.flag_bits & 1 for member in archive.infolist()):
        raise Refused(LOCKED)
    names = set(archive.namelist())
    mime = _read(archive, "mimetype", _MAX_MIME) if "mimetype" in names else b""
    if mime.startswith(_OPEN_DOCUMENT):
        if _MANIFEST in names and b":encryption-data" in _read(archive, _MANIFEST, _MAX_MANIFEST):
            raise Refused(LOCKED)
        return "odt"
    if mime.startswith(_EPUB) or _CONTAINER in names:
        return "epub"
    if "[Content_Types].xml" not in names:
        return None
    return next((kind for kind, part in _PARTS.items() if _holds(names, part)), None)


def _find_named(archive: zipfile.ZipFile, named: Kind | None) -> Kind | None:
    """The kind by the document's name, if it has its parts: what tells its kind may be damaged."""
    part = _NAMED_PARTS.get(named) if named is not None else None
    return named if part and _holds(set(archive.namelist()), part) else None


def _holds(names: set[str], part: str) -> bool:
    return any(name.startswith(part) for name in names)


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    try:
        with archive.open(name) as member:
            return member.read(most)
    except ARCHIVE_FAULTS:
        return b""


def explain_container(data: bytes) -> str:
    """Explain why an OLE container is not read, by the names of its streams."""
    if _names(data, "EncryptedPackage"):
        return LOCKED
    for name, told in _OLD:
        if _names(data, name):
            return f"it is {told}{_CONVERT if told.endswith('convert it') else ''}."
    return "it is an OLE container, and what is in it is not known here."


def _names(data: bytes, stream: str) -> bool:
    return stream.encode("utf-16-le") in data
