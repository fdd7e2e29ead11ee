"""The first process of the browser's own sandbox: starts Chromium there, and is its way out.

Started by its one file; standard library only. Chromium's every connection comes to a port here,
and goes on over a Unix socket to a guarded proxy of the gateway: there is no other network. The
address at which it comes selects the proxy, by the socket's name. When Chromium ends, or takes too
much memory, this ends, and the kernel ends the rest.

Arguments: `pipes` if the driver's pipes are files 3 and 4, `standard` if they are the standard
streams; the folder of the sockets, the port, bytes of memory, Chromium and its words.
"""

import os
import resource
import select
import signal
import socket
import sys
import threading
from contextlib import suppress

SECONDS_BETWEEN_LOOKS, SECONDS_TO_END = 1.0, 2.0
PROFILE = "/tmp/profile"  # noqa: S108  # paths inside the sandbox
_PAGE = resource.getpagesize()
_PIECE = 1 << 16
_FROM_DRIVER, _TO_DRIVER = 3, 4


def carry(source: socket.socket, target: socket.socket) -> None:
    """Forward data until one side has no more, which the other side is told."""
    with suppress(OSError):
        while data := source.recv(_PIECE):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def serve(near: socket.socket, ways: str) -> None:
    """Carry one connection to its proxy and back."""
    with near, socket.socket(socket.AF_UNIX) as far, suppress(OSError):
        far.connect(f"{ways}/{near.getsockname()[0]}")
        there = threading.Thread(target=carry, args=(near, far), daemon=True)
        there.start()
        carry(far, near)
        there.join()


def listen(port: int, ways: str) -> None:
    """Take connections at the port of every address here, for ever."""
    server = socket.create_server(("", port), backlog=256)

    def take() -> None:
        while True:
            near, _ = server.accept()
            threading.Thread(target=serve, args=(near, ways), daemon=True).start()

    threading.Thread(target=take, daemon=True).start()


def measure() -> int:
    """Bytes that all processes here have for themselves."""
    total = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/statm") as file:
                resident, shared = file.read().split()[1:3]
                total += (int(resident) - int(shared)) * _PAGE
    return total


def choose_words(words: list[str]) -> list[str]:
    """Chromium's words, with its profile where there is a place for it."""
    own = "--user-data-dir="
    return [f"{own}{PROFILE}" if one.startswith(own) else one for one in words]


def move_streams() -> None:
    """Make the standard input and output the driver's pipes; what is printed is error output."""
    os.dup2(0, _FROM_DRIVER)
    os.dup2(1, _TO_DRIVER)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)


def start(words: list[str]) -> int:
    """Start Chromium with the driver's pipes, its files 3 and 4; its number."""
    pid = os.fork()
    if pid == 0:
        os.execv(words[0], words)  # noqa: S606  # no shell is needed
    os.close(_TO_DRIVER)
    return pid


def wait_for_driver() -> None:
    """Wait until the driver is gone: Chromium ends then by itself, unless it hangs. The kernel's
    signal for that does not come through: its sender may not reach another user."""
    driver = select.poll()
    driver.register(_FROM_DRIVER, 0)
    driver.poll()
    select.select((), (), (), SECONDS_TO_END)
    os._exit(1)


def main() -> None:
    """Run until Chromium ends."""
    streams, ways, port, memory, *words = sys.argv[1:]
    if streams == "standard":
        move_streams()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    listen(int(port), ways)
    chromium, ended = start(choose_words(words)), threading.Event()

    def watch() -> None:
        while not ended.wait(SECONDS_BETWEEN_LOOKS):
            if measure() > int(memory):
                os.kill(chromium, signal.SIGKILL)

    for task in (watch, wait_for_driver):
        threading.Thread(target=task, daemon=True).start()
    while True:
        pid, status = os.wait()  # other exited children are reaped too
        if pid == chromium:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
