"""The fixed texts about plans. Vocabulary: imports nothing of ours."""

from typing import Literal

PlanKey = Literal[
    "plan_go", "plan_went", "plan_edit", "plan_cancel", "plan_listed", "plan_skip",
    "plan_skip_which", "plan_retry", "plan_stop", "plan_none", "plan_no_step", "plan_begun",
    "plan_not_over", "plan_circle", "plan_too_many", "plan_over", "plan_again", "plan_again_on",
    "plan_again_before", "plan_again_waits", "plan_try", "plan_retried", "plan_anew",
    "plan_undone", "plan_on", "plan_off", "plan_usage", "plan_expired", "plan_wish", "todo_usage",
    "todo_no_step",
    "command_todo", "command_plan", "step_of", "mode_is", "mode_ends", "mode_back", "mode_free",
    "mode_no_skill",
]  # fmt: skip

ENGLISH: dict[PlanKey, str] = {
    "plan_go": "Go",
    "plan_went": "Approved by {name}, {when}.",
    "plan_edit": "Edit",
    "plan_cancel": "Cancel",
    "plan_listed": "This is the agent's own to-do list. Write what you want changed.",
    "plan_skip": "Skip {n}",
    "plan_skip_which": "Skip a step",
    "plan_retry": "Retry {n}",
    "plan_stop": "Stop",
    "plan_none": "No plan is running.",
    "plan_no_step": "The plan has no such step. {/todo} shows the steps with their numbers.",
    "plan_begun": "That step has already started or ended, so it can no longer be changed.",
    "plan_not_over": "Only a failed or skipped step can be retried.",
    "plan_circle": "That order is not possible: one of the steps depends on the other.",
    "plan_too_many": "The plan is full. Drop a step first: {/todo drop …} and its number.",
    "plan_over": "The plan is finished. Ask again for what you still need.",
    "plan_again": "Please try this again: {step}\nLast time it failed: {why}",
    "plan_again_on": "First try this again: {step}\nLast time it failed: {why}\n"
    "After that do what waited for it:\n{rest}",
    "plan_again_before": "This was already retried. The result is below.",
    "plan_again_waits": "It will be retried as soon as the current request is done.",
    "plan_try": "{title} (try {n})",
    "plan_retried": "Step {n} is retried below.",
    "plan_anew": "This was asked again and is answered below.",
    "plan_undone": "This was undone with {/undo …}.",
    "plan_on": "Plans are shown to you before anything runs. {/plan off} switches this off.",
    "plan_off": "Plans run at once. {/plan on} shows them to you first.",
    "plan_usage": "Use {/plan on} or {/plan off}. {/todo …} changes the plan that runs.",
    "plan_expired": "The plan expired without approval, so nothing was run. Ask again to continue.",
    "plan_wish": "Write what to change, as a plain message; in a group reply to the plan with it. "
    "The plan is then made again.",
    "todo_no_step": "There is no step {step}; the last one is {last}.",
    "todo_usage": "Change it with {/todo …} and: done 2, skip 2, retry 2, drop 2, add a new step, "
    "insert 2 a step before it, move 3 1.",
    "command_todo": "Show or change the steps of the running plan",
    "command_plan": "Review plans before they run: on or off",
    "mode_is": "Mode: {mode}.",
    "mode_ends": "{/mode task} switches it off.",
    "mode_back": "{/mode {word}} reverts this.",
    "mode_free": "No mode is set: I choose for each request.",
    "mode_no_skill": "The mode {mode} cannot be used here. {why}",
    "step_of": "Step {n} of {all}: {step}.",
}

GERMAN: dict[PlanKey, str] = {
    "plan_go": "Los",
    "plan_went": "Freigegeben von {name}, {when}.",
    "plan_edit": "Ändern",
    "plan_cancel": "Abbrechen",
    "plan_listed": "Das ist die eigene Liste des Agenten. Schreiben Sie, was anders sein soll.",
    "plan_skip": "{n} überspringen",
    "plan_skip_which": "Schritt überspringen",
    "plan_retry": "{n} nochmal",
    "plan_stop": "Anhalten",
    "plan_none": "Hier wird gerade kein Plan abgearbeitet.",
    "plan_no_step": "Diesen Schritt hat der Plan nicht. {/todo} zeigt die Schritte mit Nummern.",
    "plan_begun": "Der Schritt hat schon begonnen oder ist vorbei; das lässt sich nicht mehr "
    "ändern.",
    "plan_not_over": "Nur ein Schritt, der misslang oder übersprungen wurde, geht noch einmal.",
    "plan_circle": "Diese Reihenfolge geht nicht: Ein Schritt baut auf dem anderen auf.",
    "plan_too_many": "Der Plan ist voll. Streichen Sie zuerst einen Schritt: {/todo drop …} und "
    "Nummer.",
    "plan_over": "Dieser Plan ist vorbei. Fragen Sie neu nach dem, was noch fehlt.",
    "plan_again": "Bitte versuche das noch einmal: {step}\nLetztes Mal misslang es: {why}",
    "plan_again_on": "Zuerst versuche das noch einmal: {step}\nLetztes Mal misslang es: {why}\n"
    "Dann mach, was darauf gewartet hat:\n{rest}",
    "plan_again_before": "Das wurde schon neu gestartet. Was daraus wurde, steht weiter unten.",
    "plan_again_waits": "Es wird noch einmal versucht, sobald fertig ist, was gerade läuft.",
    "plan_try": "{title} (Versuch {n})",
    "plan_retried": "Schritt {n} wird weiter unten noch einmal versucht.",
    "plan_anew": "Das wurde neu gefragt und wird weiter unten noch einmal gemacht.",
    "plan_undone": "Das wurde mit {/undo …} zurückgenommen.",
    "plan_on": "Pläne werden Ihnen gezeigt, bevor etwas läuft. {/plan off} beendet das.",
    "plan_off": "Pläne laufen sofort. {/plan on} zeigt sie Ihnen zuerst.",
    "plan_usage": "Schreiben Sie {/plan on} oder {/plan off}. {/todo …} ändert den laufenden Plan.",
    "plan_expired": "Niemand hat den Plan rechtzeitig erlaubt; nichts lief. Fragen Sie neu.",
    "plan_wish": "Schreiben Sie einfach, was anders sein soll; in einer Gruppe als Antwort auf den "
    "Plan. Dann wird er neu gemacht.",
    "todo_no_step": "Einen Schritt {step} gibt es nicht; der letzte ist {last}.",
    "todo_usage": "Ändern mit {/todo …} und: done 2, skip 2, retry 2, drop 2, add was zu tun "
    "ist, "
    "insert 2 was davor zu tun ist, move 3 1.",
    "command_todo": "Die Schritte des laufenden Plans, und Änderungen daran",
    "command_plan": "Ob Pläne gezeigt werden, bevor sie laufen: on oder off",
    "mode_is": "Anfragen gehen an: {mode}.",
    "mode_ends": "{/mode task} beendet das.",
    "mode_back": "{/mode {word}} nimmt das zurück.",
    "mode_free": "Ich entscheide wieder bei jeder Anfrage, wie ich sie angehe.",
    "mode_no_skill": "Der Modus {mode} geht hier nicht. {why}",
    "step_of": "Schritt {n} von {all}: {step}.",
}
