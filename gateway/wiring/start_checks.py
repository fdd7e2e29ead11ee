"""Checks of settings against what they name: commands, skills, prices, secrets of hooks."""

from collections.abc import Callable, Iterable

from agent_core.models.provider_settings import PRICES
from agent_core.models.tiers import Models
from agent_core.settings import TIERS, ModelSettings
from agent_core.skills.built_in.all import built_in
from gateway.access.policy import COMMAND_RIGHTS
from gateway.declaration import SettingsError
from gateway.features.jobs.hooks import check_secrets
from gateway.services.vault import Vault
from gateway.settings import Settings
from gateway.wiring.features import load_features

SKILLS = "skills"
"""The folder of skills without code, in the data folder."""


def find_faults(settings: Settings, models: ModelSettings) -> list[str]:
    """Find what a start would refuse besides; a message for each part."""
    checks: tuple[Callable[[], object], ...] = (
        lambda: check_commands(settings),
        lambda: built_in(models, settings.home / SKILLS),
        lambda: check_prices(models, Models(models)),
        lambda: check_secrets(Vault(settings.home)),
    )
    found = []
    for check in checks:
        try:
            check()
        except SettingsError as error:
            found.append(str(error))
    return found


def check_commands(settings: Settings) -> None:
    """SettingsError for commands that cannot be, and for rights to no command."""
    commands = load_features(settings.plugins, settings.quick).commands
    for name in settings.policy.rights:
        if name not in commands:
            mend = f"there is no command /{name}; there are {', '.join(commands)}."
            raise COMMAND_RIGHTS.error(name, mend)


def check_prices(settings: ModelSettings, models: Models, names: Iterable[str] = ()) -> None:
    """Raise SettingsError if money is limited and a price is not known; by default of all models
    that are set."""
    if not settings.agent.limits.any or models.demo:
        return
    for name in names or (*TIERS, *settings.fallbacks):
        provider, _, model = models.describe(name).partition("/")
        if models.catalog.price(provider, model) is None:
            why = "its price is not known, and a BUDGET_… setting needs it"
            raise PRICES.error(f"{provider}/{model}", f"{why}; set {PRICES.name}.")
