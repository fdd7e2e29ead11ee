"""The log: one line an event, and no secret in it, however it got there."""

import base64
import io
import json
import logging
from pathlib import Path
from urllib.parse import quote

import pytest

from gateway.ops.logs import Lines, Redactor, hide_lent, set_up
from gateway.services.vault import Vault

SECRET = 'p"ass/word+1'
LOG = logging.getLogger("turnkeeper.test")


@pytest.fixture
def stream() -> io.StringIO:
    stream = io.StringIO()
    set_up("debug", [SECRET, "abc"], stream=stream)
    return stream


def test_one_line_an_event_with_fields(stream: io.StringIO) -> None:
    LOG.info("turn_started", extra={"turn": "t1", "why": 'two words\nand "quotes"', "n": 3})
    time, level, event, rest = stream.getvalue().rstrip("\n").split(" ", 3)
    assert time.endswith("Z") and (level, event) == ("info", "turn_started")
    assert rest == 'turn=t1 why="two words\\nand \\"quotes\\"" n=3'
    LOG.info("two\nlines")
    logging.getLogger("other.library").warning("their %s", "words")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[1].endswith("two\\nlines")
    LOG.info("red \x1b[31m", extra={"name_": "\x1b[2J", "csi": "\x9b2J é", "word": "é"})
    last = stream.getvalue().splitlines()[-1]
    assert last.isprintable() and last.endswith("word=é")
    assert lines[2].endswith("their words logger=other.library")


def test_secrets_are_hidden_everywhere(stream: io.StringIO) -> None:
    LOG.info("message %s", SECRET)
    LOG.info("field", extra={"url": f"http://x/{quote(SECRET, safe='')}", "raw": SECRET})
    try:
        raise ValueError(f"bad {SECRET}")
    except ValueError:
        LOG.exception("failed")
    LOG.warning("broken %d %s", "format", SECRET)
    said = stream.getvalue()
    assert "…" in said and "ass/word" not in said and "ass%2Fword" not in said
    assert len(said.splitlines()) == 4
    assert "Traceback" in said


@pytest.mark.parametrize(
    "token",
    [
        "bot123456789:AAH8Zt9F0yZ4vS2QpWm1kR7uXc3LbN5dEfG",
        "sk-proj-abcDEF123456789012",
        "sk-ant-api03-abcDEF123456789012",
        "xoxb-1234567890-abcdefghij",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
    ],
)
def test_what_looks_like_a_token_is_hidden(token: str) -> None:
    said = Redactor([]).clean(f"https://api.example.org/{token}/getMe and {token}.")
    assert token.removeprefix("bot") not in said


def test_a_bearer_is_hidden_and_words_are_not() -> None:
    redactor = Redactor(["abc"])
    assert redactor.clean("Authorization: Bearer abcdefghijkl") == "Authorization: Bearer …"
    assert redactor.clean("the abc of 12:30 o'clock") == "the abc of 12:30 o'clock"


def test_what_people_lend_is_hidden_from_when_it_is_set(
    stream: io.StringIO, tmp_path: Path
) -> None:
    vault = Vault(tmp_path)
    set_up("info", [], stream=stream)
    hide_lent(vault.words)
    value = 'pass/w"ord 9'
    vault.keep("telegram:1", "DEPLOY_KEY", value)
    forms = (value, json.dumps({"k": value}), quote(value, safe=""), "pass%2Fw\\u0022ord%209")
    for form in (*forms, base64.b64encode(value.encode()).decode()):
        logging.getLogger("turnkeeper.x").error("failed", extra={"why": form})
        try:
            raise ValueError(form)
        except ValueError:
            logging.getLogger("turnkeeper.x").exception("failed")
    (tmp_path / "secrets.json").write_text("no JSON")
    logging.getLogger("turnkeeper.x").error("failed", extra={"why": value})
    said = stream.getvalue()
    assert said.count("[DEPLOY_KEY]") >= 10, said
    assert value not in said and "pass" not in said, said


def test_json_lines() -> None:
    record = logging.makeLogRecord(
        {"name": "turnkeeper.x", "levelno": 30, "levelname": "WARNING", "msg": "late",
         "turn": "t1", "why": SECRET},
    )  # fmt: skip
    line = json.loads(Lines(Redactor([SECRET]), as_json=True).format(record))
    assert (line["level"], line["event"], line["turn"], line["why"]) == (
        "warning", "late", "t1", "…",
    )  # fmt: skip
