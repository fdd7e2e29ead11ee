"""A secret that a model says, or a command prints in pieces: nobody sees it on its way either."""

import base64
import html
import json

import pytest

from gateway.ports import Printed
from gateway.services.vault import Vault
from tests.fakes.model_server import Call, Fail, Say
from tests.stories.jobs_rig import TITLE, jobs_of, schedule
from tests.stories.memory_rig import memory
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


async def test_no_file_that_a_command_wrote_carries_a_secret_out(rig: Rig) -> None:
    """Nor does the card that shows how such a file changes."""
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    run = "echo it is $API_TOKEN > a.txt; (echo $API_TOKEN; head -c9 /dev/zero) > a.bin"
    rig.model.script(Call("run_command", json.dumps({"command": run})))
    for name in ("a.txt", "a.bin"):
        rig.model.script(Call("send_file", json.dumps({"paths": [name]})))
    rig.model.script(Call("write_file", '{"path": "a.txt", "content": "new"}'), Say("Done."))
    await rig.start(SANDBOX_PROVIDER="unsafe-subprocess")
    rig.telegram.say(PERSON, "use it")
    rig.press(await rig.card(), "Approve once")
    await rig.until(lambda: rig.cards() and "+new" in str(rig.cards()[-1]))
    assert "it is [API_TOKEN]" in str(rig.cards()[-1])
    rig.press(rig.cards()[-1], "Approve once")
    await rig.shows("Done.")
    await rig.quiet()
    assert (rig.workspace() / "a.txt").read_text() == "new"
    (sent,) = rig.telegram.made("sendDocument")
    given = sent.files["document"]
    assert (given.name, given.data) == ("a.txt", b"it is [API_TOKEN]\n")
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


OWN = {
    "TURNKEEPER_TOKEN": "Sesame open thou-4711",
    "AUDIT_KEY": "a-key/of=the+audit 99",
    "NOTES_KEY": "what-the-notes-want-1234",
    "HOUSE_KEY": "the-house's-key-5678",
}
"""Secrets of the settings that have no shape by which anybody could know them."""


async def start_with_own_secrets(rig: Rig) -> None:
    house = {"name": "house", "base_url": f"{rig.model_url}/v1", "api_key": OWN["HOUSE_KEY"]}
    notes = {"name": "notes", "url": "http://127.0.0.1:9/mcp", "tools": []}
    notes["headers"] = {"Authorization": "Bearer ${NOTES_KEY}"}
    await rig.start(
        **OWN,
        OPENAI_COMPATIBLE_PROVIDERS=json.dumps([house | {"tier_models": {"flash": "small"}}]),
        MCP_SERVERS=json.dumps([notes]),
    )


async def test_a_secret_of_the_settings_is_told_to_nobody(rig: Rig) -> None:
    """Whoever said it to the model: a page, a person, an error of a provider."""
    said = " ".join(OWN.values())
    coded = " ".join(base64.b64encode(value.encode()).decode() for value in OWN.values())
    written = {"path": "a.txt", "content": f"k={said}"}
    rig.model.script(Call("write_file", json.dumps(written)), Say(f"They are {said} or {coded}."))
    rig.model.script(Fail(400, message=f"no such key: {coded} {said}"))
    await start_with_own_secrets(rig)
    rig.telegram.say(PERSON, "Write it")
    rig.press(await rig.card(), "Approve once")
    await rig.shows("They are")
    rig.telegram.say(PERSON, "Again")
    await rig.shows("no such key")
    await rig.quiet()
    told = str(rig.telegram.calls) + str(await rig.audit())
    assert "They are [secret] [secret] [secret] [secret] or [secret] " in told
    assert not any(one in told for one in (*OWN.values(), *coded.split()))


async def test_no_known_secret_is_remembered(rig: Rig) -> None:
    """Nor in words around it, nor otherwise written: what is remembered is in each later request."""
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    secrets = {**OWN, "API_TOKEN": VALUE}
    for n, value in enumerate(secrets.values()):
        for form in (value, base64.b64encode(value.encode()).decode(), value[::-1]):
            rig.model.script(memory("add", f"The notes are opened by {form} alone"))
        rig.model.script(memory("add", f"The notes open at {n}"))
    rig.model.script(Say("Done."))
    await start_with_own_secrets(rig)
    rig.telegram.say(PERSON, "Remember how the notes are opened")
    await rig.shows("Done.")
    await rig.quiet()
    kept = await rig.store.get(f"memory:own:telegram:{PERSON}")
    assert kept is not None and kept.count(b"The notes open at") == 5
    assert b"opened by" not in kept


async def test_no_known_secret_is_stored_with_a_job(rig: Rig) -> None:
    """By the model, by a line, by an edit: its prompt is in lists, and read in each run."""
    rig.home.mkdir(exist_ok=True)
    Vault(rig.home).keep(WHERE, "API_TOKEN", VALUE)
    for given in ({"prompt": f"Use {VALUE}"}, {"title": VALUE}, {"script": f"echo {VALUE[::-1]}"}):
        rig.model.script(schedule(**given))
    rig.model.script(schedule(prompt="Use it"), Say("It stands."))
    await rig.start()
    rig.telegram.say(PERSON, "every day at 9")
    rig.press(await rig.card(), "Confirm")
    await rig.shows("It stands.")
    await rig.quiet()
    refused = [one for one in rig.sent(role="tool") if "contains the value of a secret" in one]
    assert len(refused) == 3
    for line in (f"add @daily: Use {VALUE}", f"edit 1 prompt=Use {VALUE}", f"edit 1 title={VALUE}"):
        said = len(rig.said())
        rig.telegram.say(PERSON, f"/jobs {line}")
        await rig.until(lambda said=said: len(rig.said()) > said)
        assert "contains the value of a secret" in rig.said()[-1], rig.said()[-1]
    (job,) = await jobs_of(rig).store.list_jobs()
    assert (job.prompt, job.title) == ("Use it", TITLE)
