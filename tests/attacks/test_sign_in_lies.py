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
from agent_core.mcp.settings import McpServer
from tests.attacks.oauth_grammar import CODE, ISSUER, SECRET, SET_BY_US, Liars, lie
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


async def sign_in(liars: Liars, guard: SignInGuard) -> tuple[PendingSignIn | None, object]:
    """The page where a person is sent, and what became of it: a grant, or why there is none."""
    headers = {"X-Api-Key": KEY}
    server = McpServer(name="s", url=f"{liars.url('server')}/mcp", auth="oauth", headers=headers)
    pending = None
    try:
        pending = await begin(server, BACK, guard)
        return pending, await finish(server, pending, CODE, "", guard)
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
