"""The brief of a library turn, as in the gateway: instructions, tools, memory, and the message's
context."""

from msgspec import Struct

from agent_core import ambient
from agent_core.context.prompt import system_prompt
from agent_core.context.surroundings import Surroundings, describe_time, render_surroundings
from agent_core.library.model_calls import ModelCalls
from agent_core.mcp.servers import Servers
from agent_core.memory.port import Memory
from agent_core.memory.recall import block
from agent_core.messages import Message
from agent_core.orchestration.brief import Brief
from agent_core.orchestration.routes.classifier import classify
from agent_core.profiles.choice import Kit, apply_choice
from agent_core.tools.finding.toolsets import Toolsets
from agent_core.tools.toolbox import Toolbox


class TurnOptions(Struct, frozen=True, kw_only=True):
    """The caller's options: see Agent. `rounds`, `turns`: at most so many rounds and model calls,
    None for the settings'."""

    model: str
    system: str
    profile: str
    plans: bool
    zone: str
    workspace: str
    rounds: int | None
    turns: int | None


async def make_brief(
    text: str,
    options: TurnOptions,
    calls: ModelCalls,
    tools: tuple[Toolbox, Servers | None],
    told: tuple[tuple[Message, ...], Memory | None],
) -> Brief:
    """Make the brief of a turn with `text`. `tools`: ours, and servers'; `told`: the history, and
    the memory. Raises ValueError for an unknown zone."""
    (toolbox, servers), (history, memory) = tools, told
    own = calls.settings.agent
    more = servers.list_offered(()) if servers is not None else ()
    brief = Brief(
        text=text,
        system=options.system or system_prompt(small=calls.small),
        model=options.model,
        tools=(*toolbox.names, *(spec.name for spec in more)),
        more=more,
        reach=() if servers is not None else None,
        workspace=options.workspace,
        max_rounds=options.rounds or own.max_rounds,
        max_turns=options.turns or own.max_turns,
        max_replans=own.max_replans,
        step_rounds=own.step_rounds,
        room=calls.limits,
        most_observed=calls.most_observed,
        route="planned"
        if options.plans and classify(text, "task", own.short_words) == "complex"
        else "simple",
    )
    if options.profile:
        kit = Kit(lines=toolbox.lines, servers=servers or Servers(()), sets=Toolsets())
        brief = apply_choice(brief, kit, options.profile, ())
    if memory is not None and not memory.off and (kept := block(await memory.read(), history)):
        brief = brief.append(kept, text)
    if options.zone:
        around = Surroundings(now=describe_time(ambient.now(), options.zone))
        brief = brief.append(render_surroundings(around, reversed(history)), text)
    return brief
