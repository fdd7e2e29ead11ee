"""How settings are declared: what each kind takes and refuses, and what of a value is shown."""

from collections.abc import Callable

import pytest

from agent_core.config.declaration import Secrecy, Setting, SettingsError, WrongValue
from agent_core.config.kinds import (
    Choice,
    Json,
    Matching,
    Number,
    OrNever,
    Url,
    WholeNumber,
    parse_dollars,
    parse_keys,
    parse_switch,
    split_commas,
    split_words,
)
from tests.fakes.odd_json import DEEP

KINDS: list[tuple[Callable[[str], object], dict[str, object], tuple[str, ...], str]] = [
    (str, {"as it is": "as it is"}, (), ""),
    (
        parse_switch,
        {"on": True, "TRUE": True, "no": False, "0": False},
        ("never", "2"),
        "on or off",
    ),
    (
        WholeNumber(least=2, most=10),
        {"2": 2, "10": 10},
        ("1", "11", "-3", "2.0", "1e1", "٣", "²", "x"),
        "write a whole number from 2 to 10.",
    ),
    (
        Number(least=0.1, most=9, mend="write less."),
        {"0.1": 0.1, "9": 9.0},
        ("0", "10", "nan", "inf", "x"),
        "write less.",
    ),
    (
        OrNever(kind=WholeNumber(least=1, most=9), never=0),
        {"Never": 0, "9": 9},
        ("0", "soon"),
        "1 to 9",
    ),
    (
        Choice(words=("auto", "none")),
        {"auto": "auto", "NONE": "none"},
        ("x",),
        "use one of: auto, none.",
    ),
    (Matching(pattern="[a-z]+", mend="use letters."), {"abc": "abc"}, ("a b", "a\nb"), "letters"),
    (
        Url(),
        {"http://h": "http://h", "https://h:1/x": "https://h:1/x"},
        (
            "h:80",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:x",
            "http://[",
            "ws://h",
            "http://h/v1 x",
        ),
        "must be an http or https URL",
    ),
    (Url(scheme="ws"), {"wss://h/": "wss://h/"}, ("http://h",), "must be a ws or wss URL."),
    (
        Json(of=dict[str, int], example='{"a": 1}'),
        {'{"b": 2}': {"b": 2}},
        ("{", '{"b": "2"}', "[]", DEEP),
        'write JSON such as {"a": 1}',
    ),
    (parse_dollars, {"2.50": 2.5}, ("0", "-1", "nan", "inf", "x", "2 $"), "US dollars"),
    (split_commas, {"a b, c,,": ("a b", "c")}, (), ""),
    (split_words, {"a b, c,,": ("a", "b", "c")}, (), ""),
    (parse_keys, {"sk-1, sk-2,": ("sk-1", "sk-2")}, ("sk 1", "sk-ü"), "copy it again"),
]


@pytest.mark.parametrize(("kind", "taken", "refused", "mend"), KINDS)
def test_each_kind_reads_or_says_how_to_mend(
    kind: Callable[[str], object], taken: dict[str, object], refused: tuple[str, ...], mend: str
) -> None:
    setting = Setting("A_SETTING", None, kind, "help")
    assert setting.read({}) is None
    assert setting.read({"A_SETTING": "  "}) is None
    assert {text: setting.read({"A_SETTING": f" {text} "}) for text in taken} == taken
    for text in refused:
        with pytest.raises(SettingsError) as caught:
            setting.read({"A_SETTING": text})
        assert str(caught.value).startswith("A_SETTING"), text
        assert mend in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "value", "shown", "found"),
    [
        ("nothing", "seen", "A_SETTING=seen: wrong.", set()),
        ("all", "key-1, key-2", "A_SETTING: wrong.", {"key-1, key-2", "key-1", "key-2"}),
        ("password", "http://me:word@host/", "A_SETTING=host/: wrong.", {"word"}),
        ("password", "http://[:word@host", "A_SETTING=host: wrong.", set()),
        ("password", "http://host", "A_SETTING=http://host: wrong.", set()),
        (
            "api_keys",
            '[{"api_key": "key-1"}, {"api_key" : ["key-2", "key-3"]}, {"name": "seen"}]',
            "A_SETTING: wrong.",
            {"key-1", "key-2", "key-3"},
        ),
    ],
)
def test_what_is_secret_is_found_and_not_shown(
    secret: Secrecy, value: str, shown: str, found: set[str]
) -> None:
    def refuse(_text: str) -> str:
        raise ValueError("wrong.")

    setting = Setting("A_SETTING", "", refuse, "help", secret=secret)
    assert setting.find_secrets({"A_SETTING": value}) == found
    with pytest.raises(SettingsError) as caught:
        setting.read({"A_SETTING": value})
    assert str(caught.value) == shown
    assert not setting.find_secrets({})


def test_a_kind_may_name_the_part_that_is_wrong() -> None:
    def refuse(text: str) -> str:
        raise WrongValue("is taken.", text[:1], "[0].name")

    with pytest.raises(SettingsError) as caught:
        Setting("A_SETTING", "", refuse, "help").read({"A_SETTING": "xyz"})
    error = caught.value
    assert str(error) == "A_SETTING[0].name=x: is taken."
    assert error.setting == "A_SETTING[0].name"
