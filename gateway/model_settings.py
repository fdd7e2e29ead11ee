"""The part of the settings that is about models; apart, because it is imported after the first
poll went out."""

from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings
from agent_core.tools import hooks
from gateway.settings import Settings

PRICES = "prices.json"
"""The table of prices that was got anew, in the data folder."""


def read_models(settings: Settings) -> ModelSettings:
    """Read and check what is set of models; SettingsError for what a tier cannot work with."""
    found = ModelSettings.read(settings.env)
    found = found.model_copy(update={"price_file": str(settings.home / PRICES)})
    Models(found).check()
    found.listener()
    hooks.load(found.tools.hooks)
    return found
