"""Servers of tools that people sign in at, as people meet them in a chat."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from agent_core.mcp import connection, servers
from tests.fakes.browser import browse
from tests.fakes.model_server import Call, Json, Say
from tests.fakes.needs import NEEDS_CHROMIUM
from tests.fakes.oauth_server import SignedServer
from tests.fakes.waiting import PATIENCE
from tests.stories.rig import FRIEND, GROUP, PERSON, Rig, mention
from tests.stories.sign_in_rig import DONE, LINK, Visitor, publish, settings


@pytest.fixture
async def rig(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(connection, "FIRST", 0.1)
    monkeypatch.setattr(servers, "MEET", PATIENCE)
    return rig


@pytest.fixture
def signed(tmp_path: Path) -> Iterator[SignedServer]:
    server = SignedServer(tmp_path / "note").start()
    yield server
    server.stop()


def find_link(card: Json) -> str:
    found = LINK.search(json.dumps(card))
    assert found is not None, card
    return found[0]


async def sign_in(rig: Rig, chat: int = PERSON) -> None:
    """Ask for a link and follow it."""
    before = len(rig.said(chat))
    rig.telegram.say(chat, "/mcp signin notes")
    await rig.until(lambda: len(rig.said(chat)) > before)
    card = await rig.shows("This link signs you in", chat)
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
@pytest.mark.parametrize("first", [Call("notes__sign_in"), publish("one")], ids=["tool", "guess"])
async def test_a_call_waits_for_the_sign_in_and_goes_on_by_itself(
    rig: Rig, signed: SignedServer, first: Call
) -> None:
    rig.model.script(first, publish("one"), Say("done"))
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    card = await rig.shows("wants you to sign in")
    await rig.quiet()
    assert signed.effects() == []
    assert "TURNKEEPER_PUBLIC_URL" in card["text"], "it is not set: the link is good here only"
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("done")
    assert signed.effects() == ["publish one"]
    assert "notes__publish" in rig.seen(-2, role="tool")[-1]
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_server_without_metadata_is_signed_in_at_and_its_tokens_are_refreshed(
    rig: Rig, signed: SignedServer
) -> None:
    """It has its pages where the protocol's first version put them, at its own address."""
    signed.set("plain")
    signed.set("brief")
    rig.model.script(publish("one"), publish("one"), Say("done"), publish("two"), Say("again"))
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    card = await rig.shows("wants you to sign in")
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("done")
    await asyncio.sleep(1.1)  # the token is good for a second
    rig.telegram.say(PERSON, "publish another")
    await rig.shows("again")
    await rig.quiet()
    assert signed.effects() == ["publish one", "publish two"]
    assert not [line for line in signed.asks() if line.startswith("authority")]
    assert sum("POST /token" in line for line in signed.asks()) >= 2


@NEEDS_CHROMIUM
@pytest.mark.timeout(120)
async def test_a_browser_goes_there_and_back(rig: Rig, signed: SignedServer) -> None:
    """By the page's own policy, and with what a browser sends of itself and keeps."""
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "/mcp signin notes")
    link = find_link(await rig.shows("This link signs you in"))
    async with browse() as page:
        await page.look(390, 700)
        await page.go(link)
        await page.until("document.body.textContent.includes('Sign in at notes')")
        await page.click("main button")
        await page.until(f"document.body.textContent.includes('{DONE}')")
        assert await page.js("document.cookie") == ""
    await rig.quiet()
    rig.telegram.say(PERSON, "/mcp")
    await rig.shows("notes: publish")


