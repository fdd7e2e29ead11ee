"""The models that a conversation or a job may use, and why one cannot be."""

from agent_core.models.provider_settings import KEYS
from agent_core.models.windows import ask_models, find_nearest, has_model, list_talking
from agent_core.settings import TIERS, ModelSettings
from gateway.texts import say

MAX_LISTED = 20
"""Models named where nobody asked for one."""


async def list_models(settings: ModelSettings) -> tuple[str, ...]:
    """The tiers, then models that the providers which are set list, by provider/model."""
    return (*TIERS, *(await _list_named(settings))[:MAX_LISTED])


async def find_problem(
    settings: ModelSettings, name: str, language: str
) -> tuple[str, tuple[str, ...]]:
    """Return why there is no model `name`, "" if there is one, and the models that its provider
    lists. Raises SettingsError."""
    every = () if settings.knows(name) else (*TIERS, *await _list_named(settings))
    if meant := find_nearest(name, every):
        return say("model_unknown", language, model=name, near=meant), ()
    provider, _, model = name.partition("/")
    if name in TIERS:
        return "", ()
    if not settings.knows(name):
        return say("model_nameless", language, model=name), ()
    if provider in KEYS and provider not in settings.keys:
        fields = {"provider": provider, "model": model, "setting": KEYS[provider].name}
        return say("model_keyless", language, **fields), ()
    listed = await ask_models(settings.endpoint(provider, "model"))
    if not listed or has_model(listed, model):
        return "", listed
    near = find_nearest(model, listed, 0.3)
    fields = {"provider": provider, "model": model, "near": near}
    return say("model_near" if near else "model_none", language, **fields), listed


async def _list_named(settings: ModelSettings) -> tuple[str, ...]:
    return await list_talking({one: settings.endpoint(one) for one in settings.configured})
