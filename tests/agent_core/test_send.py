"""The tool send_file: what is given is kept, whatever becomes of the file, and contains no secret."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.errors import ToolFailed
from agent_core.guardrails.file_redaction import PIECE, FileRedactor, read_pieces
from agent_core.guardrails.redaction import Redactions
from agent_core.guardrails.secret_spellings import spell_secret
from agent_core.messages import ToolOutput
from agent_core.tools.contract import ToolContext
from agent_core.tools.send import MAX_BYTES, FileStore, SendFileArguments, send_tool

KEY = "sword-fish/under+the bridge"
WORDS = Redactions({form: "[KEY]" for form in spell_secret(KEY)})


def context(workspace: Path) -> ToolContext:
    return ToolContext(workspace=workspace, key="k", limit=5.0, output=lambda _: None)


async def give(tmp_path: Path, *paths: str, caption: str = "") -> ToolOutput:
    tool = send_tool(FileStore(tmp_path / "outputs", lambda: WORDS))
    gave = await tool.call(
        SendFileArguments(paths=list(paths), caption=caption), context(tmp_path / "w")
    )
    assert isinstance(gave, ToolOutput)
    return gave


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


async def test_a_copy_stays_what_it_was(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a b.png").write_bytes(b"\x89PNG first")
    gave = await give(tmp_path, "a b.png", "a b.png", caption="look")
    (workspace / "a b.png").write_bytes(b"second")
    (file,) = gave.files
    assert (file.name, file.mime, file.size) == ("a b.png", "image/png", 10)
    assert (tmp_path / "outputs" / file.ref).read_bytes() == b"\x89PNG first"
    assert gave.caption == "look" and "a b.png" in gave.text
    assert (await give(tmp_path, "a b.png")).files[0].ref != file.ref


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "missing", ".", "link"])
async def test_nothing_outside_is_given(tmp_path: Path, workspace: Path, path: str) -> None:
    (tmp_path / "secret").write_text("s")
    (workspace / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ToolFailed):
        await give(tmp_path, path)
    assert not list((tmp_path / "outputs").glob("??/*"))


async def test_too_large(tmp_path: Path, workspace: Path) -> None:
    with (workspace / "big").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ToolFailed, match="50 MB"):
        await give(tmp_path, "big")


async def test_old_copies_are_forgotten(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a").write_text("a")
    gave = await give(tmp_path, "a")
    kept, copy = FileStore(tmp_path / "outputs"), tmp_path / "outputs" / gave.files[0].ref
    made = copy.stat().st_mtime
    assert kept.forget(made - 1) == 0 and copy.exists()
    assert kept.forget(made + 1) == 1 and not copy.exists()


async def test_names_stand_in_a_text_in_place_of_secrets(tmp_path: Path, workspace: Path) -> None:
    for form in spell_secret(KEY):
        early, late = "ä" * (PIECE // 2 - 5), "\n" * 99
        (workspace / "a.csv").write_text(f"{early}{form}{late};{form}\n")
        gave = await give(tmp_path, "a.csv")
        kept = (tmp_path / "outputs" / gave.files[0].ref).read_text()
        assert kept == f"{early}[KEY]{late};[KEY]\n" and gave.files[0].size == len(kept.encode())
        assert "names stand in it" in gave.text


def pack(text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as one:
        one.writestr("a.txt", "nothing " * 9)
        one.writestr("word/document.xml", f"<w:t>{text}</w:t>" * 9)
    return packed.getvalue()


BINARY = {
    "bytes": lambda text: b"\0\xff" + text.encode(),
    "latin": lambda text: "Grüße ".encode("latin-1") + text.encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "utf-32": lambda text: text.encode("utf-32"),
    "zip": pack,
    "gzip": lambda text: gzip.compress((text * 9).encode()),
    "late": lambda text: b"\xff" + b"\0x" * PIECE + text.encode(),
}


@pytest.mark.parametrize("kind", BINARY)
async def test_what_is_no_text_is_not_sent_with_a_secret(
    tmp_path: Path, workspace: Path, kind: str
) -> None:
    (workspace / "a.bin").write_bytes(BINARY[kind](KEY))
    with pytest.raises(ToolFailed, match="a.bin contains the value of a secret"):
        await give(tmp_path, "a.bin")
    assert [one for one in (tmp_path / "outputs").rglob("*") if one.is_file()] == []
    harmless = BINARY[kind]("sword-fish under a bridge")
    (workspace / "a.bin").write_bytes(harmless)
    gave = await give(tmp_path, "a.bin")
    assert (tmp_path / "outputs" / gave.files[0].ref).read_bytes() == harmless


async def test_damaged_packed_files_are_sent(tmp_path: Path, workspace: Path) -> None:
    packed = (pack("x"), gzip.compress(bytes(999)))
    for n, data in enumerate((*packed, *(one[:-20] for one in packed), b"\x1f\x8b", b"PK\3\4")):
        (workspace / f"{n}.zip").write_bytes(data)
        gave = await give(tmp_path, f"{n}.zip")
        assert (tmp_path / "outputs" / gave.files[0].ref).read_bytes() == data


@given(st.binary(), st.integers(1, 9))
def test_other_bytes_stay_as_they_are(data: bytes, step: int) -> None:
    out: list[bytes] = []
    redactor = FileRedactor(WORDS, out.append)
    for at in range(0, len(data), step):
        redactor.add(data[at : at + step])
    redactor.add(b"")
    assert b"".join(out) == data and not redactor.is_changed
    assert b"".join(read_pieces(io.BytesIO(data))) == data
