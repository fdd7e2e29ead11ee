"""The way out of a sandbox: shut, or open for single hosts and single commands."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.config.declaration import SettingsError
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.network import PORT, NetworkPass, SandboxNetwork
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import Permits, ProcessResult
from agent_core.sandboxes.tier import Tier
from agent_core.tools.shell import RunCommandArguments
from agent_core.tools.web.addresses import read_url
from agent_core.tools.web.hosts import PRESETS, admits, read_hosts
from agent_core.tools.web.settings import WebSettings
from tests.fakes.needs import (
    NEEDS_BWRAP,
    NEEDS_CURL,
    NEEDS_GIT,
    NEEDS_NPM,
    NEEDS_PIP,
)
from tests.fakes.package_server import LARGE, MODULE, NAME, WORDS, PackageServer, list_installs
from tests.fakes.sandboxes import BWRAP, DOCKER, LANDLOCK, find_tier
from tests.fakes.waiting import PATIENCE

HOST = "packages.test"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageServer]:
    server = PackageServer(tmp_path_factory.mktemp("served"))
    yield server
    server.close()


@pytest.fixture(params=[BWRAP, LANDLOCK, DOCKER])
async def pool(server: PackageServer, request: pytest.FixtureRequest) -> object:
    tier = await find_tier(request)

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    network = SandboxNetwork(frozenset({f"{HOST}:{server.port}"}), resolve)
    pool = SandboxPool(tier, network=network)
    yield pool
    await pool.close()


async def run(pool: SandboxPool, command: str, workspace: Path, *hosts: str) -> ProcessResult:
    opened = frozenset(read_hosts(hosts))
    return await pool.run(command, workspace, 50.0, lambda _: None, Permits(hosts=opened))


NEEDS = {"pip": NEEDS_PIP, "npm": NEEDS_NPM, "git": NEEDS_GIT}
INSTALLS = {
    **{
        name: pytest.param(command, marks=NEEDS[name])
        for name, command in list_installs(HOST).items()
    },
    "venv": pytest.param(
        "python3 -m venv --without-pip v && pip --python v/bin/python install -q --no-user "
        "--disable-pip-version-check --index-url http://{at}/simple/ "
        f"--trusted-host {HOST} {NAME} && v/bin/python -c 'import {MODULE}; print({MODULE}.WORDS)'",
        marks=NEEDS_PIP,
    ),
    "curl": pytest.param(
        f"curl -fsS http://{{at}}/{NAME}.git/HEAD && echo '{WORDS}'", marks=NEEDS_CURL
    ),
    "python": pytest.param(
        f"python3 -c 'import urllib.request as u; u.urlopen(\"http://{{at}}/{NAME}\")' && echo '{WORDS}'"
    ),
}


@pytest.mark.pick("a way into the network", 2)
@pytest.mark.parametrize("command", INSTALLS.values(), ids=INSTALLS)
async def test_what_is_opened_is_reached_and_else_the_way_is_named(
    command: str, pool: SandboxPool, server: PackageServer, tmp_path: Path
) -> None:
    at = f"{HOST}:{server.port}"
    words = command.replace("{at}", at)
    shut = await run(pool, words, tmp_path)
    assert WORDS not in shut.output and not server.asked
    assert f"[Not reached: {at} is not open for this command." in shut.output, shut
    opened = await run(pool, words, tmp_path, at)
    assert opened.exit_code == 0 and WORDS in opened.output and server.asked, opened
    again = await run(pool, f"curl -sS http://{at}/x || true", tmp_path)
    assert "[Not reached:" in again.output, "it was open for that one command"


@NEEDS_CURL
async def test_who_reads_slowly_gets_all_of_it(
    pool: SandboxPool, server: PackageServer, tmp_path: Path
) -> None:
    """The server is long done, and what it sent waits on its way."""
    at = f"{HOST}:{server.port}"
    command = f"curl -fsS --limit-rate 4M http://{at}/large | sha256sum"
    done = await run(pool, command, tmp_path, at)
    assert done.output.split()[0] == hashlib.sha256(LARGE).hexdigest(), done


@NEEDS_CURL
async def test_a_command_goes_by_its_own_pass(
    pool: SandboxPool, server: PackageServer, tmp_path: Path
) -> None:
    """Not by another's that runs beside it, by none, or by one that it makes up."""
    at = f"{HOST}:{server.port}"
    wait = "until [ -e go ]; do sleep 0.05; done"
    one = await pool.start(
        f"{wait}; curl -sS http://{at}/{NAME}", tmp_path, 50, Permits(hosts=frozenset({at}))
    )
    tries = (
        f"curl -sS http://{at}/{NAME}",
        f"curl -sS -x http://127.0.0.1:{PORT} http://{at}/{NAME}",
        f"curl -sS -x http://sandbox:guess@127.0.0.1:{PORT} http://{at}/{NAME}",
        f"curl -sS --noproxy '*' http://127.0.0.1:{server.port}/{NAME}",
        f"curl -sS --noproxy '*' http://{at}/{NAME}",
        f"curl -sS -x socks5h://127.0.0.1:{PORT} http://{at}/{NAME}",
        f"printf 'GET http://{at}/{NAME} HTTP/1.0\\r\\n\\r\\n' > /dev/tcp/127.0.0.1/{PORT}",
        "python3 -c 'import socket; socket.getaddrinfo(\"pypi.org\", 443)'",
    )
    for words in tries:
        done = await run(pool, words, tmp_path)
        assert not server.asked and "dist-tags" not in done.output, words
    assert "no names of its own" in done.output
    (tmp_path / "go").touch()
    done = await one.wait(20)
    assert done is not None and "dist-tags" in done.output
    late = await run(
        pool, f"(sleep 0.5; curl -sS http://{at}/late >out) >/dev/null 2>&1 &", tmp_path, at
    )
    assert late.exit_code == 0
    async with asyncio.timeout(PATIENCE):
        while not (tmp_path / "out").exists() or not (tmp_path / "out").read_bytes():
            await asyncio.sleep(0.05)
    assert "/late" not in server.asked, "what it left running has no pass any more"


