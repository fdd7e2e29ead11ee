"""Memory: a turn begins with what is remembered; people look at it and forget it."""

from agent_core.events import MemorySaved
from gateway.feature import Feature, on_event, own_command
from gateway.features.memory.commands import memory
from gateway.features.memory.notices import make_notice
from gateway.features.memory.recall import recall

FEATURE = Feature(
    name="memory",
    commands=(own_command("memory", memory),),
    on_begin=(recall,),
    events=(on_event(MemorySaved, make_notice),),
)
