"""The socket by which the command line speaks with a running gateway."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.cli import offline
from gateway.cli.offline import answer_offline
from gateway.messages import Conversation
from gateway.ops import control, lock
from gateway.settings import Settings
from gateway.store.rows import Letter
from gateway.store.sqlite import SqliteStore
from tests.fakes.waiting import PATIENCE


async def test_a_folder_that_is_only_read_now_is_no_fault_at_the_end(tmp_path: Path) -> None:
    operations = control.Operations(store=None, pairing=None)  # type: ignore[arg-type]
    async with control.serve(tmp_path, operations):
        (tmp_path / control.SOCKET).unlink()
        (tmp_path / control.SOCKET).mkdir()  # nobody can remove it as a file


async def describe() -> str:
    return "it is ready"


LIVE = control.Live(
    status=describe,
    link=lambda name: name,
    wake=lambda conversation: None,
    stop=lambda: None,
    restore=lambda name: False,
    platforms=frozenset(("telegram",)),
)


def ask_status(home: Path) -> Awaitable[control.ControlAnswer]:
    settings = Settings.read({"TURNKEEPER_HOME": str(home)})
    question = control.ControlRequest(command="status")
    return asyncio.create_task(answer_offline(settings, question, lambda text: None))


async def have_looked(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Awaitable[None]]:
    """What waits until somebody has asked the socket twice."""
    asked, ask, twice = list[None](), control.ask, asyncio.Event()
    loop = asyncio.get_running_loop()

    def count(*given: object) -> control.ControlAnswer | None:
        asked.append(None)
        if len(asked) == 2:
            loop.call_soon_threadsafe(twice.set)
        return ask(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(control, "ask", count)

    async def wait() -> None:
        await twice.wait()

    return wait


async def test_a_command_waits_for_a_gateway_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = await have_looked(monkeypatch)
    with lock.hold(tmp_path):
        asked = ask_status(tmp_path)
        await looked()
        operations = control.Operations(store=None, pairing=None, live=LIVE)  # type: ignore[arg-type]
        async with control.serve(tmp_path, operations):
            assert await asked == control.ControlAnswer(text="it is ready")


async def test_a_command_waits_for_a_gateway_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = await have_looked(monkeypatch)
    with ExitStack() as held:
        held.enter_context(lock.hold(tmp_path))
        asked = ask_status(tmp_path)
        await looked()
        held.close()
        assert await asked == control.ControlAnswer(text=control.NOT_RUNNING, ok=False)


async def test_a_command_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline, "PATIENCE", 0.0)
    with lock.hold(tmp_path):
        answer = await ask_status(tmp_path)
    assert not answer.ok and "works on this folder and does not answer" in answer.text


def test_a_socket_that_too_many_wait_at_is_told_of(tmp_path: Path) -> None:
    path = str(tmp_path / control.SOCKET)
    with ExitStack() as open_sockets:
        listening = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(path)
        listening.listen(0)
        try:
            while True:
                one = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
                one.setblocking(False)
                one.connect(path)
        except BlockingIOError:
            pass
        answer = control.ask(tmp_path, control.ControlRequest(command="status"))
    assert answer is not None and not answer.ok and "does not answer" in answer.text


@pytest.mark.parametrize(
    ("platform", "told"), [("telegram", "waits again in"), ("slack", "runs with slack")]
)
async def test_resubmitting_promises_no_answer_on_a_platform_that_is_not_set_up(
    tmp_path: Path, platform: str, told: str
) -> None:
    where = Conversation(platform=platform, account="a", channel="c", private=True)
    store = await SqliteStore.open(tmp_path / "new.db")
    body = b'{"kind": "message"}'
    letter = Letter(
        id="7", kind="message", conversation=where.id, name="7", at=1.0, why="bug", payload=body
    )
    await store.keep_letter(letter)
    asked = control.Operations(store=store, pairing=None, live=LIVE)
    answer = await asked.answer(control.ControlRequest(command="resubmit", words=("7",)))
    await store.close()
    assert answer.ok and told in answer.text


@pytest.mark.parametrize("sent", [b"", b"{", b'{"command": "status"}', b"\0" * 999])
async def test_a_question_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(control, "ASKED_SECONDS", 0.2, raising=False)
    operations = control.Operations(store=None, pairing=None, live=LIVE)  # type: ignore[arg-type]
    async with control.serve(tmp_path, operations):
        held = [await asyncio.open_unix_connection(tmp_path / control.SOCKET) for _ in range(20)]
        for _, writer in held:
            writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            said = {await reader.read() for reader, _ in held}
        assert said == {b'{"text":"not a question: its line does not end","ok":false}\n'}
        for _, writer in held:
            writer.close()
        said_now = await asyncio.to_thread(control.ask, tmp_path, control.STATUS)
        assert said_now is not None and said_now.text == "it is ready"
