"""A thread of people on Discord that the agent is called into."""

from tests.stories.discord_rig import CHANNEL, FRIEND, PERSON, DiscordRig


async def test_a_mention_in_a_thread_of_people_brings_what_was_said(rig: DiscordRig) -> None:
    thread = "7777"
    rig.discord.threads[thread] = CHANNEL
    await rig.start(GROUP_POLICY="thread")
    await rig.discord.say(thread, "the disk of db1 is full", FRIEND)
    await rig.discord.say(thread, "@bot why?", PERSON)
    await rig.discord.shows(thread, "why?")
    await rig.quiet()
    said = rig.seen(role="user")[-1]
    assert f"U{FRIEND}: the disk of db1 is full" in said and said.endswith("why?")
    await rig.discord.say(thread, "@bot sure?", PERSON)
    await rig.discord.shows(thread, "sure?")
    await rig.quiet()
    assert "db1" not in rig.seen(role="user")[-1], "that it knows"


async def test_where_no_words_are_shown_only_the_question_comes(rig: DiscordRig) -> None:
    thread = "7777"
    rig.discord.threads[thread] = CHANNEL
    await rig.start()
    await rig.discord.say(thread, "the disk of db1 is full", FRIEND)
    await rig.discord.say(thread, "@bot why?", PERSON)
    await rig.discord.shows(thread, "why?")
    await rig.quiet()
    assert "db1" not in rig.seen(role="user")[-1]
