"""What people send is read, whenever it comes, or they are told that it could not be."""

import asyncio
import json
from dataclasses import replace
from typing import Any, BinaryIO

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.conversation.inbox import fetching, reading
from gateway.messages import Attachment
from tests.fakes.model_server import Call, Say
from tests.stories.rig import GROUP, PATIENCE, PERSON, Rig, mention


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(fetching, "FETCH_PAUSE", 0.01)
    return rig


def document(rig: Rig, name: str, data: bytes = b"a,b\n1,2\n") -> dict[str, Any]:
    rig.telegram.files[name] = data
    file = {"file_id": name, "file_unique_id": name, "file_name": name, "file_size": len(data)}
    return {"document": file}


def ask() -> Call:
    return Call("ask_user", json.dumps({"question": "Send me the CSV"}))


def results(rig: Rig) -> str:
    return str(rig.seen(role="tool"))


async def asked(rig: Rig, **settings: str) -> None:
    rig.model.script(ask(), Say("thanks"))
    await rig.start(**settings)
    rig.telegram.say(PERSON, "do it")
    await rig.shows("Send me the CSV")


# ---- answers that are more than words ------------------------------------------------------


async def test_a_file_answers_a_question(rig: Rig) -> None:
    await asked(rig)
    rig.telegram.say(PERSON, "", **document(rig, "data.csv"))
    await rig.shows("thanks")
    await rig.quiet()
    assert "[file: incoming/data.csv, 8 bytes]" in results(rig)
    assert (rig.workspace() / "incoming/data.csv").read_bytes() == b"a,b\n1,2\n"
    assert len(rig.model.requests) == 2


async def test_a_voice_note_answers_a_question(rig: Rig) -> None:
    await asked(rig, TRANSCRIPTION_MODEL="openai/whisper-1")
    rig.telegram.files["v"] = b"OggS!"
    voice = {"file_id": "v", "file_unique_id": "u", "duration": 2, "file_size": 5}
    rig.telegram.say(PERSON, "", voice=voice)
    await rig.shows("thanks")
    await rig.quiet()
    assert "buy some milk" in results(rig) and len(rig.model.requests) == 2


async def test_an_album_answers_as_a_whole(rig: Rig) -> None:
    await asked(rig)
    for n in range(3):
        more = {"caption": "these three"} if n == 0 else {}
        rig.telegram.say(PERSON, "", media_group_id="1", **document(rig, f"{n}.csv"), **more)
    await rig.shows("thanks")
    await rig.quiet()
    said = results(rig)
    assert "these three" in said and all(f"incoming/{n}.csv" in said for n in range(3))
    assert len(rig.model.requests) == 2, "no part begins a turn"


async def test_a_long_paste_answers_as_a_whole(rig: Rig) -> None:
    await asked(rig)
    rig.telegram.say(PERSON, "a" * 4096)
    rig.telegram.say(PERSON, "the end")
    await rig.shows("thanks")
    await rig.quiet()
    assert "a" * 4096 in results(rig) and "the end" in results(rig)
    assert len(rig.model.requests) == 2


async def test_a_file_that_cannot_be_had_leaves_the_question_open(rig: Rig) -> None:
    await asked(rig)
    rig.telegram.fail("getFile", 400, description="Bad Request: file is too big")
    rig.telegram.say(PERSON, "", **document(rig, "data.csv"))
    await rig.shows("data.csv could not be downloaded")
    assert len(rig.model.requests) == 1
    rig.telegram.say(PERSON, "", **document(rig, "data2.csv"))
    await rig.shows("thanks")
    await rig.quiet()
    assert "incoming/data2.csv" in results(rig)


@pytest.mark.parametrize("kind", ["file", "paste"])
async def test_an_answer_is_kept_over_a_crash(rig: Rig, kind: str) -> None:
    await asked(rig)
    await rig.quiet()
    rig.telegram.hold("getFile")
    if kind == "file":
        rig.telegram.say(PERSON, "", **document(rig, "data.csv"))
        await rig.telegram.wait_calls("getFile")
    else:
        rig.telegram.say(PERSON, "a" * 4096)
        await rig.until(lambda: (s := rig.session()) is not None and s.state.queue)
    await rig.crash()
    rig.telegram.release("getFile")
    await rig.start()
    await rig.shows("thanks")
    await rig.quiet()
    assert ("incoming/data" in results(rig)) if kind == "file" else ("aaaa" in results(rig))
    assert len(rig.model.requests) == 2


# ---- groups --------------------------------------------------------------------------------


async def test_parts_in_a_group_are_all_read(rig: Rig) -> None:
    await rig.start()
    text = "@test_bot " + "a" * 4086
    rig.telegram.say(GROUP, text, user=PERSON, **mention(text))
    rig.telegram.say(GROUP, "the end", user=PERSON)
    await rig.shows("ack", GROUP)
    for n in range(3):
        caption = {"caption": "@test_bot these", "caption_entities": mention("")["entities"]}
        more = caption if n == 0 else {}
        file = document(rig, f"{n}.csv")
        rig.telegram.say(GROUP, "", user=PERSON, media_group_id="1", **file, **more)
    await rig.until(lambda: len(rig.model.requests) == 2)
    await rig.quiet()
    first, second = rig.seen(0, role="user")[-1], rig.seen(1, role="user")[-1]
    assert first.endswith("the end")
    assert all(f"incoming/{n}.csv" in second for n in range(3))


