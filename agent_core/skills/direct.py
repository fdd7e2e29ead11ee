"""Modes whose first round is a skill: the call that a model would write is written for it."""

import re

import msgspec

from agent_core import ambient
from agent_core.messages import ToolCall
from agent_core.models.port import ModelReply, OnDelta, Usage
from agent_core.skills.tools import INVOKE

SKILLS: dict[str, tuple[str, str]] = {
    "app": ("app_builder", "description"),
    "code": ("code_generation", "task"),
    "image": ("image_generation", "prompt"),
    "slide": ("slide_generation", "topic"),
}
"""The skill of a mode, and the param that takes what the person said."""
MAX_REQUEST = 8_000
"""Characters of what the person said that the skill is given; the model reads all of it."""
_NAMED = re.compile(r"\A\[[^\]\n]+\] ")


def skill_of(mode: str) -> str:
    """The skill that the mode calls first, "" if it calls none."""
    return SKILLS.get(mode, ("", ""))[0]


def direct(mode: str, said: str, group: bool = False) -> ToolCall | None:
    """The call that a turn in `mode` begins with, None where the model begins. In a `group` the
    writer's name stands before what was said; the skill need not know it."""
    text = (_NAMED.sub("", said) if group else said).strip()[:MAX_REQUEST]
    if mode not in SKILLS or not text:
        return None
    skill, param = SKILLS[mode]
    arguments = {"skill_id": skill, "params": {param: text}}
    return ToolCall(
        id=f"direct-{ambient.new_id()[-12:]}",
        name=INVOKE,
        arguments=msgspec.json.encode(arguments).decode(),
    )


async def make_reply(call: ToolCall, on_delta: OnDelta) -> ModelReply:
    """An answer that holds `call` and that no model was asked for: it costs nothing."""
    usage = Usage(cost=0.0)
    return ModelReply(parts=(call,), model="", provider="", finish="tool_calls", usage=usage)
