"""The fixed texts about standing permissions.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

GrantKey = Literal[
    "grants_are", "grants_none", "grants_usage", "grant_line", "grant_risk", "grant_always",
    "grant_private", "grant_group", "covers_private", "covers_group",
    "grant_here", "grant_since", "grant_by", "grant_whose", "grant_drop", "grant_dropped",
    "grant_gone", "grant_elsewhere", "grant_not_yours",
]  # fmt: skip

ENGLISH: dict[GrantKey, str] = {
    "grants_are": "Allowed without asking:",
    "grants_none": "No standing approvals.",
    "grants_usage": "Revoke one with its button, or with {/permissions drop …} and its number.",
    "grant_line": "{n}. {what}",
    "grant_risk": "{tool}: any call ({risk})",
    "grant_always": "always here",
    "grant_private": "always, in all private chats",
    "grant_group": "always, in this group and its threads",
    "covers_private": "{rule}, in all private chats of {name}",
    "covers_group": "{rule}, in this group and its threads, for requests of {name}",
    "grant_here": "in this conversation, until {/new …}",
    "grant_since": "since {when}",
    "grant_by": "approved by {name}",
    "grant_whose": "for requests of {person}",
    "grant_drop": "Revoke {n}",
    "grant_dropped": "Revoked: {what}. I will ask again.",
    "grant_gone": "This approval is no longer in force. Nothing was changed.",
    "grant_elsewhere": "I do not find this rule here, and Telegram no longer tells the topic of an "
    "old button. Write {/permissions} in its topic.",
    "grant_not_yours": "Only the person it was approved for, or an admin, can revoke this.",
}

GERMAN: dict[GrantKey, str] = {
    "grants_are": "Ohne Nachfrage erlaubt:",
    "grants_none": "Keine dauerhaften Freigaben.",
    "grants_usage": "Zurücknehmen mit dem Knopf, oder mit {/permissions drop …} und der Nummer.",
    "grant_line": "{n}. {what}",
    "grant_risk": "{tool}: jeder Aufruf ({risk})",
    "grant_always": "hier immer",
    "grant_private": "immer, in allen privaten Chats",
    "grant_group": "immer, in dieser Gruppe und ihren Threads",
    "covers_private": "{rule}, in allen privaten Chats von {name}",
    "covers_group": "{rule}, in dieser Gruppe und ihren Threads, für Anfragen von {name}",
    "grant_here": "in dieser Unterhaltung, bis {/new …}",
    "grant_since": "seit {when}",
    "grant_by": "erlaubt von {name}",
    "grant_whose": "für Anfragen von {person}",
    "grant_drop": "{n} zurücknehmen",
    "grant_dropped": "Zurückgenommen: {what}. Davor frage ich wieder.",
    "grant_gone": "Das ist schon nicht mehr erlaubt. Nichts wurde geändert.",
    "grant_elsewhere": "Ich finde diese Regel hier nicht, und zu einem alten Knopf nennt Telegram "
    "das Thema nicht mehr. Schreiben Sie {/permissions} in seinem Thema.",
    "grant_not_yours": "Das kann nur zurücknehmen, für wen es erlaubt ist, oder ein Admin.",
}
