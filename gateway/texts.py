"""The fixed texts that people see, written once, by language. What happened, then what to do.

Vocabulary: imports nothing of ours. Adapters take the words of their cards from here.
"""

from typing import Literal

Key = Literal[
    "approve_once", "approve_conversation", "approve_always", "deny", "approved",
    "approved_conversation", "approved_always", "denied",
    "expired", "cancelled", "answered", "stopped", "stopped_note", "interrupted_note", "limit_note",
    "twice_note", "lost_note", "dead", "bug", "empty", "not_open", "not_yours", "not_here", "unknown_button", "joined", "stranger", "paired", "paired_admin", "pair_wrong",
    "pair_locked",
    "pair_usage", "not_allowed", "nothing_running", "new", "unknown_command", "mode_now",
    "mode_usage", "no_approvals", "still_waiting", "lost_file", "status", "whoami",
    "help", "edited", "deleted", "view_failed", "answer_usage", "above",
    "too_many", "ask_one", "ask_many", "asked_by", "always_covers", "risk_low", "risk_medium",
    "risk_high", "line_failed", "line_denied", "line_stopped", "line_unknown", "earlier_one",
    "earlier_many", "more_characters", "your_answer",
]  # fmt: skip

ENGLISH: dict[Key, str] = {
    "approve_once": "Approve once",
    "approve_conversation": "Approve in this conversation",
    "approve_always": "Always approve",
    "deny": "Deny",
    "approved": "Approved once by {name}, {when}.",
    "approved_conversation": "Approved for this conversation by {name}, {when}.",
    "approved_always": "Approved for always by {name}, {when}.",
    "denied": "Denied by {name}, {when}.{why}",
    "expired": "Nobody answered in time, so it was not run.",
    "cancelled": "Withdrawn: the turn was stopped.",
    "answered": "{name}: {text}",
    "stopped": "Stopped.",
    "stopped_note": "Stopped here.",
    "interrupted_note": "Stopped here: a newer message came in.",
    "limit_note": "Stopped at the limit of {n} rounds. Write 'go on' to continue.",
    "twice_note": "Possibly sent twice (restart).",
    "lost_note": "Possibly sent twice (the connection broke off).",
    "dead": "I could not finish this: the gateway stopped {n} times while working on it. "
    "The message is kept; an operator can resubmit it. Try again in other words.",
    "bug": "Something in the gateway failed, and this turn ended. Your message is kept. Please "
    "try again; the operator finds the reason in the log under {id}.",
    "empty": "(The answer was empty.)",
    "not_open": "This question is closed already. Nothing was changed.",
    "not_yours": "Only the person who asked, or an admin, can decide this.",
    "not_here": "This button belongs to another conversation. Nothing was changed.",
    "unknown_button": "I do not know this button. It may be from an earlier installation.",
    "joined": "There are more than {n} messages waiting. I join the oldest ones, word for word.",
    "stranger": "I do not know you yet. Show this code to an admin: {code}\nAn admin enters it "
    "with /pair {code}, on the page or on the command line. It is valid for one hour.",
    "paired": "{name} may now use this bot.",
    "paired_admin": "{name} may now use this bot, and is its admin: the first one let in here.",
    "pair_wrong": "This code is not valid, or its hour is over. Ask for a new one.",
    "pair_locked": "Five wrong codes: you cannot enter more for one hour.",
    "pair_usage": "Write the code behind it: /pair ABCD2345",
    "not_allowed": "You may read here, but not do this. Ask an admin.",
    "nothing_running": "Nothing is running.",
    "new": "New conversation. I no longer see what was said before.",
    "unknown_command": "There is no command /{name}. /help lists what there is.",
    "mode_now": "Permissions: {permission}. New messages during a turn: {arrival}.",
    "mode_usage": "Write /mode ask or /mode auto (permissions), /mode queue, /mode steer or "
    "/mode interrupt (messages that come during a turn).",
    "no_approvals": "Nothing waits for a decision.",
    "still_waiting": "(Still waiting for a person: {what})",
    "lost_file": "The file {name} could not be fetched: {why}",
    "status": "{state}. Waiting messages: {waiting}. Open questions: {questions}. "
    "Permissions: {permission}. Model: {model}.",
    "whoami": "You are {person}, role: {role}.",
    "help": "Write what you want done. Commands:\n{commands}",
    "edited": "(I changed my message to: {text})",
    "deleted": "(I withdrew my last message.)",
    "above": "(The rest is above.)",
    "too_many": "Withdrawn: more than {n} turns wait for a decision here. Ask again if it is "
    "still wanted.",
    "view_failed": "A message could not be shown: {why}",
    "answer_usage": "Write /{name} and the number of the question, see /approvals.",
    "ask_one": "May this run?",
    "ask_many": "May these {n} calls run?",
    "asked_by": "Asked by {name}",
    "always_covers": "“Always” covers: {rule}",
    "risk_low": "low risk",
    "risk_medium": "medium risk",
    "risk_high": "high risk",
    "line_failed": "failed",
    "line_denied": "denied",
    "line_stopped": "stopped",
    "line_unknown": "outcome unknown",
    "earlier_one": "1 earlier step",
    "earlier_many": "{n} earlier steps",
    "more_characters": "{n} more characters",
    "your_answer": "Your answer",
}

