"""The agent's messages about itself, as values: a key, its fields, and the English text.

A surface in another language finds its text by the key; nothing parses the English. Light:
`agent_core.errors` needs it, and that is imported with `Agent`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

FaultKey = Literal[
    "fault_key",
    "fault_credit",
    "fault_rate",
    "fault_rate_until",
    "fault_late",
    "fault_down",
    "fault_down_until",
    "fault_refused",
    "fault_overflow",
    "fault_truncated",
    "fault_silent",
    "fault_unreachable",
    "fault_uncallable",
    "fault_characters",
    "fault_stopped",
    "fault_cut",
    "fault_error",
    "fault_empty",
    "fault_declined",
    "fault_senseless",
    "fault_stuck",
    "fault_long_call",
    "fault_thought_out",
    "fault_page",
    "fault_guard_message",
    "fault_guard_answer",
]
ReasonKey = Literal[
    "why_denied",
    "why_ask_all",
    "why_outside",
    "why_hidden",
    "why_secret_file",
    "why_secret_shell",
    "why_reads_secret",
    "why_exposed",
    "why_committed",
    "why_owned",
    "why_long_path",
    "why_url",
    "why_inside",
    "why_viewer",
    "why_operator",
    "why_operator_plain",
    "why_operator_unclear",
    "why_write",
    "why_settings",
    "why_network",
    "why_too_long",
    "why_lent",
    "why_hosts",
    "why_unsaved",
    "data_leaves",
    "changed_since",
    "covers_hosts",
    "why_looks",
    "why_unisolated",
    "why_unsure",
    "isolated",
    "isolated_not",
    "reaches",
    "runs_on",
    "without_value",
    "odd_program",
    "odd_goes_on",
    "odd_long",
    "odd_lines",
    "odd_behind",
    "odd_empty",
    "odd_quote",
    "odd_escape",
    "odd_substitution",
    "odd_syntax",
    "odd_name",
    "odd_use",
    "odd_verb",
    "odd_valued",
    "odd_glob_option",
    "odd_count",
    "odd_option",
    "odd_glob_in_option",
    "odd_place",
    "odd_glob_dot",
    "odd_glob_secret",
    "odd_search",
    "odd_find_glob",
    "odd_find",
    "covers_search",
    "covers_research",
    "covers_pages",
    "covers_foreign",
    "elicit_asks",
    "elicit_send",
    "elicit_accept",
    "elicit_decline",
    "elicit_opened",
    "elicit_yes",
    "elicit_no",
    "elicit_skip",
    "elicit_link",
    "elicit_proposed",
    "elicit_no_secrets",
    "elicit_leave",
    "elicit_refuse",
    "elicit_take",
    "elicit_again",
    "elicit_text",
    "elicit_number",
    "elicit_integer",
    "elicit_one",
    "elicit_some",
    "elicit_email",
    "elicit_uri",
    "elicit_date",
    "elicit_time",
    "sign_in_asks",
    "sign_in_once",
    "sign_in_private",
    "sign_in_local",
    "sign_in_done",
    "sign_in_leave",
    "does_click",
    "does_type",
    "does_choose",
    "does_press",
    "does_nothing",
    "does_nowhere",
    "why_guard_url",
    "why_guard_code",
    "why_guard_late",
    "guard_warned_message",
    "guard_warned_answer",
    "guard_injection",
    "guard_jailbreak",
    "guard_harmful",
    "guard_toxic",
    "guard_personal",
]
AllowedKey = Literal["why_person", "why_read", "why_contained", "granted_before"]
"""The reason why a call is allowed: for the log and the audit, not shown to people."""
PreviewKey = Literal[
    "preview_title",
    "preview_newest",
    "preview_open",
    "preview_old",
    "preview_not_kept",
    "preview_closed",
    "preview_stopped",
    "preview_down",
    "preview_silent",
]
PhraseKey: TypeAlias = FaultKey | ReasonKey | AllowedKey | PreviewKey

FAULTS: dict[FaultKey, str] = {
    "fault_key": "{name} refused the key ({status}). Check {setting}.",
    "fault_credit": "{name} reports that there is no credit left. Check the account.",
    "fault_rate": "{name} limits the rate (429). Try again later or use another model.",
    "fault_rate_until": "{name} limits the rate (429). Try again in {time} or use another model.",
    "fault_late": "{name} took too long (408). Try again.",
    "fault_down": "{name} is overloaded or down ({status}). Try again later.",
    "fault_down_until": "{name} is overloaded or down ({status}). Try again in {time} or use "
    "another model.",
    "fault_overflow": (
        "This conversation exceeds the context window of {name}'s model, even when shortened. "
        "Begin a new one, choose a model with a larger window, or start its server with a larger "
        "context."
    ),
    "fault_truncated": (
        "{name} silently dropped the beginning of this conversation: its context is about {tokens} "
        "tokens. Older messages are summarised now. For more, start Ollama with "
        "OLLAMA_CONTEXT_LENGTH=16384, or choose a model with a larger window."
    ),
    "fault_refused": "{name} did not accept the request ({status}): {detail}",
    "fault_silent": "{name} sent nothing for {seconds}. Try again later.",
    "fault_unreachable": "{name} cannot be reached at {host}. Check the network and the base URL.",
    "fault_uncallable": "{name} cannot be called: {detail}. Check key and base URL.",
    "fault_characters": "The conversation contains broken characters.",
    "fault_stopped": "{name} stopped sending. Try again, or use another model.",
    "fault_cut": "{name} broke off its answer. Try again, or use another model.",
    "fault_error": "{name} broke off with an error: {detail}. Try again, or use another model.",
    "fault_empty": "{name} gave an empty answer. Try again, or use another model.",
    "fault_declined": "{name} refused to answer this. Ask in another way, or use another model.",
    "fault_senseless": "{name} sent something that is not {detail}. Try again, or use another "
    "model.",
    "fault_stuck": "I made no progress ({detail}). Ask in another way.",
    "fault_long_call": "{name} met its output limit in the middle of a call, again and again, so "
    "nothing was run. Ask for less at once, or use a model that writes longer answers.",
    "fault_thought_out": "{name} used up its output limit before it began to answer. Ask for less "
    "at once, let it reason less, or use another model.",
    "fault_page": "There is a web page at the address of {name}, and no model. Check the base URL; "
    "most end in v1.",
    "fault_guard_message": "This message was not answered: a guardrail found {what} in it. Write "
    "it in another way.",
    "fault_guard_answer": "The answer is not shown: a guardrail found {what} in it. Ask in another "
    "way.",
}
REASONS: dict[ReasonKey, str] = {
    "why_denied": "Denied: {why}",
    "why_ask_all": "Every call needs approval here (PERMISSION_ASK_ALL).",
    "why_outside": "The path leaves the workspace. Write it from the "
    "workspace's folder, without ..",
    "why_hidden": "The path has control or invisible characters.",
    "why_secret_file": "The path names a file for secrets. Their content stays out "
    "of the conversation.",
    "why_secret_shell": "A shell that stays does not see files for secrets. Use run_command for "
    "this one command.",
    "why_reads_secret": "It names a file for secrets, and can read all of them here.",
    "why_exposed": "Files for secrets lie here, and this sandbox cannot hide them.",
    "why_committed": "The repository has files for secrets in its history, which git shows.",
    "why_owned": "The folder {folder} belongs to the gateway.",
    "why_long_path": "The path is too long.",
    "why_url": "The URL is ambiguous or obfuscated. Write http:// or https://, a host name and a "
    "path.",
    "why_inside": "{place} is a place of this machine or its network, not of the web.",
    "why_viewer": "The person who asks may only read here.",
    "why_operator": "The operator's rule {rule}: {why}",
    "why_operator_plain": "The operator's rule {rule} says so.",
    "why_operator_unclear": "The operator's rule {rule} may forbid it: the words of the command do "
    "not show all that it runs.",
    "why_write": "It changes a file of the workspace; a backup is kept.",
    "why_settings": "It changes a file that other programs run or apply by themselves: settings of "
    "a repository, a shell, an editor or an agent.",
    "why_network": "It reaches outside: the network, messages or money.",
    "why_too_long": "a command may take at most {most} s here, not {asked} "
    "(COMMAND_MAX_SECONDS). Use a smaller timeout.",
    "why_lent": "The command receives a secret: {names}.",
    "why_hosts": "It wants to reach {hosts}, which the sandbox keeps closed.",
    "why_unsaved": "What it changes could not be undone: {why}",
    # stored in approval requests of earlier versions:
    "data_leaves": "Data can leave to {hosts}.",
    "changed_since": "What it may run changed after it was approved: this is how it is now.",
    "covers_hosts": "commands reach {hosts}",
    "why_looks": "It only reads.",
    "why_unisolated": "Nothing isolates this command: it can reach the gateway's machine and "
    "files, and the network.",
    "why_unsure": "Could not be checked: {why}.",
    "isolated": "Isolation: only the workspace, no network.",
    "isolated_not": "Isolation: none.",
    # stored in approval requests of earlier versions:
    "reaches": "It can reach the network and the gateway's files.",
    "runs_on": "It keeps running in the background.",
    "without_value": "Its output is shown without the secret's value.",
    "odd_program": "it is a program",
    "odd_goes_on": "it continues where the earlier commands left off",
    "odd_long": "it is very long",
    "odd_lines": "it has several lines or invisible characters",
    "odd_behind": "part of it runs in the background",
    "odd_empty": "part of it is empty",
    "odd_quote": "a quote is not closed",
    "odd_escape": "it contains a substitution or an escape",
    "odd_substitution": "it contains a substitution",
    "odd_syntax": "it has shell syntax beyond plain words",
    "odd_name": "the name of a command is obfuscated",
    "odd_use": "{name} is used in an unusual way",
    "odd_verb": "{name} is not among the commands that only read",
    "odd_valued": "{option} has no value",
    "odd_glob_option": "a wildcard could stand for an option",
    "odd_count": "it has an unusual number of arguments",
    "odd_option": "the option {option} is not known",
    "odd_glob_in_option": "an option has a wildcard",
    "odd_place": "it names a file outside of the workspace or a secret",
    "odd_glob_dot": "a wildcard could stand for a hidden file",
    "odd_glob_secret": "a wildcard could stand for a file for secrets",
    "odd_search": "the search could show what is in a file for secrets",
    "odd_find_glob": "find has a wildcard in its path",
    "odd_find": "find does more than look",
    "covers_search": "any search of the web",
    "covers_research": "any research of the web",
    "covers_pages": "pages of {place}",
    "covers_foreign": "exactly {given}, while its server describes the tool as now ({version})",
    "does_click": "Click [{n}] {label} on {page}",
    "does_type": "Type “{text}” into [{n}] {label} on {page}",
    "does_choose": "Choose “{text}” in [{n}] {label} on {page}",
    "does_press": "Press {keys} on {page}",
    "does_nothing": "nothing that is on the page",
    "does_nowhere": "no page",
    "why_guard_url": "A guardrail stopped a URL that leads to this machine, its network or a file.",
    "why_guard_code": "A guardrail found a command that wipes a disk, starts processes without "
    "end, or runs a download.",
    "why_guard_late": "The guardrails did not finish in time.",
    "guard_warned_message": "A guardrail found {what} in this message. Copied or quoted words in "
    "it count as data.",
    "guard_warned_answer": "A guardrail found {what} in this answer.",
    "guard_injection": "instructions that are meant for me",
    "guard_jailbreak": "an attempt to lift my limits",
    "guard_harmful": "harmful directions",
    "guard_toxic": "threats or hate",
    "guard_personal": "personal data",
    "elicit_asks": "The server {server} asks, in its own words:",
    "elicit_send": "Send this to the server {server}?",
    "elicit_accept": "Send",
    "elicit_decline": "Decline",
    "elicit_opened": "Opened it",
    "elicit_yes": "Yes",
    "elicit_no": "No",
    "elicit_skip": "Leave it out",
    "elicit_link": "The page is at {host}. Open it only if you know it; the "
    "server learns whether you did.",
    "elicit_proposed": "The server proposes: {value}",
    "elicit_no_secrets": "No passwords, keys or card numbers here: the server may not "
    "ask for them.",
    "elicit_leave": "Write - to leave it out.",
    "elicit_take": "The server proposes {value}; write - to take that.",
    "elicit_refuse": "Write - to decline.",
    "elicit_again": "That did not fit; please once more.",
    "elicit_text": "A text.",
    "elicit_number": "A number{limits}.",
    "elicit_integer": "A whole number{limits}.",
    "elicit_one": "One of these.",
    "elicit_some": "One or more of these, with commas between: {options}",
    "elicit_email": "An e-mail address.",
    "elicit_uri": "An address, such as https://example.org.",
    "elicit_date": "A date, such as 2026-11-24.",
    "elicit_time": "A date and a time, such as 2026-11-24T09:30:00+01:00.",
    "sign_in_asks": "The server {server} wants you to sign in:",
    "sign_in_once": "It is yours alone: give it to nobody. Once you are signed in, this goes on.",
    "sign_in_private": "Write that to me in a private chat. Once you are signed in, this goes on.",
    "sign_in_local": "The page opens on the gateway's machine only; its admin can "
    "change that with TURNKEEPER_PUBLIC_URL.",
    "sign_in_done": "I am signed in",
    "sign_in_leave": "Leave it",
}
ALLOWED: dict[AllowedKey, str] = {
    "why_person": "It only asks the person.",
    "why_read": "It only reads.",
    "why_contained": "It runs in a sandbox that contains it.",
    "granted_before": "Allowed before: {rule}",
}
PREVIEWS: dict[PreviewKey, str] = {
    "preview_title": "Preview",
    "preview_newest": "Open the newest link from the chat.",
    "preview_open": "Open the preview",
    "preview_old": "This link was opened before, or is old. If the chat has no newer one, "
    "ask for one there.",
    "preview_not_kept": "The gateway cannot store that this link is opened now. Try it again in "
    "a while.",
    "preview_closed": "This preview is not open here any more.",
    "preview_stopped": "This was stopped: what runs in a sandbox ends {minutes} minutes after "
    "its last use, with a stop, and with the gateway. Ask in the chat to have it started again.",
    "preview_down": "This was started again, but did not come up. Ask in the chat to have it "
    "checked and started.",
    "preview_silent": "Nothing answers here. Ask in the chat to have it checked and started.",
}
ENGLISH: Mapping[str, str] = {
    **{str(key): text for key, text in FAULTS.items()},
    **{str(key): text for key, text in REASONS.items()},
    **{str(key): text for key, text in ALLOWED.items()},
    **{str(key): text for key, text in PREVIEWS.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A sentence as a value; `str` gives the English. A field may be a phrase again. Stored: a key
    unknown to this version stands for itself."""

    key: str
    fields: "dict[str, str | Phrase]" = field(default_factory=dict)

    def __str__(self) -> str:
        return ENGLISH.get(self.key, self.key).format(**self.fields)


SCANNERS: dict[str, ReasonKey] = {
    "injection": "guard_injection",
    "jailbreak": "guard_jailbreak",
    "judge": "guard_injection",
    "harmful": "guard_harmful",
    "toxic": "guard_toxic",
    "personal": "guard_personal",
}


def name_scanner(name: str) -> Phrase:
    """Return the phrase for a guardrail scanner's findings; the plain name of an unknown one."""
    key = SCANNERS.get(name)
    return phrase(key) if key is not None else Phrase(key=name)


def phrase(key: PhraseKey, **fields: "str | Phrase") -> Phrase:
    """The phrase `key` with its fields."""
    return Phrase(key=key, fields=fields)
