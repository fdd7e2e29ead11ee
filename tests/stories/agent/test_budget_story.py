"""What a turn may take: calls and money. Over Telegram, the real gateway and model SDK."""

import asyncio
import json
from pathlib import Path

import pytest

from agent_core.errors import BudgetExceeded
from agent_core.models.catalog import Price
from agent_core.models.port import ModelReply, ModelRequest, Usage
from agent_core.orchestration.settings import Limits
from gateway.cli.main import _unwrap_group
from gateway.declaration import SettingsError
from gateway.errors import StoreFailed
from gateway.model_settings import read_models
from gateway.services import ledger as ledger_module
from gateway.services.ledger import Ledger, Payer
from gateway.settings import Settings
from gateway.store.sqlite import SqliteStore
from gateway.texts import say
from tests.fakes.model_server import Call, Say
from tests.stories.budget_rig import PRICES, looks
from tests.stories.plan_rig import ASK, CHAIN, GOOD
from tests.stories.rig import ADMIN, FRIEND, PERSON, Rig


async def test_a_turn_is_warned_and_then_sums_up(rig: Rig) -> None:
    await rig.start(AGENT_MAX_TURNS="10")
    rig.model.script(*looks(10), Say("This is what I know."))
    rig.telegram.say(PERSON, "look everywhere")
    await rig.shows("This is what I know.")
    await rig.quiet()
    assert len(rig.model.requests) == 11, "the summary is counted apart"
    warned = [n for n, r in enumerate(rig.model.requests) if "[Budget]" in str(r.body["messages"])]
    assert warned[0] == 7, "after 70 % of the calls, and it stays there"
    assert str(rig.model.requests[-1].body).count("[Budget]") == 1
    assert rig.model.requests[-1].body["tool_choice"] == "none"
    assert "limit" in rig.said()[-1]


async def test_a_plan_ends_with_an_answer_when_its_calls_are_used_up(rig: Rig) -> None:
    await rig.start(AGENT_MAX_TURNS="4")
    rig.model.script(CHAIN, Say("found"), GOOD, *looks(1), Say("Only the first was done."))
    rig.telegram.say(PERSON, ASK)
    await rig.shows("Only the first was done.")
    await rig.quiet()
    assert "☑ 1. Find the hosts" in rig.said()[0] and "✕ 2. Compare them" in rig.said()[0]


async def test_usage_counts_each_answer_once_over_a_crash(rig: Rig) -> None:
    await rig.start(MODEL_PRICES=PRICES)
    rig.telegram.say(PERSON, "/usage")
    await rig.shows("No model has been called here yet.")
    rig.model.script(Call("ask_user", json.dumps({"question": "which?", "kind": "input"})))
    rig.telegram.say(PERSON, "go")
    await rig.shows("which?")
    await rig.quiet()
    await rig.crash()
    await rig.start(MODEL_PRICES=PRICES)
    rig.model.script(Say("fine"), Say("again"))
    rig.telegram.say(PERSON, "this one")
    await rig.shows("fine")
    await rig.quiet()
    rig.telegram.say(PERSON, "more")
    await rig.shows("again")
    await rig.quiet()
    row = (await rig.store.acquire(rig.where().id, "test", 1.0)).row  # type: ignore[union-attr]
    spent = row.spent
    assert (spent.last.calls, spent.today.calls, spent.total.calls) == (1, 3, 3)
    assert spent.total.read > 0 and spent.total.unpriced == 0
    expected = (spent.total.read * 1.0 + spent.total.written * 10.0) / 1_000_000
    assert spent.total.cost == pytest.approx(expected, rel=0.9) and spent.total.cost > 0


async def test_usage_is_told(rig: Rig) -> None:
    await rig.start(MODEL_PRICES=PRICES)
    rig.model.script(Say("fine"))
    rig.telegram.say(PERSON, "go")
    await rig.shows("fine")
    await rig.quiet()
    rig.telegram.say(PERSON, "/usage")
    told = (await rig.shows("Last request: "))["text"]
    assert "1 call, $0." in told and told.count("\n") == 2
    rig.telegram.say(PERSON, "/status")
    assert "Today: $" in (await rig.shows("Pending messages"))["text"]


async def test_money_of_a_person_is_limited_over_conversations_and_restarts(rig: Rig) -> None:
    limit = {"MODEL_PRICES": PRICES, "BUDGET_PERSON_USD": "0.12"}
    await rig.start(**limit)
    rig.model.script(Say("one", tokens=6_000))
    rig.telegram.say(PERSON, "first")
    await rig.shows("one")
    await rig.quiet()
    await rig.stop()
    await rig.start(**limit)
    rig.telegram.say(PERSON, "second")
    await rig.shows("Your budget of $0.12 a day is used up")
    await rig.quiet()
    assert len(rig.model.requests) == 1, "nothing was called"
    rig.model.script(Say("for a friend"))
    rig.telegram.say(FRIEND, "hello")
    await rig.shows("for a friend", FRIEND)
    rig.telegram.say(ADMIN, "/usage")
    await rig.shows("No model has been called here", ADMIN)


