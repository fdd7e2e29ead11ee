"""Settings that installed features declare. Imports nothing unless `PLUGINS` names one."""

from gateway.declaration import Setting


def find_declared(plugins: tuple[str, ...]) -> tuple[Setting[object], ...]:
    """The settings of the features named `plugins`. SettingsError."""
    from gateway.wiring.features import load_features

    features = load_features(tuple(dict.fromkeys(plugins)))
    return tuple(features.settings.values())
