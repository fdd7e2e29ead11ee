"""Advice after a failed command, read off the end of its output; the same in every sandbox."""

import re
import signal

from agent_core.sandboxes.port import ProcessResult

_PROGRAM = re.compile(r": ([\w.+-]+): command not found$", re.MULTILINE)
_PROGRAM_127 = re.compile(r"(?:^|: )([\w.+-]+): not found$", re.MULTILINE)
_PYTHON = re.compile(r"No module named '?(\w+)")
_NODE = re.compile(r"Cannot find (?:module|package) '([^'./][^']*)'")
_SHUT = re.compile(
    r"^(?!.*/dev/(?:tcp|udp)/).*(?:Read-only file system|Permission denied|EROFS|EACCES)",
    re.MULTILINE,
)
_ROOT = re.compile(
    r"are you root\?|must be (?:run as )?root|no new privil|/var/lib/(?:apt|dpkg)/"
    r"|^su: (?:Critical|Authentication|must be|Permission)"
    r"|(?:chown|chgrp|u?mount|useradd).*Operation not permitted",
    re.MULTILINE,
)
_USUAL = (
    (
        re.compile(
            r"Cannot connect to the Docker daemon|(?:docker|podman)\S*: (?:command )?not found"
        ),
        "[There is no container engine in the sandbox, and none can be reached. Run the program "
        "itself here; what needs a container, a person has to run elsewhere.]",
    ),
    (
        re.compile(
            r"not been booted with systemd|(?:systemctl|service|rc-service): (?:command )?not found"
        ),
        "[No services run in the sandbox: start the program itself, in the background.]",
    ),
    (
        re.compile(r"(?:sudo|su|doas|apt(?:-get)?|dnf|yum|apk): (?:command )?not found"),
        "[Nobody is root in the sandbox: leave out sudo. System packages stay as they are; use "
        "what is there, or what pip or npm have.]",
    ),
    (
        re.compile(r"EOFError: EOF when reading|not (?:to |from )?a (?:terminal|tty|TTY)"),
        "[Nobody types here, and there is no terminal. Give answers as arguments or by a pipe; "
        "write files without an editor.]",
    ),
    (
        re.compile(r"Terminal is dumb|(?:vi|vim|nano|emacs|editor): (?:command )?not found"),
        "[No editor opens here: give texts by -m or -F, write files without one; "
        "GIT_SEQUENCE_EDITOR=true takes the list of a rebase as it is.]",
    ),
    (
        re.compile(r"Address already in use|EADDRINUSE"),
        "[What an earlier command started may still be at that port: it stays. Use it, end it by "
        "its number, or take another port.]",
    ),
    (
        re.compile(r"No space left on device|ENOSPC"),
        "[It is full there: /dev/shm holds 512 MB at most, and all else what the disk has left. "
        "Remove what is not needed.]",
    ),
    (
        re.compile(r"Too many open files|EMFILE"),
        "[Over the files that one process may have open: see ulimit -n.]",
    ),
    (
        re.compile(r"can't start new thread|fork: (?:retry: )?Resource temporarily unavailable"),
        "[Over the processes and threads that a sandbox may have.]",
    ),
    (
        re.compile(r"%\S+: no such job"),
        "[A job belongs to the command that started it. End what stayed by its number.]",
    ),
)
"""Common programs that a sandbox lacks, by their error messages."""
MAX_FILE = 1 << 30
"""Bytes of one file that a command writes."""
_FILE_LIMIT = f"[Stopped: over {MAX_FILE >> 30} GB in one file.]"
_LARGE_FILE = re.compile(r"File too large|File size limit exceeded|EFBIG")
_FINDS = re.compile(r"\b(?:pgrep|pidof|pkill|killall)\b")
_ENDS_BY_WORDS = re.compile(r"\b(?:pkill|killall|pgrep)\b")
MAX_LOOKED = 4_000
"""Characters at the end of an output that are searched."""
_ENDINGS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
_CRASHES = frozenset(
    {signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS}
)
_ENDED_ITSELF = (
    "[{name} ended the command itself: a pattern of pkill or killall fits its own words, too. "
    "Write the pattern as '[n]ame', or end what runs by its number; then run the rest again.]"
)
_FINDS_NONE = (
    "[This sandbox shows no processes, so pgrep, pidof, pkill and killall find none, whatever "
    "runs. End what was started by `kill` with its number ($!), or by its handle.]"
)
_CRASHED = "[A program crashed: {name}.]"
_INSTALL = "install it with the call's `hosts` set to packages, which a person may be asked about"
_NO_PROGRAM = (
    "[{name} is not installed in the sandbox, and there is no root in it. Use what is there; if "
    "pip or npm has it, {install}.]"
)
_NO_PYTHON = (
    "[The Python module {name} is not installed in the sandbox. Do without it, or {install}: pip "
    "install, with the package's name.]"
)
_NO_NODE = "[The Node module {name} is not installed in the sandbox. Do without it, or {install}.]"
_NOT_EXECUTABLE = "[It is not executable: chmod +x it, or name its interpreter.]"
_WRITES = "[Only the workspace, HOME and the folder for temporary files can be written here.]"
_NO_ROOT = "[Nobody is root in the sandbox: system packages and settings stay as they are.]"


def advise(output: str, exit_code: int) -> str:
    """Return the advice for the end of a command's `output`, "" for none."""
    program = _PROGRAM.search(output)  # after a pipe the exit code does not tell
    if exit_code == 127:
        program = program or _PROGRAM_127.search(output)
    usual = [words for said, words in _USUAL if said.search(output)] if exit_code else []
    if usual:
        return "\n".join(usual)
    found = [_NO_PROGRAM.format(name=program[1], install=_INSTALL)] if program else []
    if not exit_code:
        return "".join(found)
    if module := _PYTHON.search(output):
        found.append(_NO_PYTHON.format(name=module[1], install=_INSTALL))
    if module := _NODE.search(output):
        found.append(_NO_NODE.format(name=module[1], install=_INSTALL))
    if exit_code == 126 and "Permission denied" in output:
        found.append(_NOT_EXECUTABLE)
    elif _ROOT.search(output):
        found.append(_NO_ROOT)
    elif _SHUT.search(output):
        found.append(_WRITES)
    return "\n".join(found)


def explain_blindness(command: str) -> str:
    """Explain why the programs that find processes by name find none; "" if none is called."""
    return _FINDS_NONE if _FINDS.search(command) else ""


def explain_end(command: str, done: ProcessResult) -> str:
    """Explain which limit of the kernel, or which signal, ended a command, if nothing else says so;
    "" for none."""
    if done.timed_out or done.reason:
        return ""
    if done.exit_code == 128 + signal.SIGXFSZ or _LARGE_FILE.search(done.output[-MAX_LOOKED:]):
        return _FILE_LIMIT
    try:
        one = signal.Signals(done.exit_code - 128)
    except ValueError:
        return ""
    if one in _ENDINGS and _ENDS_BY_WORDS.search(command):
        return _ENDED_ITSELF.format(name=one.name)
    return _CRASHED.format(name=one.name) if one in _CRASHES else ""
