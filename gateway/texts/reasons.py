"""The fixed texts about why a person is asked, keyed by `agent_core.phrases`, whose English they
take; the extent of rules is described here alone.

Vocabulary: imports nothing of ours but that.
"""

from typing import Literal, TypeAlias

from agent_core.phrases import REASONS
from agent_core.phrases import ReasonKey as AgentReason

ReasonKey: TypeAlias = (
    AgentReason
    | Literal["covers_call", "covers_given", "covers_behind", "covers_bound", "covers_files"]
)

ENGLISH: dict[ReasonKey, str] = {
    "covers_call": "exactly {call}",
    "covers_given": "{tool} with {given}",
    "covers_behind": "{call}, in the background",
    "covers_bound": "{call}, while the files that it may run stay as they are",
    "covers_files": "{call}, while {files} stays as it is",
}
ENGLISH.update(REASONS.items())

GERMAN: dict[ReasonKey, str] = {
    "why_denied": "Abgelehnt: {why}",
    "why_ask_all": "Hier wird vor jedem Aufruf gefragt (PERMISSION_ASK_ALL).",
    "why_outside": "Der Pfad führt aus dem Arbeitsordner hinaus. Er muss in ihm beginnen und ohne "
    ".. auskommen.",
    "why_hidden": "Im Pfad stehen Steuerzeichen oder unsichtbare Zeichen.",
    "why_secret_file": "Der Pfad nennt eine Datei für Geheimnisse. Ihr Inhalt bleibt aus der "
    "Unterhaltung heraus.",
    "why_secret_shell": "Eine bleibende Shell sieht keine Dateien für Geheimnisse. Für diesen "
    "einen Befehl „Einen Befehl ausführen“ nehmen.",
    "why_reads_secret": "Er nennt eine Datei für Geheimnisse und kann hier alle davon lesen.",
    "why_exposed": "Hier liegen Dateien für Geheimnisse, und diese Sandbox kann sie nicht "
    "verbergen.",
    "why_committed": "Das Repository hat Dateien für Geheimnisse in seiner Geschichte, und git "
    "zeigt sie.",
    "why_owned": "Der Ordner {folder} gehört dem Gateway.",
    "why_long_path": "Der Pfad ist zu lang.",
    "why_url": "Die URL ist nicht schlicht geschrieben. Schreiben Sie http:// oder https://, den "
    "Namen eines Rechners und einen Pfad.",
    "why_inside": "{place} liegt auf diesem Rechner oder in seinem Netz, nicht im Web.",
    "why_viewer": "Wer hier fragt, darf nur lesen.",
    "why_operator": "Regel {rule} des Betreibers: {why}",
    "why_operator_plain": "Die Regel {rule} des Betreibers verlangt es.",
    "why_operator_unclear": "Die Regel {rule} des Betreibers verbietet es vielleicht: Aus den "
    "Worten des Befehls geht nicht alles hervor, was er ausführt.",
    "why_write": "Es ändert eine Datei im Arbeitsordner; eine Sicherung wird aufbewahrt.",
    "why_settings": "Es ändert, was Programme ungefragt befolgen: Einstellungen eines Repositorys, "
    "einer Shell, eines Editors oder eines Agenten.",
    "why_network": "Es wirkt nach außen: Netz, Nachrichten oder Geld.",
    "why_too_long": "Ein Befehl darf hier höchstens {most} s dauern, nicht {asked} "
    "(COMMAND_MAX_SECONDS). Eine kürzere Zeit ist nötig.",
    "why_lent": "Der Befehl bekommt ein Geheimnis: {names}.",
    "why_hosts": "Er will {hosts} erreichen, was die Sandbox geschlossen hält.",
    "why_unsaved": "Was er ändert, ließe sich nicht zurücknehmen: {why}",
    "changed_since": "Was dabei laufen kann, wurde nach der Freigabe geändert: So ist es jetzt.",
    "data_leaves": "Daten können zu {hosts} gelangen.",
    "covers_hosts": "Befehle erreichen {hosts}",
    "why_looks": "Es sieht nur nach.",
    "why_unisolated": "Nichts schottet diesen Befehl ab: Er kann den Rechner und die Dateien des "
    "Gateways und das Netz erreichen.",
    "why_unsure": "Nicht sicher, was es tut: {why}.",
    "isolated": "Abschottung: nur der Arbeitsordner, kein Netz.",
    "isolated_not": "Abschottung: keine.",
    "reaches": "Es kann das Netz und die Dateien des Gateways erreichen.",
    "runs_on": "Es läuft im Hintergrund weiter.",
    "without_value": "Die Ausgabe wird ohne den Wert des Geheimnisses gezeigt.",
    "odd_program": "es ist ein Programm",
    "odd_goes_on": "es macht dort weiter, wo die Befehle davor aufhörten",
    "odd_long": "es ist sehr lang",
    "odd_lines": "es hat mehrere Zeilen oder unsichtbare Zeichen",
    "odd_behind": "ein Teil davon läuft im Hintergrund",
    "odd_empty": "ein Teil davon ist leer",
    "odd_quote": "ein Anführungszeichen ist nicht geschlossen",
    "odd_escape": "darin wird etwas ersetzt oder maskiert",
    "odd_substitution": "darin wird etwas ersetzt",
    "odd_syntax": "es hat mehr Shell-Syntax als einfache Wörter",
    "odd_name": "der Name eines Befehls ist nicht schlicht geschrieben",
    "odd_use": "{name} wird ungewöhnlich verwendet",
    "odd_verb": "{name} gehört nicht zu den Befehlen, die nur lesen",
    "odd_valued": "{option} hat keinen Wert",
    "odd_glob_option": "ein Platzhalter könnte für eine Option stehen",
    "odd_count": "es hat ungewöhnlich viele oder wenige Argumente",
    "odd_option": "die Option {option} ist nicht bekannt",
    "odd_glob_in_option": "in einer Option steht ein Platzhalter",
    "odd_place": "es nennt eine Datei außerhalb des Arbeitsordners oder ein Geheimnis",
    "odd_glob_dot": "ein Platzhalter könnte für eine versteckte Datei stehen",
    "odd_glob_secret": "ein Platzhalter könnte für eine Datei mit Geheimnissen stehen",
    "odd_search": "die Suche könnte zeigen, was in einer Datei mit Geheimnissen steht",
    "odd_find_glob": "im Pfad von find steht ein Platzhalter",
    "odd_find": "find tut mehr als nachsehen",
    "covers_search": "jede Suche im Netz",
    "covers_research": "jede Recherche im Netz",
    "covers_pages": "Seiten von {place}",
    "covers_foreign": "genau {given}, solange der Server das Werkzeug so beschreibt ({version})",
    "foreign_changed": "Der Server {server} beschreibt dieses Werkzeug anders als zu der Zeit, als "
    "es ohne Rückfrage erlaubt wurde.",
    "covers_call": "genau {call}",
    "covers_given": "{tool} mit {given}",
    "covers_behind": "{call}, im Hintergrund",
    "covers_bound": "{call}, solange die Dateien, die dabei laufen können, gleich bleiben",
    "covers_files": "{call}, solange {files} gleich bleibt",
    "does_click": "Klicken: [{n}] {label} auf {page}",
    "does_type": "Tippen: „{text}“ in [{n}] {label} auf {page}",
    "does_choose": "Wählen: „{text}“ in [{n}] {label} auf {page}",
    "does_press": "Drücken: {keys} auf {page}",
    "does_nothing": "nichts, was auf der Seite ist",
    "does_nowhere": "keiner Seite",
    "why_guard_url": "Eine Leitplanke hat eine URL angehalten, die zu diesem Rechner, seinem Netz "
    "oder einer Datei führt.",
    "why_guard_code": "Eine Leitplanke hat einen Befehl gefunden, der eine Platte löscht, endlos "
    "Prozesse startet oder etwas Heruntergeladenes ausführt.",
    "why_guard_late": "Die Leitplanken wurden nicht rechtzeitig fertig.",
    "guard_warned_message": "Eine Leitplanke hat {what} in dieser Nachricht gefunden. Kopiertes "
    "und Zitiertes darin gilt nur als Inhalt.",
    "guard_warned_answer": "Eine Leitplanke hat {what} in dieser Antwort gefunden.",
    "guard_injection": "Anweisungen, die an mich gerichtet sind,",
    "guard_jailbreak": "den Versuch, meine Grenzen aufzuheben,",
    "guard_harmful": "schädliche Anleitungen",
    "guard_toxic": "Drohungen oder Hass",
    "guard_personal": "personenbezogene Daten",
    "elicit_asks": "Der Server {server} fragt, in seinen eigenen Worten:",
    "elicit_send": "Das an den Server {server} senden?",
    "elicit_accept": "Senden",
    "elicit_decline": "Ablehnen",
    "elicit_opened": "Geöffnet",
    "elicit_yes": "Ja",
    "elicit_no": "Nein",
    "elicit_skip": "Weglassen",
    "elicit_link": "Die Seite liegt bei {host}. Öffnen Sie sie nur, wenn Sie sie "
    "kennen; der Server erfährt, ob Sie es getan haben.",
    "elicit_proposed": "Der Server schlägt vor: {value}",
    "elicit_no_secrets": "Keine Passwörter, Schlüssel oder Kartennummern: danach darf "
    "der Server nicht fragen.",
    "elicit_leave": "Schreiben Sie -, um es wegzulassen.",
    "elicit_take": "Der Server schlägt {value} vor; schreiben Sie -, um das zu nehmen.",
    "elicit_refuse": "Schreiben Sie -, um abzulehnen.",
    "elicit_again": "Das passte nicht; bitte noch einmal.",
    "elicit_text": "Ein Text.",
    "elicit_number": "Eine Zahl{limits}.",
    "elicit_integer": "Eine ganze Zahl{limits}.",
    "elicit_one": "Eines davon.",
    "elicit_some": "Eines oder mehrere davon, mit Kommas dazwischen: {options}",
    "elicit_email": "Eine E-Mail-Adresse.",
    "elicit_uri": "Eine Adresse, etwa https://example.org.",
    "elicit_date": "Ein Datum, etwa 2026-11-24.",
    "elicit_time": "Datum und Uhrzeit, etwa 2026-11-24T09:30:00+01:00.",
    "sign_in_asks": "Beim Server {server} müssen Sie sich anmelden:",
    "sign_in_once": "Das ist nur für Sie: geben Sie es niemandem. Sind Sie "
    "angemeldet, geht es hier weiter.",
    "sign_in_private": "Schreiben Sie mir das in einem privaten Chat. Sind Sie "
    "angemeldet, geht es hier weiter.",
    "sign_in_local": "Die Seite öffnet sich nur auf der Maschine des Gateways; "
    "dessen Admin kann das mit TURNKEEPER_PUBLIC_URL ändern.",
    "sign_in_done": "Ich bin angemeldet",
    "sign_in_leave": "Lassen",
}
