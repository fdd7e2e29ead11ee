"""The page's own words by language, and the page filled with them.

The words of cards come from `gateway.texts`, as on every platform. The page's script gets its words
with the page, in its `<meta name="words">`.
"""

import html
import re
from functools import cache
from pathlib import Path

import msgspec

from adapters.web.gate import UPLOAD_BYTES
from gateway.texts import Key, say
from gateway.texts.languages import Texts, choose_accepted, reduce_language

PAGE = Path(__file__).parent / "static" / "index.html"
FIELD = re.compile(r"\{\{(\w+)\}\}")
CARDS: tuple[Key, ...] = (
    "ask_one", "ask_many", "asked_by", "always_covers", "here_covers", "both_cover",
    "risk_low", "risk_medium", "risk_high",
    "line_failed", "line_denied", "line_stopped", "line_unknown", "your_answer", "expired",
    "something_else",
    "cancelled", "jobs_none", "jobs_never", "jobs_active", "jobs_paused", "jobs_ended", "jobs_next",
    "jobs_last", "jobs_run", "jobs_pause", "jobs_resume", "jobs_edit", "jobs_history",
    "jobs_delete", "jobs_with", "jobs_delivered", "jobs_not_delivered", "jobs_tried",
)  # fmt: skip
"""Texts of all platforms that the page uses."""

