"""What people's agents install: shut until one press opens the index, and shut again afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.model_server import Say
from tests.fakes.needs import NEEDS_BWRAP, NEEDS_GIT, NEEDS_NPM, NEEDS_PIP
from tests.fakes.package_server import WORDS, PackageServer, list_installs
from tests.stories.rig import ADMIN, Rig, run

pytestmark = NEEDS_BWRAP
HOST = "127.0.0.2"
"""Loopback, and not what programs reach without the proxy."""
NEEDS = {"pip": NEEDS_PIP, "npm": NEEDS_NPM, "git": NEEDS_GIT}
INSTALLS = {
    name: pytest.param(command, marks=NEEDS[name]) for name, command in list_installs(HOST).items()
}


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageServer]:
    server = PackageServer(tmp_path_factory.mktemp("served"), HOST)
    yield server
    server.close()


@pytest.mark.pick("what is installed by a press", 1)
@pytest.mark.parametrize("command", INSTALLS.values(), ids=INSTALLS)
async def test_one_press_installs_it(
    command: str, rig: Rig, server: PackageServer, tmp_path: Path
) -> None:
    at = f"{HOST}:{server.port}"
    command = command.replace("{at}", at)
    rig.model.script(
        run(command, timeout=100),
        run(command, timeout=100, hosts=[at]),
        run(f"curl -sS http://{at}/x || true"),
        Say("It is there."),
    )
    await rig.start(SANDBOX_PROVIDER="bwrap", WEB_ALLOWED_HOSTS=at)
    await rig.until(lambda: rig.log.named("sandbox_checked"))
    rig.telegram.say(ADMIN, "/mode auto")
    await rig.quiet()
    rig.telegram.say(ADMIN, "install it")
    card = await rig.card(ADMIN)
    assert f"It needs access to {at}" in card["text"] and "Data can leave to" in card["text"]
    assert not server.asked, "nothing was reached before the press"
    rig.press(card, "Allow these hosts once", ADMIN)
    await rig.telegram.wait_text(ADMIN, "It is there.", 100)
    shut, opened, after = rig.seen(role="tool")[-3:]
    assert f"[Not reached: {at} is not open for this command." in shut
    assert WORDS in opened and server.asked and "[Not reached:" in after
    assert len(rig.cards(ADMIN)) == 0, "one press was enough"


@pytest.mark.pick("what an operator opened", 1)
@pytest.mark.parametrize("command", INSTALLS.values(), ids=INSTALLS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
@pytest.mark.parametrize("tls", [True, False], ids=["https", "http"])
async def test_what_an_operator_opened_needs_no_press(
    tls: bool, named: bool, command: str, rig: Rig, tmp_path: Path
) -> None:
    server = PackageServer(tmp_path / "served", HOST, tls=tls)
    at = f"{HOST}:{server.port}"
    command = command.replace("{at}", at)
    if tls:
        command = command.replace("http://", "https://").replace(f" --trusted-host {HOST}", "")
        trust = "PIP_CERT=$PWD/ca npm_config_cafile=$PWD/ca GIT_SSL_CAINFO=$PWD/ca"
        command = f"echo '{server.certificate}' > ca && export {trust} && {command}"
    hosts = {"hosts": [at]} if named else {}
    rig.model.script(
        run(command, timeout=100, **hosts),
        run(f"curl -sS http://{HOST}:8080/x || true"),
        Say("It is there."),
    )
    await rig.start(SANDBOX_PROVIDER="bwrap", WEB_ALLOWED_HOSTS=at, SANDBOX_HOSTS=at)
    await rig.until(lambda: rig.log.named("sandbox_checked"))
    rig.telegram.say(ADMIN, "/mode auto")
    await rig.quiet()
    rig.telegram.say(ADMIN, "install it")
    await rig.telegram.wait_text(ADMIN, "It is there.", 100)
    server.close()
    opened, shut = rig.seen(role="tool")[-2:]
    assert WORDS in opened and server.asked and not rig.cards(ADMIN)
    assert "[Not reached:" in shut, "other hosts stay shut"
