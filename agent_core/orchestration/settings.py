"""Settings of the agent's work: routing, and limits of a turn."""

from typing import Literal, get_args

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import Choice, WholeNumber, parse_dollars, parse_switch

Routing = Literal["rules", "llm"]
COUNT = WholeNumber(least=1, most=10_000)
COUNT_FROM_0 = WholeNumber(most=10_000)

MAX_TURNS = Setting(
    "AGENT_MAX_TURNS",
    90,
    COUNT,
    "maximum number of model calls per turn, including sub-tasks; the model is warned at 70 % "
    "and summarises at the end",
)
MAX_ROUNDS = Setting(
    "AGENT_MAX_STEPS",
    0,
    COUNT,
    "maximum number of rounds of a turn without a plan; a profile may set fewer",
    default_text="as `AGENT_MAX_TURNS`",
)
STEP_ROUNDS = Setting("STEP_MAX_STEPS", 20, COUNT, "maximum number of rounds per step of a plan")
MAX_REPLANS = Setting(
    "MAX_REPLANS", 3, COUNT_FROM_0, "maximum number of replans after failed steps"
)
DEBUG = Setting(
    "AGENT_DEBUG",
    False,
    parse_switch,
    "`on`: shows a turn's context, its route and the verdict on each step among its tool lines",
)
SHORT_WORDS = Setting(
    "CLASSIFIER_SHORT_WORDS",
    12,
    COUNT_FROM_0,
    ("requests of one sentence with at most this many words get no plan"),
)
ROUTING: Setting[Routing] = Setting(
    "ROUTING",
    "rules",
    Choice(words=get_args(Routing), mend="use rules or llm."),
    "`llm`: a FLASH call decides whether a request needs research; the rules decide if it fails "
    "or takes longer than 3 s",
)


def _declare_budget(what: str, about: str) -> Setting[float]:
    return Setting(f"BUDGET_{what}_USD", 0.0, parse_dollars, about, default_text="no limit")


BUDGETS = (
    _declare_budget("TURN", "limit per turn, in dollars"),
    _declare_budget(
        "PERSON",
        "daily limit per person (UTC), across all linked accounts, in dollars",
    ),
    _declare_budget("JOB", "daily limit per job, in dollars"),
    _declare_budget("DAY", "daily limit for everybody together, in dollars"),
)
WORK = (MAX_TURNS, MAX_ROUNDS, STEP_ROUNDS, MAX_REPLANS, DEBUG, SHORT_WORDS, ROUTING)
TABLES: SettingTables = {"agent": WORK, "budgets": BUDGETS}


class Limits(Struct, frozen=True, kw_only=True):
    """Spending limits in US dollars: of one turn, of one person in a day, of one job in a day, of
    all in a day. 0: no limit."""

    turn: float = 0.0
    person: float = 0.0
    job: float = 0.0
    day: float = 0.0

    @property
    def any(self) -> bool:
        """True if there is any limit: then each call's price must be known."""
        return max(self.turn, self.person, self.job, self.day) > 0


class AgentSettings(Struct, frozen=True, kw_only=True):
    """`max_turns`: model calls of one turn with everything it causes. `short_words`: a sentence of
    so many words is simple. `max_rounds`: of a turn without a plan; `step_rounds`: of a step.
    `debug`: people see what a turn gathered, its route and how each step was judged."""

    max_turns: int = MAX_TURNS.default
    max_replans: int = MAX_REPLANS.default
    short_words: int = SHORT_WORDS.default
    max_rounds: int = MAX_TURNS.default
    step_rounds: int = STEP_ROUNDS.default
    routing: Routing = ROUTING.default
    debug: bool = DEBUG.default
    limits: Limits = Limits()

    @classmethod
    def read(cls, env: Env) -> "AgentSettings":
        """The settings in `env`; raises SettingsError."""
        turn, person, job, day = (setting.read(env) for setting in BUDGETS)
        return cls(
            max_turns=MAX_TURNS.read(env),
            max_replans=MAX_REPLANS.read(env),
            short_words=SHORT_WORDS.read(env),
            max_rounds=MAX_ROUNDS.read(env) or MAX_TURNS.read(env),
            step_rounds=STEP_ROUNDS.read(env),
            routing=ROUTING.read(env),
            debug=DEBUG.read(env),
            limits=Limits(turn=turn, person=person, job=job, day=day),
        )
