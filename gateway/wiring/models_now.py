"""The available models: as set now, or of a server found on this machine."""

import logging

from agent_core.models.discovery import discover
from agent_core.settings import ModelSettings
from gateway.model_settings import read_models
from gateway.settings import Settings
from gateway.wiring.plugin_settings import find_declared

log = logging.getLogger("turnkeeper.assembly")


def read_models_now() -> ModelSettings:
    """Read the settings again, with those that installed features declare. SettingsError."""
    return read_models(Settings.read(declared=find_declared))


async def find_models(settings: Settings) -> ModelSettings:
    """Return the models that are set, otherwise a server on this machine, but never for a
    platform's strangers. SettingsError."""
    models = read_models(settings)
    if not models.empty or settings.bots or not settings.discovery:
        return models
    found = await discover()
    if found is None:
        return models
    log.info("local_model", extra={"server": found.name, "url": found.base_url})
    return models.with_provider(found)
