"""The API over a real socket: what it takes, what it refuses, and that a stream loses nothing."""

import asyncio
import io
import json
import random
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from adapters.web.gate import UPLOAD_BYTES
from gateway.errors import Rejected
from gateway.messages import (
    Attachment,
    ButtonPressed,
    CommandGiven,
    FormSubmitted,
    MessageReceived,
    Sender,
    StopPressed,
    read_conversation,
)
from gateway.texts import say
from gateway.views import Button, ChoiceCard, FormCard, Notice, ReplyView, SaidView
from tests.fakes.web_backend import FakeBackend, Role
from tests.fakes.web_server import TOKEN, WebServer, serve

C1 = "/api/conversations/c1"


async def post(server: WebServer, path: str, body: object, **headers: str) -> tuple[int, dict]:  # type: ignore[type-arg]
    async with server.http.post(path, json=body, headers=headers) as answer:
        return answer.status, await answer.json()


async def events(
    answer: aiohttp.ClientResponse,
) -> AsyncIterator[tuple[str, int | None, dict]]:  # type: ignore[type-arg]
    """(name, id, data) of each event."""
    name, mark = "", None
    async for raw in answer.content:
        field, _, value = raw.decode().rstrip("\n").partition(": ")
        if field == "id":
            mark = int(value)
        elif field == "event":
            name = value
        elif field == "data":
            yield name, mark, json.loads(value)
            mark = None


