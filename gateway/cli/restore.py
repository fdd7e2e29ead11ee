"""`turnkeeper restore`: replaces the stored data by a backup.

It is unpacked and checked first; a running gateway is stopped only while some folders are renamed.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from agent_core.sandboxes.owners import hold_scratch
from gateway.ops import backup, control, lock, restore_swap
from gateway.settings import Settings

OK, FAILED = 0, 1
TAKEN = "There is something stored in {home}. Give --force to put it aside, into a folder there."
BY_REDIS = (
    "The files are back. What is stored in Redis comes back from its own file: stop Redis, put the "
    "RDB file that belongs to this backup in its place, start Redis (docs/operations.md)."
)
Say = Callable[[str], None]


def restore(settings: Settings, args: argparse.Namespace, say: Say) -> int:
    """The exit code."""
    home = settings.home
    running = control.ask(home, control.STATUS) is not None
    if not Path(args.file).is_file():
        print(f"There is no file {args.file}.", file=sys.stderr)
        return FAILED
    lock.make_private(home)
    if restore_swap.find_content(home) and not args.force:
        print(TAKEN.format(home=home), file=sys.stderr)
        return FAILED
    try:
        needed = restore_swap.list_needed(home)
        with hold_scratch(home, restore_swap.UNPACKED, needed) as place:
            manifest = backup.unpack_backup(Path(args.file), place, _show_progress)
            return _put_in_place(settings, place, manifest, running, say)
    except (OSError, backup.BackupError) as error:
        print(error, file=sys.stderr)
        return FAILED


def _put_in_place(
    settings: Settings, place: Path, manifest: backup.BackupManifest, running: bool, say: Say
) -> int:
    wanted = "redis" if settings.redis_url else "sqlite"
    if manifest.store != wanted:
        raise backup.BackupError(f"The backup is of a store in {manifest.store}, this is {wanted}.")
    if running:
        request = control.ControlRequest(command="restore", words=(place.name,))
        answer = control.ask(settings.home, request)
        if answer is None or not answer.ok:
            raise backup.BackupError(answer.text if answer is not None else control.NOT_RUNNING)
        say(answer.text)
    else:
        with lock.hold(settings.home):
            aside = restore_swap.swap_in(settings.home, place)
        say(f"{len(manifest.files)} files are restored.")
        if aside is not None:
            say(f"What was there lies in {aside} now.")
    if manifest.store == "redis":
        say(BY_REDIS)
    return OK


def _show_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
