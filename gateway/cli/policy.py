"""`turnkeeper policy`: checks calls, URLs and paths against the policy."""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import BinaryIO

from gateway.settings import Settings

OK, FAILED = 0, 1


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its words."""
    policy = commands.add_parser("policy", help="ask the policy about calls, URLs and paths")
    actions = policy.add_subparsers(dest="action", required=True)
    actions.add_parser("check", help="calls from standard input, one JSON object a line")
    actions.add_parser("check-url", help="URLs from standard input, one a line")
    path = actions.add_parser("check-path", help="paths from standard input, one a line")
    path.add_argument("--write", action="store_true", help="to be written, not read")
    explain = actions.add_parser("explain", help="a rule in words; without a name, all of them")
    explain.add_argument("rule", nargs="?", default="")


def answer(settings: Settings, args: argparse.Namespace) -> int:
    """Run the command. Return the exit code."""
    if args.action == "explain":
        return _explain(settings, args.rule)
    from agent_core.settings import ModelSettings
    from gateway.services.operator_rules import FILE, read_rules
    from gateway.wiring.closed_tools import list_tool_names
    from gateway.wiring.policy_check import MAX_LINE, PolicyChecker

    rules = read_rules(settings.home / FILE, list_tool_names())
    checker = PolicyChecker(ModelSettings.read(settings.env), rules)
    match args.action:
        case "check-url":
            judge = checker.judge_url
        case "check-path":
            judge = checker.judge_written_path if args.write else checker.judge_path
        case _:
            judge = checker.judge_call
    return _judge_lines(partial(_encode, judge), MAX_LINE, sys.stdin.buffer, sys.stdout.buffer)


def _encode(judge: Callable[[bytes], object], line: bytes) -> bytes:
    import msgspec

    return msgspec.json.encode(judge(line))


def _judge_lines(
    judge: Callable[[bytes], bytes], most: int, lines: BinaryIO, answers: BinaryIO
) -> int:
    """An answer for each line, in their order; of one with over `most` bytes, which is refused,
    only the beginning is held."""
    try:
        while line := lines.readline(most + 1):
            last = line
            while not last.endswith(b"\n") and (last := lines.readline(most)):
                pass
            answers.write(judge(line.removesuffix(b"\n").removesuffix(b"\r")) + b"\n")
        answers.flush()
    except BrokenPipeError:
        return FAILED
    return OK


def _explain(settings: Settings, name: str) -> int:
    from agent_core.policy_words import RULES, describe_rule
    from gateway.services.operator_rules import FILE, read_rules
    from gateway.wiring.closed_tools import list_tool_names

    rules = read_rules(settings.home / FILE, list_tool_names())
    own = {one.rule: describe_rule(one) for one in rules}
    known = {**RULES, **own}
    if not name:
        for rule, text in known.items():
            print(f"{rule}: {text}")
        return OK
    if name not in known:
        print(f"There is no rule {name!r}. Rules: {', '.join(known)}.", file=sys.stderr)
        return FAILED
    print(f"{name}: {known[name]}")
    return OK
