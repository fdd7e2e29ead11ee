"""A feature of one command: /ping."""

from functools import partial

from gateway.feature import Call, Command, Feature
from turnkeeper_ping.texts import say


async def ping(call: Call) -> str:
    """Answer, with how much waits in this conversation."""
    return say("pong", call.language, waiting=len(call.context.state.queue))


FEATURE = Feature(
    name="ping",
    commands=(Command(name="ping", run=ping, help=partial(say, "help"), least="viewer"),),
)