async def test_a_message_is_accepted_once_by_its_key(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        for _ in range(2):
            status, body = await post(server, f"{C1}/messages", {"text": "hello", "key": "k1"})
            assert (status, body) == (202, {"accepted": True, "key": "k1"})
        (said,) = server.backend.accepted
        assert isinstance(said, MessageReceived)
        assert said.text == "hello"
        assert said.message == "k1"
        assert said.sender.key == "web:owner"
        assert said.conversation.id == server.address("c1")
        assert read_conversation(said.conversation.id).private
        assert said.addressed


async def test_two_people_with_the_same_key_and_id_do_not_meet(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        message = {"text": "mine", "key": "k1"}
        await post(server, f"{C1}/messages", message)
        async with aiohttp.ClientSession(server.url, headers=await server.sign_in("ann")) as http:
            async with http.post(f"{C1}/messages", json=message) as answer:
                assert answer.status == 202
            server.backend.show(server.address("c1"), SaidView(name="owner", text="secret"), "said")
            async with http.get(C1) as answer:
                assert "secret" not in await answer.text()
            async with http.get("/api/conversations") as answer:
                page = await answer.json()
                assert [one["conversation"] for one in page["conversations"]] == ["c1"]
                assert "secret" not in json.dumps(page)
            for trick in ("..%2Fowner~c1", "owner~c1", "c1::p", "c1%3A%3Ap", "%00", "a" * 65):
                async with http.get(f"/api/conversations/{trick}") as answer:
                    assert answer.status == 404, trick
        assert len(server.backend.accepted) == 2


async def test_answers_commands_and_stop_become_their_inbound(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        where = server.address("c1")
        server.backend.show(where, FormCard(question="f", text="Name?", token="q:f:text"), "form")
        button = Button(label="Once", token="q:a:once")
        server.backend.show(where, ChoiceCard(question="a", text="?", buttons=(button,)), "choice")
        await post(server, f"{C1}/answers", {"token": "q:f:text", "text": "Ann", "key": "k1"})
        await post(server, f"{C1}/answers", {"token": "q:a:once", "text": "why", "key": "k2"})
        await post(server, f"{C1}/commands", {"name": "NEW", "arguments": " now "})
        await post(server, f"{C1}/stop", {})
        async with server.http.post(f"{C1}/stop") as answer:
            assert answer.status == 202
        form, press, command, stop, stop2 = server.backend.accepted
        assert isinstance(form, FormSubmitted)
        assert (form.token, form.text, form.press) == ("q:f:text", "Ann", "k1")
        assert isinstance(press, ButtonPressed)
        assert (press.token, press.text, press.press) == ("q:a:once", "why", "k2")
        assert isinstance(command, CommandGiven)
        assert (command.name, command.arguments) == ("new", "now")
        assert isinstance(stop, StopPressed)
        assert isinstance(stop2, StopPressed)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("messages", b"{"),
        ("messages", b"[]"),
        ("messages", b'"text"'),
        ("messages", b'{"text": 1}'),
        ("messages", b'{"text": null}'),
        ("messages", b'{"text": ""}'),
        ("messages", b'{"text": " \\n "}'),
        ("messages", b""),
        ("messages", b'{"text": "x", "key": "a b"}'),
        ("messages", b'{"text": "x", "key": "' + b"a" * 65 + b'"}'),
        ("messages", b'{"text": "\xff"}'),
        ("messages", b'{"text": "\\ud800"}'),
        ("messages", b"[" * 100_000),
        ("answers", b"{}"),
        ("commands", b'{"name": ""}'),
        ("commands", b'{"name": "a b"}'),
        ("commands", b'{"name": "\\n"}'),
    ],
)
async def test_what_is_malformed_is_refused_with_a_word(
    path: str, body: bytes, tmp_path: Path
) -> None:
    async with serve(tmp_path) as server:
        async with server.http.post(f"{C1}/{path}", data=body) as answer:
            assert answer.status == 400
            assert (await answer.json())["error"]
        assert server.backend.accepted == []


@pytest.mark.parametrize("ref", ["", "owner/x/y", "../../etc/passwd", "\0"])
async def test_a_file_that_nobody_uploaded_cannot_be_attached(ref: str, tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        body = {"text": "x", "attachments": [ref]}
        async with server.http.post(f"{C1}/messages", json=body) as answer:
            assert answer.status == 404
            assert (await answer.json())["error"]
        assert server.backend.accepted == []


@pytest.mark.parametrize(
    "asked", ["limit=0", "limit=2001", "limit=-1", "limit=x", "limit=", "limit=" + "9" * 99]
)
async def test_a_number_out_of_its_bounds_is_refused(asked: str, tmp_path: Path) -> None:
    async with serve(tmp_path) as server, server.http.get(f"{C1}?{asked}") as answer:
        assert answer.status == 400
        assert (await answer.json())["error"] == "limit is a number from 1 to 2000."


async def test_a_long_message_comes_whole_and_a_huge_one_not_at_all(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        text = "a🙂é\n" * 25_000
        status, _ = await post(server, f"{C1}/messages", {"text": text})
        assert status == 202
        (said,) = server.backend.accepted
        assert isinstance(said, MessageReceived)
        assert said.text == text
        huge = io.BytesIO(json.dumps({"text": "x" * 1_100_000}).encode())
        async with server.http.post(f"{C1}/messages", data=huge) as answer:
            assert answer.status == 413
            assert "1 MB" in (await answer.json())["error"]

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b" " * 100_000

        async with server.http.post(f"{C1}/messages", data=chunks()) as answer:
            assert answer.status == 413
        assert len(server.backend.accepted) == 1


async def test_when_the_store_fails_nothing_is_acknowledged(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        server.backend.failing = True
        status, body = await post(server, f"{C1}/messages", {"text": "x"})
        assert status == 503
        assert "Nothing was done" in body["error"]


async def test_a_viewer_reads_and_a_stranger_does_not(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        cases = (("vic", 200, 403), ("eve", 403, 403), ("ann", 200, 202))
        for person, reads, writes in cases:
            headers = await server.sign_in(person)
            async with aiohttp.ClientSession(server.url, headers=headers) as http:
                async with http.get(C1) as answer:
                    assert answer.status == reads
                async with http.post(f"{C1}/messages", json={"text": "x"}) as answer:
                    assert answer.status == writes
                async with http.post("/api/uploads", data=b"x") as answer:
                    assert answer.status == (201 if writes == 202 else 403)


async def test_a_file_is_kept_attached_and_fetched(tmp_path: Path) -> None:
    async with serve(tmp_path / "files") as server:
        odd = {"name": '../../a\\b<c>"Ünï.txt'}
        async with server.http.post("/api/uploads", params=odd, data=b"hello") as answer:
            assert answer.status == 201
            kept = await answer.json()
        assert kept["name"] == "b_c__Ünï.txt"
        assert kept["mime"] == "text/plain"
        assert kept["size"] == 5
        message = {"text": "", "attachments": [kept["ref"]]}
        status, _ = await post(server, f"{C1}/messages", message)
        assert status == 202
        (said,) = server.backend.accepted
        assert isinstance(said, MessageReceived)
        copy = BytesIO()
        await server.adapter.fetch(said.attachments[0], copy)
        assert copy.getvalue() == b"hello"
        for ref in ("owner/none/x", "../../etc/passwd", "/etc/passwd", "a/../b", "a/b/\0"):
            with pytest.raises(Rejected):
                await server.adapter.fetch(Attachment(ref=ref, name="x"), BytesIO())
        headers = await server.sign_in("ann")
        async with aiohttp.ClientSession(server.url, headers=headers) as http:
            async with http.post(f"{C1}/messages", json=message) as answer:
                assert answer.status == 404, "another person's file"


async def test_empty_and_too_large_files_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    async def much() -> AsyncIterator[bytes]:
        for _ in range(UPLOAD_BYTES // 1_000_000 + 2):
            yield b"x" * 1_000_000

    async with serve(tmp_path) as server:
        async with server.http.post("/api/uploads?name=a", data=b"") as answer:
            assert answer.status == 400
            assert "0 bytes" in (await answer.json())["error"]
        async with server.http.post("/api/uploads?name=a", data=much()) as answer:
            assert answer.status == 413
            assert "25 MB" in (await answer.json())["error"]
        headers = {"Content-Length": str(UPLOAD_BYTES + 1)}
        async with server.http.post("/api/uploads", data=b"x", headers=headers) as answer:
            assert answer.status == 413
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "\0", "x" * 300 + ".pdf", "é" * 200])
async def test_any_file_name_will_do(name: str, tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        async with server.http.post("/api/uploads", params={"name": name}, data=b"x") as answer:
            assert answer.status == 201
            kept = await answer.json()
        assert (tmp_path / "uploads" / kept["ref"]).read_bytes() == b"x"


async def test_history_is_a_page_and_says_what_goes_on(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        where = server.address("c1")
        for number in range(5):
            server.backend.show(where, ReplyView(text=f"**{number}**"), f"reply-{number}")
        server.backend.show(where, ReplyView(text="new"), "reply-0")
        server.backend.room(where).state = "running"
        await post(server, f"{C1}/messages", {"text": "later"})
        async with server.http.get(f"{C1}?limit=3") as answer:
            page = await answer.json()
        assert [one["name"] for one in page["views"]] == ["reply-2", "reply-3", "reply-4"]
        assert page["views"][2]["html"] == "<p><strong>4</strong></p>\n"
        assert (page["rev"], page["more"], page["state"]) == (5, True, "running")
        assert [one["text"] for one in page["waiting"]] == ["later"]
        async with server.http.get("/api/conversations/none") as answer:
            page = await answer.json()
            assert (page["views"], page["state"], page["rev"]) == ([], "idle", 0)


async def test_a_stream_goes_on_after_the_last_id_it_gave(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        where = server.address("c1")
        for number in range(250):
            server.backend.show(where, Notice(text=str(number)), f"n{number}")
        for given in ({"Last-Event-ID": "100"}, {}):
            path = f"{C1}/events?after=100" if not given else f"{C1}/events?after=3"
            async with server.http.get(path, headers=given) as answer:
                assert answer.headers["Content-Type"].startswith("text/event-stream")
                marks = []
                async for name, mark, _ in events(answer):
                    marks += [mark] if name == "view" else []
                    if len(marks) == 150:
                        break
                assert marks == list(range(101, 251))
        async with server.http.get(f"{C1}/events?after=junk") as answer:
            async for _, mark, _ in events(answer):
                assert mark == 1
                break


async def test_growing_text_standing_and_private_words_come_live(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        where = server.address("c1")
        async with server.http.get(f"{C1}/events") as answer:
            stream = events(answer)
            assert await anext(stream) == (
                "standing",
                None,
                {"title": "", "state": "idle", "waiting": [], "model": "demo"},
            )
            seen = []
            for text in ("Hel", "Hello", "Other"):
                server.backend.grow(where, text)
                seen.append((await anext(stream))[2])
            assert [(one["text"], one["more"]) for one in seen] == [
                ("Hel", False),
                ("lo", True),
                ("Other", False),
            ]
            await server.adapter.tell(read_conversation(where), "k0", "")
            await server.adapter.tell(read_conversation(where), "k1", say("jobs_no_such"))
            word = "There is no such job. /jobs lists them with their numbers."
            assert await anext(stream) == ("told", None, {"press": "k1", "text": word})
            await post(server, f"{C1}/messages", {"text": "later"})
            name, _, data = await anext(stream)
            assert (name, data["waiting"][0]["text"]) == ("standing", "later")


async def write_at_random(
    backend: FakeBackend, where: str, rounds: int, chance: random.Random
) -> None:
    for number in range(rounds):
        name = f"v{chance.randrange(rounds // 2)}"
        backend.show(where, Notice(text=str(number)), name)
        if chance.random() < 0.3:
            backend.grow(where, "x" * number)
        if chance.random() < 0.2:
            await asyncio.sleep(0)
        if chance.random() < 0.2:
            await asyncio.sleep(0.001)  # or all is written before the reader comes back once
    backend.show(where, Notice(text="end"), "end")


@pytest.mark.pick("a reader that breaks off", 3)
@pytest.mark.parametrize("seed", range(12))
async def test_no_view_is_lost_or_doubled_however_often_the_reader_breaks_off(
    seed: int, tmp_path: Path
) -> None:
    """The reader goes away at random and comes back with its last id; small backlogs make it
    fall behind as well. Revs only grow, and in the end it holds exactly what the store holds."""
    chance = random.Random(seed)
    async with serve(tmp_path, backend=FakeBackend(backlog=chance.choice([1, 3, 50]))) as server:
        server.backend.slow = chance.choice([0, 2, 20])
        where, last, held = server.address("c1"), 0, dict[str, str]()
        async with asyncio.TaskGroup() as group:
            group.create_task(write_at_random(server.backend, where, 600, chance))
            while held.get("end") != "end":
                patience = chance.randrange(1, 80)
                headers = {"Last-Event-ID": str(last)}
                async with server.http.get(f"{C1}/events", headers=headers) as answer:
                    async for name, mark, data in events(answer):
                        if name == "view":
                            assert mark is not None
                            assert mark > last
                            last, held[data["name"]] = mark, data["view"]["text"]
                            patience -= 1
                        if patience == 0 or held.get("end") == "end":
                            break
        room = server.backend.room(where)
        texts = {name: shown.view.text for (_, name), shown in room.views.items()}  # type: ignore[union-attr]
        assert held == texts


async def test_streams_end_when_the_adapter_ends(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        running = asyncio.create_task(server.adapter.run(server.backend.accept))
        async with server.http.get(f"{C1}/events") as answer:
            stream = events(answer)
            await anext(stream)
            assert server.adapter.last_contact > 0
            running.cancel()
            assert [one async for one in stream] == []
        assert server.backend.room(server.address("c1")).watchers == []


class HeldBackend(FakeBackend):
    """Does not know who asks until it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    async def find_role(self, sender: Sender) -> Role | None:
        self.asked.set()
        await self.told.wait()
        return await super().find_role(sender)


async def test_a_reader_that_is_gone_before_its_stream_begins_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = HeldBackend()
    async with serve(tmp_path, backend=backend) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        words = f"GET {C1}/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        writer.write(f"{words}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
        await backend.asked.wait()
        writer.transport.abort()
        await asyncio.sleep(0.05)  # until the server has seen that
        backend.told.set()
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


async def test_the_description_is_accurate(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        async with server.http.get("/api/openapi.json") as answer:
            described = await answer.json()
        served = {
            (route.method.lower(), str(route.path).replace(":.+", ""))  # type: ignore[attr-defined]
            for route in server.adapter.routes
            if str(route.path).startswith("/api/")  # type: ignore[attr-defined]
        }
        assert served == {
            (method, path)
            for path, item in described["paths"].items()
            for method in item
            if method != "parameters" and not path.startswith("/api/jobs")  # test_jobs_api does
        }
        where = server.address("c1")
        server.backend.show(where, ReplyView(text="x"), "reply")
        await post(server, f"{C1}/messages", {"text": "x"})
        schemas = described["components"]["schemas"]
        for url, name in (("/api/conversations", "Listed"), (C1, "Opened")):
            async with server.http.get(url) as answer:
                body = await answer.json()
            assert set(body) == set(schemas[name]["properties"])
        assert set(body["views"][0]) == set(schemas["View"]["properties"])


async def test_a_conversation_is_deleted_unless_something_runs_there(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        where = server.address("c1")
        server.backend.show(where, SaidView(name="owner", text="secret"), "said")
        server.backend.stand(where, "running")
        async with server.http.delete(C1) as answer:
            assert answer.status == 409 and "Stop it" in (await answer.json())["error"]
        server.backend.stand(where, "idle")
        async with server.http.delete(C1) as answer:
            assert answer.status == 200
        async with server.http.get(C1) as answer:
            assert (await answer.json())["views"] == []


async def test_what_grew_of_an_answer_that_stands_is_not_told(tmp_path: Path) -> None:
    """It was read a moment before the answer was."""
    async with serve(tmp_path) as server:
        where = server.address("c1")
        server.backend.show(where, ReplyView(text="Hello"), "reply")
        async with server.http.get(f"{C1}/events") as answer:
            stream = events(answer)
            assert [(await anext(stream))[0] for _ in range(2)] == ["view", "standing"]
            server.backend.grow(where, "Hel")
            server.backend.grow(where, "Other", turn="t2")
            assert (await anext(stream))[2]["text"] == "Other"