ENGLISH: dict[str, str] = {
    "skip": "Skip to the message field",
    "conversations": "Conversations",
    "new": "New conversation",
    "search": "Search conversations",
    "none_found": "Nothing found. Titles and messages were searched.",
    "signed_in_as": "Signed in as {person}",
    "theme": "Appearance: {theme}",
    "theme_auto": "system",
    "theme_light": "light",
    "theme_dark": "dark",
    "keys": "Keys A and D decide: {state}",
    "keys_on": "on",
    "keys_off": "off",
    "earlier": "Show earlier messages",
    "empty_title": "What can I do for you?",
    "empty_text": "Write below. I show what I do as I do it, and ask before anything with "
    "consequences.",
    "what_can_you": "What can you do?",
    "show_plan": "A plan",
    "try_plan": "Make a plan: first list the files here, then write a note about them to plan.txt, "
    "and finally read it again and correct it.",
    "show_approval": "An approval",
    "try_approval": "Turn on format on save for this folder: write it to .vscode/settings.json.",
    "show_job": "A job",
    "try_job": "Every weekday at 9:00, tell me which files are here.",
    "messages": "Messages",
    "later": "Pending messages",
    "to_end": "To the newest message",
    "compose": "Write a message",
    "message": "Message",
    "attach": "Attach files",
    "attached": "Attached files",
    "drop": "Drop the files to attach them",
    "stop": "Stop",
    "send": "Send",
    "commands": "Commands",
    "no_script": "This page needs JavaScript. The HTTP API is described at /api/openapi.json.",
    "running": "Working",
    "waiting": "Waiting for you",
    "lost": "Connection lost. Reconnecting.",
    "no_gateway": "The gateway does not answer. Check that it is running; nothing was lost here.",
    "odd_answer": "The gateway answered {status}. Try again.",
    "too_old": "This page is outdated. Reload it.",
    "waits": "Pending",
    "sending": "Sending",
    "edit": "Edit",
    "withdraw": "Withdraw",
    "save": "Save",
    "cancel": "Cancel",
    "edit_message": "Edit the pending message",
    "still_uploading": "A file is still uploading. Send again in a moment.",
    "not_uploaded": "{name} did not arrive. Try again, or remove it.",
    "upload_again": "Try again",
    "too_large": "{name} is larger than {limit} MB. Send a smaller one.",
    "empty_file": "{name} is empty or a folder. Choose a file.",
    "remove": "Remove {name}",
    "uploading": "{percent} %",
    "what_was_done": "What was done",
    "output": "Output",
    "arguments": "What will run",
    "details": "Details",
    "add_reason": "Add a note",
    "reason": "Reason",
    "answer": "Answer",
    "question": "A question",
    "denied": "Denied",
    "approved": "Approved",
    "answered": "Answered",
    "plan": "Plan",
    "plan_open": "Plan. Shall I start?",
    "progress": "{done} of {all} {all:step|steps} done",
    "step_pending": "to do",
    "step_running": "in progress",
    "step_done": "done",
    "step_failed": "failed",
    "step_skipped": "skipped",
    "line_running": "running",
    "line_done": "done",
    "line_waiting": "waiting for a decision",
    "file": "File",
    "files": "Files",
    "image": "Image: ",
    "download": "Download",
    "report": "Report",
    "copy": "Copy",
    "copied": "Copied",
    "again": "Answer again",
    "edit_asked": "Edit and send again",
    "gone_undone": "Undone: {text}",
    "gone_retried": "Replaced: {text}",
    "jobs": "Jobs",
    "model": "Model",
    "rename": "Rename",
    "discard": "Delete",
    "discard_sure": "Press again to delete it for good",
    "removed": "This conversation was deleted.",
    "discard_busy": "Something is running here, or a job reports here. Stop it, or delete the job "
    "first.",
    "close": "Close",
    "job_run": "{title} is running now; its report will appear in its chat.",
    "job_pause": "{title} is paused.",
    "job_resume": "{title} is resumed.",
    "job_delete": "{title} was deleted.",
    "job_idle": "Nothing was changed: {title} is already running or in that state, or is defined "
    "in jobs.toml.",
    "job_ask": "Press again to delete {title} with its history.",
    "job_sure": "Delete permanently",
    "job_edit": "Change the job {title}: ",
    "job_title": "Title",
    "job_schedule": "When",
    "job_zone": "Time zone",
    "job_model": "Model",
    "job_profile": "Profile",
    "job_tools": "Tools",
    "job_prompt": "What to do",
    "job_words": "In words",
    "job_changed": "{title} was changed.",
    "notify": "Notify me",
    "sessions": "Where you are signed in",
    "session_current": "this browser",
    "session_since": "Signed in {begun}, until {over}",
    "session_unknown": "An unknown program",
    "session_end": "End",
    "session_ended": "{device} is signed out.",
    "sign_out": "Sign out",
    "open_chat": "Open the chat",
    "sign_in_title": "Please sign in",
    "sign_in": "Open the link that the gateway printed when it started (<code>open http://…</code>"
    "). It works once, for ten minutes; <code>turnkeeper link</code> prints another.",
    "link_over_title": "This link has expired",
    "link_over": "It was already used, or has expired. Run <code>turnkeeper link</code> where the "
    "gateway runs, and open the link it prints.",
    "enter_title": "Sign in",
    "enter": "Continue only if you asked for this link yourself. It works once.",
    "enter_button": "Sign in",
    "enter_over_title": "This link has expired",
    "enter_over": "It was already used, has expired, or was replaced by a newer one. Write "
    "<code>/link page</code> in the chat for another.",
    "server_asked_title": "Sign in at {server}",
    "server_asked": "The agent would use {server} as {person}, on {platform}. Continue only if "
    "that is you, and you asked for this in a chat yourself.",
    "server_button": "Continue to the sign-in",
    "server_onward_title": "Redirecting",
    "server_onward": "One moment.",
    "server_done_title": "Signed in",
    "server_done": "You are signed in at {server}. You can close this page; the conversation "
    "continues.",
    "server_failed_title": "Not signed in",
    "server_failed": "{server} did not sign you in, and nothing was stored. Open the link again, "
    "or write <code>/mcp signin {server}</code> in a private chat for another.",
    "server_over_title": "This link has expired",
    "server_over": "It was already used, has expired, or was opened in another browser. Write "
    "<code>/mcp</code> in the chat to see how to get another.",
    "slow_down_title": "Too many wrong tries",
    "slow_down": "Too many wrong links or tokens came from your address. Wait a minute, then open "
    "a link that has not been used yet.",
    "signed_in_title": "Signed in",
    "signed_in": "One moment.",
}

