"""Settings: where they come from, which is stronger, and what is said of what cannot work."""

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.access.people import read_people
from gateway.declaration import Setting, SettingsError
from gateway.features.instructions.settings import INSTRUCTIONS
from gateway.model_settings import read_models
from gateway.settings import TABLES, Settings, find_odd_names

ROOT = Path(__file__).parents[2]


def read(folder: Path, **env: str) -> Settings:
    return Settings.read({"TURNKEEPER_HOME": str(folder / "data")} | env, folder)


def refused(folder: Path, **env: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(folder, **env)
    return str(caught.value)


def test_nothing_set(tmp_path: Path) -> None:
    settings = Settings.read({}, tmp_path)
    assert settings.home == Path.home() / ".turnkeeper"
    assert (settings.host, settings.port, settings.telegram) == ("127.0.0.1", 8787, None)
    assert settings.question_expires == 7 * 86400
    assert read_models(settings).empty
    assert settings.people["web"].admins == {"owner"}


def test_the_environment_is_stronger_than_dotenv_than_toml_here_than_toml_at_home(
    tmp_path: Path,
) -> None:
    home = tmp_path / "data"
    home.mkdir()
    (home / "turnkeeper.toml").write_text(
        'log_level = "debug"\nreplica_id = "home"\nquestion_expires = 5\nTURNKEEPER_PORT = 1\n'
    )
    (tmp_path / "turnkeeper.toml").write_text(
        'REPLICA_ID = "toml"\nquestion_expires = 6\nturnkeeper.port = 2\n'
    )
    (tmp_path / ".env").write_text(
        "# a comment\nexport QUESTION_EXPIRES=7 # seconds\nTURNKEEPER_PORT='3'\nTHEIRS=x\n\n"
    )
    settings = read(tmp_path, TURNKEEPER_PORT="4")
    found = (settings.log_level, settings.replica, settings.question_expires, settings.port)
    assert found == ("debug", "toml", 7, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("TELEGRAM_TOKEN=1:A", "TELEGRAM_TOKEN: {env}, line 1, sets it, and there is no such "
         "setting; did you mean TELEGRAM_BOT_TOKEN?"),
        ("LOG_LEVEL=info\n\nOpenai_Key=sk-1", "{env}, line 3, sets it"),
        ("TURNKEEPER_OPENAI_MODEL=x", "TURNKEEPER_OPENAI_MODEL: {env}, line 1, sets it"),
        ("\ufeffTURNKEEPER_PRT=1", "did you mean TURNKEEPER_PORT?"),
        (" = sk-1", "{env}, line 1: a line is NAME=value, or begins with #; this one has no name."),
        ("\nexport PRO_MODLE=openai/x", "did you mean PRO_MODEL?"),
        ("# fine\nLOG_LEVEL=debug\nOPENAI_API_KEY sk-1\n", "{env}, line 3: a line is NAME=value"),
    ],
)  # fmt: skip
def test_a_slip_in_dotenv_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / ".env").write_text(text)
    said = refused(tmp_path)
    assert words.format(env=tmp_path / ".env") in said and "sk-1" not in said


def test_a_slip_in_the_environment_is_none_and_other_programs_have_their_names(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("MISTRAL_API_KEY=k\nOPENAI_ORG_ID=o\nPGHOST=here\n")
    settings = read(tmp_path, TELEGRAM_TOKEN="1:A", PATH="/bin")
    assert find_odd_names(settings.env, settings.known) == {"TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN"}


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    said = refused(tmp_path, TURNKEEPER_HOME=str(tmp_path / "home"))
    assert said == f"TURNKEEPER_HOME={tmp_path / 'home'}: it is a file; name a folder."


def test_the_home_can_be_set_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "turnkeeper.toml").write_text(f'turnkeeper.home = "{tmp_path}/other"')
    assert Settings.read({}, tmp_path).home == tmp_path / "other"


