"""The commands that people give, in one typed table. Chat, page and command line are its faces."""

from typing import cast

from msgspec.structs import replace

from agent_core import ambient
from agent_core.orchestration.routes.classifier import MODES
from agent_core.profiles.built_in import PROFILES
from agent_core.questions import Answer, Approval
from gateway.access import Access, Role, refusal
from gateway.commands import history
from gateway.feature import Call, Command, Context
from gateway.jobs.commands import jobs
from gateway.jobs.work.commands import timezone
from gateway.memory.commands import memory
from gateway.messages import CommandGiven
from gateway.people import grants
from gateway.people.relays import brought_here, decide_there
from gateway.people.roles import at_least
from gateway.plans.commands import plan, todo
from gateway.sessions.decisions import Decisions, describe, why_not
from gateway.spending.commands import usage
from gateway.spending.money import dollars
from gateway.store.rows import ConversationSettings, QuestionRow
from gateway.texts import Key, say
from gateway.vault.commands import secret


async def run_command(context: Context, command: CommandGiven, role: Role, seq: int) -> str:
    """Carry out a command; the text to answer, "" if that is done."""
    known = COMMANDS.get(command.name)
    call = Call(context=context, command=command, role=role, seq=seq)
    if known is None:
        return say("unknown_command", call.language, name=command.name[:32])
    if not allowed(context.services.access, role, known):
        return say("not_allowed", call.language)
    return await known.run(call)


def allowed(access: Access, role: Role | None, command: Command) -> bool:
    """This role may give the command: by the settings' rights, else by its own least role."""
    return at_least(role, access.policy.rights.get(command.name, command.least))


def about(name: str, language: str) -> str:
    """What a command does, for menus."""
    return say(cast(Key, f"command_{name}"), language)


async def _help(call: Call) -> str:
    context = call.context
    lines = "\n".join(
        f"/{command.name} — {about(command.name, call.language)}"
        for command in COMMANDS.values()
        if allowed(context.services.access, call.role, command) and command.name != "start"
    )
    return say("help", call.language, commands=lines)


async def _new(call: Call) -> str:
    context = call.context
    context.turns.history.forget()
    return say("new", call.language)


async def _stop(call: Call) -> str:
    context = call.context
    done = (call.seq,)
    active, access = context.state.active, context.services.access
    sender, role = call.command.sender, call.role
    if active is not None and not await access.may_act_for(active.row.sender, sender, role):
        return say("not_yours", call.language)
    asking = {question.turn for question in _open(call)}
    quiet = active is not None and active.id in asking and not active.words
    running = await context.turns.stop(sender, "stop", done)
    ended = 0
    if call.words[:1] == ["all"]:
        ended = await context.turns.stop_parked(sender)
    if running and not quiet:  # a turn whose cards are withdrawn says no more
        return ""
    return say("stopped" if running or ended else "nothing_running", call.language)


async def _mode(call: Call) -> str:
    context = call.context
    before, permission = context.state.row.settings, _permitted(call)
    settings = before
    word = call.words[0] if call.words else ""
    if word == "ask" or (word == "auto" and call.role == "admin"):
        settings = replace(settings, permission=word)
    elif word == "auto":
        return say("not_allowed", call.language)
    elif word in ("queue", "steer", "interrupt"):
        settings = replace(settings, arrival=word)
    elif why := context.services.agent.lacking(MODES.get(word.lower(), "")):
        return say("mode_no_skill", call.language, mode=word.lower(), why=why)
    elif word.lower() in MODES or word.lower() in PROFILES:
        settings = _purpose(settings, word.lower())
    elif word:
        return say("mode_usage", call.language)
    context.state.configure(settings)
    words: tuple[str, ...]
    match word:
        case "ask" | "auto":
            may = permission == "ask" or call.role == "admin"
            words = (_permission(call), _back(call, permission if may else word))
        case "queue" | "steer" | "interrupt":
            words = (_arrival(call), _back(call, before.arrival or "queue"))
        case "":
            words = (_permission(call), _arrival(call), _purposes(call))
        case _:
            words = (_purposes(call) or say("mode_free", call.language),)
    return " ".join(filter(None, words))


