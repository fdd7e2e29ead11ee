"""The fixed texts about a conversation's history. Vocabulary: imports nothing of ours."""

from typing import Literal

HistoryKey = Literal[
    "undone", "undone_files", "undone_not", "undone_left", "undone_stays", "undone_later",
    "undo_asks",
    "files_changed", "turn_restore", "restore_all", "restore_keep",
    "nothing_to_undo", "stop_first", "turn_retry", "turn_continue", "turn_go_on", "turn_over",
    "resume_list", "resume_recent", "resume_none", "resume_gone", "resumed", "compressed",
    "command_undo", "command_retry", "command_resume", "edited_after", "turn_again",
    "edited_command", "edited_used",
]  # fmt: skip

ENGLISH: dict[HistoryKey, str] = {
    "undone": "The last request is undone: I no longer see its question and answer.",
    "undone_files": "Restored files: {names}.",
    "undone_not": "Could not be restored: {names}. Check them yourself.",
    "undone_left": "Left as they are: {names}.",
    "undone_stays": "The effects of these remain: {names}.",
    "undone_later": "There is not enough room on the disk, or memory, to restore all files, so the "
    "last request is not undone yet. Free some space, then try again.",
    "undo_asks": "These files were changed by something else since then: {names}. {/undo all} "
    "restores them too, {/undo keep} leaves them as they are.",
    "files_changed": "Changed files: {names}.",
    "turn_restore": "Undo and restore",
    "restore_all": "Restore these too",
    "restore_keep": "Leave these as they are",
    "nothing_to_undo": "There is no request here to undo or repeat.",
    "stop_first": "Something is still running or pending here. Wait until it ends, or write "
    "{/stop} first.",
    "turn_retry": "Retry",
    "turn_continue": "Continue",
    "turn_go_on": "Continue.",
    "turn_again": "Answer again",
    "edited_after": "You edited your message after I answered it.",
    "edited_command": "An edited command is not run. Send it as a new message.",
    "edited_used": "I had already used that message when you edited it. Write again what should be "
    "different.",
    "turn_over": "This was already done, or something newer has started.",
    "resume_list": "Found in earlier conversations:\n{found}\n\nPress one to continue from there.",
    "resume_recent": "Your latest conversations:\n{found}\n\nPress one to continue from there, or "
    "write {/resume …} and words to search for.",
    "resume_none": "No matching earlier conversation can be shown here.",
    "resume_gone": "The last list has no such number. Write {/resume …} and words to search for.",
    "resumed": "Continuing from '{title}': I see its messages.",
    "compressed": "Earlier messages were summarised.",
    "command_undo": "Undo the last request and its file changes",
    "command_retry": "Answer the last message again",
    "command_resume": "Continue an earlier conversation: {/resume …} and words to search for",
}

GERMAN: dict[HistoryKey, str] = {
    "undone": "Der letzte Vorgang ist zurückgenommen: Frage und Antwort sehe ich nicht mehr.",
    "undone_files": "Wieder wie davor: {names}.",
    "undone_not": "Nicht zurückzuholen: {names}. Sehen Sie selbst hinein.",
    "undone_left": "Bleiben, wie sie sind: {names}.",
    "undone_stays": "Was diese taten, bleibt: {names}.",
    "undone_later": "Platte oder Speicher reichen nicht, um alle Dateien wiederherzustellen; der "
    "letzte Vorgang ist daher noch nicht zurückgenommen. Schaffen Sie Platz und versuchen Sie es "
    "dann noch einmal.",
    "undo_asks": "Diese Dateien hat seither etwas anderes geändert: {names}. {/undo all} nimmt "
    "auch sie zurück, {/undo keep} lässt sie, wie sie sind.",
    "files_changed": "Geänderte Dateien: {names}.",
    "turn_restore": "Zurücknehmen und wiederherstellen",
    "restore_all": "Auch diese wiederherstellen",
    "restore_keep": "Diese so lassen",
    "nothing_to_undo": "Hier ist kein Vorgang, den ich zurücknehmen könnte.",
    "stop_first": "Hier läuft oder wartet noch etwas. Warten Sie das Ende ab oder schreiben Sie "
    "zuerst {/stop}.",
    "turn_retry": "Nochmal",
    "turn_continue": "Weiter",
    "turn_go_on": "Mach weiter.",
    "turn_again": "Neu antworten",
    "edited_after": "Sie haben Ihre Nachricht geändert, nachdem ich geantwortet hatte.",
    "edited_command": "Ein geänderter Befehl wird nicht ausgeführt. Schicken Sie ihn als neue "
    "Nachricht.",
    "edited_used": "Diese Nachricht hatte ich schon verwendet, als Sie sie änderten. Schreiben Sie "
    "noch einmal, was anders sein soll.",
    "turn_over": "Das ist schon geschehen, oder etwas Neueres hat begonnen.",
    "resume_list": "In früheren Unterhaltungen gefunden:\n{found}\n\nDrücken Sie eine, um dort "
    "weiterzumachen.",
    "resume_recent": "Ihre letzten Unterhaltungen:\n{found}\n\nDrücken Sie eine, um dort "
    "weiterzumachen, oder schreiben Sie {/resume …} und Wörter, nach denen ich suchen soll.",
    "resume_none": "In den früheren Unterhaltungen, die hier gezeigt werden dürfen, steht das "
    "nicht.",
    "resume_gone": "Diese Nummer gibt es in der letzten Liste nicht. Schreiben Sie {/resume …} und "
    "Wörter, nach denen ich suchen soll.",
    "resumed": "Wir machen bei '{title}' weiter: was dort gesagt wurde, sehe ich.",
    "compressed": "Frühere Nachrichten wurden zusammengefasst.",
    "command_undo": "Den letzten Vorgang zurücknehmen, samt den Dateien, die er änderte",
    "command_retry": "Die letzte Nachricht noch einmal stellen",
    "command_resume": "Bei einer früheren Unterhaltung weitermachen: {/resume …} und Suchwörter",
}
