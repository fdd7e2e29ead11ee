"""Names of secret files in any folder, in capitals, as copies and below other names."""

import json

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.settings import ModelSettings
from gateway.wiring.policy_check import PolicyChecker
from tests.sampling import SEED, examples

CHECKER = PolicyChecker(ModelSettings.read({}))
WHOSE = ("", "app.", "my-", "db_", "prod.", "appsettings.", "web-2.")
STAGES = ("", ".dev", ".prod", ".local", ".staging")
KINDS = ("json", "yml", "yaml", "toml", "ini")
PROGRAMS = (
    ".muttrc", ".mbsyncrc", ".offlineimaprc", ".mailrc", ".lftprc", ".erlang.cookie", ".htdigest", "chap-secrets",
    "pap-secrets", "ipsec.secrets", "rsyncd.secrets", "smbcredentials", "wpa_supplicant.conf", "home.nmconnection",
    "users.htpasswd", "rootkey.csv", "ann_accessKeys.csv", "secring.asc", ".netrc.gpg", ".svn/auth/svn.simple/x",
)  # fmt: skip
FOLDERS = ("", "config/", "./", "a b/", "src/../", "etc/ppp/")
SPELLINGS = (str, str.upper, str.title)
COPIES = ("", "~", ".bak", ".old", ".orig")
NAMES = st.one_of(
    st.builds("{}secrets{}.{}".format, *map(st.sampled_from, (WHOSE, STAGES, KINDS))),
    st.sampled_from(PROGRAMS),
)
OPEN = (
    "sealed-secrets",
    "external-secrets",
    "app-secrets.example",
    "secrets.template",
    "secrets_test",
)


def judge(path: str) -> str:
    return CHECKER.judge_path(json.dumps(path).encode()).decision


@seed(SEED)
@settings(max_examples=examples(800), deadline=None)
@given(st.sampled_from(FOLDERS), NAMES, st.sampled_from(COPIES), st.sampled_from(SPELLINGS))
def test_a_name_for_secrets_is_closed(folder: str, name: str, copy: str, spell: type[str]) -> None:
    assert judge(f"{folder}{spell(name)}{copy if '/' not in name else ''}") == "deny"


@pytest.mark.parametrize("folder", FOLDERS)
def test_other_names_are_open(folder: str) -> None:
    names = [f"{stem}.{kind}" for stem in OPEN for kind in KINDS]
    names += [f"{name.strip('.').replace('/', '_')}.md" for name in PROGRAMS]
    assert [one for one in names if judge(folder + one) != "allow"] == []
