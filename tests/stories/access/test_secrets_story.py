"""A secret that a model says, or a command prints in pieces: nobody sees it on its way either."""

import pytest

from gateway.ports import Printed
from gateway.services.vault import Vault
from tests.fakes.model_server import Call, Say
from tests.stories.rig import PERSON, Rig, quick

VALUE = "sword fish under the bridge"
WHERE = Rig.where().id


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    quick(monkeypatch, edit_interval=0.0)
    return rig


async def test_a_secret_in_pieces_is_never_on_the_way(rig: Rig) -> None:
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    run = "echo -n ${API_TOKEN:0:9}; /bin/echo ${API_TOKEN:9}"
    rig.model.script(Call("run_command", f'{{"command": "{run}"}}'), Say(f"It is {VALUE}, I see."))
    await rig.start(SANDBOX_PROVIDER="unsafe-subprocess")
    live: list[str] = []
    async with rig.host.services.feed.watch(WHERE) as watched:
        rig.telegram.say(PERSON, "use it")
        rig.press(await rig.card(), "Approve once")
        await rig.shows("It is [API_TOKEN], I see.")
        async for event in watched:
            live.append(event.text if isinstance(event, Printed) else "")
            if live[-1].endswith("\n"):
                break
    assert "".join(live) == "[API_TOKEN]\n"
    await rig.quiet()
    everything = (*map(str, rig.telegram.calls), str([r.body for r in rig.model.requests]))
    assert not any("sword" in one or "bridge" in one for one in everything)
