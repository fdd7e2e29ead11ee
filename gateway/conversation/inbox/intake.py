"""Applies inbox rows to their conversation. The lease holder applies rows in order; the first row
decides, later ones change nothing and get a private reply."""

import logging
from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from agent_core import ambient
from agent_core.journal import Noted, Stopped
from gateway.conversation.dead_letters import find_language
from gateway.conversation.decisions import Decisions, describe
from gateway.conversation.inbox import answers
from gateway.conversation.inbox.earlier import read_earlier
from gateway.conversation.inbox.edits import reword_waiting, tell_parked
from gateway.conversation.inbox.lost_chat import end_lost_work
from gateway.conversation.inbox.parts import (
    goes_on,
    is_command,
    is_part,
    join_rows,
    settles_in,
    take_surplus,
    take_whole,
)
from gateway.conversation.inbox.reading import (
    MessageReader,
    only_voice,
    put_change,
    read_as_words,
    read_for_steering,
    words,
)
from gateway.conversation.inbox.signs import Receipts, show_fetching
from gateway.conversation.quotas import refuse_turn
from gateway.conversation.turns import OpenTurn, new_row
from gateway.delivery.fold import HEARD
from gateway.feature import Call, Change, Context, Features, Pressed, run_command
from gateway.messages import (
    ButtonPressed,
    ChatLost,
    CommandGiven,
    FormSubmitted,
    GatewaySaid,
    Inbound,
    JobFailed,
    JobFired,
    JobPress,
    JobReported,
    MessageDeleted,
    MessageEdited,
    MessageReceived,
    PlanPress,
    PluginPress,
    Press,
    QuestionBrought,
    QuestionDue,
    QuestionExpired,
    QuestionPress,
    RulePress,
    Sender,
    StopPressed,
    TurnPress,
    UnknownPress,
    WebhookCalled,
    dedupe_keys,
    read_press,
    sender_of,
)
from gateway.roles import Role, at_least, say_refused
from gateway.store.rows import Changes, InboxRow, QuestionRow, TurnRow
from gateway.texts import Key, say
from gateway.views import SaidView

log = logging.getLogger("turnkeeper.intake")