TUNNEL = """import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
import base64
word = base64.b64encode(f"{{proxy.username}}:{{proxy.password}}".encode()).decode()
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(b"{first}\\r\\nProxy-Authorization: Basic " + word.encode() + b"\\r\\n\\r\\n")
s.recv(10)
if os.fork():
    os._exit(0)
os.setsid()
while s.recv(10):
    pass
"""


@pytest.mark.parametrize("first", ["CONNECT {at} HTTP/1.1", "POST http://{at}/ HTTP/1.1"])
@pytest.mark.parametrize("tier", [BWRAP, LANDLOCK, DOCKER], indirect=True)
async def test_what_a_command_opened_is_shut_with_it(
    tier: Tier, first: str, tmp_path: Path
) -> None:
    """Also a tunnel that it leaves to what goes on running."""
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbegun")
        await reader.read()
        ended.set()
        writer.close()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        at = f"{HOST}:{listening.sockets[0].getsockname()[1]}"
        pool = SandboxPool(tier, network=SandboxNetwork(frozenset({at}), resolve))
        try:
            (tmp_path / "tunnel.py").write_text(TUNNEL.format(first=first.format(at=at)))
            done = await run(pool, "python3 tunnel.py >/dev/null 2>&1", tmp_path, at)
            assert done.exit_code == 0, done
            async with asyncio.timeout(PATIENCE):
                await ended.wait()
        finally:
            await pool.close()


@NEEDS_BWRAP
@NEEDS_CURL
async def test_private_addresses_stay_shut_also_when_opened(
    server: PackageServer, tmp_path: Path
) -> None:
    pool = SandboxPool(BwrapTier())
    try:
        for at in (f"localhost:{server.port}", f"127.0.0.2:{server.port}"):
            done = await run(pool, f"curl -sS --noproxy '' http://{at}/{NAME}", tmp_path, at)
            assert "not public" in done.output and not server.asked
    finally:
        await pool.close()