def test_toml_tables_and_lists(tmp_path: Path) -> None:
    (tmp_path / "turnkeeper.toml").write_text(
        '[telegram]\nbot_token = "1:abc"\nallowed_users = [11, "12"]\nadmin_users = 13\n'
        '[[openai_compatible_providers]]\nname = "local"\nbase_url = "http://127.0.0.1:1/v1"\n'
        'api_key = "secret-key"\n[openai_compatible_providers.tier_models]\nmax = "m"\n'
    )
    settings = read(tmp_path)
    assert settings.telegram and settings.telegram.token == "1:abc"
    assert settings.people["telegram"].allowed == {"11", "12"}
    assert settings.people["telegram"].admins == {"13"}
    assert read_models(settings).choice("pro") == ("local", "m")
    assert "secret-key" in settings.secrets
    assert "secret-key" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("telegram_bot_tokn = 'x'", ["TELEGRAM_BOT_TOKN", "did you mean TELEGRAM_BOT_TOKEN?"]),
        ("zzz = 1", ["ZZZ", "known are", "LOG_LEVEL"]),
        ("a = = 1", ["turnkeeper.toml", "is not valid TOML"]),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "turnkeeper.toml").write_text(text)
    said = refused(tmp_path)
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("TURNKEEPER_PORT", "http", "write a number"),
        ("TURNKEEPER_PORT", "70000", "write a number"),
        ("TELEGRAM_API_BASE_URL", "localhost:80", "https URL, such as http://localhost:80."),
        ("TELEGRAM_API_BASE_URL", "my server", "must be an http or https URL."),
        (
            "SANDBOX_PROVIDER",
            "chroot",
            "use one of: auto, bwrap, docker, boxlite, landlock, monty, e2b, unsafe-subprocess",
        ),
        ("QUESTION_EXPIRES", "soon", "or 'never'"),
        ("QUESTION_EXPIRES", "nan", "or 'never'"),
        ("QUESTION_EXPIRES", "-1", "or 'never'"),
        ("PERMISSION_ASK_ALL", "perhaps", "on or off"),
        ("LOG_LEVEL", "loud", "debug, info"),
        ("REPLICA_ID", "a b", "letters"),
        ("REDIS_URL", "localhost:6379", "redis://"),
        ("TURNKEEPER_HOST", "0.0.0.0", "set TURNKEEPER_TOKEN"),
    ],
)
def test_errors_name_setting_value_and_mend(
    tmp_path: Path, name: str, value: str, mend: str
) -> None:
    said = refused(tmp_path, **{"TELEGRAM_BOT_TOKEN": "1:abc", name: value})
    assert said.startswith(f"{name}={value}: ")
    assert mend in said


@pytest.mark.parametrize(
    "env",
    [
        {"TELEGRAM_BOT_TOKEN": "hunter2hunter2"},
        {"TELEGRAM_WEBHOOK_URL": "https://x.example", "TELEGRAM_BOT_TOKEN": "1:hunter2hunter2"},
        {"TELEGRAM_WEBHOOK_SECRET": "hunter2 hunter2", "TELEGRAM_BOT_TOKEN": "1:a"},
        {"REDIS_URL": "http://:hunter2@host"},
        {"REDIS_URL": "me:hunter2@host:6379"},
        {"DISCORD_API_BASE_URL": "ftp://me:hunter2@host"},
        {"TURNKEEPER_PORT": "ghp_aB3dE7gH1jK5mN9pQ2sThunter2vW8xY4z"},
    ],
)
def test_no_error_shows_a_secret(tmp_path: Path, env: dict[str, str]) -> None:
    assert "hunter2" not in refused(tmp_path, **env)


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("TELEGRAM_BOT_TOKEN", "xoxb-1-2", "this is the token of a Slack bot; that of"),
        ("DISCORD_BOT_TOKEN", "123:AbC_-", "this is the token of a Telegram bot;"),
        ("SLACK_BOT_TOKEN", "xapp-1-2", "this is the token of a Slack app;"),
        ("SLACK_BOT_TOKEN", "“xoxb-1”", "begins with xoxb-; copy it again, without quotes"),
    ],
)
def test_a_token_in_the_wrong_place_is_told_with_its_own(
    tmp_path: Path, name: str, value: str, mend: str
) -> None:
    said = refused(tmp_path, **{name: value})
    assert said.startswith(f"{name}: ") and mend in said and value not in said


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_told_as_one(tmp_path: Path, encoding: str) -> None:
    (tmp_path / ".env").write_text("TURNKEEPER_HOME=Zoë", encoding=encoding)
    assert "is not written in UTF-8" in refused(tmp_path)


