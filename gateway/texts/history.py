"""The fixed texts about a conversation's history. Vocabulary: imports nothing of ours."""

from typing import Literal

HistoryKey = Literal[
    "undone", "undone_files", "undone_not", "undone_stays", "nothing_to_undo", "stop_first",
    "resume_list", "resume_recent", "resume_none", "resume_gone", "resumed", "compressed",
    "command_undo", "command_retry", "command_resume",
]  # fmt: skip

ENGLISH: dict[HistoryKey, str] = {
    "undone": "The last request is taken back: I no longer see what was asked and answered in it.",
    "undone_files": "As they were before it: {names}.",
    "undone_not": "Could not be put back: {names}. Look into them yourself.",
    "undone_stays": "What these did stays: {names}.",
    "nothing_to_undo": "There is no request here that I could take back.",
    "stop_first": "Something is still running or waiting here. Wait for its end, or write /stop "
    "first.",
    "resume_list": "Found in earlier conversations:\n{found}\n\nWrite /resume and a number to go "
    "on from there.",
    "resume_recent": "Your latest conversations:\n{found}\n\nWrite /resume and a number to go on "
    "from there, or /resume and words to look for.",
    "resume_none": "Nothing found in the earlier conversations that can be shown here.",
    "resume_gone": "There is no such number in the last list. Write /resume and words to look for.",
    "resumed": "We go on from '{title}': I see what was said there.",
    "compressed": "Earlier messages were summarised.",
    "command_undo": "Take the last request back, with the files it changed",
    "command_retry": "Ask the last message again",
    "command_resume": "Go on from an earlier conversation: /resume and words to look for",
}

GERMAN: dict[HistoryKey, str] = {
    "undone": "Der letzte Vorgang ist zurückgenommen: Frage und Antwort sehe ich nicht mehr.",
    "undone_files": "Wieder wie davor: {names}.",
    "undone_not": "Nicht zurückzuholen: {names}. Sehen Sie selbst hinein.",
    "undone_stays": "Was diese taten, bleibt: {names}.",
    "nothing_to_undo": "Hier ist kein Vorgang, den ich zurücknehmen könnte.",
    "stop_first": "Hier läuft oder wartet noch etwas. Warten Sie das Ende ab oder schreiben Sie "
    "zuerst /stop.",
    "resume_list": "In früheren Unterhaltungen gefunden:\n{found}\n\nSchreiben Sie /resume und "
    "eine Nummer, um dort weiterzumachen.",
    "resume_recent": "Ihre letzten Unterhaltungen:\n{found}\n\nSchreiben Sie /resume und eine "
    "Nummer, um dort weiterzumachen, oder /resume und Wörter, nach denen ich suchen soll.",
    "resume_none": "In den früheren Unterhaltungen, die hier gezeigt werden dürfen, steht das "
    "nicht.",
    "resume_gone": "Diese Nummer gibt es in der letzten Liste nicht. Schreiben Sie /resume und "
    "Wörter, nach denen ich suchen soll.",
    "resumed": "Wir machen bei '{title}' weiter: was dort gesagt wurde, sehe ich.",
    "compressed": "Frühere Nachrichten wurden zusammengefasst.",
    "command_undo": "Den letzten Vorgang zurücknehmen, samt den Dateien, die er änderte",
    "command_retry": "Die letzte Nachricht noch einmal stellen",
    "command_resume": "Bei einer früheren Unterhaltung weitermachen: /resume und Suchwörter",
}
