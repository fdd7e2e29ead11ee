"""`turnkeeper jobs`: its command line, and the parts that need neither gateway nor store."""

import argparse
import json
import sys

from gateway.settings import Settings

ABOUT_ONE = {
    "show": "one job",
    "history": "a job's runs, the newest first",
    "run": "run a job now",
    "pause": "no new runs until it is resumed",
    "resume": "go on with the next due time",
    "delete": "take a job away",
}

ABOUT_FIELDS = {
    "schedule": "like '30 8 * * 1-5', 'every 2h' or 'tomorrow at nine'",
    "zone": "time zone like Europe/Berlin",
    "title": "what it is called; its name",
    "script": "a command whose output is the report, or comes with the prompt",
    "hook": "a name: POST /hooks/<name> begins it",
    "deliver": "where the report goes: an address, or file:report.md",
    "model": "a tier or provider/model for its runs",
    "profile": "what the agent is for in its runs",
    "tools": "the set of tools that its runs have at most",
}


EDITED = ("title", "schedule", "zone", "model", "profile", "tools", "prompt")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The words of `turnkeeper jobs`."""
    jobs = commands.add_parser("jobs", help="scheduled jobs: list, add, run, pause, change, delete")
    action = jobs.add_subparsers(dest="action", title="without one: list")
    jobs.set_defaults(action="list", json=False)
    due = action.add_parser("next", help="the next due times of a schedule")
    which = due.add_mutually_exclusive_group(required=True)
    which.add_argument("--cron", help="5 fields, 6 with seconds first, or a macro like @daily")
    which.add_argument("--every", help="an interval like 90m or '1d 12h'")
    which.add_argument("--at", help="one moment like '2026-12-01 09:00'")
    due.add_argument("--tz", default="UTC", help="time zone like Europe/Berlin")
    due.add_argument("--from", dest="start", default="", help="moment, ISO 8601; now")
    due.add_argument("-n", dest="count", type=int, default=5)
    due.add_argument("--json", action="store_true")
    listed = action.add_parser("list", help="all jobs")
    listed.add_argument("--json", action="store_true")
    for name, text in ABOUT_ONE.items():
        one = action.add_parser(name, help=text)
        one.add_argument("id", help="as `turnkeeper jobs list` shows it")
        if name in ("show", "history"):
            one.add_argument("--json", action="store_true")
    made = action.add_parser("add", help="write a job into jobs.toml and apply it")
    made.add_argument("id", help="its name: small letters, digits, _ and -")
    made.add_argument("prompt", nargs="?", default="", help="what to do each time")
    made.add_argument("--where", required=True, help="the address that /jobs here shows in a chat")
    for field, text in ABOUT_FIELDS.items():
        made.add_argument(f"--{field}", default="", help=text)
    edited = action.add_parser("edit", help="change a job that was made in a chat")
    edited.add_argument("id", help="as `turnkeeper jobs list` shows it")
    for field in EDITED:
        edited.add_argument(f"--{field}", help=ABOUT_FIELDS.get(field, "what to do each time"))
    secret = action.add_parser("secret", help="a new secret for a hook; the old one ends at once")
    secret.add_argument("hook", help="as in POST /hooks/<hook>")
    secret.add_argument("--given", action="store_true", help="read it from standard input")
    way = secret.add_mutually_exclusive_group()
    way.add_argument("--github", action="store_true", help="for calls signed as GitHub does")
    way.add_argument("--plain", action="store_true", help="for calls signed by time and body")
    action.add_parser("apply", help="apply jobs.toml of the data folder, all or nothing")


def new_secret(settings: Settings, args: argparse.Namespace) -> int:
    """Store a hook's secret, given or generated, and print a generated one. Return the exit
    code."""
    from gateway.features.jobs.hooks import STANDARD, Way, keep_secret
    from gateway.jobs_port import HOOK_NAME
    from gateway.ops.lock import make_private
    from gateway.services.vault import UnfitSecret, Vault

    if not HOOK_NAME.fullmatch(args.hook):
        print("A hook's name is 1 to 31 small letters, digits and -.", file=sys.stderr)
        return 2
    value = sys.stdin.readline().rstrip("\n") if args.given else ""
    way: Way = "github" if args.github else "plain" if args.plain else "standard"
    if args.given and way == "standard" and not value.startswith(STANDARD):
        way = "plain"
    value = value if args.given else _make_secret(way == "standard")
    make_private(settings.home)
    try:
        keep_secret(Vault(settings.home), args.hook, way, value)
    except (UnfitSecret, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"It is kept for /hooks/{args.hook}." if args.given else value)
    return 0


def _make_secret(standard: bool) -> str:
    """Generate a secret."""
    import base64

    from agent_core import ambient
    from gateway.features.jobs.hooks import STANDARD

    made = ambient.token(32)
    return STANDARD + base64.b64encode(made.encode()).decode() if standard else made


def parse_request(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the words for the gateway or the store: the action, the job, the form; the fields of
    an added or edited job as JSON."""
    if args.action == "add":
        fields = {name: getattr(args, name) for name in ("where", *ABOUT_FIELDS, "prompt")}
        return args.action, args.id, json.dumps(fields)
    if args.action == "edit":
        given = {name: getattr(args, name) for name in EDITED}
        said = {name: value for name, value in given.items() if value is not None}
        return args.action, args.id, json.dumps(said)
    form = "json" if getattr(args, "json", False) else ""
    return args.action, getattr(args, "id", ""), form


def next_times(args: argparse.Namespace) -> int:
    """Print due times; 2 if the schedule cannot be."""
    from cron.commands import print_next
    from cron.job import ScheduleError

    text = args.cron or (f"every {args.every}" if args.every else f"at {args.at}")
    try:
        print_next(text, args.tz, args.start, args.count, print, as_json=args.json)
    except ScheduleError as error:
        print(f"turnkeeper: {error}", file=sys.stderr)
        return 2
    return 0
