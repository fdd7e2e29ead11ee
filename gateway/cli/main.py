"""The command line. Imports as little as it can: `run` shall poll at once, the rest shall answer
at once. The only module that prints."""

import argparse
import asyncio
import logging
import os
import re
import select
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from gateway.cli import audit, jobs, policy
from gateway.declaration import SettingsError
from gateway.ops import lock
from gateway.ops.process import (
    discard_unwritten,
    forbid_inspection,
    open_standard_streams,
    tune_interpreter,
)
from gateway.settings import VERSION, Settings, exempt_loopback
from gateway.wiring.plugin_settings import find_declared

log = logging.getLogger("turnkeeper.cli")

OK, FAILED, MISUSED = 0, 1, 2
SURROGATE = re.compile("[\ud800-\udfff]")
"""Matches a byte of an argument that is not UTF-8."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code (2: a setting or an argument cannot work)."""
    try:
        code = _run_command(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _has_lost_reader():
            raise
        code = FAILED
    except OSError as error:  # the system refuses: a full disk, too many open files
        code = FAILED if _has_folder() else MISUSED
        gone = "the folder that this was started in is no more; go to another."
        _complain(error if code == FAILED else gone)
    discard_unwritten()
    return code


def _has_folder() -> bool:
    """Return True if the working folder exists."""
    with suppress(FileNotFoundError):
        return bool(Path.cwd())
    return False


def _has_lost_reader() -> bool:
    """Return True if the reader of the output has gone away, as `head` does."""
    output = select.poll()
    output.register(sys.stdout, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in output.poll(0))


def _parse(given: Sequence[str]) -> argparse.Namespace:
    parser = _parser()
    if any(map(SURROGATE.search, given)):
        parser.error("an argument is not UTF-8")
    return parser.parse_args(given)


def _run_command(argv: Sequence[str] | None) -> int:
    open_standard_streams()
    forbid_inspection()
    tune_interpreter()
    exempt_loopback()
    os.umask(0o077)  # an existing data folder may have been readable by others
    given = sys.argv[1:] if argv is None else list(argv)
    if not given:
        _parser().print_help()
        return MISUSED
    args = argparse.Namespace(command="run") if given == ["run"] else _parse(given)
    try:
        if args.command == "version":
            print(f"turnkeeper {VERSION}")
            return OK
        if args.command == "jobs" and args.action == "next":
            return jobs.next_times(args)
        read = partial(Settings.read, declared=find_declared)
        if args.command == "init":
            from gateway.cli.init import allow_interrupt, set_up

            with allow_interrupt():
                return set_up(read, print)
        settings = _finish_restore(read(), read)
        if args.command == "run":
            return _run(settings)
        _show_errors(settings)
        if args.command == "jobs" and args.action == "secret":
            return jobs.new_secret(settings, args)
        if args.command == "doctor":
            from gateway.cli.doctor import examine

            return examine(settings, print)
        if args.command == "policy":
            return policy.answer(settings, args)
        if args.command == "secret":
            from gateway.cli.secret import run_secret

            return run_secret(settings, args)
        return _run_offline(settings, args)
    except SettingsError as error:
        return _cannot(error)
    except KeyboardInterrupt:
        return FAILED


def _show_errors(settings: Settings) -> None:
    """Show only errors of the log, as a command prints its own result."""
    from gateway.ops import logs

    logs.show_errors(settings.secrets, as_json=settings.log_format == "json")


def _finish_restore(settings: Settings, read: Callable[[], Settings]) -> Settings:
    """Finish an interrupted restore. Return the settings as they are then."""
    if not lock.was_cut_off(settings.home):
        return settings
    from gateway.ops.restore_swap import finish_cut_off

    if not finish_cut_off(settings.home):
        return settings
    print("A restore that was cut off is finished now.", file=sys.stderr)
    return read()


_WITHOUT_WORDS = {
    "init": "ask for model, platform and people; write .env",
    "run": "run the gateway",
    "status": "what the running gateway does",
    "stop": "stop the running gateway",
    "doctor": "check settings, models, bots, store, sandbox and Redis",
    "version": "the version",
}
"""Commands without further words."""


class _AnyOrder(argparse.ArgumentParser):
    """Accepts options between and before positional words: argparse finds no place for an optional
    word after an option."""

    _within = False

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        """Parse like the standard library."""
        if self._within or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._within = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._within = False


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _AnyOrder(
        "turnkeeper", description="An agent gateway for chat."
    )
    parser.add_argument("--version", action="version", version=f"turnkeeper {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in _WITHOUT_WORDS.items():
        commands.add_parser(name, help=about)
    pair = commands.add_parser("pair", help="approve a pairing code that somebody was shown")
    pair.add_argument("code")
    unpair = commands.add_parser("unpair", help="remove the access that a pairing code gave")
    unpair.add_argument("person", help="as in telegram:123")
    link = commands.add_parser("link", help="a one-time link to sign in to the page")
    link.add_argument("name", nargs="?", default="", help="who it is for, as in WEB_ALLOWED_USERS")
    dead = commands.add_parser("dead", help="what was set aside: messages, turns, views, questions")
    dead.add_argument("action", nargs="?", choices=("list", "resubmit", "drop"), default="list")
    dead.add_argument("id", nargs="?", default="")
    turn = commands.add_parser("turn", help="a turn's journal, or the last turns of a conversation")
    turn.add_argument("action", choices=("show", "list"))
    turn.add_argument("id", help="of a turn; to list, a conversation's address (/jobs here)")
    audit.add(commands)
    jobs.add(commands)
    policy.add(commands)
    secret = commands.add_parser("secret", help="secrets that commands may use in a conversation")
    secret.add_argument("action", choices=("set", "list", "remove"))
    secret.add_argument("name", nargs="?", default="")
    secret.add_argument("conversation", nargs="?", default="", help="as /secret shows it there")
    person = commands.add_parser("person", help="erase all that a person said, and about them")
    person.add_argument("action", choices=("erase",))
    person.add_argument("person", help="as in telegram:123; linked accounts are the same person")
    person.add_argument("--yes", action="store_true", help="do not ask whether to")
    backup = commands.add_parser("backup", help="write all that is stored into one file")
    backup.add_argument("file")
    restore = commands.add_parser("restore", help="put a backup in the place of what is stored")
    restore.add_argument("file")
    restore.add_argument("--force", action="store_true", help="also where something is stored")
    prices = commands.add_parser("prices", help="what models cost; refresh gets a newer table")
    prices.add_argument("action", nargs="?", choices=("show", "refresh"), default="show")
    prices.add_argument("--url", default="", help="another address of the JSON of genai-prices")
    prices.add_argument(
        "--package", action="store_true", help="of the installed package genai-prices, offline"
    )
    return parser


def _run_offline(settings: Settings, args: argparse.Namespace) -> int:
    """Run a command that works beside a running gateway; ask the gateway for all others."""
    if args.command == "prices":
        from gateway.cli import prices

        return prices.run(settings, args)
    if args.command == "restore":
        from gateway.cli.restore import restore

        return restore(settings, args, print)
    return _ask(settings, args)


def _run(settings: Settings) -> int:
    from gateway.__main__ import serve
    from gateway.cli.browser import open_page
    from gateway.errors import StoreFailed, StoreUnfit
    from gateway.ops import logs
    from gateway.ops.event_loop import EventLoop

    as_json = settings.log_format == "json"
    logs.set_up(settings.log_level, settings.secrets, as_json=as_json)
    code = OK
    try:
        with asyncio.Runner(loop_factory=EventLoop) as runner:
            visit = partial(open_page, settings)
            runner.run(serve(settings, _announce, visit))
    except* (SettingsError, StoreUnfit) as errors:
        code = _cannot(errors.exceptions[0])
    except* (StoreFailed, OSError) as errors:
        _complain(_unwrap_group(errors))
        code = FAILED
    return code


def _announce(line: str) -> None:
    """Print `line` for whoever started the gateway. One who went away, or a full disk behind the
    output, does not stop it."""
    try:
        print(line, flush=True)
    except OSError as error:
        log.warning("output_lost", extra={"why": str(error)})
        discard_unwritten()


def _cannot(error: BaseException) -> int:
    _complain(_unwrap_group(error))
    return MISUSED


def _complain(error: BaseException | str) -> None:
    with suppress(OSError):  # the exit code tells it too
        print(f"turnkeeper: {error}", file=sys.stderr)


def _unwrap_group(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _ask(settings: Settings, args: argparse.Namespace) -> int:
    """Ask the running gateway, else the store under the folder's lock."""
    from gateway.ops import control

    if args.command == "person":
        if not all(args.person.partition(":")):
            print("Write a person as in telegram:123.", file=sys.stderr)
            return MISUSED
        if not args.yes and not _confirm(args.person):
            return FAILED
    command, given = _parse_request(args)
    request = control.ControlRequest(command=command, words=given)
    answer = control.ask(settings.home, request, _show_progress)
    if answer is None:
        from gateway.cli.offline import answer_offline

        answer = asyncio.run(answer_offline(settings, request, _show_progress))
    text = "".join(c for c in answer.text if c.isprintable() or c == "\n")  # names may have escapes
    print(text, file=sys.stdout if answer.ok else sys.stderr)
    return OK if answer.ok else FAILED


def _parse_request(args: argparse.Namespace) -> tuple[str, tuple[str, ...]]:
    """The command of the control socket, and its words."""
    match args.command:
        case "pair":
            return "pair", (args.code,)
        case "link":
            return "link", (args.name,)
        case "unpair":
            return "unpair", (args.person,)
        case "dead" if args.action in ("resubmit", "drop"):
            return args.action, (args.id,)
        case "turn":
            return ("turns" if args.action == "list" else "turn"), (args.id,)
        case "jobs":
            return "jobs", jobs.parse_request(args)
        case "person":
            return "erase", (args.person,)
        case "backup":
            return "backup", (str(Path(args.file).resolve()),)
        case "audit":
            return audit.parse_request(args)
        case name:
            return name, ()


def _confirm(person: str) -> bool:
    print(f"All private conversations of {person} and all that they said elsewhere will be gone.")
    print("A backup made before still has it. Write yes to go on: ", end="", flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def _show_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