GERMAN: dict[str, str] = {
    "skip": "Zum Nachrichtenfeld springen",
    "conversations": "Unterhaltungen",
    "new": "Neue Unterhaltung",
    "search": "Unterhaltungen suchen",
    "none_found": "Nichts gefunden. Gesucht wird in Titeln und Nachrichten.",
    "signed_in_as": "Angemeldet als {person}",
    "theme": "Aussehen: {theme}",
    "theme_auto": "wie das Gerät",
    "theme_light": "hell",
    "theme_dark": "dunkel",
    "keys": "Tasten A und D entscheiden: {state}",
    "keys_on": "an",
    "keys_off": "aus",
    "earlier": "Frühere Nachrichten zeigen",
    "empty_title": "Was kann ich für Sie tun?",
    "empty_text": "Schreiben Sie unten. Ich zeige, was ich tue, und frage vor allem, was Folgen "
    "hat.",
    "what_can_you": "Was können Sie?",
    "show_plan": "Ein Plan",
    "try_plan": "Machen Sie einen Plan: zuerst die Dateien hier auflisten, dann eine Notiz darüber "
    "in plan.txt schreiben und zum Schluss alles noch einmal lesen und verbessern.",
    "show_approval": "Eine Freigabe",
    "try_approval": "Schalten Sie für diesen Ordner das Formatieren beim Speichern ein: schreiben "
    "Sie es in .vscode/settings.json.",
    "show_job": "Ein Auftrag",
    "try_job": "Sagen Sie mir an jedem Werktag um 9:00, welche Dateien hier liegen.",
    "messages": "Nachrichten",
    "later": "Wartende Nachrichten",
    "to_end": "Zur neuesten Nachricht",
    "compose": "Nachricht schreiben",
    "message": "Nachricht",
    "attach": "Dateien anhängen",
    "attached": "Angehängte Dateien",
    "drop": "Dateien hier ablegen",
    "stop": "Anhalten",
    "send": "Senden",
    "commands": "Befehle",
    "no_script": "Diese Seite braucht JavaScript. Die HTTP-API steht unter /api/openapi.json.",
    "running": "Arbeitet",
    "waiting": "Wartet auf Sie",
    "lost": "Verbindung verloren. Sie wird neu aufgebaut.",
    "no_gateway": "Das Gateway antwortet nicht. Prüfen Sie, ob es läuft; hier ging nichts "
    "verloren.",
    "odd_answer": "Das Gateway antwortete {status}. Versuchen Sie es erneut.",
    "too_old": "Diese Seite ist zu alt für das, was kam. Laden Sie sie neu.",
    "waits": "Wartet, bis es an der Reihe ist",
    "sending": "Wird gesendet",
    "edit": "Ändern",
    "withdraw": "Zurückziehen",
    "save": "Speichern",
    "cancel": "Abbrechen",
    "edit_message": "Die wartende Nachricht ändern",
    "still_uploading": "Eine Datei ist noch unterwegs. Senden Sie gleich noch einmal.",
    "not_uploaded": "{name} ist nicht angekommen. Versuchen Sie es noch einmal, oder entfernen Sie "
    "die Datei.",
    "upload_again": "Noch einmal",
    "too_large": "{name} ist größer als {limit} MB. Senden Sie eine kleinere Datei.",
    "empty_file": "{name} ist leer oder ein Ordner. Wählen Sie eine Datei.",
    "remove": "{name} entfernen",
    "uploading": "{percent} %",
    "what_was_done": "Was getan wurde",
    "output": "Ausgabe",
    "arguments": "Was laufen wird",
    "details": "Einzelheiten",
    "add_reason": "Ein Wort dazu",
    "reason": "Grund",
    "answer": "Antworten",
    "question": "Eine Frage",
    "denied": "Abgelehnt",
    "approved": "Erlaubt",
    "answered": "Beantwortet",
    "plan": "Plan",
    "plan_open": "Plan. Soll ich fortfahren?",
    "progress": "{done} von {all} {all:Schritt|Schritten} erledigt",
    "step_pending": "offen",
    "step_running": "in Arbeit",
    "step_done": "erledigt",
    "step_failed": "fehlgeschlagen",
    "step_skipped": "übersprungen",
    "line_running": "läuft",
    "line_done": "erledigt",
    "line_waiting": "wartet auf eine Entscheidung",
    "file": "Datei",
    "files": "Dateien",
    "image": "Bild: ",
    "download": "Herunterladen",
    "report": "Bericht",
    "copy": "Kopieren",
    "copied": "Kopiert",
    "again": "Noch einmal antworten",
    "edit_asked": "Bearbeiten und neu senden",
    "gone_undone": "Zurückgenommen: {text}",
    "gone_retried": "Ersetzt: {text}",
    "jobs": "Aufträge",
    "model": "Modell",
    "rename": "Umbenennen",
    "discard": "Löschen",
    "discard_sure": "Noch einmal drücken, um sie endgültig zu löschen",
    "removed": "Diese Unterhaltung wurde gelöscht.",
    "discard_busy": "Hier läuft etwas, oder ein Auftrag gehört hierher. Halten Sie es an, oder "
    "löschen Sie erst den Auftrag.",
    "close": "Schließen",
    "job_run": "{title} läuft jetzt; der Bericht kommt in die Unterhaltung des Auftrags.",
    "job_pause": "{title} ist pausiert.",
    "job_resume": "{title} geht weiter.",
    "job_delete": "{title} ist gelöscht.",
    "job_idle": "Nichts geändert: {title} läuft schon, ist schon so, oder steht in jobs.toml.",
    "job_ask": "Noch einmal drücken, um {title} mit dem Verlauf zu löschen.",
    "job_sure": "Endgültig löschen",
    "job_edit": "Ändere den Auftrag {title}: ",
    "job_title": "Titel",
    "job_schedule": "Wann",
    "job_zone": "Zeitzone",
    "job_model": "Modell",
    "job_profile": "Profil",
    "job_tools": "Werkzeuge",
    "job_prompt": "Was zu tun ist",
    "job_words": "In Worten",
    "job_changed": "{title} ist geändert.",
    "notify": "Benachrichtigen",
    "sessions": "Wo Sie angemeldet sind",
    "session_current": "dieser Browser",
    "session_since": "Angemeldet {begun}, bis {over}",
    "session_unknown": "Ein unbekanntes Programm",
    "session_end": "Beenden",
    "session_ended": "{device} ist abgemeldet.",
    "sign_out": "Abmelden",
    "open_chat": "Zur Unterhaltung",
    "sign_in_title": "Bitte melden Sie sich an",
    "sign_in": "Öffnen Sie den Link, den das Gateway beim Start ausgab (<code>open http://…</code>"
    "). Er gilt einmal und zehn Minuten; <code>turnkeeper link</code> gibt einen neuen aus.",
    "link_over_title": "Dieser Link gilt nicht mehr",
    "link_over": "Er wurde benutzt oder ist zu alt. Führen Sie <code>turnkeeper link</code> aus, "
    "wo das Gateway läuft, und öffnen Sie den Link, der dann erscheint.",
    "enter_title": "Anmelden",
    "enter": "Gehen Sie nur weiter, wenn Sie diesen Link selbst angefordert haben. Er gilt einmal.",
    "enter_button": "Anmelden",
    "enter_over_title": "Dieser Link gilt nicht mehr",
    "enter_over": "Er wurde benutzt, ist zu alt, oder es gibt einen neueren. Schreiben Sie im Chat "
    "<code>/link page</code> für einen neuen.",
    "server_asked_title": "Bei {server} anmelden",
    "server_asked": "Der Agent würde {server} als {person} benutzen, auf {platform}. Gehen Sie "
    "nur weiter, wenn Sie das sind und es selbst in einem Chat verlangt haben.",
    "server_button": "Weiter zur Anmeldung",
    "server_onward_title": "Es geht weiter",
    "server_onward": "Einen Moment.",
    "server_done_title": "Angemeldet",
    "server_done": "Sie sind bei {server} angemeldet. Sie können diese Seite schließen; die "
    "Unterhaltung geht weiter.",
    "server_failed_title": "Nicht angemeldet",
    "server_failed": "{server} hat Sie nicht angemeldet, und nichts wurde behalten. Öffnen Sie "
    "den Link noch einmal, oder schreiben Sie in einem privaten Chat <code>/mcp signin "
    "{server}</code> für einen anderen.",
    "server_over_title": "Dieser Link gilt nicht mehr",
    "server_over": "Er wurde benutzt, ist zu alt, oder ein anderer Browser hat begonnen. "
    "Schreiben Sie im Chat <code>/mcp</code>, wie Sie einen anderen bekommen.",
    "slow_down_title": "Zu viele falsche Versuche",
    "slow_down": "Von Ihrer Adresse kamen falsche Links oder Schlüssel. Warten Sie eine Minute "
    "und öffnen Sie dann einen Link, der noch nicht benutzt wurde.",
    "signed_in_title": "Angemeldet",
    "signed_in": "Einen Moment.",
}