async def test_money_of_a_person_is_limited_over_linked_accounts(rig: Rig) -> None:
    await rig.start(MODEL_PRICES=PRICES, BUDGET_PERSON_USD="0.12")
    rig.telegram.say(PERSON, "/link")
    code = (await rig.shows("Your code is"))["text"].split("code is ")[1].split(".")[0]
    rig.telegram.say(FRIEND, f"/link {code}")
    await rig.shows("Linked with", FRIEND)
    await rig.quiet()
    rig.model.script(Say("one", tokens=6_000))
    rig.telegram.say(PERSON, "first")
    await rig.shows("one")
    await rig.quiet()
    rig.telegram.say(FRIEND, "second")
    await rig.shows("Your budget of $0.12 a day is used up", FRIEND)
    rig.telegram.say(FRIEND, "/link off")
    await rig.shows(say("parted"), FRIEND)
    await rig.quiet()
    rig.telegram.say(FRIEND, "third")
    await rig.telegram.wait(lambda: sum("used up" in one for one in rig.said(FRIEND)) == 2)
    await rig.quiet()
    assert len(rig.model.requests) == 1, "what was spent stays counted"


async def test_what_was_reserved_and_not_used_is_given_back(rig: Rig) -> None:
    """An answer of at most 8,000 tokens is reserved: $0.08 of them at a time."""
    await rig.start(MODEL_PRICES=PRICES, BUDGET_DAY_USD="0.1")
    rig.model.script(*[Say(f"answer {n}") for n in range(4)])
    for n in range(4):
        rig.telegram.say(PERSON, f"ask {n}")
        await rig.shows(f"answer {n}")
    await rig.quiet()


async def test_a_turn_has_its_own_limit(rig: Rig) -> None:
    await rig.start(MODEL_PRICES=PRICES, BUDGET_TURN_USD="0.1")
    rig.model.script(Call("list_files", '{"path": "."}', tokens=5_000))
    rig.telegram.say(PERSON, "look")
    await rig.shows("This request has used up its budget of $0.10")
    await rig.quiet()
    assert len(rig.model.requests) == 1


@pytest.mark.parametrize("whose", ["BUDGET_PERSON_USD", "BUDGET_DAY_USD", "BUDGET_TURN_USD"])
async def test_a_limit_below_one_call_is_not_called_used_up(rig: Rig, whose: str) -> None:
    await rig.start(MODEL_PRICES=PRICES, **{whose: "0.05"})
    rig.telegram.say(PERSON, "hello")
    said = (await rig.shows("more than the budget of $0.05"))["text"]
    assert "One call of this model may cost $0.08" in said and "used up" not in said
    await rig.quiet()
    assert rig.model.requests == []


async def test_a_limit_without_a_price_is_a_wrong_setting(rig: Rig) -> None:
    with pytest.raises(ExceptionGroup) as wrong:
        await rig.start(BUDGET_DAY_USD="1")
    error = _unwrap_group(wrong.value)
    assert isinstance(error, SettingsError) and "MODEL_PRICES=openai/fake-model" in str(error)
    with pytest.raises(Exception, match="BUDGET_DAY_USD=much"):
        read_models(Settings.read(rig.env(BUDGET_DAY_USD="much"), rig.folder))


async def test_calls_at_once_share_the_limit_of_their_turn(tmp_path: Path) -> None:
    """Each of two may cost $0.08 of the $0.1: the second is refused while the first runs."""
    store = await SqliteStore.open(tmp_path / "store.db")
    ledger = Ledger(store, Limits(turn=0.1))
    price, request = Price(input=1.0, output=10.0), ModelRequest(model="m", system="", messages=())
    payer = Payer(turn="t", person="p", spent=0.0)

    async def call() -> ModelReply:
        return ModelReply(parts=(), model="m", provider="p", usage=Usage(cost=0.01))

    async def pay() -> str:
        try:
            await ledger.pay(payer, request, price, call)
        except BudgetExceeded:
            return "refused"
        return "paid"

    try:
        assert sorted(await asyncio.gather(pay(), pay())) == ["paid", "refused"]
        assert await pay() == "paid", "what was not used is given back"
        assert (await ledger.today())["all"] == pytest.approx(0.02)
    finally:
        await store.close()


@pytest.mark.parametrize("fault", ["fails", "hangs"])
async def test_an_answer_is_not_lost_where_its_cost_cannot_be_counted(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "SETTLE_LIMIT", 0.05)

    class Budgets:
        calls = 0

        async def spend(self, day: str, expenses: object) -> None:
            self.calls += 1
            if self.calls > 1 and fault == "fails":
                raise StoreFailed("the disk is full")
            if self.calls > 1:
                await asyncio.Event().wait()

        async def read_spent(self, day: str, accounts: object) -> dict[str, int]:
            return {}

    async def call() -> ModelReply:
        return ModelReply(parts=(), model="m", provider="p", usage=Usage(cost=0.01))

    price, request = Price(input=1.0, output=10.0), ModelRequest(model="m", system="", messages=())
    ledger = Ledger(Budgets(), Limits(day=1.0))
    payer = Payer(turn="t", person="p", spent=0.0)
    assert (await ledger.pay(payer, request, price, call)).usage.cost == 0.01


async def test_a_chat_has_no_limit_of_steps_below_that_of_turns(rig: Rig) -> None:
    await rig.start()
    rig.model.script(*looks(40), Say("I looked everywhere."))
    rig.telegram.say(PERSON, "look everywhere")
    await rig.shows("I looked everywhere.")
    await rig.quiet()
    assert len(rig.model.requests) == 41 and "limit" not in rig.said()[-1]


async def test_a_limit_of_steps_that_is_set_holds(rig: Rig) -> None:
    await rig.start(AGENT_MAX_STEPS="3")
    rig.model.script(*looks(3), Say("This is what I know."))
    rig.telegram.say(PERSON, "look everywhere")
    await rig.shows("This is what I know.")
    await rig.quiet()
    assert len(rig.model.requests) == 4
