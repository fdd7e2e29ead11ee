"""What to do otherwise in any sandbox: read off the end of what a command wrote that failed."""

import re

_PROGRAM = re.compile(r": ([\w.+-]+): command not found$", re.MULTILINE)
_PROGRAM_127 = re.compile(r"(?:^|: )([\w.+-]+): not found$", re.MULTILINE)
_PYTHON = re.compile(r"No module named '?(\w+)")
_NODE = re.compile(r"Cannot find (?:module|package) '([^'./][^']*)'")
_SHUT = re.compile(
    r"^(?!.*/dev/(?:tcp|udp)/).*(?:Read-only file system|Permission denied|EROFS|EACCES)",
    re.MULTILINE,
)
_ROOT = re.compile(
    r"are you root\?|must be (?:run as )?root|no new privil"
    r"|(?:chown|chgrp|u?mount|useradd).*Operation not permitted"
)
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
    """What the end of a command's `output` calls for, "" if nothing."""
    program = _PROGRAM.search(output)  # behind a pipe the exit code says nothing of it
    if exit_code == 127:
        program = program or _PROGRAM_127.search(output)
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
