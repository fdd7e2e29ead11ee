"""Calls of one answer in any order, some of them granted: what runs was shown as it is then, or is
what the grant was given for; each call has one result, in the order of the calls."""

import json
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, Calls, Json, Say
from tests.fakes.needs import NEEDS_BWRAP
from tests.sampling import dice
from tests.stories.rig import PERSON, Rig, write

PARTS, ROUNDS = 12, 5
GRANTS = ("Approve in this conversation", "Always approve")


def run(command: str) -> Call:
    return Call("run_command", json.dumps({"command": command}))


def draw_calls(script: str, log: str, part: int, n: int) -> list[Call]:
    """One answer: the granted script, changes of it, and calls that have nothing to do with it."""
    chance = dice("order", part, n)
    changed = f"echo changed >> {log}\\n"
    pool = [
        *[run(f"sh {script}")] * 3,
        *[write(script, changed)] * 2,
        write(f"./{script}", changed),
        write(f"other{n}.txt", "x"),
        run(f"echo {changed.strip()!r} > {script}".replace("\\n", "")),
        run(f"cp {script} copy{n}.sh"),
        run("ls"),
        Call("read_file", json.dumps({"path": script})),
        Call("list_files", "{}"),
    ]
    return [run(f"sh {script}"), *chance.sample(pool, chance.randrange(1, 5))]


class Person:
    """Says yes to changes as the dice fall, and no to each card that runs the script, but for one
    that shows its change, too, while it is as it was."""

    def __init__(self, rig: Rig, part: int) -> None:
        self._rig, self._chance = rig, dice("person", part)
        self._answered: set[tuple[int, str]] = set()

    def answer(self, script: str) -> None:
        for card in self._rig.cards():
            key = (card["message_id"], card["text"])
            if key in self._answered:
                continue
            self._answered.add(key)
            runs = f"sh {script}" in card["text"]
            now = (self._rig.workspace() / script).read_text()
            both = runs and "echo changed" in card["text"] and "changed" not in now
            yes = self._chance.random() < 0.6 and (both or not runs)
            labels = [
                button["text"] for row in card["reply_markup"]["inline_keyboard"] for button in row
            ]
            wanted = next(one for one in labels if one.startswith("Approve" if yes else "Deny"))
            self._rig.press(card, wanted)


async def grant(rig: Rig, script: str, label: str) -> None:
    """Run it once, with a rule for the next times."""
    rig.model.script(run(f"sh {script}"), Say(f"ran {script}"))
    rig.telegram.say(PERSON, "run it")
    await rig.until(lambda: rig.cards())
    card = rig.cards()[-1]
    labels = [button["text"] for row in card["reply_markup"]["inline_keyboard"] for button in row]
    rig.press(card, next(one for one in labels if label in one))
    await rig.shows(f"ran {script}")
    await rig.quiet()


def list_results(body: Json) -> list[str]:
    return [str(one["tool_call_id"]) for one in body["messages"] if one["role"] == "tool"]


@NEEDS_BWRAP
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
async def test_no_order_of_calls_runs_what_nobody_saw(part: int, rig: Rig) -> None:
    await rig.start(SANDBOX_PROVIDER="bwrap", SANDBOX_HOSTS="example.com")
    place: Path = rig.workspace()
    place.mkdir(parents=True, exist_ok=True)
    person = Person(rig, part)
    for n in range(ROUNDS):
        script, log = f"x{n}.sh", f"log{n}.txt"
        (place / script).write_text(f"echo first >> {log}\n")
        await grant(rig, script, dice("grant", part, n).choice(GRANTS))
        calls = draw_calls(script, log, part, n)
        rig.model.script(Calls(calls), Say(f"over {n}"))
        rig.telegram.say(PERSON, f"round {n}")

        def is_over(n: int = n, script: str = script) -> bool:
            person.answer(script)
            return any(f"over {n}" in str(one["text"]) for one in rig.telegram.chats[PERSON])

        await rig.until(is_over)
        await rig.quiet()
        told = f"{part}/{n}: {[(one.name, one.arguments) for one in calls]}"
        ran = (place / log).read_text().split() if (place / log).exists() else []
        assert "changed" not in ran, told
        assert ran and set(ran) == {"first"}, told
        body = rig.model.requests[-1].body
        asked = [one for one in body["messages"] if one.get("tool_calls")][-1]["tool_calls"]
        given = list_results(body)[-len(asked) :]
        assert given == [one["id"] for one in asked], told
