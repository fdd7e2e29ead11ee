"""What comes besides words: albums, cut-up pastes, voice notes; and files given back."""

import os
from pathlib import Path

import pytest

from tests.fakes.model_server import Call, Say
from tests.stories.rig import GROUP, PERSON, Rig


async def test_a_paste_that_telegram_cut_up_is_one_turn(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "a" * 4096)
    rig.telegram.say(PERSON, "the end")
    await rig.shows("ack")
    await rig.quiet()
    assert len(rig.model.requests) == 1
    assert rig.seen(role="user") == ["a" * 4096 + "\nthe end"]


async def test_two_messages_are_two_turns(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "a" * 3999)
    rig.telegram.say(PERSON, "the end")
    await rig.shows("ack the end")
    await rig.quiet()
    assert len(rig.model.requests) == 2


async def test_an_album_is_one_turn_with_all_its_files(rig: Rig) -> None:
    await rig.start()
    for n in range(3):
        file = {"file_id": f"f{n}", "file_unique_id": f"u{n}", "file_name": f"{n}.txt"}
        rig.telegram.files[f"f{n}"] = f"file {n}".encode()
        more = {"caption": "what are these?"} if n == 0 else {}
        rig.telegram.say(PERSON, "", media_group_id="1", document=file | {"file_size": 6}, **more)
    await rig.shows("ack")
    await rig.quiet()
    (seen,) = rig.seen(role="user")
    assert seen.startswith("what are these?")
    assert [f"incoming/{n}.txt, 6 bytes" in seen for n in range(3)] == [True, True, True]
    assert (rig.workspace() / "incoming" / "2.txt").read_bytes() == b"file 2"


@pytest.mark.parametrize("how", ["crash", "stop"])
async def test_an_end_between_two_parts(rig: Rig, how: str) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "a" * 4096)
    await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    await (rig.crash() if how == "crash" else rig.stop())
    rig.telegram.say(PERSON, "the end")
    await rig.start()
    await rig.shows("the end")
    await rig.quiet()
    assert len(rig.model.requests) in (1, 2), "within a second of the first part, or later"
    assert "".join(rig.seen(role="user")).count("the end") == 1


async def test_stop_takes_all_parts_along(rig: Rig) -> None:
    await rig.start()
    rig.telegram.say(PERSON, "a" * 4096)
    rig.telegram.say(PERSON, "b" * 4096)
    await rig.until(lambda: (s := rig.session()) is not None and len(s.state.queue) == 2)
    rig.telegram.say(PERSON, "/stop")
    await rig.shows("Stopped.")
    await rig.quiet()
    assert rig.model.requests == [] and len(rig.said()) == 1


async def test_a_file_is_given_once_over_a_crash(rig: Rig) -> None:
    rig.model.script(Call("send_file", '{"paths": ["a.txt"], "caption": "here"}'), Say("given"))
    await rig.start()
    rig.workspace().mkdir(parents=True)
    (rig.workspace() / "a.txt").write_text("content")
    rig.telegram.hold("sendDocument")
    rig.telegram.say(PERSON, "give me a.txt")
    await rig.telegram.wait_calls("sendDocument")
    await rig.crash()
    (rig.workspace() / "a.txt").write_text("changed since")
    rig.telegram.release("sendDocument")
    await rig.start()
    await rig.shows("given")
    await rig.quiet()
    sent = rig.telegram.made("sendDocument")
    assert 1 <= len(sent) <= 2, "the one that was cut off may stand there already"
    assert len(rig.model.requests) == 2


VOICE = {"file_id": "v", "file_unique_id": "u", "duration": 2, "file_size": 5}


def speak(rig: Rig) -> None:
    rig.telegram.files["v"] = b"OggS!"
    update = rig.telegram.say(PERSON, "", voice=VOICE)
    assert update["message"]["voice"]


async def test_a_voice_note_is_transcribed(rig: Rig) -> None:
    await rig.start(TRANSCRIPTION_MODEL="openai/whisper-1")
    speak(rig)
    await rig.shows("ack")
    await rig.quiet()
    assert rig.model.heard == [("voice.ogg", b"OggS!")]
    assert rig.seen(role="user")[0].endswith("[voice note, transcribed]\nbuy some milk")


async def test_a_voice_note_that_nobody_can_hear_gets_a_clear_word(rig: Rig) -> None:
    await rig.start()
    speak(rig)
    await rig.shows("no transcription model is configured. Please write instead.")
    await rig.quiet()
    assert rig.model.requests == [] and rig.model.heard == []


async def test_a_voice_note_that_the_provider_refuses(rig: Rig) -> None:
    rig.model.deaf = 404
    await rig.start(TRANSCRIPTION_MODEL="openai/none")
    speak(rig)
    await rig.shows("ack")
    await rig.quiet()
    (seen,) = rig.seen(role="user")
    assert "could not be transcribed: openai rejected the request (404)" in seen
    assert (rig.workspace() / "incoming" / "voice.ogg").read_bytes() == b"OggS!"


@pytest.mark.parametrize("plant", ["folder", "file", "chain", "pipe"])
async def test_a_file_does_not_go_through_a_planted_link(
    rig: Rig, tmp_path: Path, plant: str
) -> None:
    await rig.start()
    outside = tmp_path / "outside"
    outside.mkdir()
    incoming = rig.workspace() / "incoming"
    incoming.parent.mkdir(parents=True)
    match plant:
        case "folder":
            incoming.symlink_to(outside)
        case "chain":
            (incoming.parent / "a").symlink_to(rig.home)
            incoming.symlink_to("a")
        case "file":
            incoming.mkdir()
            (incoming / "jobs.toml").symlink_to(rig.home / "jobs.toml")
        case _:
            incoming.mkdir()
            os.mkfifo(incoming / "jobs.toml")
    rig.telegram.files["f"] = b"[[job]]"
    file = {"file_id": "f", "file_unique_id": "u", "file_name": "jobs.toml", "file_size": 7}
    rig.telegram.say(PERSON, "", document=file, caption="look at this")
    await rig.shows("ack")
    await rig.quiet()
    assert not (rig.home / "jobs.toml").exists() and not list(outside.iterdir())
    (seen,) = rig.seen(role="user")
    if plant in ("file", "pipe"):
        assert "[file: incoming/jobs-2.toml, 7 bytes]" in seen
        assert (incoming / "jobs-2.toml").read_bytes() == b"[[job]]"
    else:
        assert "could not be downloaded" in seen


async def test_in_a_group_a_paste_may_name_it_at_its_end(rig: Rig) -> None:
    await rig.start()
    tail = "and so on @test_bot what is wrong?"
    named = {"entities": [{"type": "mention", "offset": 10, "length": 9}]}
    rig.telegram.say(GROUP, "x" * 4096, user=PERSON)
    rig.telegram.say(GROUP, tail, user=PERSON, **named)
    await rig.shows("ack", GROUP)
    await rig.quiet()
    assert len(rig.model.requests) == 1
    (asked,) = rig.seen(role="user")
    assert asked == f"[U{PERSON}] {'x' * 4096}\n{tail}"
