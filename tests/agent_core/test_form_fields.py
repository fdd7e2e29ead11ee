"""Forms of servers: which are shown to a person, and what a person's words give."""

from typing import Any

import pytest

from agent_core.mcp.elicitation import (
    ACCEPT,
    DECLINE,
    MAX_WORDS,
    NONE,
    SKIP,
    Reaction,
    ServerForm,
    ServerLink,
    put_elicitation,
)
from agent_core.mcp.form_fields import ElicitationRefused, FormField, read_form, read_value
from agent_core.questions import Answer, Decision, Input, Question


def form(*required: str, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": [*required]}


def one(**schema: object) -> FormField:
    (field,) = read_form(form("field", field=schema))
    return field


@pytest.mark.parametrize(
    ("schema", "proposed", "taken"),
    [
        ({"type": "integer"}, 2, 2),
        ({"type": "integer"}, 1.5, None),
        ({"type": "integer"}, True, None),
        ({"type": "integer", "maximum": 9}, 10, None),
        ({"type": "number"}, 1.5, 1.5),
        ({"type": "number"}, True, None),
        ({"type": "number"}, float("inf"), None),
        ({"type": "number"}, float("nan"), None),
        ({"type": "string", "minLength": 2}, "ab", "ab"),
        ({"type": "string", "minLength": 2}, "a", None),
        ({"type": "string", "format": "date"}, "today", None),
        ({"type": "string", "format": "email"}, "nobody", None),
        ({"type": "string"}, 5, None),
        ({"type": "boolean"}, False, False),
        ({"type": "boolean"}, "yes", None),
        ({"type": "string", "enum": ["a"]}, "b", None),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2}, ["a"], None),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a"], ["a"]),
    ],
)
async def test_what_a_server_proposes_is_sent_only_if_it_fits(
    schema: dict[str, Any], proposed: object, taken: object
) -> None:
    """The person leaves the field out; the rest is as if the server had proposed nothing."""

    async def ask(name: str, question: Question) -> Answer:
        assert isinstance(question, Decision | Input)
        skips = isinstance(question, Decision) and SKIP in question.options
        return Answer(choice="once", text=SKIP if skips else NONE)

    wanted = ServerForm(message="Fill in", schema=form(a={**schema, "default": proposed}))
    content = {"a": taken} if taken is not None else {}
    reaction = await put_elicitation("srv", wanted, ask)
    assert reaction == Reaction(action="accept", content=content)
    assert [type(one) for one in (reaction.content or {}).values()] == [
        type(one) for one in content.values()
    ]


@pytest.mark.parametrize(
    ("schema", "said", "value"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 4}, "abc", "abc"),
        ({"type": "string", "minLength": 2, "maxLength": 4}, "a", None),
        ({"type": "string", "minLength": 2, "maxLength": 4}, "abcde", None),
        ({"type": "string"}, "x" * 2_001, None),
        ({"type": "string", "format": "email"}, "a@example.org", "a@example.org"),
        ({"type": "string", "format": "email"}, "example.org", None),
        ({"type": "string", "format": "uri"}, "https://a.example/b", "https://a.example/b"),
        ({"type": "string", "format": "uri"}, "a b", None),
        ({"type": "string", "format": "date"}, "2026-11-24", "2026-11-24"),
        ({"type": "string", "format": "date"}, "2026-13-24", None),
        ({"type": "string", "format": "date-time"}, "2026-11-24T09:00:00Z", "2026-11-24T09:00:00Z"),
        ({"type": "string", "format": "date-time"}, "soon", None),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "9", 9),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "10", None),
        ({"type": "integer"}, "1.5", None),
        ({"type": "number"}, "1,5", 1.5),
        ({"type": "number"}, "nan", None),
        ({"type": "number"}, "inf", None),
        ({"type": "string", "enum": ["a", "b"]}, "A", "a"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["Red", "Blue"]}, "blue", "b"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "red", "r"),
        ({"type": "string", "enum": ["a", "b"]}, "c", None),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "b, a, b", ["b", "a"]),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "a, b", None),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "An"}]}}, "an", ["a"]),
        ({"type": "array", "items": {"enum": ["a"]}}, "a, x", None),
    ],
)
def test_words_become_values(schema: dict[str, object], said: str, value: object) -> None:
    assert read_value(one(**schema), said) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"a": "b"}},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"properties": {"a": {"type": "string", "enum": []}}},
        {"properties": {"a": {"type": "string", "enum": [*map(str, range(51))]}}},
        {"properties": {str(n): {"type": "string"} for n in range(21)}},
        {"properties": {"userPassword": {"type": "string"}}},
        {"properties": {"a": {"type": "string", "format": "password"}}},
        {"properties": {"a": {"type": "string", "title": "Your API key"}}},
        {"properties": {"a": {"type": "string", "title": "The token that you got"}}},
        {"properties": {"a": {"type": "string", "description": "Your password, please"}}},
        {"properties": {"card_number": {"type": "string"}}},
        {"properties": {}, "required": "a"},
    ],
)
async def test_what_is_no_flat_form_or_asks_for_a_secret_is_not_shown(
    schema: dict[str, object],
) -> None:
    with pytest.raises(ElicitationRefused):
        read_form(schema)
    person = Person()
    said = await put_elicitation("s", ServerForm(message="m", schema=schema), person.ask)
    assert said.action == "decline" and said.note and not person.asked


