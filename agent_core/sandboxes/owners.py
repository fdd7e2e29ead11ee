"""Who made a sandbox: so it is known which ones a gateway left that was killed."""

import os
from pathlib import Path


def describe_owner(pid: int | None = None) -> str:
    """Who a process is, this one by default: start of the machine, namespace of processes,
    number, start; "" if it is gone."""
    pid = os.getpid() if pid is None else pid
    try:
        born = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}/{pid}/{born}"


def is_owner_gone(owner: str) -> bool | None:
    """The process that `describe_owner` describes has ended; None if nobody can say so here."""
    here = describe_owner().rsplit("/", 2)[0]
    place, _, rest = owner.rpartition("/")
    pid = place.rpartition("/")[2]
    if owner.startswith(f"{here}/") and pid.isdigit() and rest:
        return describe_owner(int(pid)) != owner
    return None
