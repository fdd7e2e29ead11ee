"""The commands about the gateway and the conversation itself: /help, /stop, /mode, /status, …"""

from typing import Literal, cast

from msgspec.structs import replace

from agent_core.orchestration.routes.classifier import MODES
from agent_core.profiles.built_in import PROFILES
from agent_core.tools.browser import chromium
from gateway.command_texts import OwnText, name_command
from gateway.conversation.permission import describe_mode, find_mode
from gateway.conversation.state import ConversationState
from gateway.feature import Call, Feature, is_allowed, own_command
from gateway.roles import say_refused
from gateway.store.rows import ConversationSettings
from gateway.texts import Key, say
from gateway.texts.money import describe_cost

MAX_TITLE = 80
HOLDERS: dict[str, Key] = {"kernel": "sandbox_grouped", "watch": "sandbox_watched"}
"""Sentences about the holder of a sandbox's limits; none for the sandbox itself."""
ARRIVALS = ("queue", "steer", "interrupt")
"""The fates of a message that arrives during a turn."""

GROUPS: tuple[tuple[Key, tuple[str, ...]], ...] = (
    (
        "help_talk",
        ("help", "new", "stop", "undo", "retry", "resume", "rename", "memory", "instructions"),
    ),
    ("help_plans", ("plan", "todo", "approvals", "approve", "deny", "permissions")),
    ("help_jobs", ("jobs", "timezone")),
    ("help_ways", ("mode", "model", "mcp", "prompt", "secret")),
    ("help_people", ("status", "usage", "whoami", "link", "pair", "unpair")),
)
"""Our commands in their order for people, in groups with a heading."""


async def _help(call: Call) -> str:
    known = frozenset(name for _, names in GROUPS for name in (*names, "start"))
    others = tuple(name for name in call.commands if name not in known)
    groups = (_describe_group(call, *group) for group in (*GROUPS, ("help_more", others)))
    return say("help", call.language, commands=OwnText("\n\n".join(filter(None, groups))))


def _describe_group(call: Call, heading: Key, names: tuple[str, ...]) -> str:
    """List those of the commands that the role may give, below a heading; "" if there are none."""
    access, lines = call.context.services.access, list[str]()
    for name in names:
        command = call.commands.get(name)
        if command is not None and is_allowed(access, call.role, command):
            lines.append(f"{name_command(name, whole=False)} — {command.help(call.language)}")
    return "\n".join((say(heading, call.language), *lines)) if lines else ""


async def _begin_anew(call: Call) -> str:
    context = call.context
    context.turns.history.forget()
    return say("new", call.language)


async def _rename(call: Call) -> str:
    """Give the conversation a name, by which lists show it."""
    state = call.context.state
    words = " ".join(call.command.arguments.split())
    title = call.context.services.find_redactions().hide(words)[:MAX_TITLE]
    if not title:
        return say("rename_usage", call.language)
    state.row = replace(state.row, title=title)
    return say("renamed", call.language, title=title)


async def _stop(call: Call) -> str:
    context = call.context
    done = (call.seq,)
    active, sender = context.state.active, call.command.sender
    if not await context.turns.may_stop(sender):
        return say("stop_not_yours", call.language)
    asking = {question.turn for question in context.state.open_questions()}
    quiet = active is not None and active.id in asking and not active.words
    running = await context.turns.stop(sender, "stop", done)
    ended = 0
    if call.option == "all":
        ended = await context.turns.stop_parked(sender)
    elif not running:  # a script that waits for a person counts as running
        ended = await context.turns.stop_waiting_scripts(sender)
    if running and not quiet:  # a turn whose cards are withdrawn shows nothing more
        return ""
    return say("stopped" if running or ended else "nothing_running", call.language)


async def _mode(call: Call) -> str:
    context = call.context
    before, permission = context.state.row.settings, find_mode(call)
    settings = before
    word = call.option
    private = context.state.conversation.private
    if word == "auto" and call.role != "admin":
        return say_refused(call.role, "admin", call.language)
    if word in ARRIVALS and not private and call.role != "admin":
        return say("mode_admins", call.language)
    if word in ("ask", "auto"):
        settings = _choose_mode(call, "ask" if word == "ask" else "auto")
    elif word in ARRIVALS:
        settings = replace(settings, arrival=word)
    elif why := context.services.agent.why_unusable(MODES.get(word, "")):
        return say("mode_no_skill", call.language, mode=word, why=why)
    elif word in MODES or word in PROFILES:
        settings = _purpose(settings, word)
    elif word:
        return say("mode_usage", call.language)
    context.state.configure(settings)
    if word:
        context.state.note_audit(call.command.sender.key, "mode", word)
    words: tuple[str, ...]
    match word:
        case "ask" | "auto":
            may = permission == "ask" or call.role == "admin"
            words = (
                describe_mode(call),
                _say_way_back(call, permission if may else word),
            )
        case "queue" | "steer" | "interrupt":
            words = (_arrival(call), _say_way_back(call, before.arrival or "queue"))
        case "":
            words = (
                describe_mode(call),
                _arrival(call),
                _purposes(call),
            )
        case _:
            words = (_purposes(call) or say("mode_free", call.language),)
    return " ".join(filter(None, words))


def _choose_mode(call: Call, word: Literal["ask", "auto"]) -> ConversationSettings:
    """Choose the mode: in private for the conversation, in a group for the person's own turns
    there."""
    settings, state = call.context.state.row.settings, call.context.state
    if state.conversation.private:
        return replace(settings, permission=word)
    return settings.choose_mode(call.command.sender.key, word)


