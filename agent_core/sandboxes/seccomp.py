"""A filter of system calls: what opens the kernel wider than a command needs.

Refused with EPERM: namespaces, mounts, key rings, kernel modules, BPF, io_uring and others of
their kind, families of sockets other than Unix, IP and netlink, and another choice of processors.
`clone3` answers ENOSYS, so that libraries use `clone`, whose flags a filter can read. Numbers from
the kernel's tables (`asm/unistd.h`); a machine of another kind than these gets no filter.

Where no namespaces keep a command apart (`build_guarded_filter`), more is refused, and what depends
on more than numbers is asked of the supervisor: which address a socket binds or connects to, whose
mode or times are changed, and how many processes there are. Standard library only: the supervisor
imports this.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_X86 = {
    "socket": 41, "clone": 56, "ptrace": 101, "mount": 165, "umount2": 166, "pivot_root": 155,
    "unshare": 272, "setns": 308, "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
    "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "kexec_load": 246, "kexec_file_load": 320, "open_by_handle_at": 304, "acct": 163,
    "swapon": 167, "swapoff": 168, "reboot": 169, "quotactl": 179, "syslog": 103,
    "sched_setaffinity": 203, "move_mount": 429, "open_tree": 428, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "clone3": 435,
    "chroot": 161, "settimeofday": 164, "clock_settime": 227, "lookup_dcookie": 212,
    "nfsservctl": 180, "vhangup": 153, "iopl": 172, "ioperm": 173,
}  # fmt: skip
_ARM = {
    "socket": 198, "clone": 220, "ptrace": 117, "mount": 40, "umount2": 39, "pivot_root": 41,
    "unshare": 97, "setns": 268, "keyctl": 219, "add_key": 217, "request_key": 218, "bpf": 280,
    "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "init_module": 105, "finit_module": 273, "delete_module": 106,
    "kexec_load": 104, "kexec_file_load": 294, "open_by_handle_at": 265, "acct": 89,
    "swapon": 224, "swapoff": 225, "reboot": 142, "quotactl": 60, "syslog": 116,
    "sched_setaffinity": 122, "move_mount": 429, "open_tree": 428, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "clone3": 435,
    "chroot": 51, "settimeofday": 170, "clock_settime": 112, "lookup_dcookie": 18,
    "nfsservctl": 42, "vhangup": 58,
}  # fmt: skip
_MORE_X86 = {
    "connect": 42, "sendto": 44, "sendmsg": 46, "bind": 49, "listen": 50, "socketpair": 53,
    "fork": 57, "vfork": 58, "kill": 62, "fcntl": 72,
    "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65,
    "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "chmod": 90,
    "fchmod": 91, "chown": 92, "lchown": 94, "rt_sigqueueinfo": 129, "utime": 132,
    "setpriority": 141, "sched_setparam": 142, "sched_setscheduler": 144, "setxattr": 188,
    "lsetxattr": 189, "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198,
    "fremovexattr": 199, "tkill": 200, "semtimedop": 220, "tgkill": 234, "utimes": 235,
    "mq_open": 240, "mq_unlink": 241, "ioprio_set": 251, "inotify_add_watch": 254,
    "migrate_pages": 256, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "move_pages": 279,
    "utimensat": 280, "rt_tgsigqueueinfo": 297, "fanotify_init": 300, "prlimit64": 302,
    "sendmmsg": 307, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "sched_setattr": 314, "ioctl": 16,
}  # fmt: skip
_MORE_ARM = {
    "connect": 203, "sendto": 206, "sendmsg": 211, "bind": 200, "listen": 201, "socketpair": 199,
    "kill": 129, "fcntl": 25, "shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190,
    "semop": 193, "semctl": 191, "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187,
    "fchmod": 52, "rt_sigqueueinfo": 138, "setpriority": 140, "sched_setparam": 118,
    "sched_setscheduler": 119, "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
    "lremovexattr": 15, "fremovexattr": 16, "tkill": 130, "semtimedop": 192, "tgkill": 131,
    "mq_open": 180, "mq_unlink": 181, "ioprio_set": 30, "inotify_add_watch": 27,
    "migrate_pages": 238, "fchownat": 54, "fchmodat": 53, "move_pages": 239, "utimensat": 88,
    "rt_tgsigqueueinfo": 240, "fanotify_init": 262, "prlimit64": 261, "sendmmsg": 269,
    "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "sched_setattr": 274,
    "ioctl": 29,
}  # fmt: skip
_MORE_ALIKE = {
    "pidfd_send_signal": 424, "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440,
    "quotactl_fd": 443, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
    "file_setattr": 469,
}  # fmt: skip
"""The same number on each machine."""
_MACHINES = {"x86_64": (0xC000003E, _X86), "aarch64": (0xC00000B7, _ARM)}
_MORE = {"x86_64": _MORE_X86 | _MORE_ALIKE, "aarch64": _MORE_ARM | _MORE_ALIKE}
_ALLOWED = ("socket", "clone", "ptrace")
"""The calls that are not refused outright."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6."""
_NETLINK = 16
"""AF_NETLINK: only its first protocol, by which programs list network interfaces."""
_NAMESPACES = 0x7E020080
"""The CLONE_NEW* flags: time, mounts, control groups, names, IPC, users, processes, network."""
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16
"""Offsets of a call's number, its architecture and its first argument in a filter's input."""
_AND, _ASK = 0x54, 0x7FC00000
_STREAM, _SEQPACKET, _TCP = 1, 5, 6
_TYPE = 0xF
"""The bits of a socket's type that are no flags."""
_FAST_OPEN = 0x20000000
"""MSG_FASTOPEN: sending with it connects without `connect`."""
_SET_OWNER, _SET_SIGNAL, _SET_OWNER_EX = 8, 10, 15
"""Commands of `fcntl` that let the kernel send signals for a file."""
_FILE_OWNER = (0x8901, 0x8902)
"""The same of `ioctl`: FIOSETOWN, SIOCSPGRP."""
_UNSUPPORTED = (
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
    "setxattrat", "removexattrat", "file_setattr",
)  # fmt: skip
_NEVER = (
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink", "chown", "lchown", "fchownat", "migrate_pages",
    "move_pages", "fanotify_init", "inotify_add_watch", "process_vm_readv", "process_vm_writev",
    "kcmp", "pidfd_getfd", "process_madvise", "quotactl_fd",
)  # fmt: skip
"""Calls that reach other processes of the same user, or names of files, past Landlock's rules."""
ASKED = (
    "connect", "bind", "listen", "chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes",
    "futimesat", "utimensat",
)  # fmt: skip
"""Calls that the supervisor makes in the caller's place, if allowed; `socket` too, for TCP."""
FORKS = ("clone", "fork", "vfork")
"""Calls that pass while the sandbox may have more processes and threads."""
SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
"""Calls that are judged where the kernel does not confine signals."""
_OF_ONESELF = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setattr")
"""Refused with another number than 0 first: of another process."""
_Instruction = tuple[int, int, int, int]
_Program = list[_Instruction]
_HEAD = 6
"""Instructions until the machine is known to be ours."""


