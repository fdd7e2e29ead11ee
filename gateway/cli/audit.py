"""`turnkeeper audit`: its arguments, and the question that they make."""

import argparse
import json

from agent_core.text import parse_number


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its words."""
    audit = commands.add_parser("audit", help="who did and decided what")
    audit.add_argument("lines", nargs="?", default="1000", help="how many of the newest, or verify")
    audit.add_argument("--since", default="", help="as 2026-11-20, 2026-11-20T08:00, 12h or 7d")
    audit.add_argument("--who", default="", help="words of who did it, as telegram:123")
    audit.add_argument("--what", default="", help="words of what was done")
    audit.add_argument("--json", action="store_true", help="JSON, a line each")


def parse_request(words: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    """The command of the control socket, and its words."""
    if words.lines == "verify":
        return "verify", ()
    lines = parse_number(words.lines) or 0
    query = {"lines": lines, "since": words.since, "who": words.who, "what": words.what}
    return "audit", (json.dumps({**query, "json": words.json}),)
