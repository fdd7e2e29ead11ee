"""No form of a server asks for a secret, in whatever language and spelling; other fields are shown."""

import re
from collections.abc import Callable

import pytest

from agent_core.mcp.form_fields import Unasked, read_form
from tests.attacks.case_lists import read_cases

SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it stands": str,
    "in capitals": str.upper,
    "with underscores": lambda name: name.replace(" ", "_"),
    "with hyphens": lambda name: name.replace(" ", "-"),
    "in one word": lambda name: re.sub(r" (\w)", lambda found: found[1].upper(), name),
    "of somebody": lambda name: f"user {name}" if name != "pass" else name,
    "wide": lambda name: "".join(
        chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in name
    ),
    "with a sign nobody sees": lambda name: f"{name[0]}\u200b{name[1:]}",
    "with a soft hyphen": lambda name: f"{name[0]}\u00ad{name[1:]}",
    "with a letter that looks so": lambda name: re.sub(r"(?<=[a-z])[oa](?=[a-z])", _imitate, name),
}


def _imitate(found: re.Match[str]) -> str:
    return {"o": "\u043e", "a": "\u0430"}[found[0]]


def is_shown(**given: object) -> bool:
    name = str(given.pop("name", "value"))
    try:
        read_form({"properties": {name: {"type": "string", **given}}})
    except Unasked:
        return False
    return True


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_field_that_asks_for_a_secret_is_shown(spelling: str) -> None:
    names = [SPELLINGS[spelling](one) for one in read_cases("fields_secret")]
    assert [one for one in names if is_shown(name=one)] == []
    assert [one for one in names if is_shown(title=one)] == []


def test_other_fields_are_shown() -> None:
    for name in read_cases("fields_harmless"):
        assert is_shown(name=name) and is_shown(title=name), name
        assert is_shown(description=f"The {name} of the order."), name


def test_yes_or_no_is_no_secret() -> None:
    assert is_shown(name="password_hint_shown", type="boolean")
    assert not is_shown(name="password_hint_shown")