def build_filter(machine: str = "", families: tuple[int, ...] = _FAMILIES) -> bytes:
    """The filter as the kernel takes it, `struct sock_filter` after `struct sock_filter`; empty for
    an unknown machine."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return b""
    architecture, numbers = known
    refused = [number for name, number in numbers.items() if name not in (*_ALLOWED, "clone3")]
    program: _Program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
        # end of _HEAD
        (_EQUAL, 0, 1, numbers["clone3"]),
        (_RETURN, 0, 0, _FAIL | errno.ENOSYS),
    ]
    for number in refused:
        program += ((_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL | errno.EPERM))
    program += (
        (_EQUAL, 0, 4, numbers["clone"]),
        (_LOAD, 0, 0, _FIRST),
        (_ANY_BIT, 0, 1, _NAMESPACES),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    )
    listing = ((_EQUAL, 0, 2, _NETLINK), (_LOAD, 0, 0, _argument(2)), (_EQUAL, 1, 0, 0))
    routes = listing if families else ()
    most = len(families) + len(routes)
    program += ((_EQUAL, 0, most + 2, numbers["socket"]), (_LOAD, 0, 0, _FIRST))
    program += ((_EQUAL, most - at, 0, one) for at, one in enumerate(families))
    program += (
        *routes,
        (_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    )
    return _pack(program)


def name_calls(machine: str = "") -> dict[int, str]:
    """The names of the calls that the supervisor is asked, by their numbers."""
    numbers = _number_calls(machine)
    return {numbers[one]: one for one in ("socket", *ASKED, *FORKS, *SIGNALS) if one in numbers}


def build_guarded_filter(keeper: int, *, scoped: bool, machine: str = "") -> bytes:
    """The filter for commands that share the machine's processes and network. `keeper`: a process
    among theirs that they must not signal. `scoped`: the kernel keeps their signals in; else the
    supervisor is asked. Empty for an unknown machine."""
    numbers = _number_calls(machine)
    first = build_filter(machine, ())
    if not first:
        return b""
    program: _Program = []

    def limit(name: str, body: _Program) -> None:
        if name in numbers:
            program.extend(((_LOAD, 0, 0, _NUMBER), (_EQUAL, 0, len(body), numbers[name]), *body))

    refuse, ask, allow = _answer(errno.EPERM), (_RETURN, 0, 0, _ASK), (_RETURN, 0, 0, _ALLOW)
    for name in (*_NEVER, "ptrace", *(() if scoped else ("pidfd_send_signal",))):
        limit(name, [refuse])
    for name in _UNSUPPORTED:
        limit(name, [_answer(errno.EOPNOTSUPP)])
    for name in ASKED:
        limit(name, [ask])
    for name in FORKS:
        flags = ((_LOAD, 0, 0, _FIRST), (_ANY_BIT, 0, 1, _NAMESPACES), refuse)
        limit(name, [*(flags if name == "clone" else ()), ask])
    limit("socket", _judge_socket())
    stream = ((_LOAD, 0, 0, _argument(1)), (_AND, 0, 0, _TYPE))
    kinds = ((_EQUAL, 2, 0, _STREAM), (_EQUAL, 1, 0, _SEQPACKET), refuse, allow)
    limit("socketpair", [*_answer_unless(0, 1, refuse), *stream, *kinds])
    for name, at in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        limit(name, [(_LOAD, 0, 0, _argument(at)), (_ANY_BIT, 0, 1, _FAST_OPEN), refuse, allow])
    everybody = (0xFFFFFFFF, 0x100000000 - keeper)  # all of them, and those of `keeper`
    for name in (*SIGNALS, "pidfd_open"):
        barred = (keeper, *everybody) if name == "kill" else (keeper,)
        after = allow if scoped or name == "pidfd_open" else ask
        limit(name, [*_answer_if_any(0, barred, refuse), after])
    for name in _OF_ONESELF:
        limit(name, [*_answer_unless(0, 0, refuse), allow])
    limit("setpriority", [*_answer_unless(0, 0, refuse), *_answer_unless(1, 0, refuse), allow])
    limit("ioprio_set", [*_answer_unless(0, 1, refuse), *_answer_unless(1, 0, refuse), allow])
    limit("fcntl", [*_answer_if_any(1, (_SET_OWNER, _SET_SIGNAL, _SET_OWNER_EX), refuse), allow])
    limit("ioctl", [*_answer_if_any(1, _FILE_OWNER, refuse), allow])
    program.append((_LOAD, 0, 0, _NUMBER))
    head = 8 * _HEAD  # the architecture is checked first; rules that always refuse come last
    return first[:head] + _pack(program) + first[head:]


def _number_calls(machine: str) -> dict[str, int]:
    name = machine or platform.machine()
    return {**_MACHINES[name][1], **_MORE[name]} if name in _MACHINES else {}


def _argument(at: int) -> int:
    """Return the offset of an argument's lower half."""
    return _FIRST + 8 * at


