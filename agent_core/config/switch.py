"""Settings that are on or off: one set of words for all of them."""

from collections.abc import Callable, Mapping

WORDS = {
    **dict.fromkeys(("on", "true", "yes", "1"), True),
    **dict.fromkeys(("off", "false", "no", "0"), False),
}
MEND = "write on or off."


def read_switch(
    env: Mapping[str, str],
    name: str,
    default: bool,
    wrong: Callable[[str, str, str], Exception],
) -> bool:
    """The setting `name` in `env`, `default` if it is empty. Any other word raises what `wrong`
    makes of the setting, its value and the mend."""
    text = env.get(name, "").strip()
    if not text:
        return default
    if (known := WORDS.get(text.lower())) is None:
        raise wrong(name, text, MEND)
    return known