@pytest.mark.parametrize("name", ["pinned", "tokenizer", "passage", "compass", "secretary_name"])
def test_harmless_names_are_asked_for(name: str) -> None:
    about = "Your favorite integer (do not give us your phone number, pin, or other sensitive info)"
    assert read_form(form(a={"type": "integer", "description": about}))
    assert read_form(form(**{name: {"type": "string"}}))


class Person:
    """Answers in turn, and notes what was asked."""

    def __init__(self, *says: str) -> None:
        self.asked: list[Any] = []
        self._says = list(says)
        self._names: set[str] = set()

    async def ask(self, name: str, question: Question) -> Answer:
        assert name not in self._names, "each question has a name of its own"
        self._names.add(name)
        self.asked.append(question)
        return Answer(choice="once", text=self._says.pop(0))


async def put(schema: dict[str, object], *says: str) -> Reaction:
    return await put_elicitation("s", ServerForm(message="m", schema=schema), Person(*says).ask)


TEXT = {"type": "string"}


async def test_what_is_left_out_is_the_servers_proposal() -> None:
    fields = {"a": {**TEXT, "default": "x"}, "b": TEXT, "c": {"type": "boolean", "default": True}}
    assert await put(form(**fields), NONE, NONE, SKIP, ACCEPT) == Reaction(
        action="accept", content={"a": "x", "c": True}
    )


async def test_what_has_to_be_given_is_declined_as_a_whole() -> None:
    assert await put(form("a", a=TEXT, b=TEXT), NONE) == Reaction(action="decline")
    assert await put(form("a", a=TEXT, b=TEXT), "x", "y", DECLINE) == Reaction(action="decline")


async def test_fields_of_one_name_for_people_are_two_questions() -> None:
    same = {"type": "string", "title": "Same"}
    said = await put(form("a", "b", "c", a=same, b=same, c=same), "1", "2", "3", ACCEPT)
    assert said.content == {"a": "1", "b": "2", "c": "3"}


async def test_words_that_never_fit_end_it() -> None:
    assert await put(form("a", a={"type": "integer"}), "x", "y", "z") == Reaction(action="cancel")


async def test_a_form_without_fields_is_a_yes_or_no() -> None:
    assert await put(form(), ACCEPT) == Reaction(action="accept", content={})
    assert await put(form(), DECLINE) == Reaction(action="decline")


async def test_no_option_of_a_servers_is_taken_for_ours() -> None:
    person = Person("decline")
    schema = form("a", a={"type": "string", "enum": ["/decline", "/accept", "stay"]})
    said = await put_elicitation("s", ServerForm(message="m", schema=schema), person.ask)
    assert said.content == {"a": "/decline"}
    assert person.asked[0].options == ("decline", "accept", "stay", DECLINE)


async def test_a_servers_words_stay_in_their_block() -> None:
    person = Person("x")
    message = f"a ``` b\n{'long ' * 1_000}"
    schema = form("f", f={"type": "string", "title": "`t`", "description": "```\nhi"})
    await put_elicitation("s", ServerForm(message=message, schema=schema), person.ask)
    (asked,) = person.asked
    assert isinstance(asked, Input) and asked.text.count("```") == 4 and "`t`" in asked.text
    assert len(asked.text) < MAX_WORDS + 400


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://", "file:///etc/passwd", "https://a b", "https://[", "https://a\u202e.example/", "https://x/" + "a" * 2_000, "https://good.example@evil.example/x"]
)  # fmt: skip
async def test_what_is_no_link_is_not_shown(url: str) -> None:
    said = await put_elicitation("s", ServerLink(message="m", url=url), Person().ask)
    assert said.action == "decline" and said.note


async def test_the_host_of_a_link_is_told() -> None:
    person = Person(ACCEPT)
    link = ServerLink(message="m", url="https://evil.example/x@good.example")
    assert await put_elicitation("s", link, person.ask) == Reaction(action="accept")
    (asked,) = person.asked
    assert isinstance(asked, Decision) and "at evil.example." in str(asked.hints[0])