@pytest.mark.pick("killed while a sign-in is waited for")
@pytest.mark.parametrize("when", ["asked", "begun", "back"])
async def test_a_sign_in_outlives_the_gateway(rig: Rig, signed: SignedServer, when: str) -> None:
    rig.model.script(Call("notes__sign_in"), publish("one"), Say("done"))
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    link, visitor = find_link(await rig.shows("wants you to sign in")), Visitor()
    await rig.quiet()
    if when == "asked":
        await rig.crash()
        await rig.start(**settings(signed))
    onward = await visitor.begin(link)
    if when == "begun":
        await rig.crash()
        await rig.start(**settings(signed))
    back = await visitor.leave(onward)
    if when == "back":
        await rig.crash()
        await rig.start(**settings(signed))
    assert DONE in await visitor.come_back(back)
    await rig.shows("done")
    assert signed.effects() == ["publish one"]
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_who_declines_is_left_alone(rig: Rig, signed: SignedServer) -> None:
    rig.model.script(Call("notes__sign_in"), Say("as you like"))
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    rig.press(await rig.shows("wants you to sign in"), "Cancel")
    await rig.shows("as you like")
    assert rig.seen(role="tool")[-1].startswith("Not run")
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_the_button_alone_signs_nobody_in(rig: Rig, signed: SignedServer) -> None:
    rig.model.script(Call("notes__sign_in"), Say("not yet"))
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    for n in range(3):
        await rig.until(
            lambda n=n: len(rig.cards()) == 1 and len(rig.log.named("sign_in_offered")) == n + 1
        )
        await rig.quiet()
        rig.press(rig.cards()[-1], "I have signed in")
    await rig.shows("not yet")
    assert signed.effects() == []
    await rig.quiet()


