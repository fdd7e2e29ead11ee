"""What every platform's adapter does for the gateway, whatever the platform.

A new folder in `adapters/` passes it by a case: its adapter on a server that speaks the platform's
protocol (test_adapters.py).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from pathlib import Path
from typing import ClassVar, get_args

import msgspec
import pytest
from msgspec.structs import replace

from gateway.command_texts import MARKS, name_command
from gateway.errors import (
    DAY,
    MAX_LIMIT,
    Ambiguous,
    Gone,
    RateLimited,
    Rejected,
    TokenRefused,
    Unsent,
)
from gateway.messages import Attachment, ButtonPressed, Conversation, MessageReceived, dedupe_keys
from gateway.moment_texts import has_moment, mark_moment
from gateway.ports import Adapter, Recalling
from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
    View,
)
from tests.adapters.telegram_rig import Store
from tests.fakes.waiting import PATIENCE, until
from tests.sampling import dice

YES, NO = "q:0123456789abcdef:once", "q:0123456789abcdef:deny"
CARD = ChoiceCard(
    question="0123456789abcdef",
    text="Shall I?",
    buttons=(Button(label="Yes", token=YES), Button(label="No", token=NO, style="bad")),
)
FORM = FormCard(question="1", text="Which day?", token="q:1:text")
TOLD_LIMITS: tuple[object, ...] = (
    *(
        dice("limits", n).choice((-1, 1)) * 10.0 ** dice("limit", n).uniform(-9, 15)
        for n in range(8)
    ),
    *(-1.0, 0.0, float("nan"), float("inf"), float("-inf"), 1e9, 1e300, 10**400, "", "soon", None),
)
"""Seconds to wait, as platforms and the machines before them may say."""
VIEWS: tuple[View, ...] = (
    ReplyView(text="**Hello** `you`\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
    Activity(lines=(ToolLine(call_id="1", tool="shell", summary="ls", state="running"),)),
    PlanView(title="Plan", steps=(PlanStep(id="1", text="first"),), buttons=CARD.buttons),
    ApprovalCard(
        question="1",
        asker="Ann",
        proposals=(ProposalLine(tool="shell", arguments="{}", reason="why", risk="low"),),
        buttons=CARD.buttons,
    ),
    CARD,
    FORM,
    Media(files=(MediaFile(ref="kept", name="a.txt", mime="text/plain", size=2),), caption="See"),
    ReportView(title="Report", text="All is well.", note="From a job"),
    Notice(text="Stopped.", quiet=True),
    SaidView(name="Ann", text="hello"),
)
"""One of each."""


def _with_commands(view: View) -> View:
    """`view` with a command wherever a text of ours stands in it."""
    ours = {"outcome", "note"} | ({"text"} if isinstance(view, ChoiceCard | Notice) else set())
    when = mark_moment(1_790_000_000, "2026-09-21 15:33 UTC")
    words = {
        name: f"See {name_command('undo')} before {when}."
        for name in ours & set(view.__struct_fields__)
    }
    return replace(view, **words)


class AdapterCase(ABC):
    """One adapter, connected to a server in this process. `store` gets what comes in."""

    adapter: Adapter
    where: Conversation
    """A private chat of one person with the agent."""
    writes: tuple[str, str]
    """How the platform writes the commands `help` and `stop all` in a text."""

    def __init__(self) -> None:
        self.store = Store()

    @abstractmethod
    def absent(self) -> AbstractAsyncContextManager[Adapter]:
        """One whose server is not there."""

    @abstractmethod
    def receiving(self) -> AbstractAsyncContextManager[None]:
        """The adapter runs, and is connected."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """The person writes, until the platform has its acknowledgement."""

    @abstractmethod
    async def again(self) -> None:
        """The platform delivers the last message once more."""

    @abstractmethod
    async def press(self, label: str) -> None:
        """The person presses a button of the newest message."""

    def draw(self, view: View) -> str:
        """What people would see of the view, as the platform is given it."""
        payloads = self.adapter.render(view, self.where)
        return str([msgspec.json.decode(payload) for payload in payloads])

    def shown(self) -> list[str]:
        """What the agent's messages show now."""
        raise NotImplementedError

    def fails(self, how: str, told: object = 7.0) -> None:
        """The next send is limited for `told` seconds, lost, or refused for good."""
        raise NotImplementedError

    def delete_messages(self) -> None:
        """Somebody deletes all of the agent's messages."""
        raise NotImplementedError

    def revoke_token(self) -> None:
        """The platform takes our token no longer."""
        raise NotImplementedError


