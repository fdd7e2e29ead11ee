"""Nothing is done where a command would not read some words, and it is said: '/approve 1 but not the
second' must not approve."""

import pytest

from gateway.store.rows import ConversationSettings
from gateway.wiring.features import our_commands
from tests.fakes.model_server import Call, Say
from tests.sampling import dice
from tests.stories.rig import ADMIN, Rig

READ_ALL = {
    "start": "a link's word may follow",
    "help": "it helps, whatever with",
    "stop": "a stop stops, whatever follows it",
    "rename": "the name",
    "resume": "what is looked for",
    "retry": "other words for the message",
    "deny": "the reason",
    "model": "the fallbacks",
    "prompt": "the prompt's arguments",
    "timezone": "a name with spaces",
    "secret": "no word is taken there",
    "instructions": "a text",
    "memory": "words of an entry",
    "mcp": "a server's name",
    "jobs": "a job",
    "todo": "a step",
    "permissions": "a rule",
}
OWN_FORMS = {
    "/undo {}": "does not belong",
    "/undo all {}": "does not belong",
    "/mcp {}": "does not belong",
    "/mcp signin notes {}": "does not belong",
    "/memory off {}": "Write /memory",
    "/memory clear {}": "Write /memory",
    "/instructions clear {}": "Write /instructions",
    "/permissions {}": "/permissions drop",
    "/permissions drop 1 {}": "/permissions drop",
    "/jobs here {}": "pause 1",
    "/timezone Asia/Tokyo {}": "Asia/Tokyo_",
}
EXTRA = ("please", "2", "and then go", "все", "<b>it</b>", "x" * 300)


async def begin(rig: Rig) -> ConversationSettings:
    """A conversation that has been greeted; its settings."""
    await rig.start()
    rig.model.script(Say("Hello."))
    rig.telegram.say(ADMIN, "hello")
    await rig.shows("Hello.", ADMIN)
    await rig.quiet()
    return await rig.store.settings(rig.where(ADMIN).id)


def test_each_command_says_how_many_words_it_reads() -> None:
    open_ended = {name for name, one in our_commands().items() if one.most_words is None}
    assert open_ended == set(READ_ALL)


@pytest.mark.parametrize(
    "name", sorted(name for name, one in our_commands().items() if one.most_words is not None)
)
async def test_with_words_too_many_nothing_is_done(rig: Rig, name: str) -> None:
    before = await begin(rig)
    words = {"mode": "swe", "plan": "on", "undo": "all", "pair": "AAAABBBB", "unpair": "7"}
    words |= {"link": "off", "approve": "1"}
    given = f"{name} {words[name]}" if our_commands()[name].most_words else name
    for extra in dice("extra", name).sample(EXTRA, 3):
        rig.telegram.say(ADMIN, f"/{given} {extra}")
        shown = await rig.shows("does not belong", ADMIN)
        assert f"/{given}" in shown["text"]
        await rig.quiet()
        assert await rig.store.settings(rig.where(ADMIN).id) == before
        assert not [
            one for one in rig.said(ADMIN) if "is undone" in one or "New conversation" in one
        ]
        rig.telegram.chats[ADMIN].clear()


@pytest.mark.parametrize("form", OWN_FORMS)
async def test_commands_with_forms_of_their_own_ignore_no_word(rig: Rig, form: str) -> None:
    before = await begin(rig)
    rig.telegram.say(ADMIN, form.format(dice("extra", form).choice(("please", "everything"))))
    await rig.shows(OWN_FORMS[form], ADMIN)
    await rig.quiet()
    assert await rig.store.settings(rig.where(ADMIN).id) == before


NO_NUMBERS = ("but not tonight", "nothing", "no", "0", "-1", "1.5", "1001", "one", "все", "#")


@pytest.mark.parametrize("said", NO_NUMBERS)
async def test_an_approval_with_other_words_than_a_number_approves_nothing(
    rig: Rig, said: str
) -> None:
    await rig.start()
    rig.model.script(Call("write_file", '{"path": "a.txt", "content": "x"}'), Say("Done."))
    rig.telegram.say(ADMIN, "/mode ask")
    await rig.shows("I ask before", ADMIN)
    rig.telegram.say(ADMIN, "write it")
    await rig.card(ADMIN)
    for words in (said, f"1 {said}"):
        shown = len(rig.said(ADMIN))
        rig.telegram.say(ADMIN, f"/approve {words}")
        await rig.until(lambda shown=shown: len(rig.said(ADMIN)) > shown)
        assert "/approve" in rig.said(ADMIN)[-1]
        await rig.quiet()
    assert rig.cards(ADMIN) and not (rig.workspace(ADMIN) / "a.txt").exists()
    rig.telegram.say(ADMIN, "/approve 1")
    await rig.shows("Done.", ADMIN)