@NEEDS_BWRAP
@NEEDS_CURL
async def test_an_open_host_that_leads_inside_is_told_with_the_way(tmp_path: Path) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["::ffff:10.0.0.5"]

    pool = SandboxPool(BwrapTier(), network=SandboxNetwork(resolve=resolve))
    try:
        done = await run(pool, "curl -fsS https://inner.test/x", tmp_path, "inner.test")
        assert "inner.test:443 leads to an address that is not public" in done.output
        assert "WEB_ALLOWED_HOSTS" in done.output
    finally:
        await pool.close()


@NEEDS_BWRAP
@NEEDS_CURL
async def test_a_request_names_the_host_that_was_opened(tmp_path: Path) -> None:
    """Not another one at the same address."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        at = f"{HOST}:{listening.sockets[0].getsockname()[1]}"
        pool = SandboxPool(BwrapTier(), network=SandboxNetwork(frozenset({at}), resolve))
        try:
            for words in ("", "-H 'Host: other.test'", "-H Host: -H 'A: b'", "--data x"):
                done = await run(pool, f"curl -sS {words} http://{at}/a?b", tmp_path, at)
                assert done.output == "ok", done
        finally:
            await pool.close()
    hosts = [[line for line in head.split(b"\r\n") if b"ost:" in line] for head in heads]
    assert hosts == [[f"Host: {at}".encode()]] * 4


# ---- how hosts are written -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["pypi.org"], ("pypi.org",)),
        (["PyPI.org", "pypi.org."], ("pypi.org",)),
        (["a.test:8080", "[::1]:90", "::1"], None),
        (["a.test:8080", "[::1]:90"], ("a.test:8080", "[::1]:90")),
        (["git", "github.com"], PRESETS["git"]),
        (["bücher.example"], ("xn--bcher-kva.example",)),
        (["https://pypi.org"], None), (["*.pypi.org"], None), (["a b"], None), ([""], None),
        (["pypi.org/simple"], None), (["a@b"], None), (["0x7f.1"], None), (["a.test:99999"], None),
    ],
)  # fmt: skip
def test_hosts_are_read_strictly(words: list[str], found: tuple[str, ...] | None) -> None:
    if found is None:
        with pytest.raises(ValueError, match="is no host"):
            read_hosts(words)
    else:
        assert read_hosts(words) == found


def test_both_presets_leave_room_for_more() -> None:
    named = RunCommandArguments(command="make", hosts=("packages", "git", "mirror.example")).hosts
    assert set(named) == {*PRESETS["packages"], *PRESETS["git"], "mirror.example"}


def test_a_bare_name_means_the_usual_ports() -> None:
    opened = frozenset({"a.test", "b.test:81"})
    inside = ("http://a.test/", "https://a.test/x", "http://b.test:81/")
    outside = ("http://a.test:81/", "https://b.test/", "https://x.a.test/", "https://a.test.evil/")
    assert all(admits(opened, read_url(url)) for url in inside)
    assert not any(admits(opened, read_url(url)) for url in outside)


def test_the_operator_opens_hosts_by_a_setting() -> None:
    opened = WebSettings.read({"SANDBOX_HOSTS": "git, pypi.org, a.test:81"}).open
    assert opened == {*PRESETS["git"], "pypi.org", "a.test:81"}
    assert WebSettings.read({}).open == frozenset()
    with pytest.raises(SettingsError, match="SANDBOX_HOSTS=.*is no host"):
        WebSettings.read({"SANDBOX_HOSTS": "*.pypi.org"})


def test_what_reaches_nothing_is_not_tried_again() -> None:
    again = {"PIP_RETRIES", "UV_HTTP_RETRIES", "CARGO_NET_RETRY"}
    assert again <= NetworkPass(frozenset()).env.keys()
    assert again.isdisjoint(NetworkPass(frozenset({"pypi.org"})).env)
