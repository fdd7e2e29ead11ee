"""The fixed texts about what is remembered. Vocabulary: imports nothing of ours."""

from typing import Literal

MemoryKey = Literal[
    "memory_saved", "memory_dropped", "memory_shown", "memory_work", "memory_group",
    "memory_person", "memory_nothing", "memory_off", "memory_switched_off", "memory_switched_on",
    "memory_cleared", "memory_several", "memory_unknown", "memory_usage", "memory_none",
    "memory_done", "memory_admins", "command_memory",
]  # fmt: skip

ENGLISH: dict[MemoryKey, str] = {
    "memory_saved": "Remembered: {text}",
    "memory_dropped": "Forgotten: {text}",
    "memory_shown": "{documents}\n\nWrite /memory forget and a number or words to take one out, "
    "/memory clear for all, /memory off to remember nothing here.",
    "memory_work": "What I know of the work ({size} of {limit} characters):",
    "memory_group": "What I know of the work of this group ({size} of {limit} characters):",
    "memory_person": "What I know of you ({size} of {limit} characters, only in private):",
    "memory_nothing": "Nothing is remembered here yet. Ask me to remember something.",
    "memory_off": "The memory is switched off here; /memory on switches it on.",
    "memory_switched_off": "From now on nothing is remembered here, and I do not look at what is. "
    "It stays until you write /memory clear.",
    "memory_switched_on": "The memory is switched on here.",
    "memory_cleared": "Forgotten: all that was remembered here. What was said before stands in the "
    "conversation until /new.",
    "memory_several": "Several hold these words. Write /memory forget and a number:\n{found}",
    "memory_unknown": "Nothing that is remembered here fits. /memory shows all of it.",
    "memory_usage": "Write /memory, /memory forget <words or number>, /memory clear, /memory off "
    "or /memory on.",
    "memory_none": "This gateway remembers nothing (MEMORY_ENABLED).",
    "memory_done": "Done already.",
    "memory_admins": "What a group remembers only an admin clears or switches. /memory forget and "
    "a number takes out one thing.",
    "command_memory": "What is remembered, and how to have it forgotten",
}

GERMAN: dict[MemoryKey, str] = {
    "memory_saved": "Gemerkt: {text}",
    "memory_dropped": "Vergessen: {text}",
    "memory_shown": "{documents}\n\nSchreiben Sie /memory forget und eine Nummer oder Wörter, um "
    "etwas zu streichen, /memory clear für alles, /memory off, damit hier nichts gemerkt wird.",
    "memory_work": "Was ich von der Arbeit weiß ({size} von {limit} Zeichen):",
    "memory_group": "Was ich von der Arbeit dieser Gruppe weiß ({size} von {limit} Zeichen):",
    "memory_person": "Was ich von Ihnen weiß ({size} von {limit} Zeichen, nur im privaten Chat):",
    "memory_nothing": "Hier ist noch nichts gemerkt. Bitten Sie mich, etwas zu merken.",
    "memory_off": "Das Gedächtnis ist hier ausgeschaltet; /memory on schaltet es ein.",
    "memory_switched_off": "Ab jetzt wird hier nichts gemerkt, und ich sehe nicht nach, was "
    "gemerkt ist. Es bleibt, bis Sie /memory clear schreiben.",
    "memory_switched_on": "Das Gedächtnis ist hier eingeschaltet.",
    "memory_cleared": "Vergessen: alles, was hier gemerkt war. Was gesagt wurde, steht bis /new in "
    "der Unterhaltung.",
    "memory_several": "Mehreres enthält diese Wörter. Schreiben Sie /memory forget und eine "
    "Nummer:\n{found}",
    "memory_unknown": "Nichts, was hier gemerkt ist, passt dazu. /memory zeigt alles.",
    "memory_usage": "Schreiben Sie /memory, /memory forget <Wörter oder Nummer>, /memory clear, "
    "/memory off oder /memory on.",
    "memory_none": "Dieses Gateway merkt sich nichts (MEMORY_ENABLED).",
    "memory_done": "Ist schon geschehen.",
    "memory_admins": "Was eine Gruppe sich merkt, löscht oder schaltet nur ein Admin. /memory "
    "forget und eine Nummer streicht Einzelnes.",
    "command_memory": "Was gemerkt ist, und wie es vergessen wird",
}
