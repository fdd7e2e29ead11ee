"""Attacks on `POST /hooks`, case by case: forged, repeated, damaged and too large calls."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp
import pytest

from agent_core import ambient
from gateway.features.jobs.hooks import ADDRESS, Way, secret_name
from gateway.services.vault import Vault
from tests.fakes.model_server import Say
from tests.stories.hooks_rig import BODY, Headers, call, github, give, mac, plain, prepare, standard
from tests.stories.jobs_rig import Shifted, pass_until, runs, settled
from tests.stories.rig import PATIENCE, Rig

Case = Callable[[Rig, Shifted], Awaitable[None]]
CASES: dict[str, Case] = {}
SIGN: dict[Way, Callable[[], Headers]] = {"standard": standard, "plain": plain, "github": github}


def case(name: str) -> Callable[[Case], Case]:
    def keep(test: Case) -> Case:
        CASES[name] = test
        return test

    return keep


@pytest.fixture
async def rig(rig: Rig) -> Rig:
    prepare(rig.home, rig.where().id)
    await rig.start()
    await rig.until(lambda: rig.log.named("jobs_file_applied"))
    return rig


async def refused(rig: Rig, headers: dict[str, str], body: bytes = BODY, status: int = 401) -> None:
    """It is, nothing begins, and nobody is locked out by it."""
    before = await runs(rig)
    assert (await call(rig, headers, body))[0] == status
    assert await runs(rig) == before


async def begun_once(rig: Rig) -> None:
    await settled(rig, "done")
    await rig.quiet()
    assert len(await runs(rig)) == 1
    assert len([one for one in rig.said() if "deployed" in one]) == 1


@case("slack-future")
async def from_the_future(rig: Rig, clock: Shifted) -> None:
    for sign in (standard, plain):
        await refused(rig, sign(at=ambient.now() + 302))


@case("slack-body-mutated")
async def another_body(rig: Rig, clock: Shifted) -> None:
    for way, sign in SIGN.items():
        give(rig.home, way)
        await refused(rig, sign(), BODY.replace(b"1.2.3", b"6.6.6"))


@case("slack-replay-same-body")
async def replayed(rig: Rig, clock: Shifted) -> None:
    give(rig.home, "plain")
    headers = plain()
    for _ in range(2):
        assert (await call(rig, headers))[0] == 202
    await begun_once(rig)


@case("slack-retry-after-ttl")
async def retried_late(rig: Rig, clock: Shifted) -> None:
    """The same call, signed anew, long after its first signature is too old."""
    assert (await call(rig, standard("msg_1")))[0] == 202
    await begun_once(rig)
    await pass_until(rig, clock, ambient.now() + 86_400)
    assert (await call(rig, standard("msg_1")))[0] == 202
    await begun_once(rig)


@case("slack-retry-while-running")
async def retried_while_it_runs(rig: Rig, clock: Shifted) -> None:
    rig.model.gate = asyncio.Event()
    assert (await call(rig, standard()))[0] == 202
    await rig.until(lambda: rig.model.requests)
    assert (await call(rig, standard()))[0] == 202
    rig.model.gate.set()
    await begun_once(rig)


@case("telegram-no-secret")
async def no_signature(rig: Rig, clock: Shifted) -> None:
    await refused(rig, {})
    await refused(rig, {"webhook-id": "msg_1", "X-Turnkeeper-Timestamp": f"{ambient.now():.0f}"})


@case("telegram-secret-unset")
async def no_secret(rig: Rig, clock: Shifted) -> None:
    """A hook without one takes nothing, whoever signs with nothing."""
    Vault(rig.home).drop(ADDRESS, secret_name("deploy"))
    await refused(rig, standard())
    await refused(rig, {"X-Hub-Signature-256": f"sha256={mac(BODY, b'').hex()}"})


@case("telegram-dup-update")
async def two_at_once(rig: Rig, clock: Shifted) -> None:
    headers = standard()
    answers = await asyncio.gather(*(call(rig, headers) for _ in range(4)))
    assert [status for status, _ in answers] == [202] * 4
    await begun_once(rig)


@case("telegram-ack-before-done")
async def killed_after_the_answer(rig: Rig, clock: Shifted) -> None:
    rig.model.gate = asyncio.Event()
    assert (await call(rig, standard()))[0] == 202
    await rig.until(lambda: rig.model.requests)
    await rig.crash()
    rig.model.gate.set()
    await rig.start()
    await begun_once(rig)


@case("body-too-large")
async def too_large(rig: Rig, clock: Shifted) -> None:
    """Refused by its length: none of it is waited for."""
    where = urlsplit(rig.url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        head = f"POST /hooks/deploy HTTP/1.1\r\nHost: a\r\nContent-Length: {50 << 20}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(PATIENCE):
            assert b" 413 " in await reader.readline()
    finally:
        writer.close()
    assert await runs(rig) == []


@case("bad-utf8")
async def bad_bytes(rig: Rig, clock: Shifted) -> None:
    give(rig.home, "plain")
    wild = b'{"a": "\xff\xfe"}'
    await refused(rig, plain(wild), wild, 400)


@case("secret-rotation")
async def old_secret(rig: Rig, clock: Shifted) -> None:
    Vault(rig.home).keep(ADDRESS, secret_name("deploy"), "another secret of the hook")
    for sign in SIGN.values():
        await refused(rig, sign())


@case("get-burns-lockout")
async def many_gets(rig: Rig, clock: Shifted) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(20):
            async with session.get(f"{rig.url}hooks/deploy", headers=standard()) as answer:
                assert answer.status == 405
    assert (await call(rig, standard()))[0] == 202
    await begun_once(rig)


@case("blank-callback-token")
async def blank(rig: Rig, clock: Shifted) -> None:
    blanks: tuple[tuple[Way, Headers], ...] = (
        ("standard", standard() | {"webhook-signature": ""}),
        ("standard", standard() | {"webhook-id": ""}),
        ("plain", plain() | {"X-Turnkeeper-Signature": ""}),
        ("plain", plain() | {"X-Turnkeeper-Signature": "sha256="}),
        ("github", {"X-Hub-Signature-256": "sha256="}),
    )
    for way, headers in blanks:
        give(rig.home, way)
        await refused(rig, headers)


@pytest.mark.pick("an attack on a hook", 7)
@pytest.mark.parametrize("name", sorted(CASES))
async def test_an_attack_on_a_hook(name: str, rig: Rig, clock: Shifted) -> None:
    rig.model.script(*[Say("1.2.3 was deployed.")] * 4)
    await CASES[name](rig, clock)
