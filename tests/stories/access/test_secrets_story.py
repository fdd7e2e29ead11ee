"""A secret that a model says, or a command prints in pieces: nobody sees it on its way either."""

import html
import json

import pytest

from gateway.ports import Printed
from gateway.services.vault import Vault
from tests.fakes.model_server import Call, Fail, Say
from tests.stories.jobs_rig import schedule
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


def make_pat(n: int) -> str:
    return f"ghp_{n:02}" + "aB3dE7gH1jK5mN9pQ2sT6vW8xY4z" + f"{n:06}"


async def test_what_looks_like_a_secret_is_on_no_card_notice_or_list(rig: Rig) -> None:
    """In the places that a model, a provider or a person fills in with words of their own."""
    tool, question, choice, title, prompt, refused, said = (make_pat(n) for n in range(7))
    asks = {"question": f"Is it {question}?", "choices": [f"yes, {choice}", "no"]}
    rig.model.script(Call(tool), Call("ask_user", json.dumps(asks)), Say("I see."))
    rig.model.script(schedule(title=f"Nightly {title}", prompt=f"Use {prompt}"), Say("Well."))
    rig.model.script(Fail(400, message=f"no such key: {refused}"))
    await rig.start()
    rig.telegram.say(PERSON, f"Use {said}")
    card = await rig.card()
    rig.telegram.say(PERSON, "/approvals")
    await rig.until(lambda: sum("Is it" in one for one in rig.said()) == 2)
    rig.press(card, "no")
    await rig.shows("I see.")
    rig.telegram.say(PERSON, "Each night")
    await rig.shows("Nightly")
    rig.press(rig.cards()[-1], "Cancel")
    await rig.shows("Well.")
    rig.telegram.say(PERSON, "Again")
    await rig.shows("no such key")
    rig.telegram.say(PERSON, "/resume")
    await rig.quiet()
    told = "".join((*map(str, rig.telegram.calls), *(str(vars(one)) for one in rig.log.records)))
    told += str(await rig.audit())
    seen = [one for one in (tool, question, choice, title, prompt, refused, said) if one in told]
    assert seen == [] and "[secret]" in told


async def test_a_known_secret_is_in_no_list_of_questions_and_no_line_of_the_audit(rig: Rig) -> None:
    """Also where JSON quotes what HTML quoted before."""
    value = 'Sw0rd"fish & <under> the/bridge'
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", value)
    written = {"path": "a.txt", "content": f"k={html.escape(value, quote=False)}"}
    rig.model.script(Call("write_file", json.dumps(written)))
    rig.model.script(Call("ask_user", json.dumps({"question": f"Is it {value}?"})), Say("I see."))
    await rig.start()
    rig.telegram.say(PERSON, "Write it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("Is it [API_TOKEN]?")
    rig.telegram.say(PERSON, "/approvals")
    await rig.until(lambda: sum("Is it [API_TOKEN]?" in one for one in rig.said()) == 2)
    rig.telegram.say(PERSON, "Yes.")
    await rig.shows("I see.")
    await rig.quiet()
    told = str(rig.telegram.calls) + str(await rig.audit())
    assert "fish" not in told and "k=[API_TOKEN]" in told
    assert not await rig.store.letters(9) and rig.log.named("rejected") == []
