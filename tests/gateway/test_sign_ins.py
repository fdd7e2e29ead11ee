"""Sign-ins at servers of tools: links, states, and where the tokens are."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core import ambient
from agent_core.mcp.oauth.grants import Parties, PendingSignIn, ServerGrant, SignInFailed
from gateway.messages import Conversation, Sender
from gateway.services.sign_ins import LASTS, STATE_LASTS, SignIns, forget_sign_ins
from gateway.services.vault import Vault
from gateway.store.sqlite import SqliteStore

ANN = Sender(platform="telegram", id="1", name="Ann")
BOB = Sender(platform="telegram", id="2", name="Bob")
WHERE = Conversation(platform="telegram", account="bot", channel="1", private=True)
GRANT = ServerGrant(access="ACCESS-1", refresh="REFRESH-1", parties=Parties(client="{}"))
PENDING = PendingSignIn(url="https://a", verifier="v", redirect="r", parties=Parties(client="{}"))


@pytest.fixture
async def sign_ins(tmp_path: Path, store: SqliteStore) -> SignIns:
    return SignIns(store, Vault(tmp_path), "https://t.example/", public=True)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "store.db")
    yield store
    await store.close()


async def token(sign_ins: SignIns, sender: Sender = ANN) -> str:
    return (await sign_ins.offer(sender, WHERE, "notes")).link.rpartition("/")[2]


async def test_a_link_is_found_until_its_day_is_over(
    sign_ins: SignIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = await token(sign_ins)
    assert (await sign_ins.find(link)).sender == ANN  # type: ignore[union-attr]
    for forged in ("", ".", "x", link[:-1], f"{link}x", link.replace(".", ""), "/" * 5_000):
        assert await sign_ins.find(forged) is None, forged
    began = ambient.now()
    monkeypatch.setattr(ambient, "now", lambda: began + LASTS + 1)
    assert await sign_ins.find(link) is None


async def test_a_state_is_of_one_person_one_browser_and_ten_minutes(
    sign_ins: SignIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = await sign_ins.find(await token(sign_ins))
    assert ticket is not None
    state, browser = await sign_ins.note_begun(ticket, PENDING)
    other = state.replace(state.partition(".")[0], "dGVsZWdyYW06Mg")  # Bob's name, Ann's secret
    assert await sign_ins.find_state(state, browser) is not None
    for wrong in ((other, browser), (state, "x"), (state, ""), ("", browser)):
        assert await sign_ins.find_state(*wrong) is None
    began = ambient.now()
    monkeypatch.setattr(ambient, "now", lambda: began + STATE_LASTS + 1)
    assert await sign_ins.find_state(state, browser) is None


async def test_a_state_is_taken_once(sign_ins: SignIns) -> None:
    ticket = await sign_ins.find(await token(sign_ins))
    assert ticket is not None
    begun = await sign_ins.find_state(*await sign_ins.note_begun(ticket, PENDING))
    assert begun is not None
    assert await sign_ins.take(begun)
    assert not await sign_ins.take(begun)


async def test_old_links_give_way_and_a_group_gets_none(sign_ins: SignIns) -> None:
    first = await token(sign_ins)
    for _ in range(10):
        last = await token(sign_ins)
    assert await sign_ins.find(first) is None and await sign_ins.find(last) is not None
    group = Conversation(platform="telegram", account="bot", channel="-5")
    assert (await sign_ins.offer(ANN, group, "notes")).link == ""
    assert group in await sign_ins.list_waiting(ANN.key, "notes")


async def test_what_is_erased_is_one_persons(sign_ins: SignIns, tmp_path: Path) -> None:
    for sender in (ANN, BOB):
        sign_ins.keep(sender.key, "notes", GRANT)
    assert sign_ins.read(ANN.key, "notes") == GRANT
    assert sign_ins.read(ANN.key, "other") is None
    vault = Vault(tmp_path)
    vault.keep("telegram:somewhere", "TOKEN", "a-secret-value")
    forget_sign_ins(vault, frozenset({ANN.key}))
    assert sign_ins.read(ANN.key, "notes") is None
    assert sign_ins.read(BOB.key, "notes") == GRANT
    assert vault.names("telegram:somewhere") == ("TOKEN",)


async def test_tokens_are_shown_by_nothing(sign_ins: SignIns, tmp_path: Path) -> None:
    sign_ins.keep(ANN.key, "notes", GRANT)
    assert "1" not in repr(GRANT) and "v" not in repr(PENDING).removeprefix("PendingSignIn")
    hidden = Vault(tmp_path).hide("with ACCESS-1 and REFRESH-1")
    assert hidden == "with [ACCESS_TOKEN] and [REFRESH_TOKEN]"
    with pytest.raises(SignInFailed):
        sign_ins.keep(ANN.key, "notes", ServerGrant(access="abc", parties=Parties(client="{}")))
