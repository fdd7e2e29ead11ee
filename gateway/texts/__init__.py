"""The fixed texts that people see, written once, by language: what happened, then what to do.

A feature may have its own beside them, as `gateway.texts.languages.Texts`. A command is written
`{/stop all}`, or `{/resume …}` if its person completes it, and stays a value in the result of `say`
(`gateway.command_texts`). Vocabulary: imports nothing of ours. Adapters take the words of their
cards from here.
"""

from pathlib import Path
from typing import Literal, TypeAlias

from gateway.command_texts import mark_commands
from gateway.texts import failures as faults
from gateway.texts import history, identities, jobs, links, memory, plans, previews, spending, tools
from gateway.texts import permissions as grants
from gateway.texts import reasons as people
from gateway.texts.languages import Texts

_Key = Literal[
    "approve_once", "approve_conversation", "approve_always", "deny", "hosts_once",
    "hosts_conversation", "hosts_always", "sandbox_contains", "sandbox_cannot", "sandbox_leaks",
    "sandbox_missing", "sandbox_none", "sandbox_grouped", "sandbox_watched", "browser_enclosed",
    "browser_beside", "sandbox_untested", "approved",
    "approved_conversation", "approved_always", "denied", "denied_why", "outcome_unknown", "heard",
    "expired", "cancelled", "answered", "stopped", "stopped_note", "interrupted_note", "limit_note",
    "twice_note", "lost_note", "dead", "bug", "empty", "not_open", "not_yours",
    "stop_not_yours", "not_here",
    "unknown_button", "joined", "stranger", "paired", "paired_admin", "pair_wrong",
    "pair_locked",
    "pair_usage", "not_allowed", "not_known", "admins_only", "nothing_running", "new",
    "unknown_command", "command_extra",
    "mode_ask", "mode_auto", "mode_queue", "mode_steer", "mode_interrupt", "mode_usage",
    "mode_admins",
    "profile_is", "profile_needs", "approval_of", "no_approvals", "still_waiting", "lost_file",
    "send_again", "status", "model_near", "model_none", "model_nameless", "model_keyless",
    "model_choose", "model_admins",
    "model_unknown", "model_demo", "model_chosen", "model_gone", "model_usage",
    "command_rename", "rename_usage", "renamed",
    "whoami", "help", "help_talk", "help_plans", "help_jobs", "help_ways", "help_people",
    "help_more",
    "edited", "deleted", "view_failed", "view_in_doubt", "row_failed", "unreadable",
    "unstorable", "troubled", "work_lost", "answer_usage", "above", "set_in_thread",
    "too_many", "no_ears", "outage", "ask_one", "ask_many", "asked_by", "to_decide", "chat_lost",
    "chat_was_lost",
    "always_covers", "here_covers", "both_cover", "risk_low", "risk_medium", "risk_high",
    "line_failed", "line_denied", "line_stopped", "line_unknown", "earlier_steps",
    "later_steps", "more_characters", "your_answer", "something_else", "own_words",
    "your_question", "not_in_here", "deny_words", "deny_by_number", "deny_reason",
    "reason", "wishes", "send_off", "back", "arguments",
    "not_entitled", "who_asker", "who_admin", "who_user", "voted", "voted_before",
    "escalated", "remind_approval", "remind_question", "over_quota", "welcome", "welcome_admin",
    "unpaired", "unpair_listed", "unpair_unknown", "unpair_usage", "link_private", "link_code",
    "link_same", "link_full", "linked", "linked_with", "not_linked", "parted", "relayed",
    "not_relayed", "passed_on",
    "whole_in_file", "file_too_large",
    "working", "waits", "idle",
    "home_waits", "home_runs", "home_jobs", "home_quiet", "command_start",
    "command_help", "command_new", "command_stop", "command_mode",
    "command_approvals", "command_approve", "command_deny", "command_status", "command_model",
    "command_permissions", "command_pair", "command_unpair", "command_link", "command_whoami",
    "research_init", "research_search", "research_analyze", "research_synthesize",
    "research_write", "research_sources", "research_findings",
]  # fmt: skip
_Areas: TypeAlias = history.HistoryKey | jobs.JobKey | memory.MemoryKey | plans.PlanKey
_Rest: TypeAlias = people.ReasonKey | spending.SpendingKey | faults.FaultKey | grants.GrantKey
_More: TypeAlias = tools.ToolTextKey | links.LinkKey | previews.PreviewKey | identities.IdentityKey
Key: TypeAlias = _Key | _Areas | _Rest | _More

