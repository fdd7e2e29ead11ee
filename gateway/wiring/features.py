"""The features of this gateway: built-in ones, and installed ones named in `PLUGINS`."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from gateway.feature import Command, Feature, Features
from gateway.features.approvals import feature as people
from gateway.features.general import general
from gateway.features.guardrails import feature as guardrails
from gateway.features.history import feature as history
from gateway.features.instructions import feature as instructions
from gateway.features.jobs import feature as jobs
from gateway.features.jobs.zone_command import job_costs
from gateway.features.jobs.zones import find_zone
from gateway.features.memory import feature as memory
from gateway.features.models import feature as models
from gateway.features.plans import feature as plans
from gateway.features.quick.feature import make_feature as make_quick
from gateway.features.quick.settings import QUICK
from gateway.features.secrets import feature as vault
from gateway.features.servers import feature as servers
from gateway.features.spending.feature import make_feature as make_spending
from gateway.features.surroundings.feature import make_feature as make_surroundings
from gateway.settings import PLUGINS, TABLES

GROUP = "turnkeeper.features"
"""The entry points of features from outside: the name of each, and its `Feature`."""

OWN: tuple[Feature, ...] = (
    general.FEATURE,
    people.FEATURE,
    plans.FEATURE,
    history.FEATURE,
    memory.FEATURE,
    jobs.FEATURE,
    models.FEATURE,
    make_spending(job_costs),
    vault.FEATURE,
    instructions.FEATURE,
    guardrails.FEATURE,
    servers.FEATURE,
    make_surroundings(find_zone),
)
OURS = frozenset(setting.name for table in TABLES.values() for setting in table)
"""The names of all settings of the gateway's own."""
MENU = ("start", *(name for _, names in general.GROUPS for name in names))
"""The order of our commands for people."""


@cache
def load_features(
    plugins: tuple[str, ...] = (), quick: tuple[tuple[str, str], ...] = ()
) -> Features:
    """Combine the built-in features, the installed ones named `plugins` and the `quick` commands
    (name, text). SettingsError."""
    found = list(OWN)
    for name in plugins:
        found.append(_load_plugin(name))
        try:
            _check_settings(found[-1])
            Features(found)
        except ValueError as error:
            mend = f"it cannot be used beside the other features: {error}."
            raise PLUGINS.error(name, mend) from None
    if quick:
        found.append(make_quick(dict(quick)))
    try:
        return Features(found, MENU)
    except ValueError as error:
        raise QUICK.error("", f"a command of this name is there already: {error}.") from None


def _check_settings(plugin: Feature) -> None:
    """Check that its settings have its name as prefix, so that they never clash with the
    gateway's."""
    start = f"{plugin.name.upper().replace('-', '_')}_"
    for setting in plugin.settings:
        if not setting.name.startswith(start) or setting.name in OURS:
            raise ValueError(f"its setting {setting.name} must have a name like {start}LIMIT")


def our_commands() -> Mapping[str, Command]:
    """The commands of our own features."""
    return load_features().commands


def _load_plugin(name: str) -> Feature:
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        known = (
            f"installed are: {', '.join(sorted(installed))}" if installed else "none is installed"
        )
        mend = (
            f"no feature of this name is installed ({known}); install its package, or leave it out."
        )
        raise PLUGINS.error(name, mend)
    try:
        feature = installed[name].load()
    except Exception as error:  # boundary: plugin code may fail in any way
        mend = (
            f"it cannot be imported ({type(error).__name__}: {error}); mend or remove its package."
        )
        raise PLUGINS.error(name, mend) from error
    if not isinstance(feature, Feature):
        mend = f"its entry point {installed[name].value} is no gateway.feature.Feature."
        raise PLUGINS.error(name, mend)
    if feature.name != name:
        mend = f"the feature calls itself {feature.name}; its entry point must have that name."
        raise PLUGINS.error(name, mend)
    return feature
