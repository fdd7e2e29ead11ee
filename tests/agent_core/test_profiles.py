"""Profiles: their data, the history that they see, and how people choose one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.messages import Message, Text, user
from agent_core.profiles.built_in import PROFILES
from agent_core.profiles.profile import select_recent
from agent_core.tools.finding.toolsets import Toolsets, is_in_all
from tests.fakes.model_server import Call, Say
from tests.stories.rig import ADMIN, PERSON, Rig

# ---- data --------------------------------------------------------------------------------


def test_the_six_profiles_are_there() -> None:
    assert set(PROFILES) == {"general", "browser", "swe", "data", "mcp", "sandboxed"}
    assert all(one.max_messages == 100 and one.max_steps for one in PROFILES.values())


@pytest.mark.parametrize("name", PROFILES)
def test_what_a_profile_shows_it_may_use(name: str) -> None:
    profile = PROFILES[name]
    reach = (Toolsets().flatten(profile.tools),)
    assert [one for one in profile.shown if "*" not in one and not is_in_all(one, reach)] == []


# ---- history -----------------------------------------------------------------------------

said = Message(role="assistant", parts=(Text(text="a"),))
turns = st.lists(st.integers(1, 9), max_size=60)


def history(lengths: list[int]) -> tuple[Message, ...]:
    """Turns of so many answers each, every one after words of a person."""
    return tuple(m for n, size in enumerate(lengths) for m in (user(f"t{n}"), *[said] * size))


@given(turns, st.integers(20, 100))
def test_the_history_is_cut_where_somebody_speaks(lengths: list[int], most: int) -> None:
    whole = history(lengths)
    seen = select_recent(whole, most)
    assert whole[len(whole) - len(seen) :] == seen and len(seen) <= most
    assert len(whole) <= most or len(seen) >= most // 2 - 10
    assert not seen or seen[0].role == "user"


@given(turns)
def test_between_two_cuts_a_history_begins_as_the_one_before(lengths: list[int]) -> None:
    cuts = []
    for n in range(len(lengths) + 1):
        whole = history(lengths[:n])
        cuts.append(len(whole) - len(select_recent(whole, 40)))
    assert cuts == sorted(cuts)
    leaps = sum(a != b for a, b in zip(cuts, cuts[1:], strict=False))
    assert leaps <= len(history(lengths)) // 20 + 1


def test_a_turn_longer_than_all_that_may_be_stays_whole() -> None:
    assert select_recent(history([3, 200]), 100)[0] == user("t1")
    assert select_recent((said,) * 120, 100) == (said,) * 120
    assert select_recent(history([3, 200]), 0) == history([3, 200])


# ---- chosen by people --------------------------------------------------------------------


async def test_a_profile_is_chosen_by_mode_and_given_back(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/mode swe")
    text = (await rig.shows("Profile: swe. /mode task switches it off."))["text"]
    assert "It needs" not in text
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    body = rig.model.requests[-1].body
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert {"str_replace_editor", "bash"} <= set(names) and "web_search" not in names
    assert rig.seen(role="system")[0].endswith("Use str_replace_editor for edits.")
    await rig.quiet()
    rig.telegram.say(PERSON, "/mode task")
    await rig.quiet()
    rig.telegram.say(PERSON, "and now")
    await rig.shows("ack and now")
    names = [tool["function"]["name"] for tool in rig.model.requests[-1].body["tools"]]
    assert "web_search" in names
    assert "software engineer" not in rig.seen(role="system")[0]
    await rig.quiet()


@pytest.mark.parametrize("set_to", ["standard", "codeact"])
async def test_the_execution_mode_shows_scripts_with_each_request(rig: Rig, set_to: str) -> None:
    await rig.start(EXECUTION_MODE=set_to)
    rig.telegram.say(PERSON, "hello")
    await rig.shows("ack hello")
    await rig.quiet()
    rig.telegram.say(PERSON, "/mode mcp")
    await rig.shows("Profile: mcp")
    rig.telegram.say(PERSON, "and there")
    await rig.shows("ack and there")
    await rig.quiet()
    shown = [[one["function"]["name"] for one in r.body["tools"]] for r in rig.model.requests]
    assert ["execute_script" in names for names in shown] == [set_to == "codeact", False]
    rig.telegram.say(PERSON, "/mode swe")
    await rig.shows("Profile: swe")
    rig.telegram.say(PERSON, "and here")
    await rig.shows("ack and here")
    names = [one["function"]["name"] for one in rig.model.requests[-1].body["tools"]]
    assert names.count("execute_script") == 1, "a profile that writes code shows it anyway"
    await rig.quiet()


async def test_a_profile_outlives_a_restart_and_bounds_what_is_called(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/mode mcp")
    await rig.shows("Profile: mcp")
    await rig.quiet()
    await rig.stop()
    rig.model.script(Call("run_command", '{"command": "ls"}'), Say("not here"))
    await rig.start()
    rig.telegram.say(PERSON, "list")
    await rig.shows("not here")
    assert "There is no tool 'run_command'" in rig.seen(role="tool")[-1]
    await rig.quiet()


async def test_data_is_a_mode_and_a_profile(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/mode data")
    text = (await rig.shows("Profile: data"))["text"]
    assert "Mode: data" in text and "It needs" not in text
    await rig.quiet()
    rig.telegram.say(PERSON, "/mode research")
    await rig.until(lambda: "Mode: research" in rig.said()[-1])
    assert "Profile: data" in rig.said()[-1]
    rig.telegram.say(PERSON, "/mode task")
    await rig.until(lambda: "Profile" not in rig.said()[-1])
    await rig.quiet()


async def test_each_answer_to_mode_says_what_changed_and_how_to_go_back(rig: Rig) -> None:
    await rig.start()
    asks, auto = (
        "I ask before every change and every command.",
        "I ask only before something risky.",
    )
    waits = "Messages you send while I work wait until I am done."
    at_once = "Messages you send while I work are taken into account at once."
    said = (
        ("ask", f"{asks} /mode auto reverts this."),
        ("ask", asks),
        ("auto", f"{auto} /mode ask reverts this."),
        ("steer", f"{at_once} /mode queue reverts this."),
        ("queue", f"{waits} /mode steer reverts this."),
        ("research", "Mode: research. /mode task switches it off."),
        ("data", "Mode: data. Profile: data. /mode task switches it off."),
        ("", f"{auto} {waits} Mode: data. Profile: data. /mode task switches it off."),
        ("task", "No mode is set: I choose for each request."),
        ("", f"{auto} {waits}"),
    )
    for n, (word, answer) in enumerate(said, 1):
        rig.telegram.say(ADMIN, f"/mode {word}".strip())
        await rig.until(lambda n=n: len(rig.said(ADMIN)) == n)
        assert rig.said(ADMIN)[-1] == answer, word
    await rig.quiet()


async def test_a_profile_sees_the_newest_hundred_messages(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "/mode general")
    await rig.shows("Profile: general")
    lengths = []
    for n in range(54):
        rig.telegram.say(PERSON, f"word {n}")
        await rig.shows(f"ack word {n}")
        await rig.quiet()
        lengths.append(len(rig.model.requests[-1].body["messages"]))
    assert max(lengths) <= 102, "a hundred, the system's and the new one"
    assert lengths[50] == 102 and lengths[51] < 60
    assert rig.seen(role="user")[-1] == "word 53" and rig.seen(role="user")[0] == "word 25"
