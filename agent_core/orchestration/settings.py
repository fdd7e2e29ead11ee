"""Settings of how the agent works: how a request is routed, and what a turn may take."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from agent_core.config.switch import read_switch
from agent_core.models.providers import SettingsError

Routing = Literal["rules", "llm"]


class Limits(BaseModel):
    """US dollars that may be spent: in one turn, by one person in a day, by one job in a day, by
    all in a day. 0: no limit."""

    model_config = ConfigDict(frozen=True)

    turn: float = 0.0
    person: float = 0.0
    job: float = 0.0
    day: float = 0.0

    @property
    def any(self) -> bool:
        """Something is limited: then each call's price must be known."""
        return max(self.turn, self.person, self.job, self.day) > 0


class AgentSettings(BaseModel):
    """`max_turns`: model calls of one turn with all it brings about. `short_words`: a sentence of
    so many words is simple. `max_rounds`: of a turn without a plan; `step_rounds`: of a step."""

    model_config = ConfigDict(frozen=True)

    max_turns: int = 90
    max_replans: int = 3
    short_words: int = 12
    max_rounds: int = 30
    step_rounds: int = 20
    routing: Routing = "rules"
    debug: bool = False
    """People see what a turn gathered, how it was routed and how each step was judged."""
    limits: Limits = Limits()

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "AgentSettings":
        """The settings in `env`; raises SettingsError."""
        routing = env.get("ROUTING", "").strip().lower() or "rules"
        if routing not in ("rules", "llm"):
            raise SettingsError("ROUTING", routing, "use rules or llm.")
        return cls(
            debug=read_switch(env, "AGENT_DEBUG", False, SettingsError),
            max_turns=_count(env, "AGENT_MAX_TURNS", 90),
            max_replans=_count(env, "MAX_REPLANS", 3, 0),
            short_words=_count(env, "CLASSIFIER_SHORT_WORDS", 12, 0),
            max_rounds=_count(env, "AGENT_MAX_STEPS", 30),
            step_rounds=_count(env, "STEP_MAX_STEPS", 20),
            routing="llm" if routing == "llm" else "rules",
            limits=Limits(
                turn=_dollars(env, "BUDGET_TURN_USD"),
                person=_dollars(env, "BUDGET_PERSON_USD"),
                job=_dollars(env, "BUDGET_JOB_USD"),
                day=_dollars(env, "BUDGET_DAY_USD"),
            ),
        )


def _count(env: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and least <= int(text) <= 10_000):
        raise SettingsError(name, text, f"write a whole number from {least} to 10000.")
    return int(text)


def _dollars(env: Mapping[str, str], name: str) -> float:
    text = env.get(name, "").strip()
    if not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise SettingsError(
            name, text, "write US dollars, such as 2.50; leave it out for no limit."
        )
    return value