ENGLISH: dict[Key, str] = {
    "approve_once": "Approve once",
    "approve_conversation": "Approve in this conversation",
    "approve_always": "Always approve",
    "hosts_once": "Allow these hosts once",
    "hosts_conversation": "Allow them in this conversation",
    "hosts_always": "Always allow them",
    "deny": "Deny",
    "approved": "Approved once by {name}, {when}.",
    "approved_conversation": "Approved for this conversation by {name}, {when}.",
    "approved_always": "Always approved by {name}, {when}.",
    "denied": "Denied by {name}, {when}.{why}",
    "denied_why": "Reason: {why}",
    "outcome_unknown": "The gateway stopped while this was running. It may or may not have taken "
    "effect; check before you ask for it again.",
    "heard": "I heard: {text}",
    "expired": "This expired without a decision, so it was not run.",
    "cancelled": "Withdrawn: the request was stopped.",
    "answered": "{name}: {text}",
    "stopped": "Stopped.",
    "stopped_note": "Stopped here.",
    "interrupted_note": "Stopped here: a newer message arrived.",
    "limit_note": "Stopped: the limit for one request was reached.",
    "twice_note": "Possibly sent twice (restart).",
    "lost_note": "Possibly sent twice (the connection was lost).",
    "dead": "I could not finish this: the gateway stopped {n} {n:time|times} while working on it. "
    "The message is kept; an operator can resubmit it. Try rephrasing it.",
    "bug": "Something in the gateway failed, so this request ended. Your message is kept. Please "
    "try again; the operator can find the cause in the log under {id}.",
    "empty": "(The answer was empty.)",
    "not_open": "This question is already closed. Nothing was changed.",
    "not_yours": "Only the person who asked, or an admin, can decide this.",
    "stop_not_yours": "This is somebody else's request. Only they, or an admin, can stop it.",
    "not_here": "This button belongs to another conversation. Nothing was changed.",
    "unknown_button": "I do not recognise this button. It may belong to an earlier installation.",
    "joined": "More than {n} {n:message is|messages are} pending. I am combining the oldest ones, "
    "word for word.",
    "stranger": "I do not know you yet. Show this code to an admin: {code}\nAn admin enters it "
    "with {/pair {code}}, on the page or on the command line. It is valid for one hour.",
    "paired": "{name} may now use this bot.",
    "paired_admin": "{name} may now use this bot and is its first admin.",
    "pair_wrong": "This code is not valid, or it has expired. Ask for a new one.",
    "pair_locked": "Five wrong codes: you cannot enter another one for an hour.",
    "pair_usage": "Write the code after the command: {/pair ABCD2345…}",
    "not_allowed": "You may only read here. Ask an admin to do this, or for access.",
    "not_known": "I do not know you yet, so I did nothing. Write to me in private to get a code, "
    "and show it to an admin.",
    "admins_only": "Only an admin may do this; your role here is {role}. Nothing was changed. Ask "
    "an admin to do it.",
    "nothing_running": "Nothing is running.",
    "mode_admins": "In a group only admins choose what happens to messages while I work.",
    "new": "New conversation. I no longer see earlier messages.",
    "unknown_command": "There is no command /{name}. Write {/help} for a list.",
    "command_extra": "Nothing was done: what follows {command} does not belong to it. Send it "
    "without that.",
    "mode_ask": "I ask before every change and every command.",
    "mode_auto": "I ask only before something risky.",
    "mode_queue": "Messages you send while I work wait until I am done.",
    "mode_steer": "Messages you send while I work are taken into account at once.",
    "mode_interrupt": "A message you send while I work stops me, and I answer that message "
    "instead.",
    "mode_usage": "Write {/mode ask} (I ask before every change and every command) or "
    "{/mode auto …} (only before something risky). For messages sent while I work: {/mode queue} "
    "(they wait), {/mode steer} (I take them into account at once) or {/mode interrupt} (I stop "
    "for them). For a kind of task: {/mode research}, image, slide, app, general, browser, swe, "
    "data, mcp or sandboxed; {/mode task} switches it off.",
    "profile_is": "Profile: {profile}.",
    "profile_needs": "It needs {tools}, which is not set up here, so it works without it.",
    "approval_of": "approval of {calls}",
    "no_approvals": "No approvals are pending.",
    "still_waiting": "(Still waiting for a person: {what})",
    "lost_file": "The file {name} could not be downloaded: {why}",
    "send_again": "Send it again if it is still needed.",
    "status": "{state}.{step}\n{spent}Pending messages: {waiting}. Open questions: {questions}.\n"
    "{permission}\nModel: {model}.\n{sandbox}",
    "model_near": "{provider} has no model {model}. Did you mean {provider}/{near}? Nothing was "
    "changed.",
    "model_nameless": "There is no model {model} here. {/model} lists the available ones; any "
    "other is written as provider/model. Nothing was changed.",
    "model_keyless": "{provider} has no API key here, so {model} cannot answer. The operator sets "
    "{setting}. Nothing was changed.",
    "model_choose": "The model here is {model}. Press another one to switch.",
    "model_admins": "Only an admin can choose the model here. It is {model}.",
    "model_chosen": "{model} answers here from the next message on.",
    "model_gone": "That model is no longer in the list. Write {/model} again.",
    "command_rename": "Name this conversation",
    "rename_usage": "Write {/rename …} and the new name.",
    "renamed": "This conversation is now called '{title}'.",
    "model_usage": "Write {/model} and the name of the model to use, followed by up to five "
    "fallbacks written as provider/model.",
    "model_demo": "Only the demo model is available, because no key is set. Set one, such as "
    "OPENAI_API_KEY, and restart the gateway.",
    "model_unknown": "There is no model {model} here. Did you mean {near}? Nothing was changed.",
    "model_none": "{provider} has no model {model}. Nothing was changed.",
    "sandbox_contains": "Sandbox: {name}; it contains what runs in it.",
    "sandbox_cannot": "Not hidden from it: sizes and dates of files with known paths, that "
    "other processes exist, and secret files of the workspace (commands there are asked about). "
    "It can change the copies for undo.",
    "sandbox_untested": "Sandbox: {name}; its self-test has not finished yet.",
    "sandbox_grouped": "The kernel enforces its limits (control groups).",
    "sandbox_watched": "Its limits are watched (no control groups).",
    "sandbox_leaks": "Sandbox: {name}; programs in it can reach: {leaks}.",
    "sandbox_missing": "Sandbox: none works on this machine, so commands cannot run. The operator "
    "can install bubblewrap, or use Linux 6.2 or newer with Landlock.",
    "sandbox_none": "Sandbox: none ({name}).",
    "browser_enclosed": "The browser runs in its own sandbox.",
    "browser_beside": "The browser runs outside it, on the gateway's machine.",
    "whoami": "You are {person}, role: {role}.",
    "help": "Tell me what you want done. Commands:\n\n{commands}",
    "help_talk": "**Conversation**",
    "help_plans": "**Plans and approvals**",
    "help_jobs": "**Scheduled jobs**",
    "help_ways": "**How I work**",
    "help_people": "**Status and people**",
    "help_more": "**More**",
    "set_in_thread": "This holds for the thread in which your request runs or waits. For threads "
    "that begin later, write the command again when nothing of yours runs or waits here.",
    "edited": "(I changed my message to: {text})",
    "deleted": "(I withdrew my last message.)",
    "above": "(The rest is above.)",
    "too_many": "Withdrawn: more than {n} {n:request is|requests are} waiting for a decision here. "
    "Ask again if you still want it.",
    "view_failed": "A message could not be shown: {why}",
    "view_in_doubt": "A message may be missing here: the platform did not confirm it. Write "
    "{/retry} if you do not see an answer.",
    "row_failed": "Something in the gateway failed while I worked on this. It is kept as {id}; an "
    "operator can resubmit it. Please try again.",
    "unreadable": "Something stored here ({what}) cannot be read by this version. It is kept as "
    "{id}; an operator can resubmit it after an upgrade.",
    "unstorable": "The result could not be stored, so this request ended. Your message is kept; "
    "an operator can resubmit it. Try again in other words.",
    "troubled": "I cannot save my work at the moment. Nothing is lost: I continue as soon as I "
    "can save again.",
    "work_lost": "The database of this chat has lost its newest entries, and with them the request "
    "that was under way. What was already done stays done. Send it again if you still need it.",
    "answer_usage": "Write {/{name} …} and the number of the question; {/approvals} lists them.",
    "outage": "I cannot save anything at the moment, so I am not starting. Your message is kept "
    "and will be answered as soon as possible; the operator can find the cause in the log.",
    "no_ears": "I cannot listen to voice notes here: no transcription model is configured. Please "
    "write instead.",
    "ask_one": "May this run?",
    "ask_many": "May these {n} calls run?",
    "asked_by": "Requested by {name}",
    "to_decide": "To decide:",
    "chat_lost": "I can no longer write in a chat where you asked me something, so I stopped "
    "there.",
    "chat_was_lost": "I could not write here any more, so I stopped.",
    "always_covers": "“Always” covers: {rule}",
    "here_covers": "“In this conversation” covers: {rule}",
    "both_cover": "“In this conversation” and “Always” cover: {rule}",
    "risk_low": "low risk",
    "risk_medium": "medium risk",
    "risk_high": "high risk",
    "line_failed": "failed",
    "line_denied": "denied",
    "line_stopped": "stopped",
    "line_unknown": "outcome unknown",
    "earlier_steps": "{n} earlier {n:step|steps}",
    "later_steps": "{n} more {n:step|steps}",
    "more_characters": "{n} more {n:character|characters}",
    "your_answer": "Your answer",
    "something_else": "Something else",
    "own_words": "Write your answer as a plain message; in a group reply to the question with it.",
    "your_question": "Your question",
    "not_in_here": "I am not in this chat, so I cannot answer here. Invite me to the channel "
    "first, or copy the message into our private chat.",
    "deny_words": "Write the reason as a plain message; in a group reply to the card with it.",
    "deny_by_number": "In this chat use {/deny …} with the number that {/approvals} shows and the "
    "reason.",
    "deny_reason": "Deny with reason",
    "reason": "Reason",
    "wishes": "What should I change?",
    "send_off": "Send",
    "back": "Back",
    "arguments": "Arguments",
    "whole_in_file": "The answer is long: this file contains all of it.",
    "file_too_large": "The file {name} is {size} MB, more than the {most} MB that can be sent "
    "here. Ask for smaller parts, or download it from the page.",
    "working": "Working",
    "waits": "Waiting for an answer",
    "idle": "Idle",
    "home_waits": "Waiting for you",
    "home_runs": "Running now",
    "home_jobs": "Your jobs",
    "home_quiet": "Nothing is running, and nothing is waiting for you. Write to me under Messages.",
    "command_start": "About this bot",
    "command_help": "Show commands",
    "command_new": "Start a new conversation",
    "command_stop": "Stop the current request; {/stop all} also ends pending ones",
    "command_mode": "When I ask, and what happens to messages while I work",
    "command_approvals": "Show pending approvals",
    "command_approve": "Approve what is pending",
    "command_deny": "Deny what is pending, with a reason",
    "command_status": "Show status",
    "command_model": "Show or choose the model",
    "command_permissions": "Show standing approvals",
    "command_pair": "Approve a pairing code",
    "command_unpair": "Remove someone's access",
    "command_link": "Link your accounts; {/link page} signs in to the page, {/link off} unlinks",
    "command_whoami": "Show your ID and role",
    "not_entitled": "You may not decide this. It can be decided by: {who}.",
    "who_asker": "the requester",
    "who_admin": "admins",
    "who_user": "users",
    "voted": "{name} approved, {given} of {needed}. It runs when enough people have approved.",
    "voted_before": "You have already approved this. Approvals still needed: {left}.",
    "escalated": "Still undecided: {what}\nFrom now on it can also be decided by: {who}.",
    "remind_approval": "Still waiting for a decision: {what}\nPress a button on its card, or write "
    "{/approve …} or {/deny …}.",
    "remind_question": "Still waiting for an answer: {what}",
    "over_quota": "You have reached the limit of {n} {n:request|requests} an hour. This message "
    "was not processed; send it again in {minutes} {minutes:minute|minutes}.",
    "welcome": "You now have access. Tell me what you want done; {/help} lists the commands.",
    "welcome_admin": "You now have access, as an admin. Tell me what you want done; {/help} lists "
    "the commands.",
    "unpaired": "{person} may no longer use this bot.",
    "unpair_listed": "{person} has access through the settings. Remove the ID there.",
    "unpair_unknown": "{person} has no access through a pairing code. Nothing was changed.",
    "unpair_usage": "Write the ID after the command: {/unpair telegram:123…}",
    "link_private": "This works only in a private chat with me.",
    "link_code": "Your code is {code}. Write /link {code} to me from your other account within 10 "
    "minutes. Keep it to yourself: whoever enters it can decide everything that you can.",
    "link_same": "This code is for your other account. Send it to me from there.",
    "link_full": "You can link at most {n} {n:account|accounts}. Write {/link off} from one of "
    "them first.",
    "linked": "Linked with {accounts}. What one of your accounts asks for, the others can decide. "
    "If you did not request this code yourself, write {/link off}.",
    "linked_with": "Linked with: {accounts}.",
    "not_linked": "This account is not linked with another one.",
    "parted": "This account is no longer linked.",
    "relayed": "Sent to the approvers' chat: {what}\nIt can be decided by: {who}.",
    "not_relayed": "The approvers' chat did not take this question ({why}), so perhaps nobody "
    "there knows of it. Please tell somebody who may decide it.",
    "passed_on": "Forwarded to the conversation that asked.",
    "research_init": "Define the question",
    "research_search": "Search and read",
    "research_analyze": "Analyse the sources",
    "research_synthesize": "Combine the findings",
    "research_write": "Write the report",
    "research_sources": "sources: {n}",
    "research_findings": "findings: {n}",
}

