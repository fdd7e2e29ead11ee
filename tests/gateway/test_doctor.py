"""What `turnkeeper doctor` says of the parts that it tries by itself."""

import json
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.cli import doctor
from gateway.declaration import SettingsError
from gateway.errors import StoreFailed
from gateway.ops import control
from gateway.ops.store_damage import find_damage
from gateway.settings import Settings
from gateway.store.sqlite import SqliteStore
from gateway.wiring.assembly import STORE, assemble
from gateway.wiring.sandboxes import choose_tier

RAW = Path(__file__).parents[1] / "fakes" / "mcp_raw.py"
SHAPE = {"type": "object"}


async def test_servers_are_tried_and_what_is_left_out_of_their_tools_is_named(
    tmp_path: Path,
) -> None:
    tools = [{"name": "good", "inputSchema": SHAPE}, {"name": "odd", "inputSchema": "none"}]
    (tmp_path / "lines").write_text("")
    (tmp_path / "tools").write_text(json.dumps(tools))
    args = [str(RAW), str(tmp_path / "lines"), str(tmp_path / "tools")]
    servers = [
        {"name": "raw", "command": sys.executable, "args": args},
        {"name": "gone", "command": "/nowhere/at/all"},
        {"name": "crm", "url": "https://crm.example/mcp", "auth": "oauth"},
    ]
    said: list[str] = []
    settings = Settings.read({"MCP_SERVERS": json.dumps(servers)}, tmp_path)
    assert await doctor._check_servers(settings, said.append) == 1
    ok, left_out, gone, person = said
    assert ok == "ok       mcp: raw: 1 tool"
    assert left_out.startswith("note     mcp: raw: left out tool odd: inputSchema")
    assert gone.startswith("wrong    mcp: gone: ") and "/nowhere/at/all" in gone
    assert person == "note     mcp: crm: people sign in there; it was not tried"


class Reports:
    """An upkeep that has nothing to report."""

    async def report_retention(self) -> str:
        return "none."

    async def back_up(self, to: Path, tell: control.Tell) -> str:
        raise NotImplementedError

    async def erase(self, person: str, tell: control.Tell) -> str:
        raise NotImplementedError


async def fill_store(file: Path) -> None:
    store = await SqliteStore.open(file)
    for n in range(40):
        await store.put(f"key-{n}", bytes(3_000))
    await store.close()


@pytest.mark.parametrize("how", ["its head", "a page", "cut short", "something else"])
async def test_a_damaged_store_is_told_and_left_as_it_is(tmp_path: Path, how: str) -> None:
    file = tmp_path / STORE
    assert find_damage(file) == "" and not file.exists()
    await fill_store(file)
    assert find_damage(file) == ""
    whole = file.read_bytes()
    spoilt = {
        "its head": bytes(100) + whole[100:],
        "a page": whole[:2048] + bytes(2048) + whole[4096:],
        "cut short": whole[: len(whole) // 2],
        "something else": b"hello\n" * 1_000,
    }[how]
    file.write_bytes(spoilt)
    said: list[str] = []
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    assert await doctor._store(settings, said.append) == 1
    (line,) = said
    assert line.startswith(f"wrong    store: {file} is damaged: ")
    assert file.read_bytes() == spoilt


async def test_a_store_that_a_gateway_uses_is_looked_at_too(tmp_path: Path) -> None:
    file = tmp_path / STORE
    await fill_store(file)
    store = await SqliteStore.open(file)
    operations = control.Operations(store=store, pairing=None, upkeep=Reports())
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    said: list[str] = []
    async with control.serve(tmp_path, operations):
        assert await doctor._store(settings, said.append) == 0
        assert said == [
            "ok       store: in use by the running gateway",
            "note     retention: none.",
        ]
        said.clear()
        whole = file.read_bytes()
        file.write_bytes(b"hello\n" * (len(whole) // 6))
        assert await doctor._store(settings, said.append) == 1
        assert said[0].startswith(f"wrong    store: {file} is damaged: ")
        file.write_bytes(whole)
    await store.close()


class Broken(Reports):
    async def report_retention(self) -> str:
        raise StoreFailed("the store could not be read: disk I/O error")


async def test_what_a_running_gateway_says_of_its_store_is_believed(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / STORE)
    operations = control.Operations(store=store, pairing=None, upkeep=Broken())
    settings = Settings.read({"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    said: list[str] = []
    async with control.serve(tmp_path, operations):
        assert await doctor._store(settings, said.append) == 1
    (line,) = said
    assert line.startswith("wrong    store: in use by the running gateway. ")
    assert "disk I/O error" in line
    await store.close()


REFUSED = {
    "commands": {"QUICK_COMMANDS": '{"help": "x"}'},
    "rights": {"COMMAND_RIGHTS": "nosuch=admin"},
    "skills": {"SKILLS": "no.such:thing"},
    "sets": {"TOOLSETS_FOR": '{"telegram": "nosuch"}'},
    "hooks": {"HOOKS": "no.such:pre_tool_call"},
    "prices": {"BUDGET_DAY_USD": "1", "OPENAI_API_KEY": "sk-x", "PRO_MODEL": "openai/strange"},
    "memory": {"MEMORY_PROVIDER": '{"server": "x", "recall": {"tool": "t", "arguments": {}}}'},
}
"""Settings of which each is well written, and with which a gateway does not start."""


def test_a_port_for_previews_that_is_taken_is_told(tmp_path: Path) -> None:
    env = {"TURNKEEPER_HOME": str(tmp_path), "TURNKEEPER_PORT": "0"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings.read(env | {"PREVIEW_PORT": str(port)}, tmp_path)
        (note,) = [one for one in doctor._check_place(settings) if one.mark == "note"]
    said = f"note     previews: PREVIEW_PORT: cannot listen on 127.0.0.1:{port} ("
    assert str(note).startswith(said)
    assert not [one for one in doctor._check_place(settings) if one.mark == "note"], "it is free"
    assert [one.mark for one in doctor._check_place(Settings.read(env, tmp_path))] == ["ok"]


@pytest.mark.parametrize("which", REFUSED)
async def test_what_a_start_refuses_is_found_before(tmp_path: Path, which: str) -> None:
    dead = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_MODE": "chat_completions"}
    more = {"TURNKEEPER_PORT": "0", "LOCAL_MODEL_DISCOVERY": "off", **dead}
    settings = Settings.read(more | REFUSED[which] | {"TURNKEEPER_HOME": str(tmp_path)}, tmp_path)
    with pytest.raises(SettingsError) as refused:
        async with AsyncExitStack() as stack:
            await assemble(settings, {}, await choose_tier(settings, stack), stack, 1)
    said: list[str] = []
    assert await doctor._examine(settings, said.append) == 1
    assert any(line.startswith("wrong") and line.endswith(str(refused.value)) for line in said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("telegrm", "did you mean telegram?"),
        ("Slakc", "did you mean slack?"),
        ("old", "there are telegram, discord, slack, web, general"),
    ],
)
async def test_instructions_that_hold_nowhere_are_named(
    tmp_path: Path, name: str, said: str
) -> None:
    for one in (name, "telegram", "data", ""):
        (tmp_path / ("instructions" + f".{one}" * bool(one) + ".md")).write_text("Be kind.")
    env = {"TURNKEEPER_HOME": str(tmp_path)}
    told: list[str] = []
    assert doctor._check_instructions(Settings.read(env, tmp_path), told.append) == 0
    (line,) = told
    assert line.startswith(
        f"note     instructions: instructions.{name.lower()}.md is of no platform"
    )
    assert said in line
