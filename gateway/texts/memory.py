"""The fixed texts about the memory.

Vocabulary: imports nothing of ours.
"""

from typing import Literal

MemoryKey = Literal[
    "memory_saved", "memory_dropped", "memory_shown", "memory_work", "memory_group",
    "memory_person", "memory_nothing", "memory_off", "memory_switched_off", "memory_switched_on",
    "memory_cleared", "memory_several", "memory_unknown", "memory_usage", "memory_none",
    "memory_done", "memory_admins", "memory_beside_waits", "memory_beside_failed",
    "memory_beside_cannot", "command_memory",
]  # fmt: skip

ENGLISH: dict[MemoryKey, str] = {
    "memory_saved": "Remembered: {text}",
    "memory_dropped": "Forgotten: {text}",
    "memory_shown": "{documents}\n\nWrite {/memory forget …} and a number or words to remove an "
    "entry, {/memory clear …} to remove all, {/memory off} to switch memory off here.",
    "memory_work": "What I know about the work ({size} of {limit} characters):",
    "memory_group": "What I know about this group's work ({size} of {limit} characters):",
    "memory_person": "What I know about you ({size} of {limit} characters, only in private):",
    "memory_nothing": "Nothing is remembered here yet. Ask me to remember something.",
    "memory_off": "Memory is off here; {/memory on} switches it on.",
    "memory_switched_off": "Memory is now off here: nothing is added, and I do not read it. "
    "Entries stay until you write {/memory clear …}.",
    "memory_switched_on": "Memory is now on here.",
    "memory_cleared": "All memory here was cleared. Earlier messages stay in the conversation "
    "until {/new …}.",
    "memory_several": "Which entry? Press it, or write {/memory forget …} and its number:\n{found}",
    "memory_unknown": "No entry matches. {/memory} shows all of them.",
    "memory_usage": "Write {/memory}, {/memory forget …} <words or number>, {/memory clear …}, "
    "{/memory off} or {/memory on}.",
    "memory_none": "Memory is turned off on this gateway (MEMORY_ENABLED).",
    "memory_done": "Already done.",
    "memory_admins": "Only an admin can clear a group's memory or switch it off. {/memory forget "
    "…} and a number removes one entry.",
    "memory_beside_waits": "The memory provider {name}, which also has it, has not removed it "
    "yet. I keep asking until it has.",
    "memory_beside_failed": "The memory provider {name} has not removed what was forgotten here, "
    "although I asked for many hours. Ask an admin to look into it.",
    "memory_beside_cannot": "The memory provider {name}, which also has it, keeps it: no tool to "
    "remove it is configured. Ask an admin.",
    "command_memory": "Show or clear memory",
}

GERMAN: dict[MemoryKey, str] = {
    "memory_saved": "Gemerkt: {text}",
    "memory_dropped": "Vergessen: {text}",
    "memory_shown": "{documents}\n\nSchreiben Sie {/memory forget …} und eine Nummer oder Wörter, "
    "um etwas zu streichen, {/memory clear …} für alles, {/memory off}, damit hier nichts gemerkt "
    "wird.",
    "memory_work": "Was ich von der Arbeit weiß ({size} von {limit} Zeichen):",
    "memory_group": "Was ich von der Arbeit dieser Gruppe weiß ({size} von {limit} Zeichen):",
    "memory_person": "Was ich von Ihnen weiß ({size} von {limit} Zeichen, nur im privaten Chat):",
    "memory_nothing": "Hier ist noch nichts gemerkt. Bitten Sie mich, etwas zu merken.",
    "memory_off": "Das Gedächtnis ist hier ausgeschaltet; {/memory on} schaltet es ein.",
    "memory_switched_off": "Ab jetzt wird hier nichts gemerkt, und ich sehe nicht nach, was "
    "gemerkt ist. Es bleibt, bis Sie {/memory clear …} schreiben.",
    "memory_switched_on": "Das Gedächtnis ist hier eingeschaltet.",
    "memory_cleared": "Vergessen: alles, was hier gemerkt war. Was gesagt wurde, steht bis "
    "{/new …} in der Unterhaltung.",
    "memory_several": "Welcher Eintrag? Drücken Sie ihn, oder schreiben Sie "
    "{/memory forget …} und seine Nummer:\n{found}",
    "memory_unknown": "Nichts, was hier gemerkt ist, passt dazu. {/memory} zeigt alles.",
    "memory_usage": "Schreiben Sie {/memory}, {/memory forget …} <Wörter oder Nummer>, "
    "{/memory clear …}, {/memory off} oder {/memory on}.",
    "memory_none": "Dieses Gateway merkt sich nichts (MEMORY_ENABLED).",
    "memory_done": "Ist schon geschehen.",
    "memory_admins": "Was eine Gruppe sich merkt, löscht oder schaltet nur ein Admin. "
    "{/memory forget …} und eine Nummer streicht Einzelnes.",
    "memory_beside_waits": "Das Gedächtnis {name}, das es auch erfährt, hat es noch nicht "
    "gelöscht. Es wird weiter danach gefragt.",
    "memory_beside_failed": "Das Gedächtnis {name} hat nicht gelöscht, was hier vergessen wurde; "
    "es wurde viele Stunden lang gefragt. Bitten Sie einen Admin, nachzusehen.",
    "memory_beside_cannot": "Das Gedächtnis {name}, das es auch erfährt, behält es: Kein Werkzeug "
    "zum Löschen ist eingestellt. Bitten Sie einen Admin.",
    "command_memory": "Was gemerkt ist, und wie es vergessen wird",
}