GERMAN: dict[Key, str] = {
    "approve_once": "Einmal erlauben",
    "approve_conversation": "In dieser Unterhaltung erlauben",
    "approve_always": "Immer erlauben",
    "hosts_once": "Diese Hosts einmal erlauben",
    "hosts_conversation": "In dieser Unterhaltung erlauben",
    "hosts_always": "Immer erlauben",
    "deny": "Ablehnen",
    "approved": "Einmal erlaubt von {name}, {when}.",
    "approved_conversation": "Für diese Unterhaltung erlaubt von {name}, {when}.",
    "approved_always": "Für immer erlaubt von {name}, {when}.",
    "denied": "Abgelehnt von {name}, {when}.{why}",
    "denied_why": "Grund: {why}",
    "outcome_unknown": "Das Gateway brach ab, während das lief. Es kann gewirkt haben oder nicht; "
    "prüfen Sie es, bevor Sie noch einmal darum bitten.",
    "heard": "Verstanden habe ich: {text}",
    "expired": "Niemand hat rechtzeitig geantwortet, daher wurde es nicht ausgeführt.",
    "cancelled": "Zurückgezogen: der Vorgang wurde angehalten.",
    "answered": "{name}: {text}",
    "stopped": "Angehalten.",
    "stopped_note": "Hier angehalten.",
    "interrupted_note": "Hier angehalten: eine neuere Nachricht kam.",
    "limit_note": "Angehalten: mehr darf ein Vorgang nicht dauern.",
    "twice_note": "Möglicherweise doppelt gesendet (Neustart).",
    "lost_note": "Möglicherweise doppelt gesendet (die Verbindung brach ab).",
    "dead": "Das konnte ich nicht beenden: das Gateway brach dabei {n}-mal ab. Die Nachricht ist "
    "aufbewahrt und kann vom Betreiber erneut eingereicht werden. Versuchen Sie es anders.",
    "bug": "Im Gateway ist etwas fehlgeschlagen, dieser Vorgang ist beendet. Ihre Nachricht ist "
    "aufbewahrt. Bitte versuchen Sie es erneut; der Grund steht im Protokoll unter {id}.",
    "empty": "(Die Antwort war leer.)",
    "not_open": "Diese Frage ist schon geschlossen. Nichts wurde geändert.",
    "not_yours": "Nur wer gefragt hat oder ein Admin kann das entscheiden.",
    "stop_not_yours": "Das hat jemand anders verlangt. Anhalten kann es nur diese Person oder ein "
    "Admin.",
    "not_here": "Dieser Knopf gehört zu einer anderen Unterhaltung. Nichts wurde geändert.",
    "unknown_button": "Diesen Knopf kenne ich nicht. Er stammt vielleicht von früher.",
    "joined": "Mehr als {n} {n:Nachricht wartet|Nachrichten warten}. Die ältesten fasse ich "
    "wörtlich zusammen.",
    "stranger": "Ich kenne Sie noch nicht. Zeigen Sie einem Admin diesen Code: {code}\nEin Admin "
    "gibt ihn mit {/pair {code}} ein, auf der Seite oder der Kommandozeile. Er gilt eine Stunde.",
    "paired": "{name} darf diesen Bot nun benutzen.",
    "paired_admin": "{name} darf diesen Bot nun benutzen und ist sein Admin: die erste Person "
    "hier.",
    "pair_wrong": "Der Code gilt nicht oder nicht mehr. Lassen Sie sich einen neuen zeigen.",
    "pair_locked": "Fünf falsche Codes: für eine Stunde können Sie keine mehr eingeben.",
    "pair_usage": "Schreiben Sie den Code dahinter: {/pair ABCD2345…}",
    "not_allowed": "Sie dürfen hier lesen, aber das nicht tun. Fragen Sie einen Admin.",
    "not_known": "Ich kenne Sie noch nicht, daher habe ich nichts getan. Schreiben Sie mir privat, "
    "dann bekommen Sie einen Code, und zeigen Sie ihn einem Admin.",
    "admins_only": "Das darf nur ein Admin; Ihre Rolle hier ist {role}. Nichts wurde geändert. "
    "Bitten Sie einen Admin darum.",
    "nothing_running": "Es läuft nichts.",
    "mode_admins": "In einer Gruppe bestimmen nur Admins, was Nachrichten bewirken, während ich "
    "arbeite.",
    "new": "Neue Unterhaltung. Das Bisherige sehe ich nicht mehr.",
    "unknown_command": "Den Befehl /{name} gibt es nicht. {/help} zeigt alle.",
    "command_extra": "Es wurde nichts getan: Was auf {command} folgt, gehört nicht dazu. Bitte "
    "ohne das senden.",
    "mode_ask": "Ich frage vor jeder Änderung und jedem Befehl.",
    "mode_auto": "Ich frage nur vor Riskantem.",
    "mode_queue": "Was Sie schreiben, während ich arbeite, wartet, bis es an der Reihe ist.",
    "mode_steer": "Was Sie schreiben, während ich arbeite, beachte ich sofort.",
    "mode_interrupt": "Schreiben Sie, während ich arbeite, höre ich auf und wende mich dem zu.",
    "mode_usage": "Schreiben Sie {/mode ask} (ich frage vor jeder Änderung und jedem Befehl) oder "
    "{/mode auto …} (nur vor Riskantem). Für das, was Sie schreiben, während ich arbeite: "
    "{/mode queue} (es wartet), {/mode steer} (ich beachte es sofort) oder {/mode interrupt} (ich "
    "höre dafür auf). Wofür ich hier da bin: {/mode research}, image, slide, app, general, "
    "browser, swe, data, mcp oder sandboxed; {/mode task} beendet das.",
    "profile_is": "Profil: {profile}.",
    "profile_needs": "Es braucht {tools}; das ist hier nicht eingerichtet, also geht es ohne.",
    "approval_of": "Erlaubnis für {calls}",
    "no_approvals": "Nichts wartet auf eine Entscheidung.",
    "still_waiting": "(Wartet noch auf einen Menschen: {what})",
    "lost_file": "Die Datei {name} konnte nicht geholt werden: {why}",
    "send_again": "Senden Sie sie noch einmal, falls sie noch gebraucht wird.",
    "status": "{state}.{step}\n{spent}Wartende Nachrichten: {waiting}. Offene Fragen: {questions}."
    "\n{permission}\nModell: {model}.\n{sandbox}",
    "model_near": "{provider} hat kein Modell {model}. Meinten Sie {provider}/{near}? Es wurde "
    "nichts geändert.",
    "model_nameless": "Es gibt hier kein Modell {model}. {/model} zeigt die, die es gibt; ein "
    "anderes schreibt man als Anbieter/Modell. Es wurde nichts geändert.",
    "model_keyless": "{provider} hat hier keinen Schlüssel, {model} kann also nicht antworten. "
    "Der Betreiber setzt {setting}. Es wurde nichts geändert.",
    "model_choose": "Hier antwortet {model}. Ein Druck auf ein anderes wechselt es.",
    "model_admins": "Das Modell wählt hier nur ein Admin. Es ist {model}.",
    "model_chosen": "Ab der nächsten Nachricht antwortet hier {model}.",
    "model_gone": "Dieses Modell ist nicht mehr in der Liste. Geben Sie {/model} noch einmal ein.",
    "command_rename": "Diese Unterhaltung benennen",
    "rename_usage": "Schreiben Sie {/rename …} und den neuen Namen.",
    "renamed": "Diese Unterhaltung heißt jetzt „{title}“.",
    "model_usage": "Schreiben Sie {/model} mit dem Modell, das antwortet, und dahinter "
    "bis zu fünf als anbieter/modell, die es tun, wenn es ausfällt.",
    "model_demo": "Hier antwortet nur das Demomodell, denn es ist kein Schlüssel gesetzt. "
    "Setzen Sie einen, etwa OPENAI_API_KEY, und starten Sie das Gateway neu.",
    "model_unknown": "Es gibt hier kein Modell {model}. Meinten Sie {near}? Es wurde nichts "
    "geändert.",
    "model_none": "{provider} hat kein Modell {model}. Es wurde nichts geändert.",
    "sandbox_contains": "Sandbox: {name}; sie hält fest, was in ihr läuft.",
    "sandbox_cannot": "Nicht verborgen sind darin: Größe und Datum von Dateien mit bekanntem "
    "Pfad, dass andere Prozesse laufen, und geheime Dateien des Arbeitsordners (dort wird nach "
    "Befehlen gefragt). Die Kopien für das Zurücknehmen lassen sich dort ändern.",
    "sandbox_untested": "Sandbox: {name}; ihr Selbsttest läuft noch.",
    "sandbox_grouped": "Ihre Grenzen setzt der Kernel durch (Control Groups).",
    "sandbox_watched": "Ihre Grenzen werden überwacht (keine Control Groups).",
    "sandbox_leaks": "Sandbox: {name}; von innen erreichbar: {leaks}.",
    "sandbox_missing": "Sandbox: keine läuft auf diesem Rechner, also läuft kein Befehl. Der "
    "Betreiber kann bubblewrap installieren, oder Linux ab 6.2 mit Landlock benutzen.",
    "sandbox_none": "Sandbox: keine ({name}).",
    "browser_enclosed": "Der Browser hat eine eigene Sandbox.",
    "browser_beside": "Der Browser läuft neben ihr, auf dem Rechner des Gateways.",
    "whoami": "Sie sind {person}, Rolle: {role}.",
    "help": "Schreiben Sie, was getan werden soll. Befehle:\n\n{commands}",
    "help_talk": "**Unterhaltung**",
    "help_plans": "**Pläne und Freigaben**",
    "help_jobs": "**Geplante Aufträge**",
    "help_ways": "**Wie ich arbeite**",
    "help_people": "**Stand und Personen**",
    "help_more": "**Weitere**",
    "set_in_thread": "Das gilt im Thread, in dem Ihre Anfrage läuft oder wartet. Für spätere "
    "Threads geben Sie den Befehl noch einmal, wenn hier nichts von Ihnen läuft oder wartet.",
    "edited": "(Ich habe meine Nachricht geändert: {text})",
    "deleted": "(Ich habe meine letzte Nachricht zurückgezogen.)",
    "above": "(Alles Weitere steht oben.)",
    "too_many": "Zurückgezogen: mehr als {n} {n:Vorgang wartet|Vorgänge warten} hier auf eine "
    "Entscheidung. Fragen Sie noch einmal, wenn es noch gewünscht ist.",
    "view_failed": "Eine Nachricht konnte nicht gezeigt werden: {why}",
    "view_in_doubt": "Hier fehlt vielleicht eine Nachricht: die Plattform hat sie nicht bestätigt. "
    "Schreiben Sie {/retry}, wenn Sie keine Antwort sehen.",
    "row_failed": "Im Gateway ist bei der Arbeit daran ein Fehler aufgetreten. Es ist als {id} "
    "aufbewahrt; ein Operator kann es erneut einreichen. Bitte versuchen Sie es noch einmal.",
    "unreadable": "Etwas Gespeichertes ({what}) kann diese Version nicht lesen. Es ist als {id} "
    "aufbewahrt; ein Operator kann es nach einem Upgrade erneut einreichen.",
    "unstorable": "Das Ergebnis kann nicht gespeichert werden, daher endete die Arbeit daran. Ihre "
    "Nachricht ist aufbewahrt; ein Operator kann sie erneut einreichen. Versuchen Sie es mit "
    "anderen Worten.",
    "troubled": "Ich kann meine Arbeit im Augenblick nicht speichern. Es geht nichts verloren: ich "
    "mache weiter, sobald es wieder geht.",
    "work_lost": "Die Datenbank dieses Chats hat ihre neuesten Einträge verloren, mit ihnen auch "
    "die laufende Anfrage. Was schon getan ist, bleibt getan. Schicken Sie sie noch einmal, wenn "
    "Sie sie noch brauchen.",
    "answer_usage": "Schreiben Sie {/{name} …} und die Nummer der Frage, siehe {/approvals}.",
    "outage": "Ich kann im Augenblick nichts aufschreiben und fange daher nicht an. Ihre Nachricht "
    "wartet und wird beantwortet, sobald es geht; der Betreiber sieht den Grund im Protokoll.",
    "no_ears": "Sprachnachrichten kann ich hier nicht hören: es ist kein Modell dafür eingestellt. "
    "Bitte schreiben Sie.",
    "ask_one": "Darf das laufen?",
    "ask_many": "Dürfen diese {n} Aufrufe laufen?",
    "asked_by": "Gefragt von {name}",
    "to_decide": "Es entscheidet:",
    "chat_lost": "In einen Chat, in dem Sie mich gefragt haben, kann ich nicht mehr schreiben; ich "
    "habe dort aufgehört.",
    "chat_was_lost": "Ich konnte hier nicht mehr schreiben; ich habe deshalb aufgehört.",
    "always_covers": "„Immer“ umfasst: {rule}",
    "here_covers": "„In dieser Unterhaltung“ umfasst: {rule}",
    "both_cover": "„In dieser Unterhaltung“ und „Immer“ umfassen: {rule}",
    "risk_low": "geringes Risiko",
    "risk_medium": "mittleres Risiko",
    "risk_high": "hohes Risiko",
    "line_failed": "fehlgeschlagen",
    "line_denied": "abgelehnt",
    "line_stopped": "angehalten",
    "line_unknown": "Ausgang unbekannt",
    "earlier_steps": "{n} {n:früherer Schritt|frühere Schritte}",
    "later_steps": "{n} {n:weiterer Schritt|weitere Schritte}",
    "more_characters": "{n} {n:weiteres|weitere} Zeichen",
    "your_answer": "Ihre Antwort",
    "something_else": "Etwas anderes",
    "own_words": "Schreiben Sie einfach Ihre Antwort; in einer Gruppe als Antwort auf die Frage.",
    "your_question": "Ihre Frage",
    "not_in_here": "Ich bin nicht in diesem Chat und kann hier nicht antworten. Laden Sie mich "
    "erst in den Kanal ein, oder kopieren Sie die Nachricht in unseren eigenen Chat.",
    "deny_words": "Schreiben Sie einfach den Grund; in einer Gruppe als Antwort auf die Karte.",
    "deny_by_number": "Hier geht das mit {/deny …}, der Nummer aus {/approvals} und dem Grund.",
    "deny_reason": "Mit Grund ablehnen",
    "reason": "Grund",
    "wishes": "Was soll anders werden?",
    "send_off": "Senden",
    "back": "Zurück",
    "arguments": "Was dazu zu sagen ist",
    "whole_in_file": "Die Antwort ist lang: ganz steht sie in dieser Datei.",
    "file_too_large": "Die Datei {name} hat {size} MB, mehr als die {most} MB, die hier gesendet "
    "werden können. Lassen Sie sie teilen oder holen Sie sie auf der Seite.",
    "working": "Ich arbeite",
    "waits": "Wartet auf eine Antwort",
    "idle": "Nichts zu tun",
    "home_waits": "Wartet auf Sie",
    "home_runs": "Läuft gerade",
    "home_jobs": "Ihre Aufträge",
    "home_quiet": "Nichts läuft, und nichts wartet auf Sie. Schreiben Sie mir unter Nachrichten.",
    "command_start": "Was das hier ist",
    "command_help": "Was es gibt",
    "command_new": "Eine neue Unterhaltung beginnen",
    "command_stop": "Den laufenden Vorgang anhalten; {/stop all} beendet auch wartende",
    "command_mode": "Wann ich frage, und was Nachrichten bewirken, während ich arbeite",
    "command_approvals": "Was auf eine Entscheidung wartet",
    "command_approve": "Erlauben, was wartet",
    "command_deny": "Ablehnen, was wartet, mit Grund",
    "command_status": "Was gerade geschieht",
    "command_model": "Das verwendete Modell",
    "command_permissions": "Regeln, die für länger erlaubt wurden",
    "command_pair": "Eine fremde Person mit ihrem Code einlassen",
    "command_unpair": "Jemanden aussperren, den ein Code einließ",
    "command_link": "Konten verbinden; {/link page} führt auf die Seite, {/link off} beendet es",
    "command_whoami": "Ihre Kennung und Rolle",
    "not_entitled": "Das dürfen Sie nicht entscheiden. Es entscheiden: {who}.",
    "who_asker": "wer gefragt hat",
    "who_admin": "Admins",
    "who_user": "Benutzer",
    "voted": "{name} hat zugestimmt, {given} von {needed}. Es läuft, wenn genug zugestimmt haben.",
    "voted_before": "Sie haben schon zugestimmt. Noch nötig: {left}.",
    "escalated": "Noch nicht entschieden: {what}\nAb jetzt dürfen auch entscheiden: {who}.",
    "remind_approval": "Wartet noch auf eine Entscheidung: {what}\nDrücken Sie einen Knopf auf der "
    "Karte oder schreiben Sie {/approve …} oder {/deny …}.",
    "remind_question": "Wartet noch auf eine Antwort: {what}",
    "over_quota": "Sie haben in der letzten Stunde {n} {n:Vorgang|Vorgänge} begonnen, mehr sind "
    "hier nicht erlaubt. Diese Nachricht blieb liegen; senden Sie sie in {minutes} "
    "{minutes:Minute|Minuten} noch einmal.",
    "welcome": "Sie sind eingelassen. Schreiben Sie, was getan werden soll; {/help} zeigt die "
    "Befehle.",
    "welcome_admin": "Sie sind eingelassen, als Admin. Schreiben Sie, was getan werden soll; "
    "{/help} zeigt die Befehle.",
    "unpaired": "{person} darf diesen Bot nicht mehr benutzen.",
    "unpair_listed": "{person} steht in den Einstellungen. Nehmen Sie die Kennung dort heraus.",
    "unpair_unknown": "{person} wurde nicht durch einen Code eingelassen. Nichts wurde geändert.",
    "unpair_usage": "Schreiben Sie die Kennung dahinter: {/unpair telegram:123…}",
    "link_private": "Das geht nur in einem privaten Chat mit mir.",
    "link_code": "Ihr Code ist {code}. Schreiben Sie mir binnen 10 Minuten von Ihrem anderen Konto "
    "/link {code}. Geben Sie ihn niemandem: wer ihn eingibt, darf entscheiden, was Sie dürfen.",
    "link_same": "Dieser Code ist für Ihr anderes Konto. Schreiben Sie ihn mir von dort.",
    "link_full": "Mehr als {n} {n:Konto lässt|Konten lassen} sich nicht verbinden. Schreiben Sie "
    "zuerst von einem davon {/link off}.",
    "linked": "Verbunden mit {accounts}. Was eines Ihrer Konten fragt, dürfen die anderen "
    "entscheiden. Haben Sie diesen Code nicht selbst angefordert, schreiben Sie {/link off}.",
    "linked_with": "Verbunden mit: {accounts}.",
    "not_linked": "Dieses Konto ist mit keinem anderen verbunden.",
    "parted": "Dieses Konto steht wieder für sich.",
    "relayed": "In den Chat der Entscheider gegeben: {what}\nEs entscheiden: {who}.",
    "not_relayed": "Der Chat der Entscheider hat diese Frage nicht angenommen ({why}); dort weiß "
    "vielleicht niemand davon. Bitte sagen Sie jemandem Bescheid, der entscheiden darf.",
    "passed_on": "An die Unterhaltung weitergegeben, die gefragt hat.",
    "research_init": "Den Rahmen abstecken",
    "research_search": "Suchen und lesen",
    "research_analyze": "Die Quellen prüfen",
    "research_synthesize": "Zusammenführen",
    "research_write": "Den Bericht schreiben",
    "research_sources": "Quellen: {n}",
    "research_findings": "Befunde: {n}",
}

for _area in (
    faults, grants, history, identities, jobs, links, memory, people, plans, previews, spending,
    tools,
):  # fmt: skip
    ENGLISH.update(_area.ENGLISH.items())
    GERMAN.update(_area.GERMAN.items())
for _catalogue in (ENGLISH, GERMAN):
    _catalogue.update({key: mark_commands(text) for key, text in _catalogue.items()})
CATALOGUE: Texts[Key] = Texts({"en": ENGLISH, "de": GERMAN}, Path(__file__).parent / "data")


def say(key: Key, language: str = "", **values: object) -> str:
    """Return the text `key` in the person's `language` (`de`, `de-AT`, …), or in English. It holds
    its commands as values; of `values` only an OwnText may add commands."""
    return CATALOGUE.say(key, language, **values)
