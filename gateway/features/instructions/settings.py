"""The setting about instructions."""

from agent_core.config.declaration import WrongValue
from gateway.declaration import Setting, SettingTables
from gateway.services.operator_instructions import MAX_INSTRUCTIONS


def parse_instructions(text: str) -> str:
    """The text, unless it is too long for every request."""
    if len(text) > MAX_INSTRUCTIONS:
        mend = f"these are {len(text):,} characters; {MAX_INSTRUCTIONS:,} at most."
        raise WrongValue(mend, f"{text[:20]}…")
    return text


INSTRUCTIONS = Setting(
    "AGENT_INSTRUCTIONS",
    "",
    parse_instructions,
    "instructions for the agent in all conversations, at most 8,000 characters; for longer ones "
    "use `instructions.md` in the data folder: [agent.md](agent.md)",
    default_text="nothing",
)
TABLES: SettingTables = {"agent": (INSTRUCTIONS,)}
