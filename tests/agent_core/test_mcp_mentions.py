"""Which resources a message names."""

import pytest

from agent_core.mcp.mentions import MAX_MENTIONS, find_mentions


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("read @notes:book://a/b, please", "book://a/b"),
        ("(@notes:memo:1)", "memo:1"),
        ("@notes:x.", "x"),
        ("@notes:file:///a%20b?c=d#e!", "file:///a%20b?c=d#e"),
        ("ann@notes:x", None),
        ("https://a@notes:80/", None),
        ("@other:x", None),
        ("@notes: x", None),
        ("@notes:...", None),
        ("@Notes:x", None),
    ],
)
def test_what_is_named(text: str, named: str | None) -> None:
    assert find_mentions([text], ["notes"]) == ((("notes", named),) if named else ())


def test_each_once_and_not_too_many() -> None:
    text = " ".join(f"@a:{n} @a:{n}" for n in range(100))
    assert find_mentions([text, text], ["a"]) == tuple(("a", str(n)) for n in range(MAX_MENTIONS))


def test_a_long_text_takes_no_time() -> None:
    assert find_mentions(["@a:" * 200_000, "@" * 200_000, "@a" * 200_000], ["a"])
