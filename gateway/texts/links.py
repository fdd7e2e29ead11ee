"""The fixed texts about what people can open: an app that runs, the browser to watch. Vocabulary:
imports nothing of ours."""

from typing import Literal

LinkKey = Literal[
    "app_shown", "app_open", "app_here", "browser_shown", "browser_watch", "browser_here",
]  # fmt: skip

ENGLISH: dict[LinkKey, str] = {
    "app_shown": "{name} is running. The button opens it once, within half an hour.",
    "app_open": "Open the preview",
    "app_here": "{name} is running. Open it on the gateway's machine: {link}",
    "browser_shown": "The browser can be watched while it is open.",
    "browser_watch": "Watch the browser",
    "browser_here": "The browser can be watched while it is open. Open it on the gateway's "
    "machine: {link}",
}

GERMAN: dict[LinkKey, str] = {
    "app_shown": "{name} läuft. Der Knopf öffnet es einmal, innerhalb einer halben Stunde.",
    "app_open": "Vorschau öffnen",
    "app_here": "{name} läuft. Öffnen Sie es auf dem Rechner des Gateways: {link}",
    "browser_shown": "Dem Browser kann man zusehen, solange er offen ist.",
    "browser_watch": "Dem Browser zusehen",
    "browser_here": "Dem Browser kann man zusehen, solange er offen ist. Öffnen Sie es auf "
    "dem Rechner des Gateways: {link}",
}