def _back(call: Call, before: str) -> str:
    """How what was chosen `before` comes back; "" if it is what is chosen."""
    return say("mode_back", call.language, word=before) if before != call.words[0] else ""


def _purpose(settings: ConversationSettings, word: str) -> ConversationSettings:
    """`word` as a mode, a profile, or both; task ends either."""
    mode = MODES.get(word, "task")
    kept = settings.profile if word in MODES and mode != "task" else ""
    chosen = word if word in PROFILES else kept
    return replace(settings, mode="" if mode == "task" else mode, profile=chosen)


def _purposes(call: Call) -> str:
    """What the agent is for here, what it lacks for that, and how that ends; "" if it is free."""
    context = call.context
    settings = context.state.row.settings
    if not settings.mode and not settings.profile:
        return ""
    name = settings.profile
    needs = ", ".join(context.services.agent.missing(name)) if name else ""
    words = (
        say("mode_is", call.language, mode=settings.mode) if settings.mode else "",
        say("profile_is", call.language, profile=name) if name else "",
        say("mode_ends", call.language),
        say("profile_needs", call.language, tools=needs) if needs else "",
    )
    return " ".join(filter(None, words))


def _permission(call: Call) -> str:
    """When it is asked for permission, in words."""
    return say("mode_ask" if _permitted(call) == "ask" else "mode_auto", call.language)


def _permitted(call: Call) -> str:
    context = call.context
    return context.services.agent.permission(
        context.state.conversation, context.state.row.settings, call.role
    )


def _arrival(call: Call) -> str:
    """What a message does that comes during a turn, in words."""
    context = call.context
    arrival = context.state.row.settings.arrival or "queue"
    return say(cast(Key, f"mode_{arrival}"), call.language)


async def _status(call: Call) -> str:
    context = call.context
    return say(
        "status",
        call.language,
        state=say("working" if context.state.active is not None else "idle", call.language),
        step=_step(call),
        spent=_spent(call),
        waiting=len(context.state.queue),
        questions=len(context.state.questions),
        permission=_permission(call),
        model=context.services.agent.model_name(context.state.row.settings),
    )


def _step(call: Call) -> str:
    """How far the plan is that runs, if one does."""
    context = call.context
    active = context.state.active
    course = active.fold.course if active is not None else None
    if course is None:
        return ""
    steps = list(course.plan.steps)
    running = (n for n, step in enumerate(steps, 1) if step.state == "running")
    n = next(running, len(course.plan.of("done", "failed", "skipped")))
    step = steps[n - 1].description if n else course.plan.title
    return say("step_of", call.language, n=n, all=len(steps), step=step) + " "


def _spent(call: Call) -> str:
    """What today took, where something is known of it."""
    context = call.context
    spent = context.state.row.spent.of_today
    if not spent.calls:
        return ""
    return f"{say('usage_today', call.language)}: {dollars(spent.cost)}. "


async def _whoami(call: Call) -> str:
    context = call.context
    key = call.command.sender.key
    text = say("whoami", call.language, person=key, role=call.role)
    others = await context.services.access.accounts(key) - {key}
    linked = say("linked_with", call.language, accounts=", ".join(sorted(others)))
    return f"{text} {linked}" if others else text


async def _approvals(call: Call) -> str:
    questions = [*_open(call), *(one for _, one in await brought_here(call.context))]
    if not questions:
        return say("no_approvals", call.language)
    described = (describe(question, call.language) for question in questions)
    return "\n".join(f"{n}. {what}" for n, what in enumerate(described, 1))


async def _approve(call: Call) -> str:
    return await _decide(call, Answer(choice="once"))


async def _deny(call: Call) -> str:
    reason = " ".join(word for word in call.words if not word.isdecimal())
    return await _decide(call, Answer(choice="deny", text=reason))