async def test_each_person_signs_in_for_themselves(rig: Rig, signed: SignedServer) -> None:
    rig.model.script(publish("one"), Say("first done"), publish("two"), Say("second done"))
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("first done")
    rig.telegram.say(FRIEND, "publish mine")
    card = await rig.shows("wants you to sign in", FRIEND)
    assert signed.effects() == ["publish one"]
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("second done", FRIEND)
    assert signed.effects() == ["publish one", "publish two"]
    used = {ask.split()[-1] for ask in signed.asks() if "ACCESS-" in ask}
    assert len(used) == 2, "two people, two tokens"
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_sign_in_that_was_revoked_is_asked_for_again(
    rig: Rig, signed: SignedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FRESH", 0.0)  # each call looks first
    rig.model.script(publish("one"), Say("first done"), publish("two"), Say("second done"))
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("first done")
    await rig.quiet()
    signed.set("revoked")
    rig.telegram.say(PERSON, "publish another")
    card = await rig.shows("wants you to sign in")
    signed.set("revoked", on=False)
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("second done")
    assert signed.effects() == ["publish one", "publish two"]
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_call_whose_sign_in_ends_meanwhile_says_that_nothing_was_done(
    rig: Rig, signed: SignedServer
) -> None:
    rig.model.script(
        publish("one"), Say("first done"), publish("two"), publish("two"), Say("all is over")
    )
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("first done")
    await rig.quiet()
    signed.set("revoked")
    rig.telegram.say(PERSON, "publish another")
    card = await rig.shows("wants you to sign in")
    assert "did nothing" in rig.seen(role="tool")[-1]
    signed.set("revoked", on=False)
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("all is over")
    assert signed.effects() == ["publish one", "publish two"]
    await rig.quiet()


@pytest.mark.pick("tokens that expire")
@pytest.mark.parametrize("refresh", [True, False])
async def test_expired_tokens_are_refreshed_without_a_word(
    rig: Rig, signed: SignedServer, refresh: bool
) -> None:
    """Also after a restart; where no refresh is given, the person is asked again."""
    known = () if refresh else (publish("one"),)  # nothing is known before: it only signs in
    rig.model.script(*known, publish("one"), Say("done"))
    signed.set("brief")
    await rig.start(**settings(signed))
    await sign_in(rig)
    await rig.stop()
    signed.set("mute", on=not refresh)
    signed.set("brief", on=False)
    (kept,) = json.loads((rig.home / "secrets.json").read_text()).values()
    expires = json.loads(kept["SIGN_IN"])["expires"]
    await rig.until(lambda: time.time() > expires + 0.1)
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish it")
    if not refresh:
        card = await rig.shows("wants you to sign in")
        signed.set("mute", on=False)
        assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("done")
    assert signed.effects() == ["publish one"]
    assert sum("/authorize" in ask for ask in signed.asks()) == (1 if refresh else 2)
    await rig.quiet()


@pytest.mark.pick("tokens that expire")
@pytest.mark.parametrize("again", [True, False])
async def test_tokens_that_are_refused_are_refreshed_first(
    rig: Rig, signed: SignedServer, again: bool
) -> None:
    """Whoever made them need not have said how long they are good for; also after a restart."""
    rig.model.script(publish("one"), Say("done"))
    signed.set("brief")
    signed.set("silent")
    await rig.start(**settings(signed))
    await sign_in(rig)
    if again:
        await rig.stop()
        await rig.start(**settings(signed))
    made = time.time()
    await rig.until(lambda: time.time() > made + 2)
    signed.set("brief", on=False)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("done")
    assert signed.effects() == ["publish one"]
    assert sum("/authorize" in ask for ask in signed.asks()) == 1
    await rig.quiet()


def expire_tokens(rig: Rig) -> None:
    """What is kept of them says that their time is over."""
    place = rig.home / "secrets.json"
    kept = json.loads(place.read_text())
    ((address, values),) = kept.items()
    about = json.loads(values["SIGN_IN"]) | {"expires": 1.0}
    place.write_text(json.dumps({address: values | {"SIGN_IN": json.dumps(about)}}))


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_refresh_that_fails_for_now_costs_no_sign_in(
    rig: Rig, signed: SignedServer
) -> None:
    rig.model.script(publish("one"), Say("first done"), publish("two"), Say("not now"))
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("first done")
    await rig.stop()
    signed.set("down")
    expire_tokens(rig)
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "publish another")
    await rig.shows("not now")
    assert "not available" in rig.seen(role="tool")[-1] and rig.cards() == []
    signed.set("down", on=False)
    agent = rig.host.services.agent
    await rig.until(lambda: all(one.there for one in agent.servers._accounts_there()))  # type: ignore[attr-defined]
    rig.model.script(publish("two"), Say("second done"))
    rig.telegram.say(PERSON, "publish another")
    await rig.shows("second done")
    assert signed.effects() == ["publish one", "publish two"]
    assert sum("/authorize" in ask for ask in signed.asks()) == 1
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_server_that_wants_more_is_signed_in_at_with_more(
    rig: Rig, signed: SignedServer
) -> None:
    rig.model.script(publish("one"), Say("first done"), publish("two"), publish("two"), Say("over"))
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("first done")
    await rig.quiet()
    signed.set("wider")
    rig.telegram.say(PERSON, "publish another")
    card = await rig.shows("wants you to sign in")
    assert DONE in await Visitor().sign_in(find_link(card))
    await rig.shows("over")
    assert signed.effects() == ["publish one", "publish two"]
    asked = [ask for ask in signed.asks() if "/authorize" in ask]
    assert "scope=notes&" in f"{asked[0]}&".replace(" ", "&") and "admin" in asked[1]
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_group_gets_no_link_and_goes_on_after_it(rig: Rig, signed: SignedServer) -> None:
    rig.model.script(Call("notes__sign_in"), publish("one"), Say("done"))
    await rig.start(**settings(signed))
    rig.telegram.say(GROUP, "@test_bot publish it", PERSON, group=True, **mention(""))
    card = await rig.shows("wants you to sign in", GROUP)
    assert "/mcp signin notes" in card["text"] and LINK.search(json.dumps(card)) is None
    await rig.quiet()
    rig.telegram.say(GROUP, "/mcp@test_bot signin notes", PERSON, group=True)
    await sign_in(rig)
    await rig.shows("done", GROUP)
    assert signed.effects() == ["publish one"]
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_what_a_server_names_inside_is_not_asked(rig: Rig, signed: SignedServer) -> None:
    """Its authorization server is on this machine, and the operator did not list it."""
    await rig.start(**settings(signed) | {"WEB_ALLOWED_HOSTS": ""})
    rig.telegram.say(PERSON, "/mcp signin notes")
    link = find_link(await rig.shows("This link signs you in"))
    assert await Visitor().begin(link) == ""
    assert any(ask.startswith("server") for ask in signed.asks())
    assert not any(ask.startswith("authority") for ask in signed.asks())
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_where_the_page_is_public_links_and_the_way_back_lead_there(
    rig: Rig, signed: SignedServer
) -> None:
    public = "https://turnkeeper.example.org"
    await rig.start(**settings(signed), TURNKEEPER_PUBLIC_URL=public)
    rig.telegram.say(PERSON, "/mcp signin notes")
    card = await rig.shows("This link signs you in")
    assert "machine only" not in card["text"]
    token = card["text"].rpartition(f"{public}/servers/signin/")[2].split()[0]
    head = {"Host": public.removeprefix("https://"), "Origin": public, "X-Forwarded-Proto": "https"}
    url = f"http://127.0.0.1:{signed.gateway_port}/servers/signin/{token}"
    async with ClientSession() as http:
        async with http.post(url, headers=head) as page:
            text, cookie = await page.text(), page.headers["Set-Cookie"]
        for stranger in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            async with http.post(url, headers=head | stranger) as page:
                assert page.status == 403
    assert "redirect_uri=https%3A%2F%2Fturnkeeper.example.org%2Fservers%2Fcallback&" in text
    assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/servers"))
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_a_link_is_good_once_and_its_way_back_in_one_browser(
    rig: Rig, signed: SignedServer
) -> None:
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "/mcp signin notes")
    link, visitor = find_link(await rig.shows("This link signs you in")), Visitor()
    back = await visitor.leave(await visitor.begin(link))
    assert DONE not in await Visitor().come_back(back), "another browser brings the code"
    for forged in (re.sub("state=[^&]+", "state=eA.x", back), back.split("?")[0]):
        assert "expired" in await visitor.come_back(forged)
    back = await visitor.leave(await visitor.begin(link))  # the cookie went with the forged ones
    assert DONE in await visitor.come_back(back)
    assert "expired" in await visitor.come_back(back), "a second time"
    assert await visitor.begin(link) == "", "the link is used up"
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
@pytest.mark.parametrize("how", ["denies", "down"])
async def test_who_is_refused_there_may_try_again(rig: Rig, signed: SignedServer, how: str) -> None:
    """By the person's own no, or where no token is given for now: the page says so."""
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "/mcp signin notes")
    link = find_link(await rig.shows("This link signs you in"))
    signed.set(how)
    said = await Visitor().sign_in(link)
    assert "did not sign you in" in said and "Open the link again" in said
    signed.set(how, on=False)
    visitor = Visitor()
    assert DONE in await visitor.sign_in(link)
    assert await visitor.begin(link) == "", "the link is used up"
    await rig.quiet()


