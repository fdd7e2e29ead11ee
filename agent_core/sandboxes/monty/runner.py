"""Stands for the shell where there is Python alone: runs a file of code by Monty.

Its one command is that of the tools for code. The code sees no file of this machine: it gets copies
of the workspace files that it names, except those with secrets, and its own files are gone when it
ends.
"""

import os
import re
import resource
import sys
from pathlib import Path

from pydantic_monty import (
    MemoryFile,
    Monty,
    MontyError,
    MontyRuntimeError,
    MontySyntaxError,
    OSAccess,
)

from agent_core.errors import ToolFailed
from agent_core.tools import paths, secret_files

MAX_MEMORY = 256 << 20
MAX_DEPTH = 1_000
MAX_SECONDS = 300.0
MAX_FILE, MAX_FILES = 10 << 20, 50
PLACE = "/workspace"
NO_COMMANDS = (
    "Not run: this sandbox runs Python alone, by execute_code with the language python. Write what "
    "you need in Python, or tell the person that commands need bubblewrap (as root, setpriv too), "
    "Docker with the sandboxes' image, or Linux 6.2 with Landlock on the gateway's machine."
)
_CODE = re.compile(r"PYTHONPATH=\. exec python3 -u (\.turnkeeper/code/\w+\.py)")
_LEFT = "[What it wrote to {names} is gone: print what is needed, and write files by write_file.]"


def find_files(workspace: Path, code: str) -> dict[str, bytes]:
    """The files of the workspace that the code names, by path."""
    root = Path(os.path.realpath(workspace))
    found: dict[str, bytes] = {}
    for entry in paths.walk(root, root, 8):
        name = entry.path.rpartition("/")[2]
        secret = any(map(secret_files.is_secret, entry.path.split("/")))
        if name not in code or secret or not paths.is_file(root, root / entry.path):
            continue
        if entry.info.st_size <= MAX_FILE and len(found) < MAX_FILES:
            with paths.open_plain(root, root / entry.path) as file:
                found[entry.path] = file.read(MAX_FILE)
    return found


def run(code: str, files: dict[str, bytes]) -> int:
    """Run code with copies of files; its exit code."""
    given = {f"{PLACE}/{path}": data for path, data in files.items()}
    held = OSAccess([MemoryFile(path, content=data) for path, data in given.items()], environ={})
    seconds = resource.getrlimit(resource.RLIMIT_CPU)[0]
    most = min(MAX_SECONDS, float(seconds)) if seconds > 0 else MAX_SECONDS
    with (
        Monty(max_processes=1, request_timeout=most + 5) as pool,
        pool.checkout(
            limits={
                "max_feed_duration_secs": most,
                "max_memory": MAX_MEMORY,
                "max_recursion_depth": MAX_DEPTH,
            }
        ) as session,
    ):
        try:
            session.feed_run(code, print_callback=_print, os=held, cwd=PLACE)
        except (MontyRuntimeError, MontySyntaxError) as error:
            _print("stderr", f"{error.display()}\n")
            return 1
        except MontyError as error:
            _print("stderr", f"{error}\n")
            return 1
    written = [
        str(one.path)
        for one in held.files
        if isinstance(one, MemoryFile) and one.read_content() != given.get(str(one.path))
    ]
    if written:
        _print("stderr", _LEFT.format(names=", ".join(written)) + "\n")
    return 0


def _print(stream: str, text: str) -> None:
    file = sys.stdout if stream == "stdout" else sys.stderr
    file.write(text)
    file.flush()


def main() -> int:
    """Run the code named by the command, or refuse any other command."""
    found = _CODE.fullmatch(sys.argv[-1].strip())
    if found is None:
        _print("stderr", f"{NO_COMMANDS}\n")
        return 126
    workspace = Path.cwd()
    try:
        with paths.open_plain(workspace, Path(os.path.realpath(workspace)) / found[1]) as file:
            code = file.read().decode()
        return run(code, find_files(workspace, code))
    except (OSError, UnicodeDecodeError, ToolFailed) as error:
        _print("stderr", f"Not run: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
