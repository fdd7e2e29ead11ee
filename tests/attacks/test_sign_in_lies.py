"""Whatever a server and its authorization server say of themselves: nothing inside is asked, what the
operator set for one server goes to no other, a person is sent to no page that could take the answer
elsewhere, and no log and no failure repeats a server's words."""

import logging
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest

from agent_core.mcp.oauth.flow import SignInGuard, begin, finish
from agent_core.mcp.oauth.grants import PendingSignIn, ServerGrant, SignInFailed
from agent_core.mcp.oauth.provider import MAX_TOKEN
from agent_core.mcp.settings import McpServer
from tests.attacks.oauth_grammar import CODE, ISSUER, METADATA, SECRET, SET_BY_US, Liars, lie
from tests.sampling import dice, examples

BACK = "http://127.0.0.1:9/servers/callback"
KEY = "CANARY-key-81c4d2"
MAX_SIZE = 25_000


@pytest.fixture
async def liars() -> AsyncIterator[Liars]:
    told = Liars()
    await told.start()
    yield told
    await told.close()


@pytest.fixture
async def guard(liars: Liars) -> AsyncIterator[SignInGuard]:
    made = SignInGuard(frozenset({liars.places["authority"]}))
    await made.open()
    yield made
    await made.close()


async def sign_in(
    liars: Liars, guard: SignInGuard, says: str = "", **fields: str
) -> tuple[PendingSignIn | None, object]:
    """The page where a person is sent, and what became of it: a grant, or why there is none.
    `says`: who they are sent back by, as the way back has it."""
    url, headers = f"{liars.url('server')}/mcp", {"X-Api-Key": KEY}
    given = {"name": "s", "url": url, "auth": "oauth", "headers": headers, **fields}
    server, pending = McpServer.model_validate(given), None
    try:
        pending = await begin(server, BACK, guard)
        return pending, await finish(server, pending, CODE, says, guard)
    except SignInFailed as why:
        return pending, str(why)


def check_page(pending: PendingSignIn) -> None:
    """Each parameter of ours stands there once, and the page is one that browsers open."""
    parts = urlsplit(pending.url)
    asked = {name.lower(): values for name, values in parse_qs(parts.query).items()}
    assert parts.scheme in ("http", "https") and not parts.fragment and "@" not in parts.netloc
    assert asked["redirect_uri"] == [BACK] and asked["response_type"] == ["code"]
    assert not {"request", "request_uri", "response_mode", "state", "nonce"} & asked.keys()
    assert all(len(asked.get(name, ())) <= 1 for name in SET_BY_US)
    assert len(pending.url) < MAX_SIZE


async def test_no_lie_leads_elsewhere(
    liars: Liars, guard: SignInGuard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for n in range(examples(240)):
        kind = lie(dice("lies", n), liars)
        caplog.clear()
        pending, became = await sign_in(liars, guard)
        told = f"{kind}, {n}: {became}"
        if pending is not None:
            check_page(pending)
            assert kind != "_lie_by_page", told
        if isinstance(became, ServerGrant):
            assert len(became.access + became.refresh + became.scope) < 3 * MAX_SIZE, told
            assert re.fullmatch("[!-~]+", became.access), told
        assert all(name != "inside" for name, _, _ in liars.asked), told
        assert not any(KEY in sent for name, _, sent in liars.asked if name != "server"), told
        logged = f"{caplog.text} {became if isinstance(became, str) else ''}"
        assert not any(one in logged for one in (SECRET, CODE, "ACCESS-1", "REFRESH-1")), told


async def test_the_truth_signs_in(liars: Liars, guard: SignInGuard) -> None:
    for more in ("", "?policy=b2c_1&tenant=t", "/v2.0;x=1", "?ui_locales=de&login_hint=a%40b"):
        liars.tell_the_truth()
        page = f"{liars.url('authority')}/authorize{more}"
        liars.said["authority", ISSUER]["authorization_endpoint"] = page
        pending, became = await sign_in(liars, guard)
        assert isinstance(became, ServerGrant) and became.access == "ACCESS-1", became
        assert pending is not None and pending.url.startswith(page)
        check_page(pending)


async def test_who_sends_a_person_back_is_who_they_were_sent_to(
    liars: Liars, guard: SignInGuard
) -> None:
    authority = liars.url("authority")
    others = ("https://e.invalid", f"{authority}/x", authority.upper(), f"{authority}.", "x")
    for always in (True, False):
        for says in (*others, "", authority):
            liars.tell_the_truth()
            known = liars.said["authority", ISSUER]
            known["authorization_response_iss_parameter_supported"] = always
            _, became = await sign_in(liars, guard, says)
            fits = says == authority or (not always and not says)
            assert isinstance(became, ServerGrant) is fits, (always, says, became)
            asked = [path for name, path, _ in liars.asked if name == "authority"]
            assert ("/token" in asked) is fits, "no code goes to somebody else"


async def test_a_registration_made_by_hand_goes_to_no_other_authority(
    liars: Liars, guard: SignInGuard
) -> None:
    made = {"client_id": "c-hand", "client_secret": SECRET}
    for issuer, fits in (("", True), (liars.url("authority"), True), ("https://e.invalid", False)):
        liars.tell_the_truth()
        _, became = await sign_in(liars, guard, issuer=issuer, **made)
        assert isinstance(became, ServerGrant) is fits, became
        asked = [path for name, path, _ in liars.asked if name == "authority"]
        assert ("/token" in asked) is fits and "/register" not in asked
    liars.tell_the_truth()
    named = liars.said["server", METADATA]["authorization_servers"]
    named.insert(0, "https://e.invalid")
    pending, became = await sign_in(liars, guard, **made, issuer=named[1])
    assert isinstance(became, ServerGrant) and pending is not None
    assert pending.url.startswith(named[1]), "of several the one of the settings is taken"


@pytest.mark.parametrize("field", ["access_token", "refresh_token", "scope"])
async def test_what_is_too_long_to_be_sent_each_time_is_refused(
    liars: Liars, guard: SignInGuard, field: str
) -> None:
    for size in (MAX_TOKEN, MAX_TOKEN + 1):
        liars.tell_the_truth()
        liars.said["authority", "/token"][field] = "x" * size
        _, became = await sign_in(liars, guard)
        assert isinstance(became, ServerGrant) is (size == MAX_TOKEN), became