def test_model_errors_are_settings_errors(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="PRO_MODEL"):
        read_models(read(tmp_path, PRO_MODEL="nothing"))


def test_never_and_flags(tmp_path: Path) -> None:
    settings = read(
        tmp_path, QUESTION_EXPIRES="never", PERMISSION_ASK_ALL="1", LOCAL_MODEL_DISCOVERY="Off",
        TURNKEEPER_HOST="0.0.0.0", TURNKEEPER_TOKEN="t" * 20,
    )  # fmt: skip
    assert settings.question_expires == 0
    assert settings.ask_all and not settings.discovery
    assert settings.url(80) == "http://127.0.0.1:80/"


def test_secrets_are_collected(tmp_path: Path) -> None:
    settings = read(
        tmp_path, TELEGRAM_BOT_TOKEN="1:telegram", OPENAI_API_KEY="sk-first,sk-second",
        REDIS_URL="redis://:redis-password@host", TURNKEEPER_TOKEN="the-api-token-of-it",
        OPENAI_BASE_URL="http://me:proxy-password@host/v1",
    )  # fmt: skip
    assert set(settings.secrets) == {
        "1:telegram", "sk-first,sk-second", "sk-second", "sk-first", "redis-password", "the-api-token-of-it",
        "proxy-password",
    }  # fmt: skip
    assert not [one for one in settings.secrets if one in repr(settings)]


def test_people() -> None:
    lists = read_people({"TELEGRAM_ALLOWED_USERS": "1, 2 3", "SLACK_ADMIN_USERS": "*"})
    assert lists["telegram"].allowed == {"1", "2", "3"}
    assert lists["slack"].admins == {"*"}


