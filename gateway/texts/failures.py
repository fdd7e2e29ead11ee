"""The fixed texts about what failed in the agent. Vocabulary: imports nothing of ours.

They are keyed by `agent_core.phrases`, whose English they repeat.
"""

from typing import Literal

FaultKey = Literal[
    "fault_key", "fault_credit", "fault_rate", "fault_late", "fault_down", "fault_refused",
    "fault_silent", "fault_unreachable", "fault_uncallable", "fault_characters", "fault_stopped",
    "fault_cut", "fault_error", "fault_empty", "fault_senseless", "fault_stuck",
]  # fmt: skip

ENGLISH: dict[FaultKey, str] = {
    "fault_key": "{name} refused the key ({status}). Check {setting}.",
    "fault_credit": "{name} reports that there is no credit left (402). Check the account.",
    "fault_rate": "{name} limits the rate (429). Try again later or use another model.",
    "fault_late": "{name} took too long (408). Try again.",
    "fault_down": "{name} is overloaded or down ({status}). Try again later.",
    "fault_refused": "{name} did not accept the request ({status}): {detail}",
    "fault_silent": "{name} sent nothing for {seconds}. Try again later.",
    "fault_unreachable": "{name} cannot be reached at {host}. Check the network and the base URL.",
    "fault_uncallable": "{name} cannot be called: {detail}. Check key and base URL.",
    "fault_characters": "The conversation holds broken characters.",
    "fault_stopped": "{name} stopped sending. Try again, or use another model.",
    "fault_cut": "{name} broke off its answer. Try again, or use another model.",
    "fault_error": "{name} broke off with an error: {detail}. Try again, or use another model.",
    "fault_empty": "{name} gave an empty answer. Try again, or use another model.",
    "fault_senseless": "{name} sent something that is not {detail}. Try again, or use another "
    "model.",
    "fault_stuck": "I made no progress ({detail}). Ask in another way.",
}

GERMAN: dict[FaultKey, str] = {
    "fault_key": "{name} hat den Schlüssel abgelehnt ({status}). Prüfen Sie {setting}.",
    "fault_credit": "{name} meldet, dass kein Guthaben mehr da ist (402). Prüfen Sie das Konto.",
    "fault_rate": "{name} nimmt im Augenblick nicht mehr Anfragen an (429). Versuchen Sie es "
    "später noch einmal oder nehmen Sie ein anderes Modell.",
    "fault_late": "{name} hat zu lange gebraucht (408). Versuchen Sie es noch einmal.",
    "fault_down": "{name} ist überlastet oder ausgefallen ({status}). Versuchen Sie es später noch "
    "einmal.",
    "fault_refused": "{name} hat die Anfrage nicht angenommen ({status}): {detail}",
    "fault_silent": "{name} hat {seconds} lang nichts gesendet. Versuchen Sie es später noch "
    "einmal.",
    "fault_unreachable": "{name} ist unter {host} nicht erreichbar. Prüfen Sie das Netz und die "
    "Adresse.",
    "fault_uncallable": "{name} lässt sich nicht aufrufen: {detail}. Prüfen Sie Schlüssel und "
    "Adresse.",
    "fault_characters": "In der Unterhaltung stehen beschädigte Zeichen.",
    "fault_stopped": "{name} hat aufgehört zu senden. Versuchen Sie es noch einmal oder nehmen Sie "
    "ein anderes Modell.",
    "fault_cut": "{name} hat die Antwort abgebrochen. Versuchen Sie es noch einmal oder nehmen Sie "
    "ein anderes Modell.",
    "fault_error": "{name} hat mit einem Fehler abgebrochen: {detail}. Versuchen Sie es noch "
    "einmal oder nehmen Sie ein anderes Modell.",
    "fault_empty": "{name} hat eine leere Antwort gegeben. Versuchen Sie es noch einmal oder "
    "nehmen Sie ein anderes Modell.",
    "fault_senseless": "{name} hat Unverständliches gesendet. Versuchen Sie es noch einmal oder "
    "nehmen Sie ein anderes Modell.",
    "fault_stuck": "So kam ich nicht weiter. Fragen Sie auf andere Weise.",
}
