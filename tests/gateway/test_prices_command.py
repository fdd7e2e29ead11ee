"""`turnkeeper prices`: by which table models are priced, and how a newer one is got."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway.cli.main import main

PUBLISHED = [{
    "id": "openai", "name": "OpenAI",
    "models": [{"id": "m", "match": {"starts_with": "gpt-5.6"},
                "prices": {"input_mtok": 7, "output_mtok": 8}}],
}]  # fmt: skip


@pytest.fixture
def served() -> Iterator[dict[str, bytes]]:
    pages: dict[str, bytes] = {"/data.json": json.dumps(PUBLISHED).encode()}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802
            body = pages.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    pages["url"] = f"http://127.0.0.1:{server.server_port}".encode()
    yield pages
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURNKEEPER_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("MAX_MODEL", "openai/nobody-knows")
    monkeypatch.setenv("PRO_MODEL", "openai/gpt-5.6-terra")
    return tmp_path


def test_a_newer_table_is_got_and_named(
    home: Path, served: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prices"]) == 0
    told = capsys.readouterr().out
    assert "genai-prices" in told and "openai/gpt-5.6-terra: $2 in, $12 out" in told
    assert "openai/nobody-knows: unknown" in told and "$0" not in told.split("knows")[1][:12]
    url = f"{served['url'].decode()}/data.json"
    assert main(["prices", "refresh", "--url", url]) == 0
    assert url in capsys.readouterr().out
    assert main(["prices"]) == 0
    told = capsys.readouterr().out
    assert url in told and "openai/gpt-5.6-terra: $7 in, $8 out" in told


@pytest.mark.parametrize("body", [None, b"no json", b"[]", b'{"a": 1}'])
def test_what_cannot_be_read_changes_nothing(
    home: Path, served: dict[str, bytes], body: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if body is None:
        del served["/data.json"]
    else:
        served["/data.json"] = body
    url = f"{served['url'].decode()}/data.json"
    assert main(["prices", "refresh", "--url", url]) == 1
    assert "Nothing was changed." in capsys.readouterr().err
    assert not (home / "prices.json").exists()


def test_nobody_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prices", "refresh", "--url", "http://127.0.0.1:9/x"]) == 1
    assert "Nothing was changed." in capsys.readouterr().err


def test_a_package_that_is_not_there_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prices", "refresh", "--package"]) == 1
    assert "pip install genai-prices" in capsys.readouterr().err
