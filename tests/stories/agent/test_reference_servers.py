"""MCP servers that others wrote, each of their tools called through the gateway.

`MCP_REFERENCE_SERVERS` names a folder with the packages, which are not ours to hold:

    npm i @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem \
        @modelcontextprotocol/server-memory @modelcontextprotocol/server-sequential-thinking
    python -m venv venv && venv/bin/pip install mcp-server-time mcp-server-fetch mcp-server-git
"""

import json
import os
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from agent_core.mcp import calls, servers
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.ports import free_port
from tests.fakes.waiting import PATIENCE, until
from tests.fakes.web_pages import served
from tests.stories.rig import PERSON, Rig

FOLDER = Path(os.environ.get("MCP_REFERENCE_SERVERS", "/nowhere"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="needs MCP_REFERENCE_SERVERS, see the file"),
]
GZIP: dict[str, object] = {"name": "a.gz", "data": "data:,hi", "outputType": "resource"}
Step = tuple[str, dict[str, object], str]
"""A tool, its arguments, and words of its result."""


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(servers, "MEET", PATIENCE)
    return rig


def node(name: str, *args: str) -> Json:
    program = FOLDER / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return {"command": "node", "args": [str(program), *args]}


def python(name: str, *args: str) -> Json:
    return {"command": str(FOLDER / "venv/bin" / f"mcp-server-{name}"), "args": [*args]}


async def call_each(rig: Rig, started: Json, steps: Iterable[Step], **env: str) -> list[str]:
    """What the tools gave, called one after the other."""
    steps = list(steps)
    made = [Call(f"s__{name}", json.dumps(given)) for name, given, _ in steps]
    rig.model.script(*made, Say("all called"))
    server = {"name": "s", **started, "env": env, "allow": ["*"]}
    await rig.start(MCP_SERVERS=json.dumps([server]))
    rig.telegram.say(PERSON, "call them")
    await rig.shows("all called")
    gave = rig.seen(role="tool")
    await rig.quiet()
    for (name, _, words), said in zip(steps, gave, strict=True):
        assert words in said, f"{name}: {said}"
    return gave


async def list_tools(rig: Rig) -> set[str]:
    found = rig.host.services.agent.servers  # type: ignore[attr-defined]
    return {one.tool for one in await found.list_known(())}


async def test_everything(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PACE", 0.0)
    steps: list[Step] = [
        ("echo", {"message": "hello"}, "Echo: hello"),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}, "image/png"),
        ("get-env", {}, '"PATH"'),
        ("get-resource-links", {"count": 2}, "demo://resource"),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, "demo://resource"),
        ("get-structured-content", {"location": "New York"}, "temperature"),
        ("get-sum", {"a": 2, "b": 3}, "5"),
        ("get-tiny-image", {}, "image/png"),
        ("gzip-file-as-resource", GZIP, "application/gzip"),
        ("toggle-simulated-logging", {}, "logging"),
        ("toggle-subscriber-updates", {}, "updates"),
        ("trigger-long-running-operation", {"duration": 1, "steps": 4}, "completed"),
        ("list_resources", {}, "demo://resource"),
        ("read_resource", {"uri": "demo://resource/dynamic/text/1"}, "Resource 1"),
        ("read_resource", {"uri": "demo://resource/dynamic/blob/1"}, "shown to the"),
    ]
    await call_each(rig, node("everything"), steps)
    called = {name for name, _, _ in steps}
    left = {"trigger-elicitation-request", "trigger-url-elicitation"}
    assert await list_tools(rig) == called | left


