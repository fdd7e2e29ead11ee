"""Texts about instructions, by language."""

from pathlib import Path
from typing import Literal

from gateway.texts.languages import Texts

InstructionsKey = Literal[
    "instructions_here", "instructions_none", "instructions_operator", "instructions_set",
    "instructions_cleared", "instructions_long", "instructions_longer", "instructions_unread",
    "instructions_admins", "instructions_usage", "command_instructions",
]  # fmt: skip

ENGLISH: dict[InstructionsKey, str] = {
    "instructions_here": "Instructions of this conversation:\n\n{text}",
    "instructions_none": "This conversation has no instructions of its own. "
    "{/instructions set …} and a text adds some.",
    "instructions_operator": "The operator's instructions also apply ({n} characters).",
    "instructions_set": "Saved. It applies from the next message on; {/instructions clear} "
    "removes it.",
    "instructions_cleared": "This conversation no longer has instructions of its own.",
    "instructions_long": "That is {n} characters; the limit is {limit}, because they are part of "
    "every request. Shorten the text.",
    "instructions_longer": "That is more than {n} characters; the limit is {limit}, because they "
    "are part of every request. Shorten the text.",
    "instructions_unread": "There is no text file {path} in this conversation's folder.",
    "instructions_admins": "Only an admin can change a group's instructions.",
    "instructions_usage": "Write {/instructions}, {/instructions set …} <text>, "
    "{/instructions file …} <file of this conversation> or {/instructions clear}.",
    "command_instructions": "Show or change the instructions I follow here",
}

DATA = Path(__file__).parent / "data"

GERMAN: dict[InstructionsKey, str] = {
    "instructions_here": "Anweisungen für diese Unterhaltung:\n\n{text}",
    "instructions_none": "Diese Unterhaltung hat keine eigenen Anweisungen. "
    "{/instructions set …} und ein Text legt welche fest.",
    "instructions_operator": "Dazu gelten die des Betreibers ({n} Zeichen).",
    "instructions_set": "Gespeichert. Es gilt ab der nächsten Nachricht; {/instructions clear} "
    "beendet es.",
    "instructions_cleared": "Diese Unterhaltung hat keine eigenen Anweisungen mehr.",
    "instructions_long": "Das sind {n} Zeichen; höchstens {limit} gehen, denn sie stehen in jeder "
    "Anfrage. Bitte kürzen.",
    "instructions_longer": "Das sind mehr als {n} Zeichen; höchstens {limit} gehen, denn sie "
    "stehen in jeder Anfrage. Bitte kürzen.",
    "instructions_unread": "Im Ordner dieser Unterhaltung gibt es keine Textdatei {path}.",
    "instructions_admins": "Die Anweisungen einer Gruppe ändert nur ein Admin.",
    "instructions_usage": "Schreiben Sie {/instructions}, {/instructions set …} <Text>, "
    "{/instructions file …} <Datei dieser Unterhaltung> oder {/instructions clear}.",
    "command_instructions": "Woran ich mich hier immer halte: zeigen oder ändern",
}

TEXTS: Texts[InstructionsKey] = Texts({"en": ENGLISH, "de": GERMAN}, DATA)