GERMAN: dict[Key, str] = {
    "approve_once": "Einmal erlauben",
    "approve_conversation": "In dieser Unterhaltung erlauben",
    "approve_always": "Immer erlauben",
    "deny": "Ablehnen",
    "approved": "Einmal erlaubt von {name}, {when}.",
    "approved_conversation": "Für diese Unterhaltung erlaubt von {name}, {when}.",
    "approved_always": "Für immer erlaubt von {name}, {when}.",
    "denied": "Abgelehnt von {name}, {when}.{why}",
    "expired": "Niemand hat rechtzeitig geantwortet, daher wurde es nicht ausgeführt.",
    "cancelled": "Zurückgezogen: der Vorgang wurde angehalten.",
    "answered": "{name}: {text}",
    "stopped": "Angehalten.",
    "stopped_note": "Hier angehalten.",
    "interrupted_note": "Hier angehalten: eine neuere Nachricht kam.",
    "limit_note": "Angehalten nach {n} Runden. Schreiben Sie 'weiter', um fortzufahren.",
    "twice_note": "Möglicherweise doppelt gesendet (Neustart).",
    "lost_note": "Möglicherweise doppelt gesendet (die Verbindung brach ab).",
    "dead": "Das konnte ich nicht beenden: das Gateway brach dabei {n}-mal ab. Die Nachricht ist "
    "aufbewahrt und kann vom Betreiber erneut eingereicht werden. Versuchen Sie es anders.",
    "bug": "Im Gateway ist etwas fehlgeschlagen, dieser Vorgang ist beendet. Ihre Nachricht ist "
    "aufbewahrt. Bitte versuchen Sie es erneut; der Grund steht im Protokoll unter {id}.",
    "empty": "(Die Antwort war leer.)",
    "not_open": "Diese Frage ist schon geschlossen. Nichts wurde geändert.",
    "not_yours": "Nur wer gefragt hat oder ein Admin kann das entscheiden.",
    "not_here": "Dieser Knopf gehört zu einer anderen Unterhaltung. Nichts wurde geändert.",
    "unknown_button": "Diesen Knopf kenne ich nicht. Er stammt vielleicht von früher.",
    "joined": "Mehr als {n} Nachrichten warten. Die ältesten fasse ich wörtlich zusammen.",
    "stranger": "Ich kenne Sie noch nicht. Zeigen Sie einem Admin diesen Code: {code}\nEin Admin "
    "gibt ihn mit /pair {code} ein, auf der Seite oder der Kommandozeile. Er gilt eine Stunde.",
    "paired": "{name} darf diesen Bot nun benutzen.",
    "paired_admin": "{name} darf diesen Bot nun benutzen und ist sein Admin: die erste Person hier.",
    "pair_wrong": "Der Code gilt nicht oder nicht mehr. Lassen Sie sich einen neuen zeigen.",
    "pair_locked": "Fünf falsche Codes: für eine Stunde können Sie keine mehr eingeben.",
    "pair_usage": "Schreiben Sie den Code dahinter: /pair ABCD2345",
    "not_allowed": "Sie dürfen hier lesen, aber das nicht tun. Fragen Sie einen Admin.",
    "nothing_running": "Es läuft nichts.",
    "new": "Neue Unterhaltung. Das Bisherige sehe ich nicht mehr.",
    "unknown_command": "Den Befehl /{name} gibt es nicht. /help zeigt alle.",
    "mode_now": "Erlaubnisse: {permission}. Nachrichten während eines Vorgangs: {arrival}.",
    "mode_usage": "Schreiben Sie /mode ask oder /mode auto (Erlaubnisse), /mode queue, "
    "/mode steer oder /mode interrupt (Nachrichten während eines Vorgangs).",
    "no_approvals": "Nichts wartet auf eine Entscheidung.",
    "still_waiting": "(Wartet noch auf einen Menschen: {what})",
    "lost_file": "Die Datei {name} konnte nicht geholt werden: {why}",
    "status": "{state}. Wartende Nachrichten: {waiting}. Offene Fragen: {questions}. "
    "Erlaubnisse: {permission}. Modell: {model}.",
    "whoami": "Sie sind {person}, Rolle: {role}.",
    "help": "Schreiben Sie, was getan werden soll. Befehle:\n{commands}",
    "edited": "(Ich habe meine Nachricht geändert: {text})",
    "deleted": "(Ich habe meine letzte Nachricht zurückgezogen.)",
    "above": "(Alles Weitere steht oben.)",
    "too_many": "Zurückgezogen: mehr als {n} Vorgänge warten hier auf eine Entscheidung. Fragen "
    "Sie noch einmal, wenn es noch gewünscht ist.",
    "view_failed": "Eine Nachricht konnte nicht gezeigt werden: {why}",
    "answer_usage": "Schreiben Sie /{name} und die Nummer der Frage, siehe /approvals.",
    "ask_one": "Darf das laufen?",
    "ask_many": "Dürfen diese {n} Aufrufe laufen?",
    "asked_by": "Gefragt von {name}",
    "always_covers": "„Immer“ umfasst: {rule}",
    "risk_low": "geringes Risiko",
    "risk_medium": "mittleres Risiko",
    "risk_high": "hohes Risiko",
    "line_failed": "fehlgeschlagen",
    "line_denied": "abgelehnt",
    "line_stopped": "angehalten",
    "line_unknown": "Ausgang unbekannt",
    "earlier_one": "1 früherer Schritt",
    "earlier_many": "{n} frühere Schritte",
    "more_characters": "{n} weitere Zeichen",
    "your_answer": "Ihre Antwort",
}

LANGUAGES: dict[str, dict[Key, str]] = {"en": ENGLISH, "de": GERMAN}


def say(key: Key, language: str = "", **values: object) -> str:
    """The text `key` in the person's `language` (`de`, `de-AT`, …), English where there is none."""
    catalogue = LANGUAGES.get(language[:2].lower(), ENGLISH)
    return catalogue[key].format(**values) if values else catalogue[key]