def _say_way_back(call: Call, before: str) -> str:
    """Say how to return to the choice `before`; "" if it is unchanged."""
    return say("mode_back", call.language, word=before) if before != call.option else ""


def _purpose(settings: ConversationSettings, word: str) -> ConversationSettings:
    """`word` as a mode, a profile, or both; task ends either."""
    mode = MODES.get(word, "task")
    kept = settings.profile if word in MODES and mode != "task" else ""
    chosen = word if word in PROFILES else kept
    return replace(settings, mode="" if mode == "task" else mode, profile=chosen)


def _purposes(call: Call) -> str:
    """Describe the agent's mode here, what it lacks for it, and how to leave it; "" for none."""
    context = call.context
    settings = context.state.row.settings
    if not settings.mode and not settings.profile:
        return ""
    name = settings.profile
    needs = ", ".join(context.services.agent.list_missing(name)) if name else ""
    words = (
        say("mode_is", call.language, mode=settings.mode) if settings.mode else "",
        say("profile_is", call.language, profile=name) if name else "",
        say("mode_ends", call.language),
        say("profile_needs", call.language, tools=needs) if needs else "",
    )
    return " ".join(filter(None, words))


def _arrival(call: Call) -> str:
    """Describe what happens to a message that arrives during a turn."""
    context = call.context
    arrival = context.state.row.settings.arrival or "queue"
    return say(cast(Key, f"mode_{arrival}"), call.language)


async def _status(call: Call) -> str:
    context = call.context
    return say(
        "status",
        call.language,
        state=say(_name_state(call.context.state), call.language),
        step=_step(call),
        spent=_describe_spending(call),
        waiting=len(context.state.queue),
        questions=len(context.state.questions),
        permission=describe_mode(call),
        model=context.services.agent.model_name(context.state.row.settings),
        sandbox=_describe_sandbox(call),
    )


def _name_state(state: ConversationState) -> Key:
    if state.active is not None:
        return "working"
    return "waits" if state.questions else "idle"


def _describe_sandbox(call: Call) -> str:
    """Describe where commands run, and how well they are isolated."""
    found = call.context.services.sandbox
    if found is None:
        return ""
    if found.missing:
        return say("sandbox_missing", call.language)
    if not found.isolated:
        return say("sandbox_none", call.language, name=found.name)
    if found.contains:
        said = [say("sandbox_contains", call.language, name=found.name)]
    elif found.leaks:
        leaks = ", ".join(found.leaks)
        said = [say("sandbox_leaks", call.language, name=found.name, leaks=leaks)]
    else:
        said = [say("sandbox_untested", call.language, name=found.name)]
    if found.contains and found.cannot:
        said.append(say("sandbox_cannot", call.language))
    if (holder := HOLDERS.get(found.limit_holder)) is not None:
        said.append(say(holder, call.language))
    if not chromium.find_missing(found.encloses):
        said.append(say("browser_enclosed" if found.encloses else "browser_beside", call.language))
    return " ".join(said)


def _step(call: Call) -> str:
    """Describe the progress of the running plan, if there is one."""
    context = call.context
    active = context.state.active
    course = active.fold.course if active is not None else None
    if course is None:
        return ""
    steps = list(course.plan.steps)
    running = (n for n, step in enumerate(steps, 1) if step.state == "running")
    n = next(running, len(course.plan.select("done", "failed", "skipped")))
    step = steps[n - 1].description if n else course.plan.title
    return " " + say("step_of", call.language, n=n, all=len(steps), step=step)


def _describe_spending(call: Call) -> str:
    """Describe today's spending, as far as known."""
    context = call.context
    spent = context.state.row.spent.of_today
    if not spent.calls:
        return ""
    cost = describe_cost(spent.cost, spent.unpriced, call.language)
    return f"{say('usage_today', call.language)}: {cost}. "


async def _whoami(call: Call) -> str:
    context = call.context
    key = call.command.sender.key
    text = say("whoami", call.language, person=key, role=call.role)
    others = await context.services.access.accounts(key) - {key}
    linked = say("linked_with", call.language, accounts=", ".join(sorted(others)))
    return f"{text} {linked}" if others else text


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
    person = word if ":" in word else f"{platform}:{word}"
    return await pairing.put_out(person, call.command.sender.key, call.language)


async def _link(call: Call) -> str:
    context = call.context
    linking, sender = context.services.linking, call.command.sender
    if linking is None or not context.state.conversation.private:
        return say("link_private", call.language)
    if not call.words:
        return say("link_code", call.language, code=await linking.code_for(sender))
    match call.option:
        case "off":
            return await linking.leave(sender)
        case "page" if (pages := context.services.page_links) is not None:
            return await pages.offer(sender)
    return await linking.enter(call.words[0], sender)


FEATURE = Feature(
    name="general",
    commands=(
        own_command("start", _help, "viewer"),  # a link's word may follow
        own_command("help", _help, "viewer"),
        own_command("new", _begin_anew, of_talk=True, most_words=0),
        own_command("rename", _rename, of_talk=True),
        own_command("stop", _stop, of_talk=True),  # with any words: '/stop please'
        own_command("mode", _mode, most_words=1),
        own_command("status", _status, "viewer", of_talk=True, most_words=0),
        own_command("pair", _pair, "admin", most_words=1),
        own_command("unpair", _unpair, "admin", most_words=1),
        own_command("link", _link, most_words=1),
        own_command("whoami", _whoami, "viewer", most_words=0),
    ),
)
