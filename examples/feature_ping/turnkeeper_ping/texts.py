"""What people read of /ping, by language."""

ENGLISH = {
    "help": "ask whether anybody is there",
    "pong": "Pong. Messages that wait here: {waiting}.",
}
GERMAN = {
    "help": "fragen, ob jemand da ist",
    "pong": "Pong. Nachrichten, die hier warten: {waiting}.",
}


def say(key: str, language: str, **values: object) -> str:
    """The text `key` in the person's language, English where there is none."""
    catalogue = GERMAN if language[:2].lower() == "de" else ENGLISH
    return catalogue[key].format(**values)
