"""What people read of /ping, by language. English holds every text."""

from typing import Literal

from gateway.texts.languages import Texts

PingKey = Literal["command_ping", "pong", "again"]

ENGLISH: dict[PingKey, str] = {
    "command_ping": "ask whether anybody is there",
    "pong": "{word} {count}. Messages that wait here: {waiting}.",
    "again": "Again: {following}",
}
GERMAN: dict[PingKey, str] = {
    "command_ping": "fragen, ob jemand da ist",
    "pong": "{word} {count}. Nachrichten, die hier warten: {waiting}.",
    "again": "Noch einmal: {following}",
}
TEXTS: Texts[PingKey] = Texts({"en": ENGLISH, "de": GERMAN})
