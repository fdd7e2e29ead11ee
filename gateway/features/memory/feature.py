"""Memory: a turn begins with what is remembered; people look at it and forget it."""

from gateway.feature import Feature, own_command
from gateway.features.memory.commands import memory
from gateway.features.memory.recall import recall

FEATURE = Feature(name="memory", commands=(own_command("memory", memory),), on_begin=(recall,))