class AdapterContract:
    """Subclassed for each platform; `case` opens one."""

    case: ClassVar[Callable[[Path], AbstractAsyncContextManager[AdapterCase]]]

    @pytest.fixture
    async def given(self, tmp_path: Path) -> AsyncIterator[AdapterCase]:
        async with type(self).case(tmp_path) as case:
            yield case

    async def test_it_says_what_it_can_do(self, given: AdapterCase) -> None:
        adapter = given.adapter
        assert adapter.platform == given.where.platform
        assert adapter.last_contact == 0.0, "no contact before there is one"
        assert list(adapter.routes) is not None
        able = adapter.abilities
        assert able.edit_interval >= 0 and 0 < able.send_timeout <= 20.0, "less than a lease"
        assert (able.recalls > 0) == isinstance(adapter, Recalling)
        assert able.own_messages or able.reads_views

    async def test_each_view_is_rendered_purely(self, given: AdapterCase) -> None:
        adapter, where = given.adapter, given.where
        assert {type(view) for view in VIEWS} == set(get_args(View))
        for view in VIEWS:
            first, second = adapter.render(view, where), adapter.render(view, where)
            assert first == second and all(first)
            if adapter.abilities.reads_views or isinstance(view, SaidView):
                assert first == ()
            elif buttons := getattr(view, "buttons", ()):
                whole = b"".join(first).decode()
                assert all(button.token in whole for button in buttons), "tokens go out whole"
            else:
                assert first

    async def test_a_command_in_a_text_is_the_platforms_own(self, given: AdapterCase) -> None:
        bare, full = given.writes
        async with given.receiving():
            await given.say("hello")
            await given.store.holds(1)
            said = f"Write {name_command('help')} or {name_command('stop all')}."
            await until(lambda: full in given.draw(Notice(text=said)))  # it knows its menu
            for view in (Notice(text=said), replace(CARD, text=said), replace(FORM, text=said)):
                assert f"Write {bare} or {full}." in given.draw(view)
            for view in (*VIEWS, *map(_with_commands, VIEWS)):
                drawn = given.draw(view)
                assert not MARKS.search(drawn) and not has_moment(drawn), "no mark is seen"

    async def test_nothing_is_lost_while_the_store_fails(self, given: AdapterCase) -> None:
        given.store.failures = 2
        async with given.receiving():
            await given.say("hello")
            (said,) = await given.store.holds(1)
            assert given.adapter.last_contact > 0
        assert isinstance(said, MessageReceived) and said.text == "hello"
        assert said.conversation == given.where and said.addressed
        assert said.sender.platform == given.adapter.platform and said.sender.id
        assert said.message

    async def test_a_redelivery_is_known_as_one(self, given: AdapterCase) -> None:
        async with given.receiving():
            await given.say("hello")
            await given.store.holds(1)
            await given.again()
            await given.say("goodbye")
            async with asyncio.timeout(PATIENCE):
                while "goodbye" not in given.store.texts:
                    given.store.grown.clear()
                    await given.store.grown.wait()
        names = [dedupe_keys(one) for one in given.store.kept]
        assert len({first for first, _ in names}) == len({second for _, second in names}) == 2

    async def test_a_file_that_is_not_there_leaves_nothing(self, given: AdapterCase) -> None:
        to = BytesIO()
        for ref in ("../../etc/passwd", "nothing", "http://127.0.0.1:1/x"):
            with pytest.raises((Rejected, Unsent)):
                await given.adapter.fetch(Attachment(ref=ref, name="x"), to)
        assert to.getvalue() == b""

    async def test_private_words_and_receipts_never_fail(self, given: AdapterCase) -> None:
        for press in ("", "odd", "1/2"):
            await given.adapter.tell(given.where, press, "too late")
            await given.adapter.tell(given.where, press, "")
        await given.adapter.receipt(given.where, "1")

    async def test_a_press_brings_its_token_back(self, given: AdapterCase) -> None:
        async with given.receiving():
            if not given.adapter.abilities.reads_views:
                await given.adapter.send(given.where, given.adapter.render(CARD, given.where)[-1])
            await given.press("Yes")
            (press,) = await given.store.holds(1)
            assert isinstance(press, ButtonPressed)
            assert (press.token, press.conversation) == (YES, given.where)
            await given.adapter.tell(given.where, press.press, "noted")


