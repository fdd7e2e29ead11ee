"""The kernel's calls by which a process confines itself: Landlock, seccomp, credentials.

Standard library only: the supervisor of the tier `landlock` imports this. Landlock's rights are
given by their numbers (`linux/landlock.h`), with their names beside them.
"""

import ctypes
import os
import struct

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICE = 1 << 6 | 1 << 11
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_FILES_BY_ABI = ((1, (1 << 13) - 1), (2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
"""The rights on files that a version of Landlock added."""
READ = EXECUTE | READ_FILE | READ_DIR
USE = READ_FILE | WRITE_FILE
"""Rights to use a device."""
CHANGE = (1 << 15) - 1 & ~_MAKE_DEVICE
"""All rights in a folder, except for devices."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEVICE
"""Rights that apply to a file that is no folder."""
_TCP = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""Abstract sockets, signals."""
FILES, NETWORK, SCOPES = 3, 4, 6
"""The versions from which files, TCP, and signals are kept in without a gap."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT, _SIGCHLD = 0x8000, 17
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_PR_SET_DEATH_SIGNAL, _PR_DROP_BOUND = 1, 24
_PR_SET_SECURE_BITS, _PR_SET_NO_NEW_PRIVILEGES, _PR_AMBIENT = 28, 38, 47
_ALSO_FOR_ACCESS = 0b1100
"""NO_SETUID_FIXUP, locked: `access` tells what `open` will do, also for users other than root."""
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_CAPABILITY_VERSION = 0x20080522
CHOWN, READ_SEARCH, KILL, SETGID, SETUID, SETPCAP = 0, 2, 5, 6, 7, 8
"""Capabilities, by their numbers."""
_libc = ctypes.CDLL(None, use_errno=True)
_held = ctypes.PyDLL(None, use_errno=True)
"""The same, with the interpreter's lock held, for a process that forks in the middle of it."""


def find_abi() -> int:
    """Return the kernel's Landlock version, 0 if there is none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def restrict(rules: list[tuple[int, int]], abi: int) -> None:
    """Restrict this process and its children to `rules`: open files or folders with their rights.
    No TCP, no outgoing signals, no named sockets, as far as `abi` supports it. OSError."""
    handled = 0
    for since, rights in _FILES_BY_ABI:
        handled |= rights if abi >= since else 0
    network = _TCP if abi >= NETWORK else 0
    attributes = struct.pack("=QQQ", handled, network, _SCOPES if abi >= SCOPES else 0)
    size = 24 if abi >= SCOPES else 16 if abi >= NETWORK else 8
    ruleset = _call(_CREATE_RULESET, attributes, size, 0)
    for descriptor, rights in rules:
        allowed = struct.pack("=Qi", rights & handled, descriptor)
        _call(_ADD_RULE, ruleset, 1, allowed, 0)
    forbid_new_privileges()
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def install_filter(program: bytes) -> int:
    """Filter the system calls of this process and all that it starts; the open file at which the
    calls that are asked are answered. OSError."""
    buffer = ctypes.create_string_buffer(program, len(program))
    given = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    number = _SECCOMP[os.uname().machine]
    try:
        return _call(number, _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, given)
    except OSError:  # on an older kernel
        return _call(number, _SET_FILTER, _NEW_LISTENER, given)


def fork_sibling() -> int:
    """Fork a child of this process's parent; 0 in it. OSError."""
    flags, nothing = ctypes.c_ulong(_CLONE_PARENT | _SIGCHLD), ctypes.c_ulong(0)
    number = ctypes.c_long(_CLONE[os.uname().machine])
    pid = int(_held.syscall(number, flags, nothing, nothing, nothing, nothing))
    if pid < 0:
        number_of_error = ctypes.get_errno()
        raise OSError(number_of_error, os.strerror(number_of_error))
    return pid


def forbid_new_privileges() -> None:
    """Prevent programs from gaining privileges when they are started."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def die_with_parent(signal: int) -> None:
    """Get `signal` when the parent ends."""
    _libc.prctl(_PR_SET_DEATH_SIGNAL, signal, 0, 0, 0)


def read_memory(pid: int, address: int, size: int) -> bytes:
    """`size` bytes of a process's memory. OSError."""
    buffer = ctypes.create_string_buffer(size)
    here = struct.pack("@PN", ctypes.addressof(buffer), size)
    there = struct.pack("@PN", address, size)
    count = _libc.process_vm_readv(pid, here, 1, there, 1, 0)
    if count != size:
        number = ctypes.get_errno() if count < 0 else 14
        raise OSError(number, os.strerror(number))
    return buffer.raw


def set_times(path: str, times: bytes | None) -> None:
    """Set a file's times from the argument of `utimensat`: two `struct timespec`. OSError."""
    _check(_libc.utimensat(-100, os.fsencode(path), times, 0))


def list_capabilities() -> set[int]:
    """Return this process's capabilities."""
    with open("/proc/self/status") as file:
        words = next((line.split()[1] for line in file if line.startswith("CapEff")), "0")
    return {one for one in range(64) if int(words, 16) >> one & 1}


def drop_privileges(user: int | None, kept: set[int]) -> None:
    """Keep no capability but `kept`, and be `user` with its group alone. OSError."""
    _libc.prctl(_PR_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    if SETPCAP in list_capabilities():
        _libc.prctl(_PR_SET_SECURE_BITS, _ALSO_FOR_ACCESS, 0, 0, 0)
        for one in range(64):
            if one not in kept:
                _libc.prctl(_PR_DROP_BOUND, one, 0, 0, 0)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    bits = sum(1 << one for one in kept)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = struct.pack("=Ii", _CAPABILITY_VERSION, 0)
    _check(_libc.capset(header, struct.pack("=6I", low, low, low, high, high, high)))
    for one in kept:
        _check(_libc.prctl(_PR_AMBIENT, _AMBIENT_RAISE, one, 0, 0))


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(number, *arguments))
    _check(result)
    return result


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
