"""Describes each rule of the policy in words, by its name."""

from agent_core.policy_rules import OperatorRule

RULES: dict[str, str] = {
    "person": "allow. The call only asks or tells the person: a question, the plan, its end.",
    "read": "allow. The call reads files of the workspace, or what the gateway has, and changes "
    "nothing.",
    "write": "ask in mode ask, allow in mode auto. The call changes a file of the workspace; a "
    "backup is kept, and /undo and rollback restore it.",
    "settings-file": "ask, each time, in any mode. The call changes a file that programs obey "
    "unasked: in .git, of a shell's start (.bashrc), an editor (.vscode) or an agent (.mcp.json).",
    "shell": "ask in mode ask. In mode auto, where no tier contains it, a command whose words show "
    "that it only reads is allowed, everything else is asked.",
    "contained": "allow in mode auto. The command or code runs in a sandbox of which a self-test "
    "showed that it contains: no files outside, no network, no secrets.",
    "unsaved": "ask. The sandbox contains the command, but the workspace could not be kept, so "
    "what it changes could not be taken back.",
    "shell-unisolated": "ask, each time, whatever was granted. Nothing isolates the command from "
    "the machine (SANDBOX_PROVIDER=unsafe-subprocess).",
    "network": "ask. The call reaches outside: the web, messages, money, or a server's tool.",
    "hosts": "ask. The command names hosts that are not open yet; data can leave to them.",
    "secret": "ask, each time. The command names a secret and is given its value.",
    "secret-file": "ask. The command or code names a secret file (.env, keys), or such "
    "files lie where the sandbox cannot hide them.",
    "outside": "deny, never widened. The call's path leaves the workspace, is a secret file "
    "(.env, keys, tokens), belongs to the gateway, or is obfuscated.",
    "address": "deny, never widened. The URL leads to this machine or its network, has another "
    "scheme than http and https, a user name, or is written so that two readers see two hosts. "
    "Single places are opened by WEB_ALLOWED_HOSTS.",
    "viewer": "deny. Who asks is a viewer, and viewers only read.",
    "too-long": "deny. The command asks for more time than COMMAND_MAX_SECONDS.",
    "ask-all": "ask. PERMISSION_ASK_ALL is on: every call is asked.",
    "granted": "allow. The person allowed this call before: in this conversation, or always.",
    "hook": "deny. A hook of the operator (HOOKS) refused the call.",
    "job": "allow. The call is the script of a job, and a person confirmed the job with it.",
    "url": "allow, for check-url. The URL is plain; what its name leads to is looked at when the "
    "connection is made, and private addresses are refused then.",
    "path": "allow, for check-path. The path stays in the workspace by its words; links are "
    "followed and checked when it is opened.",
    "confirmed": "ask, each time; deny for viewers. The tool shows a person what it would do, as "
    "schedule_job does a job with its times, and does nothing before a press.",
    "no-tool": "deny. There is no tool of this name.",
    "arguments": "deny. The arguments do not fit the tool's schema: the call is not made.",
    "unreadable": "deny. The line is not what is expected; `error` says why.",
}


def describe_rule(rule: OperatorRule) -> str:
    """An operator's rule in words."""
    conditions = {
        "tool": rule.tools,
        "command": rule.commands,
        "host": rule.hosts,
        "path": rule.paths,
        "role": rule.roles,
        "conversation": rule.conversations,
    }
    said = [f"{key} {' or '.join(texts)}" for key, texts in conditions.items() if texts]
    if rule.hours is not None:
        said.append(f"{rule.hours.begin:%H:%M} to {rule.hours.end:%H:%M} ({rule.hours.zone})")
    why = f" {rule.reason}" if rule.reason else ""
    return f"{rule.effect}, by the operator: {', '.join(said) or 'every call'}.{why}"
