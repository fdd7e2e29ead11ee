"""`turnkeeper audit`: its arguments, and the request that they make."""

import argparse
import json

from agent_core.text import parse_number


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its words."""
    audit = commands.add_parser("audit", help="who did and decided what")
    audit.add_argument("lines", nargs="?", default="1000", help="how many of the newest, or verify")
    audit.add_argument(
        "--since", type=read_given, help="as 2026-11-20, 2026-11-20T08:00, 12h or 7d"
    )
    audit.add_argument("--who", type=read_given, help="words of who did it, as telegram:123")
    audit.add_argument("--what", type=read_given, help="words of what was done")
    audit.add_argument("--json", action="store_true", help="JSON, a line each")


def read_given(words: str) -> str:
    """Return the words of an option. ArgumentTypeError for none, which would select all lines."""
    if not words.strip():
        raise argparse.ArgumentTypeError("it is empty. Write what to look for, or leave it out.")
    return words


def parse_request(args: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    """The command of the control socket, and its words."""
    if args.lines == "verify":
        return "verify", ()
    lines = parse_number(args.lines) or 0
    given = {"since": args.since, "who": args.who, "what": args.what}
    query = {"lines": lines, **{key: value or "" for key, value in given.items()}}
    return "audit", (json.dumps({**query, "json": args.json}),)
