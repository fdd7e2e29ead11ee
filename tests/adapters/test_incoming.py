"""Commands as people write them, on any platform."""

import unicodedata

import pytest

from adapters.incoming import WrittenCommand, read_command

SPACES = [chr(n) for n in range(0x3001) if chr(n).isspace()]


def widen(text: str) -> str:
    """`text` as an input method of East Asia writes it."""
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


@pytest.mark.parametrize("space", SPACES, ids=[f"U+{ord(one):04X}" for one in SPACES])
def test_any_space_ends_the_name(space: str) -> None:
    for between in (space, 2 * space, f" {space}"):
        given = read_command(f"/stop{between}all that{between}")
        assert given == WrittenCommand(name="stop", arguments="all that")


def test_a_name_in_full_width_is_the_name() -> None:
    for text in ("/stop", "/STOP", "／stop", widen("/stop"), widen("/Stop")):
        assert read_command(text) == WrittenCommand(name="stop")
    wide = widen("/mode@Test_Bot") + "\u3000steer"
    assert read_command(wide) == WrittenCommand(name="mode", bot="Test_Bot", arguments="steer")


def test_what_is_no_command() -> None:
    words = (
        "",
        " ",
        "stop",
        "/",
        "//",
        "／",
        "/ stop",
        "/a-b",
        "/tmp/log",
        "/stop!",
        "/stöp",
        "/ⅷ!",
    )
    assert [one for one in words if read_command(one)] == []
    for text in ("/" + "a" * 33, "/" + "ﷺ" * 50, "/x@" + "b" * 65, "/" + "a" * 100_000):
        assert read_command(text) is None
    assert unicodedata.normalize("NFKC", "ﷺ") != "ﷺ", "it becomes longer"
