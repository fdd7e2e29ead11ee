"""`turnkeeper secret`: the only way in for a value. It is read from the terminal without showing
it, or from standard input."""

import argparse
import asyncio
import getpass
import sys

from gateway.cli.offline import answer_offline
from gateway.messages import read_conversation
from gateway.ops import control
from gateway.ops.lock import make_private
from gateway.services.vault import UnfitSecret, Vault
from gateway.settings import Settings

OK, FAILED, MISUSED = 0, 1, 2
SET = "write: turnkeeper secret set NAME CONVERSATION; /secret in a chat shows its conversation"
REMOVE = "write: turnkeeper secret remove NAME CONVERSATION"


def run_secret(settings: Settings, args: argparse.Namespace) -> int:
    """Keep a secret, list the names, or forget one. Return the exit code."""
    vault = Vault(settings.home)
    if args.action == "list":
        for address in vault.addresses():
            print(f"{address}: {', '.join(vault.names(address))}")
        return OK
    if not args.name or not _is_address(args.conversation):
        print(SET if args.action == "set" else REMOVE, file=sys.stderr)
        return MISUSED
    if args.action == "remove":
        gone = vault.drop(args.conversation, args.name)
        if gone:
            _note(settings, "secret_removed", f"{args.name} {args.conversation}")
        print("It is forgotten." if gone else "There is no such secret.")
        return OK if gone else FAILED
    make_private(settings.home)
    asked = sys.stdin.isatty()
    value = getpass.getpass(f"{args.name}: ") if asked else sys.stdin.readline().rstrip("\n")
    try:
        vault.keep(args.conversation, args.name, value)
    except UnfitSecret as error:
        print(error, file=sys.stderr)
        return MISUSED
    _note(settings, "secret_set", f"{args.name} {args.conversation}")
    print(f"{args.name} may be used in {args.conversation} from now on.")
    return OK


def _note(settings: Settings, what: str, detail: str) -> None:
    """Add an audit line; the secret is stored even if that fails."""
    request = control.ControlRequest(command="note", words=(what, detail))
    answer = control.ask(settings.home, request)
    if answer is None:
        answer = asyncio.run(answer_offline(settings, request, lambda text: None))
    if not answer.ok:
        print(f"The audit has no line of it: {answer.text}", file=sys.stderr)


def _is_address(text: str) -> bool:
    try:
        read_conversation(text)
    except ValueError:
        return False
    return True
