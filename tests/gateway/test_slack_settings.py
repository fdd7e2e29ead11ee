"""What the settings say about Slack, and how they are mended."""

import re
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


ROOT = Path(__file__).parents[2]
NEEDS = {
    "agents.sessions.setStatus": "assistant:write",
    "chat.": "chat:write",
    "conversations.history": "channels:history groups:history im:history mpim:history",
    "conversations.replies": "channels:history groups:history im:history mpim:history",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "reactions.": "reactions:write",
    "usergroups.": "usergroups:read",
    "users.info": "users:read",
    "auth.test": "",
    "views.": "",
    "app_mention": "app_mentions:read",
    "channel_": "channels:read",
    "group_": "groups:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "message.mpim": "mpim:history",
    "agent_session_stopped": "assistant:write",
    "app_home_opened": "",
}
"""Scopes that Slack requires for methods and events, by how their names begin."""


def test_the_manifest_asks_for_what_is_used_and_each_scope_is_explained() -> None:
    page = (ROOT / "docs" / "slack.md").read_text()
    manifest, table = page.split("```")[1], page.split("## What each permission is for")[1]
    asked = set(re.findall(r"- ([a-z_.]+(?::[a-z]+)?)\n", manifest))
    scopes = {one for one in asked if ":" in one} | {"commands"}
    code = "".join(one.read_text() for one in (ROOT / "adapters" / "slack").rglob("*.py"))
    called = set(re.findall(r'"((?:agents|auth|chat|conversations|files|reactions|usergroups|users'
                            r'|views)\.[A-Za-z.]+)"', code))  # fmt: skip
    assert len(called) >= 18
    needed = {"commands"}
    for used in called | asked - scopes:
        needs = [NEEDS[one] for one in NEEDS if used.startswith(one)]
        assert needs, f"{used} needs a scope that the test does not know"
        needed.update(needs[0].split())
    assert needed == scopes
    explained = set(re.findall(r"`([a-z_]+:[a-z]+|commands)`", table.split("\n\n")[1]))
    assert explained == scopes | {"connections:write"}
