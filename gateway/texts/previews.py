"""The fixed texts of the pages in front of a previewed app, keyed by `agent_core.phrases`, whose
English they take.

Vocabulary: imports nothing of ours but that.
"""

from agent_core.phrases import PREVIEWS
from agent_core.phrases import PreviewKey as PreviewKey

ENGLISH: dict[PreviewKey, str] = PREVIEWS

GERMAN: dict[PreviewKey, str] = {
    "preview_title": "Vorschau",
    "preview_newest": "Öffnen Sie den neuesten Link aus dem Chat.",
    "preview_open": "Vorschau öffnen",
    "preview_old": "Dieser Link wurde schon geöffnet oder ist alt. Steht im Chat kein neuerer, "
    "bitten Sie dort um einen.",
    "preview_not_kept": "Das Gateway kann gerade nicht speichern, dass dieser Link geöffnet "
    "wird. Versuchen Sie es in einer Weile noch einmal.",
    "preview_closed": "Diese Vorschau ist hier nicht mehr geöffnet.",
    "preview_stopped": "Das wurde beendet: Was in einer Sandbox läuft, endet "
    "spätestens {minutes} Minuten nach der letzten Nutzung, mit einem Stopp und mit dem Gateway. "
    "Bitten Sie im Chat darum, es wieder zu starten.",
    "preview_down": "Das wurde wieder gestartet, kam aber nicht hoch. Bitten Sie im Chat darum, "
    "es anzusehen und zu starten.",
    "preview_silent": "Hier antwortet nichts. Bitten Sie im Chat darum, es anzusehen und zu "
    "starten.",
}