async def test_everything_asks(rig: Rig) -> None:
    link = {"url": "https://pay.example/", "message": "Pay"}
    rig.model.script(
        Call("s__trigger-elicitation-request"), Call("s__trigger-url-elicitation", json.dumps(link)),
        Say("asked"),
    )  # fmt: skip
    server = {"name": "s", **node("everything"), "allow": ["*"]}
    await rig.start(MCP_SERVERS=json.dumps([server]))
    rig.telegram.say(PERSON, "ask me")
    await rig.shows("Your full, legal name")
    rig.telegram.say(PERSON, "Ann")
    rig.press(await rig.shows("Agree to the terms"), "Skip")
    written = {
        "first line of a story": "-", "email address": "ann@example.org", "Portfolio": "-",
        "date of birth": "2000-02-30", "That does not fit": "2000-02-29", "favorite integer": "7",
        "Favorite number": "2.5",
    }  # fmt: skip
    for asked, said in written.items():
        await rig.shows(asked)
        rig.telegram.say(PERSON, said)
    rig.press(await rig.shows("Choose your favorite friend"), "Joey")
    await rig.shows("favorite instruments")
    rig.telegram.say(PERSON, "piano, Bass")
    rig.press(await rig.shows("favorite hero"), "Skip")
    await rig.shows("types of fish")
    rig.telegram.say(PERSON, "tuna, fish-3")
    rig.press(await rig.shows("type of pet"), "Dogs")
    rig.press(await rig.shows("Send this to the server s?"), "Send")
    rig.press(await rig.shows("The page is at pay.example"), "I opened it")
    await rig.shows("asked")
    form, page = rig.seen(role="tool")
    for words in (
        "Name: Ann", "Email: ann@example.org", "Birthdate: 2000-02-29", "Favorite Integer: 7",
        "Favorite Number: 2.5", '"untitledSingleSelectEnum": "Joey"', '"Bass"', '"fish-3"',
        '"titledSingleSelectEnum": "hero-1"', '"legacyTitledEnum": "pet-2"', "dark and stormy",
    ):  # fmt: skip
        assert words in form, words
    assert "accept" in page
    await rig.quiet()