@pytest.mark.pick("sign-ins at servers", 5)
async def test_an_operator_is_told_what_a_server_without_registration_needs(
    rig: Rig, signed: SignedServer, caplog: pytest.LogCaptureFixture
) -> None:
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "/mcp signin notes")
    link = find_link(await rig.shows("This link signs you in"))
    signed.set("closed")
    assert await Visitor().begin(link) == ""
    (told,) = [one for one in caplog.records if one.message == "sign_in_failed"]
    assert "set client_id" in vars(told)["why"]
    await rig.quiet()


async def test_tokens_stand_in_the_vault_and_nowhere_else(rig: Rig, signed: SignedServer) -> None:
    rig.model.script(publish("one"), Say("done"))
    await rig.start(**settings(signed))
    await sign_in(rig)
    rig.telegram.say(PERSON, "publish it")
    await rig.shows("done")
    await rig.quiet()
    assert ("telegram:11", "server_signed_in", "notes") in await rig.audit()
    (own,) = json.loads((rig.home / "secrets.json").read_text()).values()
    secrets = (own["ACCESS_TOKEN"], own["REFRESH_TOKEN"], "CODE-")
    vault = rig.home / "secrets.json"
    assert vault.stat().st_mode & 0o077 == 0
    said = [record.getMessage() + repr(record.__dict__) for record in rig.log.records]
    seen = [json.dumps(one.body) for one in rig.model.requests] + rig.said() + said
    await rig.stop()
    places = [one for one in rig.home.rglob("*") if one.is_file() and one != vault]
    for secret in secrets:
        assert not [text for text in seen if secret in text]
        assert not [one for one in places if secret.encode() in one.read_bytes()], secret


@pytest.mark.pick("sign-ins at servers", 5)
async def test_who_signs_out_is_asked_again(rig: Rig, signed: SignedServer) -> None:
    await rig.start(**settings(signed))
    rig.telegram.say(PERSON, "/mcp")
    await rig.shows("you are not signed in")
    await sign_in(rig)
    rig.telegram.say(PERSON, "/mcp")
    await rig.shows("notes: publish")
    rig.telegram.say(PERSON, "/mcp signout notes")
    await rig.shows("Your sign-in at notes was deleted here")
    assert json.loads((rig.home / "secrets.json").read_text()) == {}
    rig.telegram.say(PERSON, "/mcp signin elsewhere")
    await rig.shows("elsewhere does not use personal sign-ins")
    await rig.quiet()
