"""Files of TOML that are none: each is refused with a reason; a byte order mark changes nothing."""

import pytest

from agent_core.policy_file import parse_rules
from gateway.declaration import SettingsError
from gateway.features.jobs.operator.jobfile import Faulty, read

ODD = {
    "digits": "a = " + "9" * 5_000,
    "brackets": "a = " + "[" * 5_000,
    "tables": "a = " + "{a = " * 5_000,
    "no value": "a =",
    "nul": 'a = "\0"',
    "returns": "# a\r# b\r",
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_toml_is_refused_with_a_reason(name: str) -> None:
    with pytest.raises(SettingsError, match="no TOML"):
        parse_rules(ODD[name], "policy.toml")
    with pytest.raises(Faulty, match="not TOML"):
        read(ODD[name])


def test_a_byte_order_mark_changes_nothing() -> None:
    rules = '[[rule]]\nname = "x"\neffect = "deny"\ntool = "write_file"\n'
    assert parse_rules("\ufeff" + rules, "policy.toml") == parse_rules(rules, "policy.toml") != ()
    with pytest.raises(SettingsError, match="line 1"):
        parse_rules("\ufeff[[rule]]\n", "policy.toml")
    job = '[report]\nschedule = "every 1h"\nprompt = "x"\n'
    assert read("\ufeff" + job) == read(job)
