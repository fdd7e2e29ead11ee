"""The entry of a container's first process: takes its share of the processors, installs a filter of
system calls on itself and its children, besides the engine's own, and becomes the supervisor.

Standard library only: it is passed as text, with the supervisor's text, the number of processors,
the filter, and the supervisor's configuration.
"""

import ctypes
import os
import struct
import sys

_PR_SET_SECCOMP, _SECCOMP_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38


def install(refusals: bytes) -> None:
    """Put on a filter as the kernel takes it, `struct sock_filter` after another. OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    held = ctypes.create_string_buffer(refusals)
    told = struct.pack("HP", len(refusals) // 8, ctypes.addressof(held))
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.create_string_buffer(told), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls is refused")


def choose_cpus(count: int) -> None:
    """Run on so many processors, as programs count them; the engine's limit is one of time.
    Sandboxes are spread over them."""
    may = sorted(os.sched_getaffinity(0))
    first = int.from_bytes(os.urandom(4), "big")
    os.sched_setaffinity(0, {may[(first + one) % len(may)] for one in range(count)})


def main() -> None:
    """Be the supervisor."""
    program, cpus, refusals = sys.argv[1:4]
    del sys.argv[1:4]
    choose_cpus(int(cpus))
    if refusals:
        install(bytes.fromhex(refusals))
    exec(compile(program, "supervisor", "exec"), {"__name__": "__main__"})  # noqa: S102  # ours


if __name__ == "__main__":
    main()
