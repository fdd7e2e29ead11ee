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
    "fault_endless",
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
    "foreign_changed",
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
    "fault_key": "{name} rejected the API key ({status}). Check {setting}.",
    "fault_credit": "{name} reports that the account has no credit left. Top it up, or use "
    "another model.",
    "fault_rate": "{name} is limiting requests (429). Try again later or use another model.",
    "fault_rate_until": "{name} is limiting requests (429). Try again in {time} or use another "
    "model.",
    "fault_late": "{name} took too long (408). Try again.",
    "fault_down": "{name} is overloaded or down ({status}). Try again later.",
    "fault_down_until": "{name} is overloaded or down ({status}). Try again in {time} or use "
    "another model.",
    "fault_overflow": "This conversation exceeds the context window of {name}'s model, even when "
    "summarised. Start a new one, choose a model with a larger window, or start its server with a "
    "larger context.",
    "fault_truncated": "{name} silently dropped the beginning of this conversation: its context "
    "is about {tokens} tokens. Older messages are summarised from now on. For more, start Ollama "
    "with OLLAMA_CONTEXT_LENGTH=16384, or choose a model with a larger window.",
    "fault_refused": "{name} rejected the request ({status}): {detail}",
    "fault_silent": "{name} sent nothing for {seconds}. Try again later.",
    "fault_unreachable": "{name} cannot be reached at {host}. Check the network and the base URL.",
    "fault_uncallable": "{name} cannot be called: {detail}. Check the key and the base URL.",
    "fault_characters": "The conversation contains characters that cannot be encoded.",
    "fault_stopped": "{name} stopped sending. Try again, or use another model.",
    "fault_endless": "{name} sent an answer without an end, which was given up. Try again, or use "
    "another model.",
    "fault_cut": "{name}'s answer was cut off. Try again, or use another model.",
    "fault_error": "{name}'s answer was cut off by an error: {detail}. Try again, or use "
    "another model.",
    "fault_empty": "{name} returned an empty answer. Try again, or use another model.",
    "fault_declined": "{name} declined to answer this. Rephrase it, or use another model.",
    "fault_senseless": "{name} sent something that is not {detail}. Try again, or use another "
    "model.",
    "fault_stuck": "I made no progress ({detail}). Rephrase the request, or give me more to work "
    "with.",
    "fault_long_call": "{name} reached its output limit in the middle of a tool call several "
    "times, so nothing was run. Ask for less at once, or use a model with a higher output limit.",
    "fault_thought_out": "{name} used up its output limit on reasoning before it began to answer. "
    "Ask for less at once, lower its reasoning effort, or use another model.",
    "fault_page": "The base URL of {name} leads to a web page instead of a model. Check it; most "
    "end in v1.",
    "fault_guard_message": "This message was not processed: a guardrail found {what} in it. "
    "Please rephrase it.",
    "fault_guard_answer": "The answer is not shown: a guardrail found {what} in it. Please "
    "rephrase your request.",
}
REASONS: dict[ReasonKey, str] = {
    "why_denied": "Denied: {why}",
    "why_ask_all": "Every call needs approval here (PERMISSION_ASK_ALL).",
    "why_outside": "The path leaves the workspace. Write it from the "
    "workspace's folder, without ..",
    "why_hidden": "The path contains control or invisible characters.",
    "why_secret_file": "The path names a secret file. Its content stays out of the conversation.",
    "why_secret_shell": "A persistent shell cannot see secret files. Use run_command for this "
    "command.",
    "why_reads_secret": "It names a secret file, and could read all secret files here.",
    "why_exposed": "There are secret files here, and this sandbox cannot hide them.",
    "why_committed": "The repository's history contains secret files, which git can show.",
    "why_owned": "The folder {folder} belongs to the gateway.",
    "why_long_path": "The path is too long.",
    "why_url": "The URL is ambiguous or obfuscated. Write http:// or https://, a host name and a "
    "path.",
    "why_inside": "{place} is an address of this machine or its network, not of the web.",
    "why_viewer": "The person who asks may only read here.",
    "why_operator": "The operator's rule {rule}: {why}",
    "why_operator_plain": "The operator's rule {rule} decides this.",
    "why_operator_unclear": "The operator's rule {rule} may forbid it: the command does not show "
    "everything that it runs.",
    "why_write": "It changes a file in the workspace; a backup is kept.",
    "why_settings": "It changes a file that other programs run or apply on their own: settings of "
    "a repository, a shell, an editor or an agent.",
    "why_network": "It reaches outside: the network, messages or money.",
    "why_too_long": "a command may run for at most {most} s here, not {asked} "
    "(COMMAND_MAX_SECONDS). Use a smaller timeout.",
    "why_lent": "The command is given a secret: {names}.",
    "why_hosts": "It needs access to {hosts}, which the sandbox blocks.",
    "why_unsaved": "What it changes could not be undone: {why}",
    # stored in approval requests of earlier versions:
    "data_leaves": "Data can leave to {hosts}.",
    "changed_since": "Something that it may run has changed since it was approved. This is its "
    "current form.",
    "covers_hosts": "commands that connect to {hosts}",
    "why_looks": "It only reads.",
    "why_unisolated": "Nothing isolates this command: it can reach the gateway's machine, its "
    "files and the network.",
    "why_unsure": "Could not be checked: {why}.",
    "isolated": "Isolation: only the workspace, no network.",
    "isolated_not": "Isolation: none.",
    # stored in approval requests of earlier versions:
    "reaches": "It can reach the network and the gateway's files.",
    "runs_on": "It keeps running in the background.",
    "without_value": "Its output is shown with the secret's value removed.",
    "odd_program": "it is a program",
    "odd_goes_on": "it continues from the earlier commands",
    "odd_long": "it is very long",
    "odd_lines": "it has several lines or invisible characters",
    "odd_behind": "part of it runs in the background",
    "odd_empty": "part of it is empty",
    "odd_quote": "a quote is not closed",
    "odd_escape": "it contains a substitution or an escape",
    "odd_substitution": "it contains a substitution",
    "odd_syntax": "it uses shell syntax beyond plain words",
    "odd_name": "the name of a command is obfuscated",
    "odd_use": "{name} is used in an unusual way",
    "odd_verb": "{name} is not among the commands that only read",
    "odd_valued": "the value of {option} is missing",
    "odd_glob_option": "a wildcard could stand for an option",
    "odd_count": "it has an unusual number of arguments",
    "odd_option": "the option {option} is not known",
    "odd_glob_in_option": "an option has a wildcard",
    "odd_place": "it names a secret or a file outside the workspace",
    "odd_glob_dot": "a wildcard could stand for a hidden file",
    "odd_glob_secret": "a wildcard could stand for a secret file",
    "odd_search": "the search could show the contents of a secret file",
    "odd_find_glob": "find has a wildcard in its path",
    "odd_find": "find would do more than look",
    "covers_search": "any web search",
    "covers_research": "any web research",
    "covers_pages": "pages of {place}",
    "covers_foreign": "exactly {given}, as long as its server describes the tool as it does now "
    "({version})",
    "foreign_changed": "The server {server} describes this tool in other words than when it was "
    "allowed without asking.",
    "does_click": "Click [{n}] {label} on {page}",
    "does_type": "Type “{text}” into [{n}] {label} on {page}",
    "does_choose": "Choose “{text}” in [{n}] {label} on {page}",
    "does_press": "Press {keys} on {page}",
    "does_nothing": "an element that is not on the page",
    "does_nowhere": "no page",
    "why_guard_url": "A guardrail stopped a URL that leads to this machine, its network or a "
    "local file.",
    "why_guard_code": "A guardrail found a command that wipes a disk, starts processes endlessly, "
    "or runs something it downloads.",
    "why_guard_late": "The guardrails did not finish in time.",
    "guard_warned_message": "A guardrail found {what} in this message. Copied or quoted text in "
    "it is treated as data.",
    "guard_warned_answer": "A guardrail found {what} in this answer.",
    "guard_injection": "instructions addressed to me",
    "guard_jailbreak": "an attempt to remove my limits",
    "guard_harmful": "harmful instructions",
    "guard_toxic": "threats or hate",
    "guard_personal": "personal data",
    "elicit_asks": "The server {server} asks, in its own words:",
    "elicit_send": "Send this to the server {server}?",
    "elicit_accept": "Send",
    "elicit_decline": "Decline",
    "elicit_opened": "I opened it",
    "elicit_yes": "Yes",
    "elicit_no": "No",
    "elicit_skip": "Skip",
    "elicit_link": "The page is at {host}. Open it only if you know this site; the server learns "
    "whether you did.",
    "elicit_proposed": "The server suggests: {value}",
    "elicit_no_secrets": "Enter no passwords, keys or card numbers here: the server may not ask "
    "for them.",
    "elicit_leave": "Write - to skip it.",
    "elicit_take": "The server suggests {value}; write - to accept that.",
    "elicit_refuse": "Write - to decline.",
    "elicit_again": "That does not fit. Please try again.",
    "elicit_text": "A text.",
    "elicit_number": "A number{limits}.",
    "elicit_integer": "A whole number{limits}.",
    "elicit_one": "One of these.",
    "elicit_some": "One or more of these, separated by commas: {options}",
    "elicit_email": "An e-mail address.",
    "elicit_uri": "A URL, such as https://example.org.",
    "elicit_date": "A date, such as 2026-11-24.",
    "elicit_time": "A date and a time, such as 2026-11-24T09:30:00+01:00.",
    "sign_in_asks": "The server {server} wants you to sign in:",
    "sign_in_once": "The link is for you alone: do not share it. I continue once you have signed "
    "in.",
    "sign_in_private": "Write that to me in a private chat. I continue once you have signed in.",
    "sign_in_local": "The page opens on the gateway's machine only; an operator can change that "
    "with TURNKEEPER_PUBLIC_URL.",
    "sign_in_done": "I have signed in",
    "sign_in_leave": "Cancel",
}
ALLOWED: dict[AllowedKey, str] = {
    "why_person": "It only asks the person.",
    "why_read": "It only reads.",
    "why_contained": "It runs in a sandbox that contains it.",
    "granted_before": "Allowed before: {rule}",
}
PREVIEWS: dict[PreviewKey, str] = {
    "preview_title": "Preview",
    "preview_newest": "Open the latest link from the chat.",
    "preview_open": "Open the preview",
    "preview_old": "This link was already used, or has expired. If the chat has no newer one, ask "
    "for one there.",
    "preview_not_kept": "The gateway cannot store that this link is in use now. Try again in a "
    "moment.",
    "preview_closed": "This preview is no longer open here.",
    "preview_stopped": "This was stopped: what runs in a sandbox ends {minutes} minutes after "
    "its last use at the latest, with a stop, and with the gateway. Ask in the chat to have it "
    "started again.",
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
        text = ENGLISH.get(self.key, self.key)
        fields = {name: _drop_stop(text, name, str(one)) for name, one in self.fields.items()}
        return text.format(**fields)


def _drop_stop(text: str, name: str, value: str) -> str:
    """Return `value` without the full stop at its end, if `text` has one behind the place `name`:
    what others say of an error may be a sentence, or not."""
    stops = value.endswith(".") and not value.endswith("..")
    return value[:-1] if stops and (f"{{{name}}}." in text or f"{{{name}}}。" in text) else value


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