async def _decide(call: Call, answer: Answer) -> str:
    context = call.context
    elsewhere = await brought_here(context)
    person = await context.services.access.person(call.command.sender)
    own = [q for q in _open(call) if isinstance(q.question, Approval)]
    questions = [*own, *(question for _, question in elsewhere)]
    if not questions:
        return say("no_approvals", call.language)
    numbers = [int(word) for word in call.words if word.isdecimal()]
    if len(questions) > 1 and not numbers:
        return say("answer_usage", call.language, name=call.command.name)
    if numbers and not 1 <= numbers[0] <= len(questions):
        return say("answer_usage", call.language, name=call.command.name)
    chosen = numbers[0] - 1 if numbers else 0
    if chosen >= len(own):
        asked, given = elsewhere[chosen - len(own)], (call.command, call.seq)
        return await decide_there(context, asked, answer, person, given)
    question = questions[chosen]
    sender, where = call.command.sender, context.state.conversation
    no = refusal(question, where.id, where, person)
    if no is not None:
        return why_not(no, question, call.language)
    decided = replace(answer, by=sender.key, name=sender.name or sender.id, at=ambient.now())
    return await Decisions(context).settle(question, person, decided, call.seq)


def _open(call: Call) -> list[QuestionRow]:
    context = call.context
    return [q for q in context.state.questions.values() if q.status == "open"]


async def _pair(call: Call) -> str:
    context = call.context
    pairing = context.services.pairing
    if not call.words or pairing is None:
        return say("pair_usage", call.language)
    return await pairing.enter(call.words[0], call.command.sender.key, call.language)


async def _unpair(call: Call) -> str:
    context = call.context
    pairing = context.services.pairing
    if not call.words or pairing is None:
        return say("unpair_usage", call.language)
    platform, word = call.command.sender.platform, call.words[0]
    return await pairing.put_out(word if ":" in word else f"{platform}:{word}", call.language)


async def _link(call: Call) -> str:
    context = call.context
    linking, sender = context.services.linking, call.command.sender
    if linking is None or not context.state.conversation.private:
        return say("link_private", call.language)
    if not call.words:
        return say("link_code", call.language, code=await linking.code_for(sender))
    if call.words[0].lower() == "off":
        return await linking.leave(sender)
    return await linking.enter(call.words[0], sender)


async def _permissions(call: Call) -> str:
    return await grants.permissions(call, _permission(call))


async def _model(call: Call) -> str:
    context = call.context
    settings = context.state.row.settings
    if call.words and call.role == "admin":
        problem = context.services.agent.check_model(call.words[0])
        if problem:
            return problem
        settings = replace(settings, model=call.words[0])
        context.state.configure(settings)
    return context.services.agent.model_name(settings)


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command(name="start", run=_help, least="viewer"),
        Command(name="help", run=_help, least="viewer"),
        Command(name="new", run=_new),
        Command(name="stop", run=_stop),
        Command(name="undo", run=history.undo),
        Command(name="retry", run=history.retry),
        Command(name="resume", run=history.resume),
        Command(name="memory", run=memory),
        Command(name="jobs", run=jobs),
        Command(name="timezone", run=timezone),
        Command(name="mode", run=_mode),
        Command(name="plan", run=plan),
        Command(name="todo", run=todo, least="viewer"),
        Command(name="approvals", run=_approvals, least="viewer"),
        Command(name="approve", run=_approve),
        Command(name="deny", run=_deny),
        Command(name="usage", run=usage, least="viewer"),
        Command(name="status", run=_status, least="viewer"),
        Command(name="model", run=_model, least="viewer"),
        Command(name="permissions", run=_permissions),
        Command(
            name="pair",
            run=_pair,
            least="admin",
        ),
        Command(name="unpair", run=_unpair, least="admin"),
        Command(name="link", run=_link),
        Command(name="secret", run=secret),
        Command(name="whoami", run=_whoami, least="viewer"),
    )
}
