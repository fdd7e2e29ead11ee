"""A gateway where Python alone runs, by Monty; and one where nothing does."""

import json

import pytest

from agent_core.sandboxes import detect
from agent_core.sandboxes.tier import Tier, TierUnusable
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, Rig


async def test_code_runs_unasked_and_a_command_is_told_what_to_install(rig: Rig) -> None:
    code = json.dumps({"language": "python", "code": "print(sum(range(101)))"})
    rig.model.script(
        Call("execute_code", code), Say("It is 5050."),
        Call("run_command", '{"command": "ls"}'), Say("That does not run here."),
    )  # fmt: skip
    await rig.start(SANDBOX_PROVIDER="monty")
    rig.telegram.say(ADMIN, "add them up")
    await rig.shows("It is 5050.", ADMIN)
    assert "5050" in rig.seen(role="tool")[-1] and not rig.cards(ADMIN)
    rig.telegram.say(ADMIN, "list them")
    await rig.shows("That does not run here.", ADMIN)
    assert "runs Python alone" in rig.seen(role="tool")[-1]
    assert "bubblewrap" in rig.seen(role="tool")[-1]
    rig.telegram.say(ADMIN, "/status")
    said = (await rig.shows("monty", ADMIN))["text"]
    assert "limits" not in said, "neither the kernel's groups nor the watch hold them"
    await rig.quiet()


async def test_where_no_tier_works_the_gateway_starts_and_says_what_to_install(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_fault(tier: Tier) -> str:
        return f"no {tier.name} here"

    async def find_docker(address: str) -> None:
        raise TierUnusable("no docker here")

    def find_monty() -> None:
        raise TierUnusable("no monty here")

    for one in (find_fault, find_docker, find_monty):
        monkeypatch.setattr(detect, one.__name__, one)
    rig.model.script(Call("run_command", '{"command": "ls"}'), Say("Nothing runs here."))
    await rig.start(SANDBOX_PROVIDER="auto")
    rig.telegram.say(ADMIN, "list them")
    await rig.shows("Nothing runs here.", ADMIN)
    said = rig.seen(role="tool")[-1]
    assert "no sandbox works on this machine" in said and "Install bubblewrap" in said
    assert all(
        f"{name}: no {name} here" in said for name in ("bwrap", "docker", "landlock", "monty")
    )
    await rig.quiet()
