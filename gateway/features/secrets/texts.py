"""Texts about secrets, by language."""

from pathlib import Path
from typing import Literal

from gateway.texts.languages import Texts

VaultKey = Literal[
    "secret_none", "secret_list", "secret_never", "secret_gone", "secret_unknown", "command_secret",
]  # fmt: skip

ENGLISH: dict[VaultKey, str] = {
    "secret_none": "No secrets are available here. To add one, on the gateway's machine: "
    "turnkeeper secret set NAME {address}",
    "secret_list": "Secrets available to commands here: {names}. Write $NAME in your request; "
    "each use needs approval. {/secret remove …} NAME removes one. To add one, on the gateway's "
    "machine: turnkeeper secret set NAME {address}",
    "secret_never": "Never write a secret in a chat. If you did, delete the message and change "
    "the secret. To add one, on the gateway's machine: turnkeeper secret set NAME {address}",
    "secret_gone": "{name} was removed here.",
    "secret_unknown": "There is no secret {name} here.",
    "command_secret": "Show which secrets commands may use here",
}

DATA = Path(__file__).parent / "data"

GERMAN: dict[VaultKey, str] = {
    "secret_none": "Befehle benutzen hier keine Geheimnisse. Hinzufügen auf der Maschine des "
    "Gateways: turnkeeper secret set NAME {address}",
    "secret_list": "Befehle können hier bekommen: {names}. Schreiben Sie $NAME in das, was der "
    "Befehl tun soll; Sie werden jedes Mal gefragt. {/secret remove …} NAME nimmt eines weg. "
    "Hinzufügen auf der Maschine des Gateways: turnkeeper secret set NAME {address}",
    "secret_never": "Ein Geheimnis gehört nie in einen Chat. Haben Sie hier eines geschrieben, "
    "löschen Sie die Nachricht und ändern Sie das Geheimnis. Hinzufügen auf der Maschine des "
    "Gateways: turnkeeper secret set NAME {address}",
    "secret_gone": "{name} ist hier vergessen.",
    "secret_unknown": "Hier gibt es kein {name}.",
    "command_secret": "Welche Geheimnisse Befehle hier benutzen dürfen",
}

TEXTS: Texts[VaultKey] = Texts({"en": ENGLISH, "de": GERMAN}, DATA)
