"""`turnkeeper jobs`: what needs no gateway."""

import argparse
import sys


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The words of `turnkeeper jobs`."""
    jobs = commands.add_parser("jobs", help="when a schedule is due")
    action = jobs.add_subparsers(dest="action", required=True)
    due = action.add_parser("next", help="the next due times of a schedule")
    which = due.add_mutually_exclusive_group(required=True)
    which.add_argument("--cron", help="5 fields, 6 with seconds first, or a macro like @daily")
    which.add_argument("--every", help="an interval like 90m or '1d 12h'")
    which.add_argument("--at", help="one moment like '2026-12-01 09:00'")
    due.add_argument("--tz", default="UTC", help="time zone like Europe/Berlin")
    due.add_argument("--from", dest="start", default="", help="moment, ISO 8601; now")
    due.add_argument("-n", dest="count", type=int, default=5)
    due.add_argument("--json", action="store_true")


def next_times(words: argparse.Namespace) -> int:
    """Print due times; 2 if the schedule cannot be."""
    from cron.commands import print_next
    from cron.job import ScheduleError

    text = words.cron or (f"every {words.every}" if words.every else f"at {words.at}")
    try:
        print_next(text, words.tz, words.start, words.count, print, as_json=words.json)
    except ScheduleError as error:
        print(f"turnkeeper: {error}", file=sys.stderr)
        return 2
    return 0
