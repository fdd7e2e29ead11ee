"""Each declared setting is read, and takes or refuses whatever it is set to."""

from pathlib import Path
from typing import get_args

import pytest

from agent_core.config.declaration import Secrecy, Setting, SettingsError
from agent_core.config.kinds import Url
from agent_core.settings import ModelSettings
from agent_core.tools.web.settings import PROVIDERS
from gateway.settings import TABLES, Settings
from tests.fakes.odd_json import DEEP, LONG_NUMBER
from tests.sampling import take

DECLARED = {setting.name: setting for table in TABLES.values() for setting in table}
BOTS = {
    "TELEGRAM_BOT_TOKEN": "1:abc",
    "DISCORD_BOT_TOKEN": "a.b.c",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_APP_TOKEN": "xapp-1",
}
ODD = (
    *("nan", "inf", "-inf", "1e400", "-1", "1_000", "１２", "²", "0x10", LONG_NUMBER, DEEP, "[", "{}", "[1]"),
    *("null", "\0", "a\0b", "\ud800", "\u202e", "a\nb", "a" * 200_000, "http://", "http://[", "http://[::1"),
    *("http://a:99999", "http://user:pw@h/", "file:///etc/passwd", "//a", "=", ",,", "@", "telegram:", "*:*"),
    *("role:", "2 of a", "/", "~nobody-here/x", "/proc/self/fd/999", "Mars/X", "24:00", "%s", "{0}", "$HOME"),
    *("'", '"', "\\", "on", "openai/", "/gpt", "a/b/c"),
)  # fmt: skip
QUICK, ALL = 400, 100_000
SEARCH = {f"{name}_API_KEY": "key" for name in ("TAVILY", "BRAVE", "EXA")}


@pytest.mark.parametrize("count", [QUICK, pytest.param(ALL, marks=pytest.mark.slow)])
def test_an_odd_value_is_taken_or_refused_by_name(tmp_path: Path, count: int) -> None:
    pairs = [(name, value) for name in DECLARED for value in ODD]
    for name, value in take(pairs, count, "odd values"):
        try:
            ModelSettings.read(
                Settings.read({"TURNKEEPER_HOME": str(tmp_path), name: value}, tmp_path).env
            )
        except SettingsError as error:
            assert name in str(error) and len(str(error)) < 3_000


def test_each_setting_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    read: set[str] = set()
    text = Setting.text

    def note(setting: Setting[object], env: dict[str, str]) -> str:
        read.add(setting.name)
        return text(setting, env)

    monkeypatch.setattr(Setting, "text", note)
    monkeypatch.setattr(Setting, "find_secrets", lambda _setting, _env: frozenset[str]())
    for provider in PROVIDERS:
        chosen = {"SEARCH_PROVIDER": provider, "SEARXNG_URL": "http://127.0.0.1:1"}
        env = {"TURNKEEPER_HOME": str(tmp_path)} | BOTS | SEARCH | chosen
        ModelSettings.read(Settings.read(env, tmp_path).env)
    assert read == DECLARED.keys()


def test_what_is_secret_says_so() -> None:
    """Names that end like this promise a secret; an address may hold a password."""
    assert set(get_args(Secrecy)) == {setting.secret for setting in DECLARED.values()}
    for name, setting in DECLARED.items():
        if name.endswith(("TOKEN", "SECRET", "_API_KEY")):
            assert setting.secret == "all", name
        if isinstance(setting.kind, Url):
            assert setting.secret == "password", name
