"""The fixed texts about the cost of model calls.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

SpendingKey = Literal[
    "budget_turn", "budget_person", "budget_job", "budget_day", "budget_call", "usage_none",
    "usage_turn", "usage_today", "usage_all", "usage_line", "usage_unpriced", "usage_gateway",
    "command_usage",
]  # fmt: skip

ENGLISH: dict[SpendingKey, str] = {
    "budget_turn": "This request has used up its budget of {limit}. Ask for less at a time, or "
    "ask an admin to raise the limit.",
    "budget_person": "Your budget of {limit} a day is used up. Continue tomorrow, or ask an admin "
    "to raise it.",
    "budget_job": "This job has used up its budget of {limit} a day. It continues tomorrow.",
    "budget_day": "The budget of {limit} a day for everybody is used up. Continue tomorrow, or "
    "ask an admin to raise it.",
    "budget_call": "One call of this model may cost {most}, more than the budget of {limit}. "
    "Choose a cheaper model ({/model}), or ask an admin to raise the budget.",
    "usage_none": "No model has been called here yet.",
    "usage_turn": "Last request",
    "usage_today": "Today",
    "usage_all": "Total",
    "usage_line": "{what}: {read} tokens read ({share} % from the cache), {written} written, "
    "{calls} {calls:call|calls}, {cost}",
    "usage_unpriced": "price unknown for {n} {n:call|calls}",
    "usage_gateway": "All conversations today: {cost}",
    "command_usage": "Tokens and cost: last request, today, total",
}

GERMAN: dict[SpendingKey, str] = {
    "budget_turn": "Dieser Vorgang hat sein Limit von {limit} erreicht. Fragen Sie weniger auf "
    "einmal, oder bitten Sie einen Admin, es zu erhöhen.",
    "budget_person": "Ihr Limit von {limit} am Tag ist erreicht. Morgen geht es weiter, oder ein "
    "Admin erhöht es.",
    "budget_job": "Dieser Auftrag hat sein Limit von {limit} am Tag erreicht. Morgen geht er "
    "weiter.",
    "budget_day": "Das Limit von {limit} am Tag für alle ist erreicht. Morgen geht es weiter, oder "
    "ein Admin erhöht es.",
    "budget_call": "Ein Aufruf dieses Modells kann {most} kosten, mehr als das Limit von {limit}. "
    "Wählen Sie ein günstigeres Modell ({/model}), oder bitten Sie einen Admin, es zu erhöhen.",
    "usage_none": "Hier wurde noch kein Modell gerufen.",
    "usage_turn": "Letzter Vorgang",
    "usage_today": "Heute",
    "usage_all": "Insgesamt",
    "usage_line": "{what}: {read} Token gelesen ({share} % aus dem Cache), {written} geschrieben, "
    "{calls} {calls:Aufruf|Aufrufe}, {cost}",
    "usage_unpriced": "Preis unbekannt bei {n} {n:Aufruf|Aufrufen}",
    "usage_gateway": "Alle Unterhaltungen heute: {cost}",
    "command_usage": "Token und Geld: letzter Vorgang, heute, insgesamt",
}
