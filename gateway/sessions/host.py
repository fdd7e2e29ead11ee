"""All sessions of this process: wakes them, renews their leases, keeps the timers, drains."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Literal

from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import Drained, LeaseLost
from gateway.errors import Fenced, StoreFailed
from gateway.messages import (
    ButtonPressed,
    Conversation,
    FormSubmitted,
    Inbound,
    QuestionBrought,
    QuestionDue,
    QuestionExpired,
    read_conversation,
    read_token,
    sender_of,
)
from gateway.ports import Changed
from gateway.sessions.services import Services, Work
from gateway.sessions.session import Session
from gateway.store.rows import Opened, QuestionRow

log = logging.getLogger("turnkeeper.host")

LONGEST_NAP = 60.0
AGAIN = 1.0
"""Seconds until what was due is looked at again: the sessions have it by then."""

KEEP_FILES = 30 * 86_400.0
"""Seconds that files given to people are kept."""
TIDY_EVERY = 3_600.0


class Host:
    """Runs a session for each conversation that has work. Nothing is held for a quiet one."""

    def __init__(self) -> None:
        self.services: Services = None  # type: ignore[assignment]  # set by `attach`
        self.sessions: dict[str, Session] = {}
        self._starting: dict[str, bool] = {}
        self._group: asyncio.TaskGroup | None = None
        self._timer = asyncio.Event()
        self._draining = False
        self._changed = asyncio.Event()
        self._next_due: float | None = None

    def attach(self, services: Services) -> None:
        """What the sessions share; before `run`."""
        self.services = services
        services.alarm = self._alarm
        services.deliver = self.accept

    def _alarm(self, when: float) -> None:
        if when and (self._next_due is None or when < self._next_due):
            self._next_due = when
            self._timer.set()

    def spawn(self, work: Work, name: str) -> None:
        """Run `work` in the host's task group; it may never begin, as when all ends just then."""
        if self._group is not None:
            self._group.create_task(self._guard(work), name=name)

    async def _guard(self, work: Work) -> None:
        """A bug in one conversation ends nothing else."""
        try:
            await work()
        except Exception:
            log.exception("work_failed")
            self.services.count("work_failed")

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Take up what was left, then serve until cancelled."""
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            self._group = group
            stack.callback(self._forget_group)
            for conversation in await self.services.store.work(self.services.owner):
                self.wake(conversation)
            group.create_task(self._renew(), name="renew")
            group.create_task(self._expire(), name="expire")
            group.create_task(self._look_for_work(), name="look")
            if ready is not None:
                ready.set()
            await asyncio.Event().wait()

    def _forget_group(self) -> None:
        self._group = None

    # ---- inbound -------------------------------------------------------------------------

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Store inbound values, then wake their conversations. Returns when they are kept."""
        wanted = self.services.access.wanted
        kept = [await self._placed(inbound) for inbound in inbounds if wanted(inbound)]
        if not kept:
            return
        names = tuple(dict.fromkeys(inbound.conversation.id for inbound in kept))
        free = frozenset(filter(self._is_free, names))
        self._starting.update(dict.fromkeys(free, False))
        services = self.services
        try:
            accepted, taken = await services.store.take_in(kept, free, services.owner, services.ttl)
        except BaseException:
            for name in free:
                self._starting.pop(name, None)
            raise
        fresh = sum(one.fresh for one in accepted)
        services.count("accepted", fresh)
        services.count("redelivered", len(accepted) - fresh)
        opened = {one.lease.conversation: one for one in taken}
        for name in names:
            services.feed.publish(name, Changed())
            if name in free:
                self.spawn(partial(self._serve, name, opened.get(name)), f"session:{name}")
            else:
                self.wake(name)

    async def _placed(self, inbound: Inbound) -> Inbound:
        """In the line of talk that it belongs to: in a group each person may have an own one. A
        press belongs where its question was asked, when that is shown here."""
        sender, where = sender_of(inbound), inbound.conversation
        policy = self.services.access.policy
        if isinstance(inbound, ButtonPressed | FormSubmitted):
            token = read_token(inbound.token)
            found = await self.services.store.find(token[0]) if token is not None else None
            asked = read_conversation(found[0]) if found is not None else where
            if replace(asked, person="") == where:
                return replace(inbound, conversation=asked)
            if found is not None and found[1].chat == where.id:
                return self._carried(inbound, asked)
        shared = policy.scope == "shared" or where.private or where.id == policy.chat
        if shared or sender is None:
            return inbound
        return replace(inbound, conversation=replace(where, person=sender.id))

    def _carried(self, press: ButtonPressed | FormSubmitted, asked: Conversation) -> Inbound:
        """A press in the approvers' chat, as a row of the conversation that asked."""
        where, event = press.conversation, f"{press.conversation.id} {press.event}"
        if where.platform == asked.platform:
            return replace(press, conversation=asked, event=event)
        # nobody there can answer it on this platform: it is acknowledged without a word
        if press.press and (adapter := self.services.adapters.get(where.platform)) is not None:
            self.spawn(partial(adapter.tell, where, press.press, ""), "tell")
        return replace(press, conversation=asked, event=event, press="")

    def _is_free(self, conversation: str) -> bool:
        """No session runs for it here, and one may begin."""
        going = conversation in self.sessions or conversation in self._starting
        here = conversation.partition(":")[0] in self.services.adapters
        return here and not going and not self._draining and self._group is not None

    def wake(self, conversation: str) -> None:
        """The conversation has work, or may have."""
        session = self.sessions.get(conversation)
        if session is not None:
            session.wake()
        elif conversation in self._starting:
            self._starting[conversation] = True
        elif not self._draining and self._group is not None:
            self._starting[conversation] = False
            self.spawn(partial(self._serve, conversation), f"session:{conversation}")

    async def _serve(self, conversation: str, opened: Opened | None = None) -> None:
        again = True
        pause = 0.0
        while again and not self._draining:
            if pause:
                await ambient.wait(pause)
            again, failed = False, False
            try:
                session = await self._open(conversation, opened)
                opened = None
                if session is None:
                    break
                await session.run()
                failed = isinstance(session.ended, Drained)
                again = session.woken or failed
            except (StoreFailed, Fenced) as error:
                log.error("session_not_opened", extra={"why": str(error)})
                again = failed = True
            except Exception:
                log.exception("session_failed", extra={"conversation": conversation})
                self.services.count("sessions_failed")
                again = failed = True
            finally:
                self.sessions.pop(conversation, None)
                again = self._starting.get(conversation, False) or again
                self._starting[conversation] = False
            pause = min(30.0, max(0.5, pause * 2)) if failed else 0.0
        self._starting.pop(conversation, None)
        self._changed.set()

    async def _open(self, conversation: str, opened: Opened | None) -> Session | None:
        where = read_conversation(conversation)
        if where.platform not in self.services.adapters:
            return None
        if opened is None:
            opened = await self.services.store.acquire(
                conversation, self.services.owner, self.services.ttl
            )
        if opened is None:
            return None
        session = Session(self.services, where, opened)
        self._starting[conversation] = False
        self.sessions[conversation] = session
        return session

    # ---- leases --------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew all leases at a third of their time; one that is lost ends its session."""
        ttl = self.services.ttl
        while True:
            await ambient.wait(ttl / 3)
            sessions = [s for s in self.sessions.values() if s.ended is None and not s.releasing]
            if not sessions:
                continue
            began = ambient.monotonic()
            try:
                held = await self.services.store.renew([s.lease for s in sessions], ttl)
            except StoreFailed as error:
                log.error("not_renewed", extra={"why": str(error)})
                self._end_overdue(sessions, ttl)
                continue
            for session in sessions:
                if session.lease.conversation in held:
                    session.deadline = began + ttl
                elif self.sessions.get(session.lease.conversation) is session:
                    session.end(LeaseLost(), "renewal refused")

    def _end_overdue(self, sessions: list[Session], ttl: float) -> None:
        """Two thirds of the time without success: stop before another can own it."""
        for session in sessions:
            if session.deadline - ambient.monotonic() <= ttl / 3:
                session.end(LeaseLost(), "not renewed in time")

    async def _look_for_work(self) -> None:
        """What another replica left, and what a hint did not reach."""
        tidied = 0.0
        while True:
            await ambient.wait(self.services.ttl / 2)
            with suppress(StoreFailed):
                for conversation in await self.services.store.work(self.services.owner):
                    if conversation not in self.sessions:
                        self.wake(conversation)
                await self.services.store.sweep(ambient.now())
            if ambient.monotonic() - tidied > TIDY_EVERY:
                tidied = ambient.monotonic()
                await asyncio.to_thread(self.services.agent.tidy, ambient.now() - KEEP_FILES)

    # ---- timers --------------------------------------------------------------------------

    async def _expire(self) -> None:
        """Append rows for questions whose time has come; replay looks at no clock."""
        while True:
            self._next_due = None  # what is stored while this looks wakes it again
            try:
                now = ambient.now()
                due = await self.services.store.due(now, 100)
                await self.accept([one for place, row in due for one in _due(place, row, now)])
                self._next_due = await self.services.store.next_due()
            except StoreFailed as error:
                log.error("timers_failed", extra={"why": str(error)})
                self._next_due, due = ambient.now() + AGAIN, ()
            following = self._next_due
            nap = LONGEST_NAP if following is None else following - ambient.now()
            with suppress(TimeoutError):
                async with ambient.limit(max(AGAIN if due else 0.05, min(LONGEST_NAP, nap))):
                    await self._timer.wait()
            self._timer.clear()

    # ---- end -----------------------------------------------------------------------------

    async def drain(self, patience: float) -> None:
        """Let running turns end for `patience` seconds, then suspend and give back the rest."""
        self._draining = True
        try:
            async with ambient.limit(patience):
                while self.sessions:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            log.info("drain_suspends", extra={"sessions": len(self.sessions)})
        for session in list(self.sessions.values()):
            session.end(Drained(), "shutting down")
        with suppress(TimeoutError):
            async with ambient.limit(5.0):
                while self.sessions or self._starting:
                    self._changed.clear()
                    await self._changed.wait()


def _due(where: str, question: QuestionRow, now: float) -> tuple[Inbound, ...]:
    """What a question whose time has come brings about: once for each occasion."""
    conversation, name = read_conversation(where), question.id

    def due(what: Literal["reminder", "escalation", "relayed", "told"]) -> QuestionDue:
        event = f"{what}:{name}"
        return QuestionDue(conversation=conversation, event=event, question=name, what=what)

    if question.status != "open" or (question.chat and not question.relayed):
        what: Literal["relayed", "told"] = "relayed" if question.status == "open" else "told"
        chat = read_conversation(question.chat)
        shown = QuestionBrought(conversation=chat, event=f"show-{what}:{name}", question=name)
        return (shown, due(what))
    if question.expires and question.expires <= now:
        event = f"expired:{name}"
        return (QuestionExpired(conversation=conversation, event=event, question=name),)
    return (due("escalation" if 0 < question.escalates <= now else "reminder"),)
