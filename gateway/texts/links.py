"""The fixed texts about links: a running app, the browser's live view.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

LinkKey = Literal[
    "app_shown", "app_open", "app_here", "browser_shown", "browser_watch", "browser_here",
    "page_link", "page_link_here", "page_here",
]  # fmt: skip

ENGLISH: dict[LinkKey, str] = {
    "app_shown": "{name} is running. The button opens it once, within half an hour.",
    "app_open": "Open the preview",
    "app_here": "{name} is running. Open it on the gateway's machine: {link}",
    "browser_shown": "The browser can be watched while it is open.",
    "browser_watch": "Watch the browser",
    "browser_here": "The browser can be watched while it is open. Open it on the gateway's "
    "machine: {link}",
    "page_link": "This link signs you in to the page as the same person. It works once, within 10 "
    "minutes. Keep it to yourself: {link}",
    "page_link_here": "This link signs you in to the page as the same person. It works once, "
    "within 10 minutes, on the gateway's machine only; an operator can change that with "
    "TURNKEEPER_PUBLIC_URL. Keep it to yourself: {link}",
    "page_here": "A link cannot sign this account in to the page. Write {/link page} to me from "
    "Telegram, Discord or Slack.",
}

GERMAN: dict[LinkKey, str] = {
    "app_shown": "{name} läuft. Der Knopf öffnet es einmal, innerhalb einer halben Stunde.",
    "app_open": "Vorschau öffnen",
    "app_here": "{name} läuft. Öffnen Sie es auf dem Rechner des Gateways: {link}",
    "browser_shown": "Dem Browser kann man zusehen, solange er offen ist.",
    "browser_watch": "Dem Browser zusehen",
    "browser_here": "Dem Browser kann man zusehen, solange er offen ist. Öffnen Sie es auf "
    "dem Rechner des Gateways: {link}",
    "page_link": "Dieser Link meldet Sie auf der Seite als dieselbe Person an, einmal, innerhalb "
    "von 10 Minuten. Geben Sie ihn niemandem: {link}",
    "page_link_here": "Dieser Link meldet Sie auf der Seite als dieselbe Person an, einmal, "
    "innerhalb von 10 Minuten. Er öffnet sich nur auf dem Rechner des Gateways; wer es betreibt, "
    "kann das mit TURNKEEPER_PUBLIC_URL ändern. Geben Sie ihn niemandem: {link}",
    "page_here": "Dieses Konto kann nicht mit einem Link auf der Seite angemeldet werden. "
    "Schreiben Sie mir {/link page} aus Telegram, Discord oder Slack.",
}
