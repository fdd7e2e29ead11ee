"""Settings of the guardrails: the scanners, and their actions on findings."""

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

ENABLED = Setting("GUARDRAILS_ENABLED", True, parse_switch, "`off`: disables all scanners")
INPUT = Setting(
    "GUARDRAILS_INPUT_ENABLED", True, parse_switch, "scan messages before a model reads them"
)
OUTPUT = Setting(
    "GUARDRAILS_OUTPUT_ENABLED",
    True,
    parse_switch,
    "scan answers sentence by sentence; a suspicious sentence is shown only after it is scanned",
)
TOOL = Setting(
    "GUARDRAILS_TOOL_ENABLED",
    True,
    parse_switch,
    "scan URLs, commands and code of tool calls before they run",
)
ACTION: Setting[Action] = Setting(
    "GUARDRAILS_VIOLATION_ACTION",
    "block",
    Choice(words=get_args(Action), mend=_MEND),
    "default action for a finding. `block`: the message is not answered, the answer not shown, "
    "or the call not run. `warn`: it is, with a warning; a call needs an approval. `log`: it is "
    "only logged",
)
TIMEOUT = Setting(
    "GUARDRAILS_TIMEOUT_MS",
    500,
    WholeNumber(least=10, most=60_000),
    "time limit of a scan in milliseconds; CPU time for rules. After a timeout a call needs an "
    "approval, a message is marked, and an answer is judged only by the rules that need no model",
)


def _declare(scanner: str, default: Action | None, about: str) -> Setting[Action | None]:
    words: Choice[Action] = Choice(words=get_args(Action), mend=_MEND)
    shown = "as `GUARDRAILS_VIOLATION_ACTION`" if default is None else None
    return Setting(
        f"GUARDRAILS_{scanner}_ACTION", default, words, about, default_text=shown or f"`{default}`"
    )


INJECTION = _declare(
    "INJECTION",
    "warn",
    ("messages with instructions that override the agent's own, in eight languages"),
)
JAILBREAK = _declare("JAILBREAK", "warn", "messages that ask the agent to ignore its limits")
HARMFUL = _declare(
    "HARMFUL", None, "answers with instructions for weapons, drugs, malware or self-harm"
)
TOXIC = _declare("TOXIC", None, "answers with threats or hate")
URL = _declare("URL", None, "calls with a file URL, or a URL on this machine or network")
CODE = _declare(
    "CODE", "warn", "commands and code that wipe a disk, fork without end, or run a download"
)
PERSONAL: Setting[PersonalAction] = Setting(
    "GUARDRAILS_PERSONAL_DATA",
    "off",
    Choice(words=get_args(PersonalAction), mend="use off, redact, block, warn or log."),
    "personal data in answers: payment cards, accounts, e-mail addresses, phone numbers, "
    "national ids. `redact`: replaces each with a placeholder",
)
LLM_GUARD: Setting[ModelScanner] = Setting(
    "GUARDRAILS_LLM_GUARD",
    "auto",
    Choice(words=get_args(ModelScanner), mend="use auto, off or on."),
    "llm-guard's injection and toxicity models. `auto`: if installed; `on`: required",
)
PRESIDIO: Setting[ModelScanner] = Setting(
    "GUARDRAILS_PRESIDIO",
    "auto",
    Choice(words=get_args(ModelScanner), mend="use auto, off or on."),
    "presidio's recognisers in addition to the built-in ones for `GUARDRAILS_PERSONAL_DATA`. "
    "`auto`: if installed; `on`: required",
)
JUDGE = Setting(
    "GUARDRAILS_JUDGE",
    False,
    parse_switch,
    "`on`: a FLASH call also checks each message for injection; it counts as a model call",
)
OWN = (INJECTION, JAILBREAK, HARMFUL, TOXIC, URL, CODE)
TABLES: SettingTables = {
    "guardrails": (
        *(ENABLED, INPUT, OUTPUT, TOOL, ACTION, TIMEOUT),
        *(*OWN, PERSONAL, LLM_GUARD, PRESIDIO, JUDGE),
    )
}


class GuardrailSettings(Struct, frozen=True, kw_only=True):
    """Settings of the guardrails. `limit`: seconds of one scan."""

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
