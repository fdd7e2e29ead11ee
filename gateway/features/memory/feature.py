"""Memory: turns begin with it; people see it and forget entries."""

from agent_core.events import MemorySaved
from gateway.feature import Feature, on_event, on_press, own_command
from gateway.features.memory.commands import memory, press_entry
from gateway.features.memory.notices import make_notice
from gateway.features.memory.recall import recall
from gateway.messages import PluginPress

FEATURE = Feature(
    name="memory",
    commands=(own_command("memory", memory),),
    presses=(on_press(PluginPress, press_entry),),
    on_begin=(recall,),
    events=(on_event(MemorySaved, make_notice),),
)