def _answer(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _FAIL | number)


def _answer_unless(at: int, value: int, answer: _Instruction) -> _Program:
    """Answer if the argument is another."""
    return [(_LOAD, 0, 0, _argument(at)), (_EQUAL, 1, 0, value), answer]


def _answer_if_any(at: int, values: tuple[int, ...], answer: _Instruction) -> _Program:
    """Answer if the argument is one of them."""
    *others, last = values
    tests = [(_EQUAL, len(others) - n, 0, one) for n, one in enumerate(others)]
    return [(_LOAD, 0, 0, _argument(at)), *tests, (_EQUAL, 0, 1, last), answer]


def _judge_socket() -> _Program:
    """Judge a socket: TCP is asked for; other kinds of IP are refused, other families unknown."""
    refuse, ask = _answer(errno.EPERM), (_RETURN, 0, 0, _ASK)
    return [
        *((_LOAD, 0, 0, _argument(0)), (_EQUAL, 2, 0, 2), (_EQUAL, 1, 0, 10)),
        _answer(errno.EAFNOSUPPORT),
        *((_LOAD, 0, 0, _argument(1)), (_AND, 0, 0, _TYPE), (_EQUAL, 1, 0, _STREAM), refuse),
        *((_LOAD, 0, 0, _argument(2)), (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, _TCP), refuse),
        ask,
    ]


def _pack(program: _Program) -> bytes:
    return b"".join(struct.pack("<HBBI", *one) for one in program)


@contextmanager
def open_filter() -> Iterator[int]:
    """An open file that holds the filter, as bubblewrap reads it."""
    descriptor = os.memfd_create("filter")
    try:
        os.write(descriptor, build_filter())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)
