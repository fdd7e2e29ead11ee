"""What an agent is at. Light: it is imported with `Agent`, before any turn is wanted."""

from enum import StrEnum


class AgentState(StrEnum):
    """What an agent is at. After a turn that used up its rounds it is IDLE again, with a summary
    for an answer; after any other it is FINISHED, or ERROR where no answer came."""

    IDLE = "IDLE"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    ERROR = "ERROR"
