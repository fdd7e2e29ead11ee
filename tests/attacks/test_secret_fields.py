"""No form of a server asks for a secret, by its fields or by the words before them, in whatever
language and spelling; other forms are shown."""

import re
from collections.abc import Callable

import pytest

from agent_core.mcp.elicitation import ServerForm, put_elicitation
from agent_core.mcp.form_fields import ElicitationRefused, read_form
from agent_core.questions import Answer, Question
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
    except ElicitationRefused:
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


DISGUISES: dict[str, Callable[[str], str]] = {
    **{
        name: SPELLINGS[name]
        for name in ("as it stands", "in capitals", "with underscores", "wide")
    },
    "with a sign nobody sees": lambda words: words.replace("o", "o\u200b"),
    "with a soft hyphen": lambda words: words.replace("a", "a\u00ad"),
    "with a letter that looks so": SPELLINGS["with a letter that looks so"],
    "bold": lambda words: re.sub(r"(\w{4,})", r"**\1**", words),
    "in lines": lambda words: words.replace(" ", "\n"),
    "behind other words": lambda words: f"We found your account. {words}",
    "before other words": lambda words: f"{words.rstrip()} Then go on to the second page.",
}


async def put_form(message: str, kind: str = "string") -> bool:
    """True if the person is asked."""
    shown: list[Question] = []

    async def ask(name: str, question: Question) -> Answer:
        shown.append(question)
        return Answer(choice="deny", by="x")

    schema: dict[str, object] = {"properties": {"value": {"type": kind}}}
    await put_elicitation("raw", ServerForm(message=message, schema=schema), ask)
    return bool(shown)


@pytest.mark.parametrize("disguise", DISGUISES)
async def test_no_words_before_a_form_demand_a_secret(disguise: str) -> None:
    cases = read_cases("messages_secret")
    if disguise == "before other words":  # what stands alone is said by its end
        cases = tuple(one for one in cases if one.endswith(".") and one.count(".") == 1)
    assert [one for one in cases if await put_form(DISGUISES[disguise](one))] == []


async def test_words_that_only_speak_of_secrets_are_shown() -> None:
    cases = read_cases("messages_harmless")
    assert [one for one in cases if not await put_form(one)] == []
    assert [one for one in read_cases("fields_harmless") if not await put_form(f"{one}?")] == []
    assert await put_form("Enter your password?", "boolean"), "yes or no is no secret"