class SendingContract(AdapterContract):
    """Besides, for platforms to which messages are sent."""

    async def test_a_message_is_sent_and_edited(self, given: AdapterCase) -> None:
        adapter, where = given.adapter, given.where
        native = await adapter.send(where, adapter.render(ReplyView(text="one"), where)[0])
        assert given.shown() == ["one"]
        two = adapter.render(ReplyView(text="two"), where)[0]
        await adapter.edit(where, native, two)
        await adapter.edit(where, native, two)
        assert given.shown() == ["two"], "doing it twice is harmless"

    @pytest.mark.parametrize(
        ("how", "error"), [("limited", RateLimited), ("lost", Ambiguous), ("refused", Rejected)]
    )
    async def test_a_failure_is_a_decision(
        self, given: AdapterCase, how: str, error: type[Exception]
    ) -> None:
        given.fails(how)
        payload = given.adapter.render(ReplyView(text="x"), given.where)[0]
        with pytest.raises(error) as caught:
            await given.adapter.send(given.where, payload)
        if isinstance(caught.value, RateLimited):
            assert caught.value.retry_after == pytest.approx(7.0)

    @pytest.mark.parametrize("told", TOLD_LIMITS, ids=str)
    async def test_every_limit_can_be_waited_for(self, given: AdapterCase, told: object) -> None:
        given.fails("limited", told)
        payload = given.adapter.render(ReplyView(text="x"), given.where)[0]
        with pytest.raises(RateLimited) as caught:
            await given.adapter.send(given.where, payload)
        meant = isinstance(told, float) and 0 < told <= DAY
        least, most = (0.05, max(told, 0.05)) if meant else (0.05, 10.0)
        assert least <= caught.value.retry_after <= min(most, MAX_LIMIT)

    async def test_an_edit_says_that_the_message_is_gone(self, given: AdapterCase) -> None:
        adapter, where = given.adapter, given.where
        for view in (ReplyView(text="one"), VIEWS[2], VIEWS[4]):
            payload = adapter.render(view, where)[0]
            native = await adapter.send(where, payload)
            given.delete_messages()
            assert given.shown() == []
            with pytest.raises(Gone):
                await adapter.edit(where, native, adapter.render(Notice(text="two"), where)[0])

    async def test_a_refused_token_leaves_the_answer_unsent(self, given: AdapterCase) -> None:
        adapter, where = given.adapter, given.where
        payload = adapter.render(ReplyView(text="one"), where)[0]
        native = await adapter.send(where, payload)
        adapter.last_contact = 1.0
        given.revoke_token()
        for attempt in (adapter.send(where, payload), adapter.edit(where, native, payload)):
            with pytest.raises(TokenRefused):
                await attempt
        assert adapter.last_contact == 0.0, "it is not ready any more"

    async def test_where_nobody_listens_nothing_was_sent(self, given: AdapterCase) -> None:
        async with given.absent() as absent:
            payload = absent.render(ReplyView(text="x"), given.where)[0]
            with pytest.raises(Unsent):
                await absent.send(given.where, payload)

    async def test_last_words_go_out_after_the_run(self, given: AdapterCase) -> None:
        async with given.receiving():
            pass
        adapter, where = given.adapter, given.where
        await adapter.send(where, adapter.render(ReplyView(text="bye"), where)[0])
        assert given.shown() == ["bye"]


class RecallingContract(SendingContract):
    """Besides, for platforms that recognise a send that is made again."""

    async def test_a_send_with_a_name_is_made_once(self, given: AdapterCase) -> None:
        adapter, where = given.adapter, given.where
        assert isinstance(adapter, Recalling)
        payload = given.adapter.render(ReplyView(text="one"), where)[0]
        natives = [await adapter.send_as(name, where, payload) for name in ("n1", "n1", "n2")]
        assert natives[0] == natives[1] != natives[2]
        assert given.shown() == ["one", "one"]
