"""Which models there are: what is set now, or a server that was found."""

import logging

from agent_core.models.discovery import discover
from agent_core.settings import ModelSettings
from gateway.model_settings import read_models
from gateway.settings import Settings
from gateway.wiring.plugin_settings import find_declared

log = logging.getLogger("turnkeeper.assembly")


def read_models_now() -> ModelSettings:
    """The settings read again, with what installed features declare. SettingsError."""
    return read_models(Settings.read(declared=find_declared))


async def find_models(settings: Settings) -> ModelSettings:
    """What is set; else a server on this machine, but never for a platform's strangers.
    SettingsError."""
    models = read_models(settings)
    if not models.empty or settings.bots or not settings.discovery:
        return models
    found = await discover()
    if found is None:
        return models
    log.info("local_model", extra={"server": found.name, "url": found.base_url})
    return models.with_provider(found)
