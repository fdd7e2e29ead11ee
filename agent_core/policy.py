"""What may run, what needs a person, what never runs: verdicts are values."""

from typing import Literal

from msgspec import Struct

from agent_core.questions import Risk

Ruling = Literal["allow", "ask", "deny"]
Mode = Literal["ask", "auto"]


class Verdict(Struct, frozen=True, kw_only=True):
    """What the policy says of one call, and why.

    `rule` names the line of the policy. `digest` binds an approval to the call as it was judged.
    `always` is the narrowest rule that 'always' would store.
    """

    ruling: Ruling
    rule: str
    reason: str
    risk: Risk = "low"
    digest: str = ""
    always: str = ""
    detail: str = ""