# ---- while a turn runs ---------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "quote", "after a file"])
async def test_what_steers_with_more_than_words_is_read(rig: Rig, how: str) -> None:
    gate = rig.model.gate = asyncio.Event()
    rig.model.script(Call("list_files"), Say("on my way"), Say("seen it"), Say("that too"))
    await rig.start()
    rig.telegram.say(PERSON, "/mode steer")
    await rig.shows("are taken into account at once")
    rig.telegram.say(PERSON, "begin")
    await rig.model.wait_inflight(1, PATIENCE)
    if how == "quote":
        ben = {"id": 5, "is_bot": False, "first_name": "Ben"}
        chat = {"id": PERSON, "type": "private", "first_name": "A"}
        quoted = {"message_id": 1, "date": 1, "chat": chat, "from": ben, "text": "port 8080"}
        rig.telegram.say(PERSON, "use this", reply_to_message=quoted)
    else:
        rig.telegram.say(PERSON, "", caption="look at this", **document(rig, "shot.csv"))
    if how == "after a file":
        rig.telegram.say(PERSON, "and hurry")
    count = 2 if how == "after a file" else 1
    await rig.until(lambda: (s := rig.session()) is not None and len(s.state.queue) == count)
    rig.model.gate = None
    gate.set()
    await rig.shows("on my way" if how == "quote" else "seen it")
    await rig.quiet()
    said = rig.seen(role="user")
    if how == "quote":
        assert said == ["begin", "> Ben:\n> port 8080\nuse this"]
    else:
        assert "incoming/shot.csv" in said[1]
    assert said[2:] == (["and hurry"] if how == "after a file" else [])


# ---- fetching ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 502, 429])
async def test_what_fails_once_is_fetched_again(rig: Rig, status: int) -> None:
    await rig.start()
    rig.telegram.fail("getFile", status, times=2, retry_after=0)
    rig.telegram.say(PERSON, "", caption="read", **document(rig, "data.csv"))
    await rig.shows("ack")
    await rig.quiet()
    assert "[file: incoming/data.csv, 8 bytes]" in rig.seen(role="user")[-1]
    assert not any("could not be downloaded" in text for text in rig.said())


async def test_a_person_is_told_of_a_file_that_is_lost(rig: Rig) -> None:
    await rig.start()
    rig.telegram.fail("getFile", 500, times=3)
    rig.telegram.say(PERSON, "", caption="read", **document(rig, "data.csv"))
    await rig.shows("ack")
    await rig.shows("The file data.csv could not be downloaded")
    await rig.quiet()
    assert "could not be downloaded" in rig.seen(role="user")[-1]


async def test_a_file_that_trickles_costs_itself_and_not_the_message(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, the whole never does."""

    async def trickle(adapter: TelegramAdapter, attachment: Attachment, to: BinaryIO) -> None:
        while True:
            to.write(b"x")
            await asyncio.sleep(0.01)

    monkeypatch.setattr(TelegramAdapter, "fetch", trickle)
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.3)
    await rig.start()
    rig.telegram.say(PERSON, "", caption="read", **document(rig, "data.csv"))
    await rig.shows("ack")
    await rig.shows("The file data.csv could not be downloaded")
    rig.telegram.say(PERSON, "and this?")
    await rig.shows("and this?")
    await rig.quiet()


@pytest.mark.bugs_are_told
async def test_an_error_of_the_adapter_costs_the_file_and_not_the_message(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*given: object) -> None:
        raise RuntimeError("out of the blue")

    monkeypatch.setattr(TelegramAdapter, "fetch", fail)
    await rig.start()
    rig.telegram.say(PERSON, "", caption="read", **document(rig, "data.csv"))
    await rig.shows("ack")
    await rig.shows("The file data.csv could not be downloaded")
    await rig.quiet()
    assert len(rig.model.requests) == 1 and "out of the blue" not in str(rig.said())


# ---- floods --------------------------------------------------------------------------------


async def test_a_flood_is_bounded_and_nothing_of_it_is_lost(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_JOINED", 5_000)
    gate = rig.model.gate = asyncio.Event()
    await rig.start()
    rig.host.services = replace(rig.host.services, most_waiting=5)
    rig.telegram.say(PERSON, "begin")
    await rig.model.wait_inflight(1, PATIENCE)
    sent = [f"message {n} " + "x" * 90 for n in range(200)]
    for text in sent:
        rig.telegram.say(PERSON, text)
    await rig.until(lambda: (s := rig.session()) is not None and len(s.state.queue) == 200)
    await rig.telegram.wait_calls("setMessageReaction")
    rig.model.gate = None
    gate.set()
    await rig.shows(f"ack {sent[-1]}")
    await rig.quiet()
    prompts = [str(request.body["messages"][-1]["content"]) for request in rig.model.requests]
    joined = next(text for text in prompts if "message 0 " in text)
    assert len(joined) < 5_500 and "incoming/messages.txt" in joined
    file = (rig.workspace() / "incoming/messages.txt").read_text()
    assert [text for text in sent if text not in "\n".join((*prompts, file))] == []
    assert 1 <= len(rig.telegram.made("setMessageReaction")) <= 20
