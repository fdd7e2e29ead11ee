"""The fixed texts about failures of the agent, keyed by `agent_core.phrases`, whose English they
take.

Vocabulary: imports nothing of ours but that.
"""

from agent_core.phrases import FAULTS
from agent_core.phrases import FaultKey as FaultKey

ENGLISH: dict[FaultKey, str] = FAULTS

GERMAN: dict[FaultKey, str] = {
    "fault_key": "{name} hat den Schlüssel abgelehnt ({status}). Prüfen Sie {setting}.",
    "fault_credit": "{name} meldet, dass kein Guthaben mehr da ist. Prüfen Sie das Konto.",
    "fault_rate": "{name} nimmt im Augenblick nicht mehr Anfragen an (429). Versuchen Sie es "
    "später noch einmal oder nehmen Sie ein anderes Modell.",
    "fault_rate_until": "{name} nimmt im Augenblick nicht mehr Anfragen an (429). Versuchen Sie es "
    "in {time} noch einmal oder nehmen Sie ein anderes Modell.",
    "fault_late": "{name} hat zu lange gebraucht (408). Versuchen Sie es noch einmal.",
    "fault_down": "{name} ist überlastet oder ausgefallen ({status}). Versuchen Sie es später noch "
    "einmal.",
    "fault_down_until": "{name} ist überlastet oder ausgefallen ({status}). Versuchen Sie es in "
    "{time} noch einmal oder nehmen Sie ein anderes Modell.",
    "fault_overflow": (
        "Diese Unterhaltung ist länger, als das Modell von {name} fasst, auch gekürzt. Beginnen "
        "Sie eine neue, wählen Sie ein Modell, das mehr fasst, oder starten Sie seinen Server mit "
        "größerem Kontext."
    ),
    "fault_truncated": (
        "{name} hat den Anfang dieser Unterhaltung wortlos weggelassen: Das Modell bekommt dort "
        "etwa {tokens} Tokens. Ältere Nachrichten werden jetzt zusammengefasst. Für mehr starten "
        "Sie Ollama mit OLLAMA_CONTEXT_LENGTH=16384, oder wählen Sie ein Modell, das mehr fasst."
    ),
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
    "fault_endless": "{name} hat eine Antwort ohne Ende gesendet; sie wurde abgebrochen. Versuchen "
    "Sie es noch einmal oder nehmen Sie ein anderes Modell.",
    "fault_cut": "{name} hat die Antwort abgebrochen. Versuchen Sie es noch einmal oder nehmen Sie "
    "ein anderes Modell.",
    "fault_error": "{name} hat mit einem Fehler abgebrochen: {detail}. Versuchen Sie es noch "
    "einmal oder nehmen Sie ein anderes Modell.",
    "fault_empty": "{name} hat eine leere Antwort gegeben. Versuchen Sie es noch einmal oder "
    "nehmen Sie ein anderes Modell.",
    "fault_declined": "{name} hat sich geweigert, darauf zu antworten. Fragen Sie anders, oder "
    "nehmen Sie ein anderes Modell.",
    "fault_senseless": "{name} hat Unverständliches gesendet. Versuchen Sie es noch einmal oder "
    "nehmen Sie ein anderes Modell.",
    "fault_stuck": "So kam ich nicht weiter. Fragen Sie auf andere Weise.",
    "fault_long_call": "{name} kam mitten in einem Aufruf immer wieder an seine Ausgabegrenze, "
    "ausgeführt wurde nichts. Verlangen Sie weniger auf einmal, oder nehmen Sie ein Modell, das "
    "länger schreibt.",
    "fault_thought_out": "{name} hat seine Ausgabegrenze ohne ein Wort Antwort verbraucht. "
    "Verlangen Sie weniger auf einmal, lassen Sie es weniger nachdenken, oder nehmen Sie ein "
    "anderes Modell.",
    "fault_page": "Unter der Adresse von {name} ist eine Webseite und kein Modell. Prüfen Sie die "
    "Adresse; die meisten enden auf v1.",
    "fault_guard_message": "Diese Nachricht bleibt ohne Antwort: Eine Leitplanke hat {what} darin "
    "gefunden. Schreiben Sie sie anders.",
    "fault_guard_answer": "Die Antwort wird nicht gezeigt: Eine Leitplanke hat {what} darin "
    "gefunden. Fragen Sie auf andere Weise.",
}