WORDS: Texts[str] = Texts({"en": ENGLISH, "de": GERMAN}, Path(__file__).parent / "data")

NOTE = """<!doctype html><html lang="{language}"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{head}<title>Turnkeeper</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/page.css"></head>
<body class="note"><main>
<p class="brand"><span class="mark" aria-hidden="true">T</span>Turnkeeper</p>
<h1>{title}</h1><p>{text}</p>{form}{open}</main></body></html>"""
OPEN = '<p><a href="/">{}</a></p>'
SIGN_IN = '<form method="post"><button class="good">{button}</button></form>'
"""Shown at the page's address to people who are not signed in."""


def choose_language(accepted: str) -> str:
    """Return the supported language that the header Accept-Language prefers; "" if none."""
    return choose_accepted(accepted, WORDS.list_codes())


def page(language: str) -> str:
    """The page in `language`."""
    return _page(_choose_known(language))


@cache
def _page(language: str) -> str:
    own = ENGLISH | dict(WORDS.read(language))
    words = own | {key: say(key, language).replace("**", "") for key in CARDS}
    told = {"language": language, "limit": UPLOAD_BYTES, "words": words}
    fields = own | {"language": language, "words": msgspec.json.encode(told).decode()}
    return FIELD.sub(lambda field: html.escape(fields[field[1]]), PAGE.read_text())


def note(name: str, language: str, head: str, form: str = "", **fields: str) -> str:
    """A page that only says something; `form`: below that. `fields`: of its text, as HTML."""
    return NOTE.format(
        language=_choose_known(language),
        head=head,
        title=WORDS.say(f"{name}_title", language, **fields),
        text=WORDS.say(name, language, **fields),
        form=form,
        open="" if name == "sign_in" else OPEN.format(WORDS.say("open_chat", language)),
    )


def ask_to_sign_in(language: str) -> str:
    """A page with a button that signs in."""
    return note("enter", language, "", make_button("enter_button", language))


def make_button(name: str, language: str) -> str:
    """A button that posts to the page's own address."""
    return SIGN_IN.format(button=WORDS.say(name, language))


def _choose_known(language: str) -> str:
    code = reduce_language(language)
    return code if code in WORDS.list_codes() else "en"
