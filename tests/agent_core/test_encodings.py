"""Text files in other encodings than UTF-8: read in any tool, and written back as they were."""

import random
from pathlib import Path

import pytest

from agent_core.errors import ToolFailed
from agent_core.tools.editing.editor import Command, EditorArguments, edit, preview
from agent_core.tools.encodings import decode_text, find_encoding
from agent_core.tools.files import ReadFileArguments, WriteFileArguments, read, write

WRITTEN = [
    ("cp1252", "Name;Preis\nBrötchen;0,35 €\nÄpfel „süß“;1,50\n"),
    ("latin-1", "Nombre;Año\nMuñoz;1999\n¿Qué tal? ¡Olé!\n"),
    ("cp1252", "Prénom;Ville\nHélène;Besançon\n"),
    ("cp1250", "Imię;Miasto\nŁukasz;Łódź\nŻaneta;Częstochowa\n"),
    ("cp1251", "Имя;Город\nИван;Москва\nМария;Санкт-Петербург\n"),
    ("koi8-r", "Имя;Город\nИван;Москва\nВсе заказы отправлены в среду\n"),
    ("cp1253", "Όνομα;Πόλη\nΓιώργος;Αθήνα\nΜαρία;Θεσσαλονίκη\n"),
    ("cp932", "名前,都市\n太郎,東京\nすべての注文は水曜日に発送されました\n"),
    ("euc_jp", "名前,都市\n太郎,東京\nすべての注文は水曜日に発送されました\n"),
    ("gb18030", "姓名,城市\n张伟,北京\n所有订单均已于周三发出\n"),
    ("big5", "姓名,城市\n陳偉,台北\n所有訂單均已於週三發出\n"),
    ("cp949", "이름,도시\n김철수,서울\n모든 주문이 수요일에 발송되었습니다\n"),
    ("utf-16", "Größe;名前\n1;2\n"),
    ("utf-8-sig", "Größe;名前\n1;2\n"),
    ("utf-8", "Größe;名前 🦉\n"),
    ("ascii", "plain\n"),
]


def put(folder: Path, text: str, encoding: str) -> bytes:
    data = text.encode(encoding)
    (folder / "a.csv").write_bytes(data)
    return data


def change(command: Command, old: str | None, new: str, line: int | None = None) -> EditorArguments:
    return EditorArguments(
        command=command, path="a.csv", old_str=old, new_str=new, insert_line=line
    )


@pytest.mark.parametrize(("encoding", "text"), WRITTEN)
@pytest.mark.parametrize("times", [1, 400])
def test_what_is_written_is_read(tmp_path: Path, encoding: str, text: str, times: int) -> None:
    data = put(tmp_path, text * times, encoding)
    assert decode_text(data) == text * times
    shown = read(ReadFileArguments(path="a.csv", limit=2), tmp_path)
    assert shown.startswith("\n".join(text.split("\n")[:1])), shown
    told = encoding not in ("utf-8", "utf-8-sig", "ascii")
    assert ("[It is written in " in shown) == told


@pytest.mark.parametrize(("encoding", "text"), WRITTEN)
def test_an_edit_keeps_the_encoding(tmp_path: Path, encoding: str, text: str) -> None:
    data = put(tmp_path, text, encoding)
    first = text.split("\n")[0]
    wanted = change("str_replace", first, f"{first};more")
    assert f"+{first};more" in preview(wanted, tmp_path).replace("\ufeff", "")
    edit(wanted, tmp_path)
    after = (tmp_path / "a.csv").read_bytes()
    assert after.decode(encoding) == text.replace(first, f"{first};more", 1)
    edit(change("insert", None, "last", text.count("\n")), tmp_path)
    edit(change("str_replace", "last", ""), tmp_path)
    edit(change("str_replace", f"{first};more", first), tmp_path)
    assert (tmp_path / "a.csv").read_bytes()[: len(data)] == data


def test_what_the_encoding_has_no_sign_for_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    data = put(tmp_path, WRITTEN[0][1], "cp1252")
    with pytest.raises(ToolFailed, match="written in cp1252, which has no 名"):
        edit(change("str_replace", "Name", "名前"), tmp_path)
    assert (tmp_path / "a.csv").read_bytes() == data
    write(WriteFileArguments(path="a.csv", content="名前\n"), tmp_path)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "名前\n"


def test_a_sign_far_down_is_found(tmp_path: Path) -> None:
    put(tmp_path, "a;b\n" * 3_000 + "Brötchen\n", "cp1252")
    assert "Brötchen" in read(ReadFileArguments(path="a.csv", offset=3_000), tmp_path)


def test_a_few_damaged_bytes_leave_the_rest_readable(tmp_path: Path) -> None:
    data = "Größe 名前 Größe 名前\n".encode() * 9 + b"\xff\n"
    assert find_encoding(data) == "utf-8" and "名前" in decode_text(data)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_no_text_is_none(seed: int) -> None:
    chance = random.Random(seed)
    data = chance.randbytes(chance.choice((64, 900, 9_000)))
    assert find_encoding(b"\x7fELF\x02\x01\x01\x00" + data) == ""
    assert isinstance(decode_text(data), str)
