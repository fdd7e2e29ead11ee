"""The states of an agent. Light: it is imported with `Agent`, before any turn is wanted."""

from enum import StrEnum


class AgentState(StrEnum):
    """The state of an agent. After a turn that used up its rounds it is IDLE again, with a summary
    for an answer; after any other it is FINISHED, or ERROR if there is no answer."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    ERROR = "ERROR"
