"""The program inside a sandbox that runs an agent's script, with the module `turnkeeper`.

Standard library only: it is started alone, as `python -c`. The script and the module arrive as one
line of JSON over the open file 3, and are run from memory: no other process can swap them. The file
`current_script.py` is a copy for people, and for the names in tracebacks.
"""

import sys

_here = sys.path.pop(0)  # the workspace: its modules are for the script, not for this program

import json  # noqa: E402
import linecache  # noqa: E402
import os  # noqa: E402
import stat  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402

PLACE = "/tmp/turnkeeper/current_script.py"  # noqa: S108  # inside the sandbox


def read_start() -> dict:  # type: ignore[type-arg]
    """Read the gateway's first message; it sends no other before it is asked."""
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(3, 1 << 16)
        if not piece:
            os._exit(1)  # the gateway has exited
        data += piece
    os.set_inheritable(3, False)
    return json.loads(data)  # type: ignore[no-any-return]


def keep_copy(script: str) -> None:
    """Write a copy of the script, unless the folder belongs to somebody else."""
    folder = os.path.dirname(PLACE)
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        info = os.lstat(folder)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(PLACE, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(script)
    except OSError:
        return


def run(script: str) -> None:
    """Run the script as the program's main module; its errors name its own lines alone."""
    linecache.cache[PLACE] = (len(script), None, script.splitlines(True), PLACE)
    main = types.ModuleType("__main__")
    main.__file__ = PLACE
    sys.modules["__main__"] = main
    sys.argv = [PLACE]
    sys.path.insert(0, _here)
    try:
        exec(compile(script, PLACE, "exec", dont_inherit=True), main.__dict__)  # noqa: S102
    except Exception:  # noqa: BLE001  # boundary: the script's own code
        kind, error, trace = sys.exc_info()
        trace = trace.tb_next if trace is not None else None  # without this line
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(kind, error, trace)
        elif kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        sys.exit(1)


def start() -> None:
    """Run the gateway's script."""
    given = read_start()
    library = types.ModuleType("turnkeeper")
    exec(compile(given["library"], "turnkeeper.py", "exec"), library.__dict__)  # noqa: S102
    sys.modules["turnkeeper"] = library
    keep_copy(given["script"])
    run(given["script"])


if __name__ == "__main__":
    start()
