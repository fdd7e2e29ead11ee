"""What the settings say about Slack, and how they are mended."""

from pathlib import Path

import pytest

from gateway.declaration import SettingsError
from gateway.settings import Settings

BOT, APP = "xoxb-1-2-abc", "xapp-1-A1-2-abc"


def read(tmp_path: Path, **env: str) -> Settings:
    return Settings.read({"TURNKEEPER_HOME": str(tmp_path)} | env, tmp_path)


def test_by_socket_mode_or_over_http(tmp_path: Path) -> None:
    assert read(tmp_path).slack is None
    by_socket = read(tmp_path, SLACK_BOT_TOKEN=BOT, SLACK_APP_TOKEN=APP).slack
    assert by_socket is not None
    assert (by_socket.token, by_socket.app_token) == (BOT, APP)
    assert by_socket.api_base_url == "https://slack.com/api/"
    by_http = read(
        tmp_path, SLACK_BOT_TOKEN=BOT, SLACK_SIGNING_SECRET="s" * 32,
        SLACK_API_BASE_URL="http://127.0.0.1:9/api",
    ).slack  # fmt: skip
    assert by_http is not None and by_http.app_token == ""
    assert by_http.api_base_url == "http://127.0.0.1:9/api/"
    assert BOT not in repr(by_socket) and APP not in repr(by_socket)


@pytest.mark.parametrize(
    ("env", "setting"),
    [
        ({"SLACK_BOT_TOKEN": "xoxp-1-2"}, "SLACK_BOT_TOKEN"),
        ({"SLACK_BOT_TOKEN": BOT}, "SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": BOT}, "SLACK_APP_TOKEN"),
        ({"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP, "SLACK_API_BASE_URL": "x"}, "SLACK_API"),
    ],
)
def test_what_cannot_work_is_told(tmp_path: Path, env: dict[str, str], setting: str) -> None:
    with pytest.raises(SettingsError, match=setting) as caught:
        read(tmp_path, **env)
    assert "abc" not in str(caught.value)