@pytest.mark.parametrize("way", ["streamableHttp", "sse"])
async def test_everything_by_url(rig: Rig, way: str) -> None:
    port = free_port()
    program = FOLDER / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    running = subprocess.Popen(
        ["node", str(program), way], env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await until(lambda: is_listening(port))
        path, transport = ("mcp", "http") if way == "streamableHttp" else ("sse", "sse")
        at = {"url": f"http://127.0.0.1:{port}/{path}", "transport": transport, "allow": ["*"]}
        link = {"url": "https://pay.example/", "message": "Pay"}
        rig.model.script(
            Call("s__get-sum", '{"a": 2, "b": 3}'), Call("s__trigger-url-elicitation", json.dumps(link)),
            Say("called"),
        )  # fmt: skip
        await rig.start(MCP_SERVERS=json.dumps([{"name": "s", **at}]))
        rig.telegram.say(PERSON, "call them")
        rig.press(await rig.shows("The page is at pay.example"), "I opened it")
        await rig.shows("called")
        total, page = rig.seen(role="tool")
        assert "5" in total and "accept" in page
        await rig.quiet()
    finally:
        running.kill()
        running.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_filesystem(rig: Rig) -> None:
    files = rig.folder / "files"
    files.mkdir()
    a, b, pic = str(files / "a.txt"), str(files / "b.txt"), str(files / "p.png")
    at = {"path": str(files)}
    edits = [{"oldText": "one", "newText": "two"}]
    gave = await call_each(
        rig,
        node("filesystem", str(files)),
        [
            ("write_file", {"path": a, "content": "one"}, "Successfully"),
            ("write_file", {"path": pic, "content": "x"}, "Successfully"),
            ("read_file", {"path": a}, "one"),
            ("read_text_file", {"path": a, "head": 1}, "one"),
            ("read_media_file", {"path": pic}, "image/png"),
            ("edit_file", {"path": a, "edits": edits}, "+two"),
            ("read_multiple_files", {"paths": [a]}, "two"),
            ("create_directory", {"path": str(files / "c")}, "Successfully"),
            ("move_file", {"source": a, "destination": b}, "Successfully"),
            ("list_directory", at, "[FILE] b.txt"),
            ("list_directory_with_sizes", at, "b.txt"),
            ("directory_tree", at, "b.txt"),
            ("search_files", {**at, "pattern": "b*"}, "b.txt"),
            ("get_file_info", {"path": b}, "size"),
            ("list_allowed_directories", {}, str(files)),
            ("read_file", {"path": "/etc/passwd"}, "denied"),
        ],
    )
    assert Path(b).read_text() == "two" and gave
    assert len(await list_tools(rig)) == 14


async def test_memory(rig: Rig) -> None:
    entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
    friend = {"name": "Bob", "entityType": "person", "observations": []}
    knows = {"from": "Ann", "to": "Bob", "relationType": "knows"}
    steps: list[Step] = [
        ("create_entities", {"entities": [entity, friend]}, "likes tea"),
        ("create_relations", {"relations": [knows]}, "knows"),
        ("add_observations", {"observations": [{"entityName": "Bob", "contents": ["tall"]}]}, "tall"),
        ("read_graph", {}, "Ann"),
        ("search_nodes", {"query": "tea"}, "Ann"),
        ("open_nodes", {"names": ["Bob"]}, "tall"),
        ("delete_observations", {"deletions": [{"entityName": "Bob", "observations": ["tall"]}]}, "deleted"),
        ("delete_relations", {"relations": [knows]}, "deleted"),
        ("delete_entities", {"entityNames": ["Ann"]}, "deleted"),
    ]  # fmt: skip
    await call_each(rig, node("memory"), steps, MEMORY_FILE_PATH=str(rig.folder / "graph.jsonl"))
    assert await list_tools(rig) >= {name for name, _, _ in steps}


async def test_sequential_thinking(rig: Rig) -> None:
    thought = {"thought": "a", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
    await call_each(
        rig, node("sequential-thinking"), [("sequentialthinking", thought, "thoughtHistoryLength")]
    )


async def test_time(rig: Rig) -> None:
    convert = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    await call_each(
        rig,
        python("time"),
        [
            ("get_current_time", {"timezone": "Europe/Berlin"}, "datetime"),
            ("convert_time", convert, "Asia/Tokyo"),
            ("get_current_time", {"timezone": "Nowhere/None"}, "failed"),
        ],
    )


async def test_fetch(rig: Rig) -> None:
    async with served() as site:
        site.put("/page", "A page", "Some words of the page. " * 20, "the fact")
        url = f"{site.url}/page"
        await call_each(
            rig,
            python("fetch", "--ignore-robots-txt", "--allow-private-ips"),
            [("fetch", {"url": url}, "the fact")],
        )


async def test_git(rig: Rig) -> None:
    repo = rig.folder / "repo"
    repo.mkdir()
    for words in (
        ["init", "-q", "-b", "main"], ["config", "user.email", "a@b.example"],
        ["config", "user.name", "Ann"],
    ):  # fmt: skip
        subprocess.run(["git", "-C", str(repo), *words], check=True)
    (repo / "a.txt").write_text("one\n")
    at = {"repo_path": str(repo)}
    steps: list[Step] = [
        ("git_status", at, "a.txt"),
        ("git_add", {**at, "files": ["a.txt"]}, "staged"),
        ("git_commit", {**at, "message": "First"}, "committed"),
        ("git_log", at, "First"),
        ("git_show", {**at, "revision": "HEAD"}, "+one"),
        ("git_create_branch", {**at, "branch_name": "other"}, "other"),
        ("git_branch", {**at, "branch_type": "local"}, "other"),
        ("git_checkout", {**at, "branch_name": "other"}, "other"),
        ("git_diff", {**at, "target": "main"}, ""),
        ("git_diff_staged", at, "Staged"),
        ("git_diff_unstaged", at, "Unstaged"),
        ("git_reset", at, "reset"),
    ]
    await call_each(rig, python("git", "--repository", str(repo)), steps)
    assert await list_tools(rig) == {name for name, _, _ in steps}
