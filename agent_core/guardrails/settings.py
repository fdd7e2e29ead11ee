"""Settings of the guardrails: what is scanned, and what becomes of what a scanner finds."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from agent_core.config.declaration import Env, Setting, SettingTables
from agent_core.config.kinds import Choice, WholeNumber, parse_switch

Action = Literal["block", "warn", "log"]
PersonalAction = Literal["off", "redact", "block", "warn", "log"]
ModelScanner = Literal["auto", "off", "on"]
ScannerName: TypeAlias = Literal[
    "injection", "jailbreak", "harmful", "toxic", "personal", "url", "code", "judge"
]
_MEND = "use block, warn or log."

ENABLED = Setting("GUARDRAILS_ENABLED", True, parse_switch, "`off`: nothing is scanned")
INPUT = Setting(
    "GUARDRAILS_INPUT_ENABLED", True, parse_switch, "messages are scanned before a model reads them"
)
OUTPUT = Setting(
    "GUARDRAILS_OUTPUT_ENABLED",
    True,
    parse_switch,
    "answers are scanned by sentences; from a word on that could matter, a sentence is seen once "
    "it "
    "is scanned",
)
TOOL = Setting(
    "GUARDRAILS_TOOL_ENABLED",
    True,
    parse_switch,
    "the URLs and the commands and code of tool calls are scanned before they run",
)
ACTION: Setting[Action] = Setting(
    "GUARDRAILS_VIOLATION_ACTION",
    "block",
    Choice(words=get_args(Action), mend=_MEND),
    "what becomes of a finding where its scanner has no setting of its own. `block`: the message "
    "is "
    "not answered, the answer not shown, the call not run. `warn`: it is, with a word about it; a "
    "call asks a person first. `log`: the log alone says so",
)
TIMEOUT = Setting(
    "GUARDRAILS_TIMEOUT_MS",
    500,
    WholeNumber(least=10, most=60_000),
    "milliseconds that a scan may take, of CPU time where rules alone scan. Later than that a call "
    "asks a person, a message is marked, and an answer is judged by the rules that need no model",
)


def _declare(scanner: str, default: Action | None, about: str) -> Setting[Action | None]:
    words: Choice[Action] = Choice(words=get_args(Action), mend=_MEND)
    shown = "as `GUARDRAILS_VIOLATION_ACTION`" if default is None else None
    return Setting(
        f"GUARDRAILS_{scanner}_ACTION", default, words, about, default_text=shown or f"`{default}`"
    )


INJECTION = _declare(
    "INJECTION", "warn", "messages that read as orders against the agent's own, in eight languages"
)
JAILBREAK = _declare("JAILBREAK", "warn", "messages that ask the agent to drop its limits")
HARMFUL = _declare(
    "HARMFUL", None, "answers with directions for weapons, drugs, malware, self-harm"
)
TOXIC = _declare("TOXIC", None, "answers with threats and hate")
URL = _declare("URL", None, "calls with a URL of a file, or of this machine or network")
CODE = _declare(
    "CODE", "warn", "commands and code that wipe a disk, breed processes, or run a download"
)
PERSONAL: Setting[PersonalAction] = Setting(
    "GUARDRAILS_PERSONAL_DATA",
    "off",
    Choice(words=get_args(PersonalAction), mend="use off, redact, block, warn or log."),
    "personal data in answers: cards, accounts, e-mail, phone, national ids. `redact`: a word in "
    "brackets stands for each",
)
LLM_GUARD: Setting[ModelScanner] = Setting(
    "GUARDRAILS_LLM_GUARD",
    "auto",
    Choice(words=get_args(ModelScanner), mend="use auto, off or on."),
    "llm-guard's injection and toxicity models. `auto`: where it is installed; `on`: an error "
    "where "
    "it is not",
)
PRESIDIO: Setting[ModelScanner] = Setting(
    "GUARDRAILS_PRESIDIO",
    "auto",
    Choice(words=get_args(ModelScanner), mend="use auto, off or on."),
    "presidio's recognisers beside our own for `GUARDRAILS_PERSONAL_DATA`. `auto`: where it is "
    "installed; `on`: an error where it is not",
)
JUDGE = Setting(
    "GUARDRAILS_JUDGE",
    False,
    parse_switch,
    "`on`: a FLASH call judges each message for injection too; it counts as a model call",
)
OWN = (INJECTION, JAILBREAK, HARMFUL, TOXIC, URL, CODE)
TABLES: SettingTables = {
    "guardrails": (
        *(ENABLED, INPUT, OUTPUT, TOOL, ACTION, TIMEOUT),
        *(*OWN, PERSONAL, LLM_GUARD, PRESIDIO, JUDGE),
    )
}


class GuardrailSettings(Struct, frozen=True, kw_only=True):
    """What is set about guardrails. `limit`: seconds of one scan."""

    input: bool = True
    output: bool = True
    tool: bool = True
    injection: Action = "warn"
    jailbreak: Action = "warn"
    harmful: Action = "block"
    toxic: Action = "block"
    url: Action = "block"
    code: Action = "warn"
    personal: PersonalAction = "off"
    llm_guard: ModelScanner = "auto"
    presidio: ModelScanner = "auto"
    judge: bool = False
    limit: float = 0.5

    @classmethod
    def read(cls, env: Env) -> "GuardrailSettings":
        """The settings in `env`; raises SettingsError."""
        enabled, action = ENABLED.read(env), ACTION.read(env)
        injection, jailbreak, harmful, toxic, url, code = (
            setting.read(env) or action for setting in OWN
        )
        return cls(
            input=enabled and INPUT.read(env),
            output=enabled and OUTPUT.read(env),
            tool=enabled and TOOL.read(env),
            injection=injection,
            jailbreak=jailbreak,
            harmful=harmful,
            toxic=toxic,
            url=url,
            code=code,
            personal=PERSONAL.read(env),
            llm_guard=LLM_GUARD.read(env),
            presidio=PRESIDIO.read(env),
            judge=enabled and JUDGE.read(env),
            limit=TIMEOUT.read(env) / 1_000,
        )
