"""The commands that people give, in one typed table. Chat, page and command line are its faces."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_core import ambient
from agent_core.questions import Answer, Approval
from gateway.access import Role, refusal
from gateway.messages import CommandGiven
from gateway.store.rows import QuestionRow
from gateway.texts import say

if TYPE_CHECKING:
    from gateway.sessions.intake import Intake
    from gateway.sessions.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command as it was given."""

    session: "Session"
    intake: "Intake"
    command: CommandGiven
    role: Role
    seq: int

    @property
    def words(self) -> list[str]:
        """The arguments, split at spaces."""
        return self.command.arguments.split()

    @property
    def language(self) -> str:
        """The language of who gave it."""
        return self.command.sender.language


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`run` returns the answer, "" if it has answered already. `least`: the role it needs."""

    name: str
    help: str
    run: Callable[[Call], Awaitable[str]]
    least: Role = "user"


_RANK: dict[Role, int] = {"viewer": 0, "user": 1, "admin": 2}


async def run_command(
    session: "Session", intake: "Intake", command: CommandGiven, role: Role, seq: int
) -> str:
    """Carry out a command; the text to answer, "" if that is done."""
    known = COMMANDS.get(command.name)
    call = Call(session=session, intake=intake, command=command, role=role, seq=seq)
    if known is None:
        return say("unknown_command", call.language, name=command.name[:32])
    if _RANK[role] < _RANK[known.least]:
        return say("not_allowed", call.language)
    return await known.run(call)


async def _help(call: Call) -> str:
    lines = "\n".join(
        f"/{command.name} — {command.help}"
        for command in COMMANDS.values()
        if _RANK[call.role] >= _RANK[command.least] and command.name != "start"
    )
    return say("help", call.language, commands=lines)


async def _new(call: Call) -> str:
    call.session.forget_history()
    return say("new", call.language)


async def _stop(call: Call) -> str:
    done = (call.seq,)
    active = call.session.active
    allowed = call.role == "admin" or active is None
    if active is not None and not allowed and active.row.sender != call.command.sender.key:
        return say("not_yours", call.language)
    running = await call.intake.stop(call.command.sender, "stop", done)
    ended = 0
    if call.words[:1] == ["all"]:
        ended = await call.intake.stop_parked(call.command.sender)
    if running:
        return ""
    return say("stopped" if ended else "nothing_running", call.language)


async def _mode(call: Call) -> str:
    settings = call.session.row.settings
    word = call.words[0] if call.words else ""
    if word == "ask" or (word == "auto" and call.role == "admin"):
        settings = replace(settings, permission=word)
    elif word == "auto":
        return say("not_allowed", call.language)
    elif word in ("queue", "steer", "interrupt"):
        settings = replace(settings, arrival=word)
    elif word:
        return say("mode_usage", call.language)
    call.session.configure(settings)
    return say("mode_now", call.language, **_modes(call))


def _modes(call: Call) -> dict[str, str]:
    settings = call.session.row.settings
    mode = call.session.services.agent.permission(call.session.conversation, settings, call.role)
    return {"permission": mode, "arrival": settings.arrival or "queue"}


async def _status(call: Call) -> str:
    session = call.session
    return say(
        "status",
        call.language,
        state="Working" if session.active is not None else "Idle",
        waiting=len(session.queue),
        questions=len(session.questions),
        permission=_modes(call)["permission"],
        model=session.services.agent.model_name(session.row.settings),
    )


async def _whoami(call: Call) -> str:
    return say("whoami", call.language, person=call.command.sender.key, role=call.role)


async def _approvals(call: Call) -> str:
    from gateway.sessions.decisions import describe

    questions = _open(call)
    if not questions:
        return say("no_approvals", call.language)
    return "\n".join(f"{n}. {describe(question)}" for n, question in enumerate(questions, 1))


async def _approve(call: Call) -> str:
    return await _decide(call, Answer(choice="once"))


async def _deny(call: Call) -> str:
    reason = " ".join(word for word in call.words if not word.isdecimal())
    return await _decide(call, Answer(choice="deny", text=reason))


async def _decide(call: Call, answer: Answer) -> str:
    questions = [q for q in _open(call) if isinstance(q.question, Approval)]
    if not questions:
        return say("no_approvals", call.language)
    numbers = [int(word) for word in call.words if word.isdecimal()]
    if len(questions) > 1 and not numbers:
        return say("answer_usage", call.language, name=call.command.name)
    if numbers and not 1 <= numbers[0] <= len(questions):
        return say("answer_usage", call.language, name=call.command.name)
    question = questions[numbers[0] - 1 if numbers else 0]
    sender, where = call.command.sender, call.session.conversation
    no = refusal(question, where.id, where, sender, call.role)
    if no is not None:
        return say(no, call.language)
    decided = replace(answer, by=sender.key, name=sender.name or sender.id, at=ambient.now())
    await call.session.decisions.decide(question, decided, call.seq)
    return ""


def _open(call: Call) -> list[QuestionRow]:
    return [q for q in call.session.questions.values() if q.status == "open"]


async def _pair(call: Call) -> str:
    pairing = call.session.services.pairing
    if not call.words or pairing is None:
        return say("pair_usage", call.language)
    return await pairing.enter(call.words[0], call.command.sender.key, call.language)


async def _permissions(call: Call) -> str:
    rules = call.session.row.settings.rules
    lines = [f"{rule.tool}: {rule.pattern} ({rule.person})" for rule in rules]
    return "\n".join([say("mode_now", call.language, **_modes(call)), *lines])


async def _model(call: Call) -> str:
    settings = call.session.row.settings
    if call.words and call.role == "admin":
        problem = call.session.services.agent.check_model(call.words[0])
        if problem:
            return problem
        settings = replace(settings, model=call.words[0])
        call.session.configure(settings)
    return call.session.services.agent.model_name(settings)


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(name="start", help="What this is", run=_help, least="viewer"),
        Command(name="help", help="What there is", run=_help, least="viewer"),
        Command(name="new", help="Begin a new conversation", run=_new),
        Command(
            name="stop", help="Stop the running turn; /stop all also ends waiting ones", run=_stop
        ),
        Command(name="mode", help="ask or auto; queue, steer or interrupt", run=_mode),
        Command(name="approvals", help="What waits for a decision", run=_approvals, least="viewer"),
        Command(name="approve", help="Approve what waits", run=_approve),
        Command(name="deny", help="Deny what waits, with a reason", run=_deny),
        Command(name="status", help="What goes on", run=_status, least="viewer"),
        Command(name="model", help="The model in use", run=_model, least="viewer"),
        Command(name="permissions", help="Rules that were approved for longer", run=_permissions),
        Command(
            name="pair",
            help="Let a stranger in by the code shown to them",
            run=_pair,
            least="admin",
        ),
        Command(name="whoami", help="Your id and role", run=_whoami, least="viewer"),
    )
}
