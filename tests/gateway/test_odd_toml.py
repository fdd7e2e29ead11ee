"""Files of TOML that are none: each is refused with a reason; a byte order mark changes nothing."""

import contextlib
import random
import time
import tomllib
from pathlib import Path

import pytest

from agent_core.policy_file import parse_rules
from gateway.declaration import SettingsError
from gateway.features.jobs.operator.apply import JobFile
from gateway.features.jobs.operator.jobfile import Faulty, positions, read
from gateway.services.operator_instructions import OperatorInstructions
from gateway.services.operator_rules import read_rules
from gateway.settings import Settings
from tests.cron.book_rig import ROOM, living_book
from tests.sampling import SEED

ODD = {
    "digits": "a = " + "9" * 5_000,
    "brackets": "a = " + "[" * 5_000,
    "tables": "a = " + "{a = " * 5_000,
    "no value": "a =",
    "nul": 'a = "\0"',
    "returns": "# a\r# b\r",
    "parts": "a" + ".a" * 30_000 + " = 1",
    "quoted parts": "[a" + '. "a"' * 30_000 + "]",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_toml_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(SettingsError, match="no TOML"):
        parse_rules(ODD[name], "policy.toml")
    with pytest.raises(Faulty, match="not TOML"):
        read(ODD[name])


LONG = {
    "a dotted name": "a{}=1", "a text": 'a="{}"', "a text of lines": 'a="""\n{}"""', "other quotes": "a='''\n{}'''",
    "a list": "a=[{}]", "a list of lines": "a=[\n{}]", "nothing": "{}", "tables": "[a]\n{}", "jobs": "[a]\nprompt='''{}'''",
}  # fmt: skip
UNITS = (
    ".a",
    '."a"',
    " . a",
    "a line\n",
    "1,",
    "1,\n",
    "[1],\n",
    '"a",#]\n',
    "{a=1},",
    "\\n",
    "[[t]]\n",
    "#\n",
    "'",
    "a",
    " ",
    '"" ',
    "a.",
)
SIZE, MAX_SECONDS, MOST_TIMES = 24_000, 0.6, 9


def spend_time(text: str) -> float:
    began = time.process_time()
    for refusing, reader in (
        (SettingsError, lambda: parse_rules(text, "x")),
        (Faulty, lambda: read(text)),
    ):
        with contextlib.suppress(refusing):
            reader()
    return time.process_time() - began


@pytest.mark.parametrize("shape", LONG)
def test_no_file_takes_more_than_linear_time(shape: str) -> None:
    slow = []
    for unit in UNITS:
        took = [
            spend_time(LONG[shape].format(unit * (size // len(unit)))) for size in (SIZE // 4, SIZE)
        ]
        if took[1] > max(MAX_SECONDS, MOST_TIMES * took[0]):
            slow.append((unit, *took))
    assert not slow


def test_each_field_of_a_job_is_found_on_its_line() -> None:
    lines = (
        "# [x]", "", "[a]", 'prompt = """', "[b]", "title = 1 ]", '"""', "deliver = [", '  "x", # ]', "]", "title = 'a # [b'", "", "[c]",
        "prompt = '''", "a'''", "where = \"a\\\"[\"",
    )  # fmt: skip
    assert positions("\n".join(lines)) == {
        "a": {"": 3, "prompt": 4, "deliver": 8, "title": 11},
        "c": {"": 13, "prompt": 14, "where": 16},
    }


async def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    """As some editors write it before a text in UTF-8."""
    rule = '[[rule]]\nname = "x"\neffect = "deny"\ntool = "write_file"\n'
    policy, settings = tmp_path / "policy.toml", tmp_path / "turnkeeper.toml"
    policy.write_text(rule, "utf-8-sig")
    assert read_rules(policy, ()) == parse_rules(rule, "policy.toml") != ()
    policy.write_text("[[rule]]\n", "utf-8-sig")
    with pytest.raises(SettingsError, match="line 1"):
        read_rules(policy, ())
    settings.write_text("[turnkeeper]\nport = 4711\n", "utf-8-sig")
    assert Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path).port == 4711
    (tmp_path / "instructions.md").write_text("Be brief.", "utf-8-sig")
    told = OperatorInstructions(tmp_path)
    told.load("")
    assert told.select() == ("Be brief.",)
    job = f'[report]\nschedule = "every 1h"\nprompt = "x"\nwhere = "{ROOM.id}"\n'
    async with living_book(tmp_path) as world:
        (tmp_path / "jobs.toml").write_text(job, "utf-8-sig")
        await JobFile(tmp_path, world.ports, frozenset(("telegram",))).apply()
        assert [one.id for one in await world.jobs.list_jobs()] == ["report"]


VALUES = (
    *('"a # [ b"', "'x ] \" \\\\'", "1", '"\\\\"', '"\\u00e9\u2028"', "{a = 1, b = [1,\n2]}"),
    *('"""\nl [\n# no\n\\""" \nend"""', '""""a"""""', "'''\n[a]\n \"\"\" ''''"),
    '[\n"a", # ] c\n["b"],\n]',
)


def test_each_job_and_key_is_found_on_its_line() -> None:
    luck = random.Random(SEED)
    for _ in range(50):
        text, expected = "", dict[str, dict[str, int]]()
        for name in luck.sample(["a", "b", "c"], luck.randrange(1, 4)):
            text += luck.choice(["", "\n", "# c [\n", "#\r\n"])
            own = expected[name] = {"": text.count("\n") + 1}
            text += f"[{name}]" + luck.choice(["\n", " # x [\n", "\r\n"])
            for key in range(luck.randrange(4)):
                text += luck.choice(["", " ", "\n"])
                own[f"k {key}"] = text.count("\n") + 1
                text += (
                    f'"k {key}" = ' + luck.choice(VALUES) + luck.choice(["", " # c ' \" ["]) + "\n"
                )
        text = luck.choice([text, text.rstrip()])
        assert set(tomllib.loads(text)) == set(expected)
        assert positions(text) == expected, text


@pytest.mark.parametrize(
    "text",
    [
        '[a]\nprompt = """\n' + "some words\n" * 20_000 + '"""\n',
        "[a]\ndeliver = [\n" + '"here",\n' * 20_000 + "]\n",
        "".join(f'[a{n}]\nprompt = "x"\n' for n in range(10_000)),
    ],
    ids=["words", "list", "jobs"],
)
def test_a_long_file_takes_time_linear_to_it(text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5.0
