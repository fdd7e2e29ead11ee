"""The API's newer half: files given out and taken in, waiting messages changed, search, commands."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest

from adapters.web import api, uploads
from adapters.web.gate import RequestRefused
from adapters.web.uploads import GRACE, KEPT_SECONDS
from gateway import clock
from gateway.messages import MessageDeleted, MessageEdited, MessageReceived
from gateway.views import Media, MediaFile, ReplyView, SaidView
from tests.fakes.web_server import WebServer, serve
from tests.spellings import spell

C1 = "/api/conversations/c1"


def give(server: WebServer, ref: str, mime: str, body: bytes = b"x", name: str = "") -> None:
    path = server.outputs / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    file = MediaFile(ref=ref, name=name or path.name, mime=mime, size=len(body))
    server.backend.show(server.address("c1"), Media(files=(file,)), f"media-{ref}")


async def as_person(server: WebServer, person: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(server.url, headers=await server.sign_in(person))


async def test_a_picture_is_shown_and_all_else_is_a_download(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        give(server, "o1/a.png", "image/png", b"\x89PNG", name='Ä "b".png')
        async with server.http.get(f"{C1}/files/o1/a.png") as answer:
            assert (answer.status, await answer.read()) == (200, b"\x89PNG")
            assert answer.headers["Content-Type"] == "image/png"
            disposition = "inline; filename*=UTF-8''%C3%84%20%22b%22.png"
            assert answer.headers["Content-Disposition"] == disposition
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        active = (("a.svg", "image/svg+xml"), ("a.html", "text/html"), ("a.pdf", "application/pdf"))
        for ref, mime in active:
            give(server, ref, mime, b"<script>1</script>")
            async with server.http.get(f"{C1}/files/{ref}") as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"] == "application/octet-stream", ref
                assert answer.headers["Content-Disposition"].startswith("attachment;"), ref


async def test_only_what_was_given_out_in_this_conversation_is_served(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    async with serve(tmp_path / "data") as server:
        give(server, "o1/a.png", "image/png")
        (server.outputs / "o1/other.png").write_bytes(b"not given out")
        (server.outputs / "o1/link.png").symlink_to(secret)
        out = ("../../secret.txt", str(secret), "o1/link.png", "o1", "o1/gone.png", "o1/\0.png")
        for ref in out:
            file = MediaFile(ref=ref, name="a.png", mime="image/png", size=1)
            server.backend.show(server.address("c1"), Media(files=(file,)), f"evil-{ref}")
        for ref in (*out, "o1/other.png", "o1/a.png/../other.png"):
            at = f"{C1}/files/" + ref.replace("/", "%2F").replace("\0", "%00")
            async with server.http.get(at) as answer:
                assert answer.status in (400, 404), ref
        async with server.http.get("/api/conversations/c2/files/o1/a.png") as answer:
            assert answer.status == 404, "another conversation"
        async with (
            await as_person(server, "ann") as http,
            http.get(f"{C1}/files/o1/a.png") as answer,
        ):
            assert answer.status == 404, "another person"
        async with aiohttp.ClientSession(server.url) as http:
            async with http.get(f"{C1}/files/o1/a.png") as answer:
                assert answer.status == 401


async def test_uploads_go_after_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    async with serve(tmp_path) as server:
        refs = []
        for name in ("fetched", "never"):
            async with server.http.post("/api/uploads", params={"name": name}, data=b"x") as answer:
                refs.append((await answer.json())["ref"])
        folder = server.adapter._uploads
        files = [tmp_path / "uploads" / ref for ref in refs]
        await folder.copy(refs[0], BytesIO())

        async def left(after: float) -> list[bool]:
            monkeypatch.setattr(clock, "now", lambda: now + after)
            await folder.sweep()
            return [file.exists() for file in files]

        assert await left(GRACE - 60) == [True, True], "a turn cut off may fetch it again"
        assert await left(GRACE + 60) == [False, True]
        assert await left(KEPT_SECONDS - 60) == [False, True]
        assert await left(KEPT_SECONDS + 60) == [False, False]
        assert not files[1].parent.exists()


async def test_the_uploads_of_one_person_are_limited_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_KEPT", 2_500)

    async def upload(http: aiohttp.ClientSession) -> int:
        async with http.post("/api/uploads?name=a", data=b"x" * 1_000) as answer:
            return answer.status

    async with serve(tmp_path) as server, await as_person(server, "ann") as ann:
        assert [await upload(server.http) for _ in range(3)] == [201, 201, 413]
        assert await asyncio.gather(*(upload(server.http) for _ in range(6))) == [413] * 6
        kept = [path for path in (tmp_path / "uploads").rglob("a") if path.is_file()]
        assert len(kept) == 2
        assert await upload(ann) == 201
        now = clock.now()
        monkeypatch.setattr(clock, "now", lambda: now + KEPT_SECONDS + 60)
        await server.adapter._uploads.sweep()
        assert await upload(server.http) == 201


@pytest.mark.parametrize("number", [1, 7, 60])
@pytest.mark.parametrize("size", [1, 900, 30_000])
async def test_files_that_arrive_together_stay_within_the_limits_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, size: int
) -> None:
    monkeypatch.setattr(uploads, "MAX_KEPT", 50_000)
    monkeypatch.setattr(uploads, "MAX_FILES", 20)
    kept, folder, most = uploads.Uploads(tmp_path), tmp_path / "ann", 0

    def measure() -> tuple[int, int]:
        found = []
        for inner, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # it is just being refused
                    found.append((Path(inner) / name).stat().st_size)
        return sum(found), len(found)

    async def arrive() -> AsyncIterator[bytes]:
        nonlocal most
        for at in range(0, size, 500):
            await asyncio.sleep(0)
            most = max(most, measure()[0])
            yield bytes(min(500, size - at))

    async def upload() -> int:
        try:
            await kept.keep("ann", "a", arrive())
        except RequestRefused as refused:
            return refused.status
        return 201

    said = await asyncio.gather(*(upload() for _ in range(number)))
    total, files = measure()
    assert most <= 50_000 and files == said.count(201) <= 20 and total == files * size
    assert number > 1 or said == [201]
    assert set(said) <= {201, 413}
    assert 201 in said or number * size > 50_000, "all at once may each be too many"
    monkeypatch.setattr(uploads, "MAX_FILES", 21)
    monkeypatch.setattr(uploads, "MAX_KEPT", 1_000_000)
    assert await upload() == 201, "what was refused takes no room"


async def test_a_waiting_message_is_changed_and_withdrawn(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        http, backend = server.http, server.backend
        await http.post(f"{C1}/messages", json={"text": "one", "key": "k1"})
        async with http.put(f"{C1}/messages/k1", json={"text": "two"}) as answer:
            assert answer.status == 202
        async with http.get(C1) as answer:
            (waiting,) = (await answer.json())["waiting"]
        assert (waiting["message"], waiting["text"]) == ("k1", "two")
        for _ in range(2):
            async with http.delete(f"{C1}/messages/k1") as answer:
                assert answer.status == 202
        said, edit, deleted = backend.accepted
        assert isinstance(said, MessageReceived)
        assert isinstance(edit, MessageEdited)
        assert isinstance(deleted, MessageDeleted)
        assert (edit.message, edit.text, deleted.message) == ("k1", "two", said.message)
        async with http.put(f"{C1}/messages/k1", json={"text": " "}) as answer:
            assert answer.status == 400
        async with http.put(f"{C1}/messages/a~b", json={"text": "x"}) as answer:
            assert answer.status == 404
        async with await as_person(server, "vic") as viewer:
            async with viewer.delete(f"{C1}/messages/k1") as answer:
                assert answer.status == 403
        foreign = {"Origin": "https://evil.invalid"}
        async with http.delete(f"{C1}/messages/k1", headers=foreign) as answer:
            assert answer.status == 403
        assert len(backend.accepted) == 3


async def test_search_commands_and_the_language_of_who_asks(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        backend = server.backend
        backend.show(server.address("c1"), SaidView(name="o", text="The parcel"), "said")
        backend.show(server.address("c1"), ReplyView(text="It is in **Köln**."), "reply")
        backend.show(server.address("c2"), SaidView(name="o", text="The train"), "said")
        backend.show(server.address("c3", "ann"), SaidView(name="o", text="parcel köln"), "said")
        async with server.http.get("/api/conversations", params={"q": "KÖLN parcel"}) as answer:
            found = (await answer.json())["conversations"]
        assert [one["conversation"] for one in found] == ["c1"]
        async with server.http.get("/api/commands") as answer:
            first = (await answer.json())["commands"][0]
            assert first == {"name": "help", "help": "Show commands", "values": []}
        german = {"Accept-Language": "de-CH,de;q=0.9"}
        await server.http.post(f"{C1}/messages", json={"text": "x"}, headers=german)
        await server.http.post(f"{C1}/messages", json={"text": "x"})
        first, second = backend.accepted
        assert isinstance(first, MessageReceived)
        assert isinstance(second, MessageReceived)
        assert (first.sender.language, second.sender.language) == ("de-CH", "")
        async with aiohttp.ClientSession(server.url, headers=german) as http:
            async with http.get("/") as answer:
                assert answer.status == 200
                assert "Bitte melden Sie sich an" in await answer.text()


async def test_a_picture_that_was_sent_is_served_to_its_person_alone(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        path = server.outputs / "ab/sent"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"\x89PNG")
        file = MediaFile(ref="ab/sent", name="cat.png", mime="image/png", size=4)
        said = SaidView(name="owner", text="What is it?", files=(file,))
        server.backend.show(server.address("c1"), said, "said")
        async with server.http.get(f"{C1}/files/ab/sent") as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png")
        async with server.http.get("/api/conversations/c2/files/ab/sent") as answer:
            assert answer.status == 404


async def test_a_search_marks_a_word_in_each_spelling(tmp_path: Path) -> None:
    async with serve(tmp_path) as server:
        for n, written in enumerate(spell("Häuser")):
            line = f"{'far ' * 40}{'ΐﬁ…' * 20} die {written}, und {'so ' * 60}"
            server.backend.show(server.address(f"c{n}"), ReplyView(text=f"A\n\n{line}"), "reply")
        for typed in spell("Häuser"):
            params = {"q": f'"{typed}" die'}
            async with server.http.get("/api/conversations", params=params) as answer:
                found = (await answer.json())["found"]
            marked = {one["conversation"]: one["parts"][1::2] for one in found}
            assert marked == {f"c{n}": ["die", one] for n, one in enumerate(spell("Häuser"))}
            assert all("".join(one["parts"]) == one["text"] for one in found)
            assert {one["name"] for one in found} == {"reply"}


async def test_a_search_finds_the_line_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two lines the one that has all words, though another one is newer."""
    monkeypatch.setattr(api, "MAX_VIEWS", 5)
    async with serve(tmp_path) as server:
        there = server.address("c1")
        server.backend.show(there, SaidView(name="o", text="The parcel is in Köln"), "said")
        server.backend.show(there, SaidView(name="o", text="Another parcel"), "other")
        for n in range(20):
            server.backend.show(there, ReplyView(text=f"parcel {n}"), f"reply{n}")
        for words, name, text in (
            ("köln parcel", "said", "The parcel is in Köln"),
            ("parcel another", "other", "Another parcel"),
            ("parcel", "reply19", "parcel 19"),
        ):
            async with server.http.get("/api/conversations", params={"q": words}) as answer:
                (found,) = (await answer.json())["found"]
            assert (found["name"], found["text"]) == (name, text)
        monkeypatch.setattr(api, "MAX_PAGES", 2)
        async with server.http.get("/api/conversations", params={"q": "köln"}) as answer:
            assert (await answer.json())["found"] == []
