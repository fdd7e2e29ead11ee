"""Memory: a turn begins with what is remembered; people look at it and forget it."""

from gateway.commands.own import own_command
from gateway.feature import Feature
from gateway.memory.commands import memory
from gateway.memory.recall import recall

FEATURE = Feature(name="memory", commands=(own_command("memory", memory),), on_begin=(recall,))
