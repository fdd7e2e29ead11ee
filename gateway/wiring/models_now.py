"""The models' settings as they are set now, which may differ from those at the start."""

from agent_core.settings import ModelSettings
from gateway.model_settings import read_models
from gateway.settings import Settings
from gateway.wiring.plugin_settings import find_declared


def read_models_now() -> ModelSettings:
    """Read them again, with what installed features declare. SettingsError."""
    return read_models(Settings.read(declared=find_declared))