def test_a_file_may_hold_what_the_features_named_in_plugins_declare(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    def declared(plugins: tuple[str, ...]) -> tuple[Setting[object], ...]:
        asked.append(plugins)
        return (Setting("PING_KEY", "", str, "help", secret="all"),)

    file = tmp_path / "turnkeeper.toml"
    file.write_text("plugins = ['ping']\n[ping]\nkey = 'ping-secret'\n")
    env = {"TURNKEEPER_HOME": str(tmp_path)}
    settings = Settings.read(env, tmp_path, declared)
    assert asked == [("ping",)] and settings.secrets == ("ping-secret",)
    file.write_text("plugins = ['ping']\nping_kay = 1\n")
    with pytest.raises(SettingsError, match="PING_KAY: .* did you mean PING_KEY"):
        Settings.read(env, tmp_path, declared)
    file.write_text("ping_key = 1\n")
    with pytest.raises(SettingsError, match="there is no such setting"):
        Settings.read(env, tmp_path, declared)
    assert len(asked) == 2, "nothing is asked where PLUGINS names nothing"


def test_known_settings_are_unique() -> None:
    names = [setting.name for table in TABLES.values() for setting in table]
    assert len(names) == len(set(names)) > 100


def test_reading_settings_imports_nothing_slow() -> None:
    code = (
        "import sys; from gateway.settings import Settings; Settings.read();"
        "print([m for m in ('pydantic', 'aiohttp', 'telegram', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


ALL = [one for table in TABLES.values() for one in table]
ADDRESS = (
    "{}://u:Pa55w0rd@h",
    "u:Pa55w0rd@h:1",
    "s3://u:Pa55/w0rd@h/p",
    "h:1, {}://u:Pa55w0rd@h x",
    "{}://Pa55w0rd@h",
)


@pytest.mark.parametrize("shape", ADDRESS)
def test_no_setting_that_is_refused_shows_a_password(shape: str) -> None:
    refused = 0
    for setting in ALL:
        for scheme in ("http", "redis", "x"):
            value = shape.format(scheme)
            try:
                setting.read({setting.name: value})
            except SettingsError as error:
                assert "w0rd" not in str(error), setting.name
                refused += "[secret]@h" in str(error)
    assert refused > 3
    for plain in ("a@b.example", "escalate=30m:slack:@S0OPS", "https://h.example/@person"):
        assert f"={plain}:" in str(SettingsError("X", plain, "no."))


@pytest.mark.parametrize("sign", ["\udcff", "\ud800", "\x00", "\x07", "\x1b", "\x7f"])
def test_a_value_that_is_no_text_is_refused_whatever_the_setting(sign: str, tmp_path: Path) -> None:
    """A byte of the environment that is not UTF-8 is a surrogate for Python."""
    for setting in ALL:
        with pytest.raises(SettingsError, match="not UTF-8|control character") as refused:
            Settings.read({setting.name: f"a{sign}b"}, tmp_path)
        assert str(refused.value).startswith(setting.name) and "character 2" in str(refused.value)


def test_instructions_may_have_several_lines() -> None:
    text = "First this.\r\n\tThen that: ü€😀."
    assert INSTRUCTIONS.read({INSTRUCTIONS.name: text}) == text


@pytest.mark.parametrize("name", ["HOME", "TURNKEEPER_HOME"])
def test_a_home_that_is_not_utf8_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{tmp_path}/a\udcff"
    monkeypatch.setenv(name, place)
    with pytest.raises(SettingsError, match="TURNKEEPER_HOME=.*: "):
        Settings.read({name: place}, tmp_path)


KEYS = (
    "9f86d081884c7d659a2feaa0c55ad015",
    "q7ZpLr2Vx9Tn4Ws8Yb6Kd3Hf5Jg1Mc0",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "wJalr9Ft/K7MDENG/bPxRfi2YzEXb4PLE+Ke",
    "Zk3q9Xv2Lm8Rt5Wy",
)
PLACES = ("{}", "{},{}", "http://h/{}", "a={}", "{}:1", '["{}"]', '{{"{}": 1}}', "x/{}", "1h:{}")


@pytest.mark.parametrize("place", PLACES)
def test_no_setting_that_is_refused_shows_a_key_of_another_one(place: str) -> None:
    """Nor one without a known shape."""
    refused = 0
    for setting in ALL:
        for key in KEYS:
            value = place.format(key, key)
            try:
                setting.read({setting.name: value})
            except SettingsError as error:
                assert key not in str(error), setting.name
                refused += " characters]" in str(error)
    assert refused > 30


@pytest.mark.parametrize(
    "plain",
    [
        "openai/gpt-5.2-codex-2026-01-20-preview",
        "/var/lib/turnkeeper/2026-11-20/my-folder_of-data/turnkeeper.db",
        "ec2-12-34-56-78.eu-central-1.compute.amazonaws.com:6379",
        "discord:1234567890123456789,telegram:1234567890",
        "internationalisation",
        "my-very-long-bucket-name-in-eu-west-3",
        "anthropic/claude-haiku-4-5-20251001",
    ],
)
def test_an_ordinary_value_that_is_refused_is_shown(plain: str) -> None:
    assert str(SettingsError("OPENAI_COMPATIBLE_PROVIDERS[0].name", plain, "no.")).endswith(
        f"={plain}: no."
    )
