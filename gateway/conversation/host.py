"""All sessions of this process: wakes them, renews their leases, keeps the timers, drains."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from agent_core import ambient
from agent_core.errors import Drained, LeaseLost
from agent_core.text import clean
from gateway.conversation.inbox.answers import mark_answer
from gateway.conversation.inbox.cleaning import clean_inbound
from gateway.conversation.inbox.lost_chat import spread_loss
from gateway.conversation.inbox.spoken_language import SpokenLanguages
from gateway.conversation.inbox.talks import find_talk
from gateway.conversation.outage import Unfinished
from gateway.conversation.question_rows import list_due_rows
from gateway.conversation.services import HostPorts, Services
from gateway.conversation.session import Session
from gateway.conversation.spawn import Work
from gateway.errors import Fenced, StoreFailed, Unreadable, Unstorable
from gateway.feature import Features
from gateway.messages import (
    ButtonPressed,
    ChatLost,
    CommandGiven,
    Conversation,
    FormSubmitted,
    GatewaySaid,
    Inbound,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    divide_edit,
    is_address,
    name_place,
    read_conversation,
    sender_of,
)
from gateway.ports import Changed
from gateway.services.deletion_clock import DeletionClock
from gateway.services.zones import Zones
from gateway.store.dead_letters import MAX_REASON, letter_id
from gateway.store.rows import AcceptedRow, AcquiredConversation, Letter, QuestionRow
from gateway.texts import say

log = logging.getLogger("turnkeeper.host")

MAX_SLEEP = 60.0  # seconds until due rows are looked for in any case
DUE_PAGE = 100
TROUBLED_AFTER = 3
"""Consecutive sessions that could not commit before their people are told."""
SPREAD = 30
"""Jitter: maximum percentage by which a pause is shortened."""
SEND_PATIENCE = 3.0
"""Seconds that a stop waits for chats into which nothing is sent meanwhile."""
START_PATIENCE = 2.0
"""Seconds that the start waits for a store that does not answer."""
RETRY_DELAY = 1.0
"""Seconds until due rows are checked again: by then the sessions have handled them."""
KEEP_FILES = 30 * 86_400.0
"""Seconds that files sent to people are kept."""
TIDY_EVERY = 3_600.0  # seconds


class Host:
    """Runs a session for each conversation that has work. Nothing is held for a quiet one."""

    def __init__(self, build: Callable[[HostPorts], Services], features: Features) -> None:
        """`build` makes the services shared by all sessions from this host's ports, none of which
        is called before `run`."""
        self.features = features
        self.sessions: dict[str, Session] = {}
        self._starting: dict[str, bool] = {}
        self._ended_here: dict[str, Unfinished] = {}
        """Conversations whose last session ended here together with its lease: no crash."""
        self._group: asyncio.TaskGroup | None = None
        self._timer = asyncio.Event()
        self._draining = False
        self._changed = asyncio.Event()
        self._closed: dict[str, bool] = {}
        """Conversations that no session is begun for, and whether something has arrived there."""
        self._languages = SpokenLanguages()
        self._deletion_clock = DeletionClock()
        self._next_due: float | None = None
        self._due_nap = MAX_SLEEP
        self._store_ahead = 0.0
        """Seconds that the store's clock is ahead of this machine's."""
        self._due_before: set[str] = set()
        self._due_patience = RETRY_DELAY
        ports = HostPorts(spawn=self.spawn, alarm=self._alarm, deliver=self.accept)
        self.services = build(ports)
        self._zones = Zones(self.services.store)

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
        """Resume unfinished work, then serve until cancelled."""
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            self._group = group
            stack.callback(setattr, self, "_group", None)
            with suppress(TimeoutError):
                async with ambient.limit(START_PATIENCE):
                    await self._look()
            group.create_task(self._renew(), name="renew")
            group.create_task(self._expire(), name="expire")
            group.create_task(self._look_for_work(), name="look")
            if ready is not None:
                ready.set()
            await asyncio.Event().wait()

    # ---- inbound -------------------------------------------------------------------------

    async def accept(self, inbounds: Sequence[Inbound]) -> None:
        """Store inbound values, then wake their conversations. Returns when they are kept. One
        that cannot be stored is set aside alone. StoreFailed."""
        with_parts = self.services.access.addressed.with_parts
        inbounds = [part for one in inbounds for part in divide_edit(one)]
        prepared = [await self._prepare(one) for one in with_parts(await self._clean(inbounds))]
        kept = await self._drop_foreign([one for one in prepared if one is not None])
        kept = [part for one in kept for part in await self._spread(one)]
        if not kept:
            return
        names = tuple(dict.fromkeys(inbound.conversation.id for inbound in kept))
        free = frozenset(filter(self._is_free, names))
        self._starting.update(dict.fromkeys(free, False))
        try:
            accepted, taken = await self._take_in(kept, free)
        except BaseException:
            for name in free:
                self._starting.pop(name, None)
            raise
        services = self.services
        fresh = sum(one.fresh for one in accepted)
        services.count("accepted", fresh)
        services.count("redelivered", len(accepted) - fresh)
        opened = {one.lease.conversation: one for one in taken}
        for name in names:
            services.feed.publish(name, Changed())
            if name in self._closed:
                self._closed[name] = True
            if name in free:
                self.spawn(partial(self._serve, name, opened.get(name)), f"session:{name}")
            else:
                self.wake(name)

    async def _clean(self, inbounds: Sequence[Inbound]) -> list[Inbound]:
        """Clean texts that a store would refuse; set aside what cannot be cleaned."""
        cleaned: list[Inbound] = []
        for inbound in inbounds:
            try:
                cleaned.append(clean_inbound(inbound))
            except Exception as error:  # noqa: BLE001  # boundary: the rest of the batch goes on
                await self._refuse(inbound, error)
        return cleaned

    async def _prepare(self, inbound: Inbound) -> Inbound | None:
        """Find its line of talk; None if it is not for us, or set aside. StoreFailed."""
        try:
            placed = await self._place(inbound)
            if placed.conversation.thread:
                placed = await mark_answer(self.services, placed)
            if not self.services.access.is_wanted(placed):
                return None
            if (  # nothing is stored for strangers
                isinstance(placed, MessageReceived | CommandGiven)
                and self.services.access.role(placed.sender) is not None
            ):
                await self._zones.learn(placed.sender)
            return self._add_language(placed)
        except StoreFailed:
            raise
        except Exception as error:  # noqa: BLE001  # boundary: the rest of the batch goes on
            await self._refuse(inbound, error)
            return None

    def _add_language(self, inbound: Inbound) -> Inbound:
        """Add the person's language if the platform did not tell it."""
        if not isinstance(inbound, MessageReceived | CommandGiven) or inbound.sender.language:
            return inbound
        text = inbound.text if isinstance(inbound, MessageReceived) else inbound.arguments
        language = self._languages.learn(inbound.sender.key, text)
        return replace(inbound, sender=replace(inbound.sender, language=language))

    async def _drop_foreign(self, inbounds: Sequence[Inbound]) -> list[Inbound]:
        """Drop messages that do not concern the agent: words among people, and edits or deletions
        by strangers or where nobody has talked with it. In a large channel these are most of them.
        """
        always, store = self.services.access.policy.group == "always", self.services.store
        kept: list[Inbound] = []
        said: set[str] = set()
        for one in inbounds:
            name = one.conversation.id
            match one:
                case MessageReceived(addressed=addressed) if addressed or always:
                    said.add(name)
                case MessageReceived() | MessageEdited() | MessageDeleted():
                    change = not isinstance(one, MessageReceived)
                    if change and await self.services.access.learn(one.sender) is None:
                        continue
                    known = name in said or name in self.sessions
                    if not known and await store.summary(name) is None:
                        continue
                case _:
                    pass
            kept.append(one)
        return kept

    async def _spread(self, inbound: Inbound) -> Sequence[Inbound]:
        """Send the loss of a chat to each of its conversations that has jobs or work."""
        if not isinstance(inbound, ChatLost):
            return (inbound,)
        jobs, names = self.services.jobs, set(self.sessions)
        names |= {one.conversation for one in await jobs.store.list_jobs()} if jobs else set()
        return await spread_loss(self.services, inbound, names)

    async def _take_in(
        self, kept: Sequence[Inbound], free: frozenset[str]
    ) -> tuple[tuple[AcceptedRow, ...], tuple[AcquiredConversation, ...]]:
        services = self.services
        try:
            return await services.store.take_in(kept, free, services.owner, services.ttl)
        except Unstorable as error:
            if len(kept) == 1:
                await self._put_aside(kept[0], str(error))
                return (), ()
        accepted: list[AcceptedRow] = []
        for inbound in kept:  # each one separately: a failure must not affect the others
            try:
                accepted += await services.store.accept((inbound,))
            except Unstorable as error:
                await self._put_aside(inbound, str(error))
        return tuple(accepted), ()

    async def _refuse(self, inbound: Inbound, error: Exception) -> None:
        """Set it aside, except after a shortage of the machine: then the platform redelivers it."""
        if self.services.shortages.should_retry(
            f"{inbound.conversation.id} {inbound.event}", error
        ):
            raise StoreFailed(f"the machine has no room for it: {error!r}") from error
        await self._put_aside(inbound, f"{type(error).__name__}: {error}")

    async def _put_aside(self, inbound: Inbound, why: str) -> None:
        """Store a dead letter for an inbound that no inbox takes, and tell its sender."""
        self.services.count("inbound_refused")
        log.error("inbound_refused", extra={"why": why}, exc_info=True)
        where = clean(inbound.conversation.id)
        letter = Letter(
            id=letter_id("message", ambient.new_id()),
            kind="message",
            conversation=where,
            name="0",
            at=ambient.now(),
            why=self.services.find_redactions().hide(why)[:MAX_REASON],
            payload=clean(json.dumps(msgspec.to_builtins(inbound))).encode(),
        )
        await self.services.store.keep_letter(letter)
        if sender_of(inbound) is None:
            return
        text = say("row_failed", "", id=letter.id)
        said = GatewaySaid(conversation=inbound.conversation, event=f"aside:{letter.id}", text=text)
        try:
            await self.services.store.accept((said,))
        except StoreFailed:
            if self.services.outage is not None:
                self.services.outage.tell_text(inbound.conversation, text)

    async def _place(self, inbound: Inbound) -> Inbound:
        """Assign it to its line of talk, a press to its question's conversation if shown here."""
        sender, where = sender_of(inbound), inbound.conversation
        policy = self.services.access.policy
        if isinstance(inbound, ButtonPressed | FormSubmitted) and (
            placed := await self._place_press(inbound)
        ):
            return placed
        if isinstance(inbound, CommandGiven) and inbound.anywhere:
            talks = find_talk(self.services, self.sessions, self.features.commands, inbound)
            if (talk := await talks) != where:
                return replace(inbound, conversation=talk)
        shared = policy.scope == "shared" or where.private or where.id == policy.chat
        if shared or sender is None:
            return inbound
        return replace(inbound, conversation=replace(where, person=sender.id))

    async def _place_press(
        self, press: ButtonPressed | FormSubmitted
    ) -> ButtonPressed | FormSubmitted | None:
        """Return it as a row of the conversation that its button belongs to, None if that is its
        own one."""
        address, question = await self.services.find_pressed(press)
        where = press.conversation
        asked = read_conversation(address) if address else where
        if name_place(asked, press) == where:
            return replace(press, conversation=asked) if address else None
        shown_here = question is not None and question.chat == where.id
        return self._carry_press(press, asked) if shown_here else None

    def _carry_press(
        self, press: ButtonPressed | FormSubmitted, asked: Conversation
    ) -> ButtonPressed | FormSubmitted:
        """A press in the approvers' chat, as a row of the conversation that asked."""
        where, event = press.conversation, f"{press.conversation.id} {press.event}"
        if where.platform == asked.platform:
            return replace(press, conversation=asked, event=event)
        # nobody there can answer it on this platform: acknowledge it silently
        if press.press and (adapter := self.services.adapters.get(where.platform)) is not None:
            self.spawn(partial(adapter.tell, where, press.press, ""), "tell")
        return replace(press, conversation=asked, event=event, press="")

    def _is_free(self, conversation: str) -> bool:
        """True if no session runs for it here and one may begin."""
        going = conversation in self.sessions or conversation in self._starting
        ends = self._draining or self._group is None or conversation in self._closed
        return self._serves(conversation) and not going and not ends

    def wake(self, conversation: str) -> None:
        """The conversation has work, or may have."""
        session = self.sessions.get(conversation)
        if session is not None:
            session.state.wake()
        elif conversation in self._starting:
            self._starting[conversation] = True
        elif not is_address(conversation):  # a hint, or a list of work, that is damaged
            log.warning("not_an_address", extra={"address": conversation[:MAX_REASON]})
        elif not self._draining and self._group is not None:
            self._starting[conversation] = False
            self.spawn(partial(self._serve, conversation), f"session:{conversation}")

    async def _serve(self, conversation: str, opened: AcquiredConversation | None = None) -> None:
        """Run sessions of the conversation until it has no work. A failure is retried with growing
        pauses; the third try without progress gives up the message or turn concerned."""
        again = True
        pause, failures, rounds, stuck = 0.0, 0, 0, 0
        while again and not self._draining:
            if pause:  # spread out: all may have failed at once
                await ambient.wait(pause * (1 - ambient.pick(SPREAD) / 100))
            again = failed = False
            try:
                session = await self._open(conversation, opened, failures)
                opened = None
                if session is None:
                    break
                # a lost lease may be acquired again unless another replica holds it now
                failed = await self._run(session)
                again = session.state.woken or failed
                failures = 0
                rounds = rounds + 1 if failed else 0
                self._tell_delay(conversation, rounds, session.state.language)
            except (StoreFailed, Fenced) as error:
                log.error("session_not_opened", extra={"why": str(error)})
                again = failed = True
                failures += isinstance(error, Unreadable | Unstorable)
                stuck += isinstance(error, Unstorable)
                self._tell_delay(conversation, stuck)
            except Exception as error:
                log.exception("session_failed", extra={"conversation": conversation})
                self.services.count("sessions_failed")
                again = failed = True
                failures += not self.services.shortages.should_retry(conversation, error)
            finally:
                self.sessions.pop(conversation, None)
                again = self._starting.get(conversation, False) or again
                self._starting[conversation] = False
            if failed:
                self.services.count("sessions_retried")
            # including a slow request to the store, work resumes within 30 s of an outage's end
            pause = min(self.services.ttl / 2, max(0.5, pause * 2)) if failed else 0.0
        self._starting.pop(conversation, None)
        self._changed.set()

    def _tell_delay(self, conversation: str, rounds: int, language: str = "") -> None:
        if rounds == TROUBLED_AFTER and (outage := self.services.outage) is not None:
            outage.tell_delay(read_conversation(conversation), language)

    async def _run(self, session: Session) -> bool:
        """Run a session to its end; True if it did not let go of its conversation by itself."""
        try:
            await session.run()
        finally:
            if session.state.ended is not None:
                self._ended_here[session.state.conversation.id] = session.state.note_unfinished()
        return session.state.ended is not None

    async def _open(
        self, conversation: str, opened: AcquiredConversation | None, failures: int
    ) -> Session | None:
        where, services = read_conversation(conversation), self.services
        if where.platform not in services.adapters or conversation in self._closed:
            return None
        if opened is None:
            opened = await services.store.acquire(conversation, services.owner, services.ttl)
        if opened is None:
            return None
        if (ended := self._ended_here.pop(conversation, None)) is not None:
            opened = replace(opened, crashed=False)
            if services.outage is not None:
                services.outage.tell_loss(ended, opened)
        try:
            session = Session(services, self.features, where, opened, failures)
        except BaseException:
            await services.store.give_back(opened.lease)
            raise
        self._starting[conversation] = False
        self.sessions[conversation] = session
        return session

    # ---- leases --------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew all leases at a third of their time. If it is late, a session's timer ends it."""
        ttl = self.services.ttl
        while True:
            await ambient.wait(ttl / 3)
            sessions = [
                s for s in self.sessions.values() if s.state.ended is None and not s.state.releasing
            ]
            if sessions:
                await self._contain(partial(self._renew_once, sessions), "not_renewed")

    async def _renew_once(self, sessions: Sequence[Session]) -> None:
        ttl, began = self.services.ttl, ambient.monotonic()
        async with ambient.limit(ttl / 3):
            held = await self.services.store.renew([s.state.lease for s in sessions], ttl)
        for session in sessions:
            if session.state.lease.conversation in held:
                session.state.lease_timer.note_renewal(began)
            elif self.sessions.get(session.state.lease.conversation) is session:
                session.state.end(LeaseLost(), "renewal refused")

    async def _look_for_work(self) -> None:
        """Look for work left by other replicas and for lost hints."""
        tidied = 0.0
        while True:
            await ambient.wait(self.services.ttl / 2)
            await self._look()
            await self._contain(self._sweep, "not_swept")
            if ambient.monotonic() - tidied > TIDY_EVERY:
                tidied = ambient.monotonic()
                await self._contain(self._tidy, "not_tidied")

    def look(self) -> None:
        """Look for work now: hints may have been lost."""
        self.spawn(self._look, "look")

    async def _look(self) -> None:
        """Wake conversations with work, also a session that has not seen its newest row."""
        await self._contain(self._look_once, "not_looked")

    async def _look_once(self) -> None:
        for conversation, last in await self.services.store.work(self.services.owner):
            session = self.sessions.get(conversation)
            if session is None or session.state.seen < last:
                self.wake(conversation)

    async def _sweep(self) -> None:
        retention = self.services.retention
        now = await self._deletion_clock.read(self.services.store)
        if retention is None:
            await self.services.store.sweep(now)
            return
        await self.services.store.sweep(now, retention.periods.journals)
        await retention.sweep(now)

    async def _tidy(self) -> None:
        now = min(ambient.now(), await self._deletion_clock.read(self.services.store))
        await asyncio.to_thread(self.services.agent.tidy, now - KEEP_FILES)
        if self.services.retention is not None:
            await self.services.retention.tidy(self.services.store, now)

    async def _contain(self, work: Work, event: str) -> None:
        """Run one round of a host loop and log any exception, so that the loop goes on."""
        try:
            async with ambient.limit(self.services.ttl):
                await work()
        except (StoreFailed, TimeoutError) as error:
            log.error(event, extra={"why": str(error)})
            self.services.count(event)
        except Exception:
            log.exception(event)
            self.services.count(event)

    # ---- timers --------------------------------------------------------------------------

    async def _expire(self) -> None:
        """Append rows for due questions; replay never reads the clock."""
        while True:
            self._next_due, self._due_nap = None, MAX_SLEEP  # a new one is due earlier
            await self._contain(self._append_due, "timers_failed")
            nap = self._due_nap
            if self._next_due is not None:
                now = ambient.now() + self._store_ahead
                nap = min(nap, max(0.05, self._next_due - now))
            with suppress(TimeoutError):
                async with ambient.limit(nap):
                    await self._timer.wait()
            self._timer.clear()

    async def _append_due(self) -> None:
        """Process all due questions once, a page at a time. One that cannot be handled here, or
        that its session has not reached, does not block those behind it."""
        store = self.services.store
        self._due_nap, now, waiting = RETRY_DELAY, await store.now(), set[str]()
        self._store_ahead = now - ambient.now()
        after: tuple[str, QuestionRow] | None = None
        while page := await store.due(now, DUE_PAGE, after):
            after = page[-1]
            ours = [(place, row) for place, row in page if self._serves(place)]
            waiting.update(row.id for _, row in ours)
            await self.accept(
                [one for place, row in ours for one in list_due_rows(place, row, now)]
            )
        following = await store.next_due(now)
        # rows that were due last time too make no progress: poll them less and less often
        stuck = bool(waiting) and waiting <= self._due_before
        self._due_before = waiting
        self._due_patience = min(MAX_SLEEP, 2 * self._due_patience) if stuck else RETRY_DELAY
        self._due_nap = self._due_patience if waiting else MAX_SLEEP
        if following is not None:
            self._due_nap = min(self._due_nap, max(0.05, following - now))

    def _serves(self, conversation: str) -> bool:
        return conversation.partition(":")[0] in self.services.adapters

    # ---- end -----------------------------------------------------------------------------

    @asynccontextmanager
    async def keep_closed(self, conversation: str) -> AsyncIterator[None]:
        """End the conversation's session and start none meanwhile. Uncommitted work is lost."""
        self._closed[conversation] = False
        try:
            while conversation in self.sessions or conversation in self._starting:
                if (session := self.sessions.get(conversation)) is not None:
                    session.state.end(Drained(), "closed")
                self._changed.clear()
                await self._changed.wait()
            self.services.unsaved.pop(conversation, None)
            self.services.refused.pop(conversation, None)
            self.services.threads.forget(conversation)
            yield
        finally:
            if self._closed.pop(conversation, False):
                self.wake(conversation)

    def _list_going(self) -> list[Session]:
        return [one for one in self.sessions.values() if one.state.ended is None]

    async def drain(self, patience: float) -> None:
        """Let running turns finish within `patience` seconds, then suspend and release the rest.
        What only waits for a platform that does not answer is not waited for."""
        self._draining = True
        ends = ambient.monotonic() + patience
        while (going := self._list_going()) and (left := ends - ambient.monotonic()) > 0:
            began = ambient.monotonic()
            with suppress(TimeoutError):
                async with ambient.limit(min(left, SEND_PATIENCE)):
                    while self._list_going():
                        self._changed.clear()
                        await self._changed.wait()
            for session in going:
                if not session.is_moving(began):
                    session.state.end(Drained(), "nothing reaches its platform")
        if going:
            log.info("drain_suspends", extra={"sessions": len(going)})
        for session in going:
            session.state.end(Drained(), "shutting down")
        with suppress(TimeoutError):
            async with ambient.limit(5.0):
                while self.sessions or self._starting:
                    self._changed.clear()
                    await self._changed.wait()