class Intake:
    """Handles the inbox rows of one session."""

    def __init__(self, context: Context, features: Features) -> None:
        state = context.state
        self._features = features
        self._context = context
        self._decisions = Decisions(context)
        self.reading = MessageReader(state)
        self._told_full = False
        self._receipts = Receipts(state)
        self._edits: dict[int, tuple[int, ...]] = {}
        """Rows of edits by the waiting row that they changed: they are done with it."""
        self._accounts: dict[int, frozenset[str]] = {}
        """The author's accounts, by waiting row."""
        self._plain: set[int] = set()
        """Waiting rows that no command has queued: their authors must be users to be answered."""

    async def take(self, row: InboxRow) -> None:
        """Handle one row: now, or by leaving it queued for a turn of its own."""
        inbound = row.inbound
        why = await self._context.services.access.learn_unrecognised(sender_of(inbound))
        if why and self._context.refuse(row, why):
            return
        match inbound:
            case MessageReceived():
                await self._take_message(row, inbound)
            case JobFired() | JobFailed() | JobReported() | WebhookCalled() | QuestionBrought():
                await self._hand_over(row, inbound)
            case ChatLost():
                await end_lost_work(self._context, inbound, self.with_edits)
                await self._hand_over(row, inbound)
            case CommandGiven():
                await self._command(row, inbound)
            case ButtonPressed() | FormSubmitted():
                await self._take_press(row, inbound)
            case QuestionExpired() | QuestionDue():
                await self._decisions.on_due(row, inbound)
            case GatewaySaid():
                self._context.state.notice(row.seq, inbound.text)
            case StopPressed():
                await self._stop_pressed(row, inbound)
            case MessageEdited():
                await self._take_edit(row, inbound)
            case MessageDeleted():
                self._take_deletion(row, inbound)
            case _:
                assert_never(inbound)

    async def _take_press(self, row: InboxRow, pressed: Pressed) -> None:
        match press := read_press(pressed.token):
            case QuestionPress():
                await self._decisions.press(row, pressed, press)
            case UnknownPress():
                await self._decisions.press(row, pressed, None)
            case PlanPress() | TurnPress() | RulePress() | JobPress() | PluginPress():
                await self._hand_over_press(row, pressed, press)
            case _:
                assert_never(press)

    async def _hand_over_press(self, row: InboxRow, pressed: Pressed, press: Press) -> None:
        """Let the button's feature handle the press, if the presser may."""
        handler, sender = self._features.find_press(press), pressed.sender
        if handler is None:
            await self._decisions.press(row, pressed, None)
        elif handler.least and not at_least(
            role := self._context.services.access.role(sender), handler.least
        ):
            word = say_refused(role, handler.least, sender.language)
            self._context.state.acknowledge(row.seq, pressed.press, word)
        else:
            await handler.handle(self._context, row, pressed, press)

    async def _hand_over(self, row: InboxRow, inbound: Inbound) -> None:
        """Let the feature that handles this type take the row."""
        handler = self._features.inbounds.get(type(inbound))
        if handler is None:
            log.error("nobody_takes_it", extra={"kind": type(inbound).__name__})
            self._context.state.acknowledge(row.seq)
        else:
            await handler.handle(self._context, row, inbound)

    # ---- messages ------------------------------------------------------------------------

    async def _take_message(self, row: InboxRow, message: MessageReceived) -> None:
        state = self._context.state
        state.language = message.sender.language or state.language
        if await self._turn_away(row, message):
            return
        self._follow(message)
        question = await self._find_answered(row.seq, message)
        if question is None:
            await self._queue_message(row, message)
        elif self._is_more_than_words(row, message):
            self._plain.add(row.seq)
            state.queue.append(row)  # its media are read first: see `begin`
            if state.active is not None:
                self._receipt(row, message)
        else:
            (await self._context.turns.open(question.turn)).note_told(message)
            answer = self._decisions.answer(message.sender, *answers.read_reply(question, message))
            await self._decisions.decide(question, answer, row.seq)

    async def _turn_away(self, row: InboxRow, message: MessageReceived) -> bool:
        """Settle a message that is not for the agent, or not allowed. Return False for others."""
        state, access = self._context.state, self._context.services.access
        role, sender = access.role(message.sender), message.sender
        known = role is not None and access.is_for_agent(message, followed=state.row.followed)
        silent = role == "viewer" and not message.addressed
        if (silent or not known) and not message.conversation.private:
            # strangers in groups get no reply; an edit may still address the agent
            unheard = tuple(filter(None, dedupe_keys(message)[1:]))
            state.submit(Changes(done=(row.seq,), unheard=unheard))
        elif role is None:
            state.notice(row.seq, await self._welcome(message), "warning")
        elif role == "viewer":
            state.notice(row.seq, say("not_allowed", sender.language), "warning")
        elif only_voice(message) and self._context.services.hearing is None:
            state.notice(row.seq, say("no_ears", sender.language), "warning")
        else:
            return False
        return True

    async def _queue_message(self, row: InboxRow, message: MessageReceived) -> None:
        """Leave a message for a turn of its own, or for the one that has shown nothing yet."""
        state, services = self._context.state, self._context.services
        if text := await refuse_turn(services, message):
            state.notice(row.seq, text, "warning")
            return
        if not state.conversation.private:
            self._accounts[row.seq] = await services.access.accounts(message.sender.key)
        self._plain.add(row.seq)
        state.queue.append(row)
        if state.active is not None and self._joins(state.active, row):
            state.active.withdraw()
            state.outbox.hush()
            return
        if state.active is not None:
            self._receipt(row, message)
        if (state.row.settings.arrival or "queue") == "interrupt":
            await self.stop(message.sender, "interrupt", ())

    def _joins(self, active: OpenTurn, row: InboxRow) -> bool:
        """Return True if the only waiting message continues that of a turn with nothing shown
        yet."""
        begun = active.list_loose_rows() if self._context.state.queue.messages == 1 else ()
        return bool(begun) and goes_on(begun[-1], row, self._context.services.burst)

    def _is_more_than_words(self, row: InboxRow, message: MessageReceived) -> bool:
        """Return True if it has files, or is a part of an incomplete message."""
        last = self._context.state.queue.last_message
        further = last is not None and goes_on(last, row, self._context.services.burst)
        return bool(message.attachments) or is_part(message) or further

    async def _find_answered(self, seq: int, message: MessageReceived) -> QuestionRow | None:
        state = self._context.state
        if not state.questions:
            return None
        return await answers.find_answered(self._context.services, state, seq, message)

    async def _try_answer(self, parts: Sequence[InboxRow]) -> bool:
        """Answer an open question with the message of these parts, and take it out of the queue.
        Return False if it answers none."""
        state, row = self._context.state, join_rows(parts)
        message = row.inbound
        if not isinstance(message, MessageReceived) or not message.event:  # it tells of an edit
            return False
        question = await self._find_answered(row.seq, message)
        if question is None:
            return False
        for _ in parts:
            state.queue.popleft()
        text = await self.reading.answer(row)
        done = tuple(seq for part in parts for seq in self.with_edits(part.seq))
        if not text:  # the question stays open
            self._tell_lost(row.seq, message.sender.language, Changes(done=done))
            return True
        self._tell_lost(row.seq, message.sender.language)
        open_turn = await self._context.turns.open(question.turn)
        open_turn.done += done[1:]
        for part in parts:
            assert isinstance(part.inbound, MessageReceived)
            open_turn.note_told(part.inbound)
        answer = self._decisions.answer(message.sender, *answers.read_answer(question, text))
        await self._decisions.decide(question, self.reading.show_answer(row, answer), row.seq)
        return True

    def _tell_lost(self, seq: int, language: str, along: Changes | None = None) -> None:
        """Tell the person, besides the model, of files that could not be fetched."""
        lost = self.reading.take_lost()
        if lost:
            lines = (say("lost_file", language, name=name, why=why) for name, why in lost)
            text = "\n".join((*lines, say("send_again", language)))
            changes = along or Changes()
            self._context.state.notice(seq, text, "warning", state="kept", along=changes)
        elif along is not None:
            self._context.state.submit(along)

    async def _welcome(self, inbound: MessageReceived | CommandGiven) -> str:
        pairing, sender = self._context.services.pairing, inbound.sender
        code = "—" if pairing is None else await pairing.code_for(sender, inbound.conversation)
        return say("stranger", sender.language, code=code)

    def _follow(self, message: MessageReceived) -> None:
        """Follow a thread from the first message to the agent on, if the policy says so."""
        state, policy = self._context.state, self._context.services.access.policy
        fresh = policy.group == "thread" and not state.row.followed
        if fresh and message.conversation.thread and not message.conversation.private:
            state.row = replace(state.row, followed=True)
            state.submit(Changes(row=state.row))

    def _receipt(self, row: InboxRow, message: MessageReceived) -> None:
        """Mark a waiting message as received; say so once when too many wait."""
        state = self._context.state
        if state.queue.messages > self._context.services.most_waiting and not self._told_full:
            self._told_full = True
            text = say("joined", state.language, n=self._context.services.most_waiting)
            state.notice(row.seq, text, state="kept")
        self._receipts.add(row)

    async def _take_edit(self, row: InboxRow, edit: MessageEdited) -> None:
        state = self._context.state
        for n, waiting in enumerate(state.queue):
            known = waiting.inbound
            if isinstance(known, MessageReceived) and known.message == edit.message:
                changed = reword_waiting(self._context, known, edit)
                if changed is None:
                    break  # its person is told
                state.queue[n] = replace(waiting, inbound=changed)
                self._edits[waiting.seq] = (*self._edits.get(waiting.seq, ()), row.seq)
                return  # a holder that replays the queue after a crash applies the edit again
        if edit.command not in self._features.commands and (
            self._steer(row, edit.message)
            or await tell_parked(self._context, self._list_parked(), row, edit)
        ):
            return
        if edit.said is not None:  # if its message was still queued then, it was known on arrival
            said = replace(edit.said, conversation=state.conversation)
            await self._context.services.store.accept((said,))
        await self._hand_over(row, edit)

    def _take_deletion(self, row: InboxRow, deleted: MessageDeleted) -> None:
        state = self._context.state
        for waiting in list(state.queue):
            known = waiting.inbound
            if isinstance(known, MessageReceived) and known.message == deleted.message:
                state.queue.remove(waiting)
                state.submit(Changes(done=(*self.with_edits(waiting.seq), row.seq)))
                return
        if not self._steer(row, deleted.message):
            state.submit(Changes(done=(row.seq,)))  # an older edit changes nothing

    def _steer(self, row: InboxRow, message: str) -> bool:
        """Steer the running turn by a change of its message; False if it is not its."""
        active = self._context.state.active
        if active is not None and not active.closed and active.has_heard(message):
            active.changes.append(row)
            return True
        return False

    def take_changes(self, open_turn: OpenTurn) -> list[InboxRow]:
        """Return the edits of the turn's message that the model has not seen, as text."""
        taken, open_turn.changes = open_turn.changes, []
        return [put_change(row, self._context.state.conversation) for row in taken]

    def take_steers(self, open_turn: OpenTurn) -> tuple[tuple[int, str], ...]:
        """Return messages for the running turn between its rounds; each row is delivered once."""
        state = self._context.state
        taken = self.take_changes(open_turn)
        if (state.row.settings.arrival or "queue") == "steer":
            for row in list(state.queue):
                if isinstance(row.inbound, MessageReceived) and row.seq > max(open_turn.row.inbox):
                    if not self._may_steer(row, row.inbound.sender, open_turn.row.sender):
                        continue  # it waits for its own turn
                    if (
                        read_for_steering(row) is None
                        or answers.find_open_input(state, row.seq, row.inbound) is not None
                    ):
                        break  # it and everything said after it is read when its turn begins
                    taken.append(row)
                    state.queue.remove(row)
                    open_turn.done += self.with_edits(row.seq)[1:]
        for row in taken:
            self._accounts.pop(row.seq, None)
            if isinstance(row.inbound, MessageReceived):
                open_turn.note_told(row.inbound)
        return tuple((row.seq, read_for_steering(row) or words(row)) for row in taken)

    def _may_steer(self, row: InboxRow, sender: Sender, owner: str) -> bool:
        """The waiting message is of who began the turn, by whichever account, or of an admin."""
        accounts = self._accounts.get(row.seq, frozenset((sender.key,)))
        private, role = self._context.state.conversation.private, self._context.services.access.role
        mine = private or owner in accounts or role(sender) == "admin"
        return mine and at_least(role(sender), "user")

    # ---- new turns -----------------------------------------------------------------------

    async def begin(self, change: Change | None = None) -> OpenTurn | None:
        """Begin a turn with the message that has waited longest, its row passed through `change`.
        Return None if nothing waits, or the message or one of its files is not there yet."""
        state = self._context.state
        if not state.queue or self.settles_in():
            return None
        parts = take_whole(state.queue, self._context.services.burst)
        if not await self._may_still_ask(parts):
            return None
        surplus = state.queue.messages + 1 - len(parts) - self._context.services.most_waiting
        taken = take_surplus(state.queue, parts, surplus)
        if self._fetches(taken):
            return None
        if not is_command(parts[0]) and await self._try_answer(parts):
            return None
        rows = [join_rows(parts), *taken[len(parts) :]]
        for _ in taken:
            state.queue.popleft()
        self._told_full = self._told_full and bool(state.queue)
        earlier = await read_earlier(state, rows) if state.conversation.thread else ""
        asked = await self.reading.read_rows(rows)
        asked = replace(asked, text=f"{earlier}{asked.text}")
        self._tell_lost(rows[0].seq, find_language(state, rows[0]))
        if waiting := state.open_questions():
            what = "; ".join(map(describe, waiting))
            text = f"{asked.text}\n\n{say('still_waiting', '', what=what)}"
            asked = replace(asked, text=text)
        done = tuple(seq for row in taken for seq in self.with_edits(row.seq))
        row = self._turn_row(rows, taken, asked.said)
        if change is not None:
            row = change(row)
        open_turn = await self._context.turns.start(row, asked, done, rows=taken)
        if heard := self.reading.take_heard():
            note = Noted(key=HEARD, value=Raw(msgspec.json.encode(heard)))
            await open_turn.journal.barrier(note)  # shown at once, and never transcribed again
        return open_turn

    def _fetches(self, rows: Sequence[InboxRow]) -> bool:
        """Fetch what is missing of the files of these waiting rows. Return False if all are
        there."""
        begins, first = not self.reading.is_fetching(), rows[0].inbound
        if not self.reading.fetch_ahead(rows):
            return False
        if begins and isinstance(first, MessageReceived):
            show_fetching(self._context.state, first.message, self.reading.is_fetching)
        return True

    async def _may_still_ask(self, parts: Sequence[InboxRow]) -> bool:
        """Return False if who wrote the message has lost the right to since; it is then refused."""
        state, message = self._context.state, parts[0].inbound
        if not isinstance(message, MessageReceived):
            return True
        role = await self._context.services.access.learn(message.sender)
        if role is not None and (role != "viewer" or parts[0].seq not in self._plain):
            return True
        for _ in parts:
            state.queue.popleft()
        done = tuple(seq for part in parts for seq in self.with_edits(part.seq))
        if message.conversation.private:
            key: Key = "not_known" if role is None else "not_allowed"
            word = say(key, message.sender.language)
            state.notice(done[0], word, "warning", along=Changes(done=done[1:]))
        else:
            state.submit(Changes(done=done))
        return False

    def settles_in(self) -> float:
        """Seconds until the oldest waiting message counts as complete."""
        state = self._context.state
        if not state.queue or not state.adapter.abilities.own_messages:
            return 0.0
        return settles_in(take_whole(state.queue), ambient.now())

    def is_edited(self, seq: int) -> bool:
        """The waiting row was changed by its person."""
        return seq in self._edits

    def with_edits(self, seq: int) -> tuple[int, ...]:
        """Return the waiting row and those of its edits, which end together."""
        self._accounts.pop(seq, None)
        self._plain.discard(seq)
        self._receipts.clear(seq)
        return (seq, *self._edits.pop(seq, ()))

    def _turn_row(self, rows: list[InboxRow], taken: Sequence[InboxRow], text: str) -> TurnRow:
        state, services, inbound = self._context.state, self._context.services, rows[0].inbound
        message = inbound if isinstance(inbound, MessageReceived) else None
        sender = message.sender if message else Sender(platform="", id="")
        role = services.access.role(sender) if message else "user"
        if not state.row.title:
            state.row = replace(state.row, title=services.find_redactions().hide(text)[:80])
        state.language = sender.language or state.language
        seqs = tuple(row.seq for row in taken)
        said = message.message if message else ""
        return new_row(seqs, sender, role or "user", said, text, services.version)

    # ---- stop and commands ---------------------------------------------------------------

    async def _stop_pressed(self, row: InboxRow, stop: StopPressed) -> None:
        role = self._context.services.access.role(stop.sender)
        if not at_least(role, "user") or not await self.may_stop(stop.sender):
            self._context.state.acknowledge(
                row.seq, stop.press, say("stop_not_yours", stop.sender.language)
            )
            return
        if not await self.stop(stop.sender, "stop", (row.seq,)):
            self._context.state.submit(Changes(done=(row.seq,)))
        self._context.state.tell(stop.press, "")

    async def may_stop(self, sender: Sender) -> bool:
        """Return True if the sender may end the running and waiting work: it is their own, by any
        linked account, or they are an admin. True if there is none."""
        active = self._context.state.active or await self._cut_off()
        if active is not None:
            return await self._may_act_for(active.row.sender, sender)
        queue = self._context.state.queue
        first = sender_of(queue[0].inbound) if queue else None
        return first is None or await self._may_act_for(first.key, sender)

    async def _may_act_for(self, owner: str, sender: Sender) -> bool:
        access = self._context.services.access
        return await access.may_act_for(owner, sender, access.role(sender))

    async def stop(self, sender: Sender, reason: str, done: tuple[int, ...]) -> bool:
        """End the running turn. Return False if none runs or the sender may not end it; a stop
        after the final commit is too late."""
        if not await self.may_stop(sender):
            return False
        active = self._context.state.active or await self._cut_off()
        if active is None and self._context.state.queue and done:
            parts = take_whole(self._context.state.queue, self._context.services.burst)
            for _ in parts:
                self._context.state.queue.popleft()
            waiting, *rest = [seq for row in parts for seq in self.with_edits(row.seq)]
            word = say("stopped", self._context.state.language)
            self._context.state.notice(waiting, word, along=Changes(done=(*rest, *done)))
            return True
        if active is None or active.closed:
            return False
        others = reason == "interrupt" and active.row.sender != sender.key
        text = say("interrupted_note", active.row.language) if others else ""
        record = Stopped(key="stopped", reason=reason, by=sender.key, text=text)  # type: ignore[arg-type]
        self._context.turns.close(active, record, done)
        return True

    async def _cut_off(self) -> OpenTurn | None:
        """The turn that was running when its holder died: a stop ends it before its resume."""
        for turn in self._context.state.turns.values():
            if turn.status == "running":
                return await self._context.turns.open(turn.id)
        return None

    async def stop_parked(self, sender: Sender) -> int:
        """End all parked turns that are the sender's to end; how many."""
        mine = [one for one in self._list_parked() if await self._may_act_for(one.sender, sender)]
        return await self._close_parked(sender, mine)

    async def stop_waiting_scripts(self, sender: Sender) -> int:
        """End the sender's parked turns whose scripts wait in this process; return how many."""
        services, held = self._context.services, []
        for turn in self._list_parked():
            mine = await self._may_act_for(turn.sender, sender)
            if mine and services.agent.holds(turn.id):
                held.append(turn)
        return await self._close_parked(sender, held)

    def _list_parked(self) -> list[TurnRow]:
        return [turn for turn in self._context.state.turns.values() if turn.status == "parked"]

    async def _close_parked(self, sender: Sender, turns: list[TurnRow]) -> int:
        for turn in turns:
            record = Stopped(key="stopped", reason="stop", by=sender.key)
            self._context.turns.close(await self._context.turns.open(turn.id), record)
        return len(turns)

    def _show_said(self, row: InboxRow, command: CommandGiven) -> None:
        """Show the command as typed, so that its answer follows a question."""
        state, sender = self._context.state, command.sender
        text = f"/{command.name} {command.arguments}".strip()
        said = SaidView(name=sender.name or sender.handle or sender.id, text=text)
        view = state.want(f"row-{row.seq}", "said", said, 1, final=True)
        state.show(Changes(views=(view,), row=state.row))

    async def _command(self, row: InboxRow, command: CommandGiven) -> None:
        state = self._context.state
        state.language = command.sender.language or state.language
        role = self._context.services.access.role(command.sender)
        if role is None and not command.conversation.private:
            press = command.press or command.aside
            state.acknowledge(row.seq, press, say("not_known", command.sender.language))
            return
        if role is None:
            state.notice(row.seq, await self._welcome(command), "warning")
            return
        known = self._features.commands.get(command.name)
        if known is None:
            plain = command.worded or command.conversation.private
            if plain and command.arguments:  # '/tmp is full, why?'
                await self._take_message(*read_as_words(row, command))
                return
            if not command.addressed:  # of another bot
                state.submit(Changes(done=(row.seq,)))
                return
        if not state.adapter.abilities.own_messages and not (known and known.is_told):
            self._show_said(row, command)
        before = state.row.settings
        text = await self._run_command(command, role, row.seq)
        if text and command.press and state.conversation.thread and state.row.settings != before:
            text = f"{text}\n{say('set_in_thread', command.sender.language)}"
        if text and command.press:
            state.submit(Changes(done=(row.seq,), row=state.row))  # which it may have changed
            state.tell(command.press, text)
        elif text:
            state.notice(row.seq, text)

    async def _run_command(self, given: CommandGiven, role: Role, seq: int) -> str:
        """Run a command. Return its answer, "" if it has answered already."""
        commands, language = self._features.commands, given.sender.language
        command = commands.get(given.name)
        if command is None:
            return say("unknown_command", language, name=given.name[:32])
        call = Call(context=self._context, command=given, role=role, seq=seq, commands=commands)
        return await run_command(command, call)
