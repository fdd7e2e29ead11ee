"""The settings of models, kept apart because they are imported after the first poll went out."""

from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings
from agent_core.tools import hooks
from gateway.settings import Settings

PRICES = "prices.json"
"""A refreshed price table in the data folder."""


def read_models(settings: Settings) -> ModelSettings:
    """Read and check the settings of models. SettingsError for a tier that cannot work."""
    found = ModelSettings.read(settings.env)
    found = found.model_copy(update={"price_file": str(settings.home / PRICES)})
    Models(found).check()
    found.listener()
    hooks.load(found.tools.hooks)
    return found
