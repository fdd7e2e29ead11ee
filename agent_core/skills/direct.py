"""Modes whose first round is a skill: its call is made without asking a model."""

import re

import msgspec

from agent_core import ambient
from agent_core.context.data_marks import strip_marks
from agent_core.messages import ToolCall
from agent_core.models.port import ModelReply, OnDelta, Usage
from agent_core.skills.tools import INVOKE

SKILLS: dict[str, tuple[str, str]] = {
    "app": ("app_builder", "description"),
    "code": ("code_generation", "task"),
    "image": ("image_generation", "prompt"),
    "slide": ("slide_generation", "topic"),
}
"""The skill of a mode, and its parameter for the person's words."""
MAX_REQUEST = 8_000
"""Characters of the person's words for the skill; the model reads all of them."""
_NAMED = re.compile(r"\A\[[^\]\n]+\] ")


def skill_of(mode: str) -> str:
    """Return the skill that the mode calls first, "" for none."""
    return SKILLS.get(mode, ("", ""))[0]


def direct(mode: str, said: str, group: bool = False) -> ToolCall | None:
    """Return the first call of a turn in `mode`, None if the model begins. In a `group` the
    author's name precedes the words; the skill does not need it."""
    text = (_NAMED.sub("", said) if group else said).strip()[:MAX_REQUEST]
    if mode not in SKILLS or not text:
        return None
    if mode == "image":  # it would be drawn
        text = strip_marks(text)
    skill, param = SKILLS[mode]
    arguments = {"skill_id": skill, "params": {param: text}}
    return ToolCall(
        id=f"direct-{ambient.new_id()[-12:]}",
        name=INVOKE,
        arguments=msgspec.json.encode(arguments).decode(),
    )


async def make_reply(call: ToolCall, on_delta: OnDelta) -> ModelReply:
    """Make an answer that holds `call`, without a model, at no cost."""
    usage = Usage(cost=0.0)
    return ModelReply(parts=(call,), model="", provider="", finish="tool_calls", usage=usage)
