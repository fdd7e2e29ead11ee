"""Unix sockets at paths of every length."""

import os
import socket
import stat
from pathlib import Path

import pytest

from agent_core.unix_sockets import bind_socket, open_address


def grow(folder: Path, length: int) -> Path:
    """A path under `folder` of so many bytes, if it is not longer already."""
    folder /= "w" * 30
    while (left := length - len(os.fsencode(folder)) - 5) > 0:
        folder /= "é" * (min(left, 200) // 2) if left > 3 else "w" * left
    folder.mkdir(parents=True)
    return folder / "sock"


@pytest.mark.parametrize("length", [*range(95, 115), 300, 3000])
def test_a_socket_is_reached_at_a_path_of_any_length(tmp_path: Path, length: int) -> None:
    place = grow(tmp_path, length)
    before = set(os.listdir("/proc/self/fd"))
    with bind_socket(place) as listening, socket.socket(socket.AF_UNIX) as client:
        assert stat.S_ISSOCK(place.lstat().st_mode)
        listening.listen()
        with open_address(place) as address:
            client.connect(address)
        taken, _ = listening.accept()
        with taken:
            client.sendall(b"word")
            assert taken.recv(10) == b"word"
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("length", [0, 200])
def test_a_failure_leaves_no_file_open(tmp_path: Path, length: int) -> None:
    place = grow(tmp_path, length)
    place.write_text("taken")
    before = set(os.listdir("/proc/self/fd"))
    for wrong in (place, place.parent / "missing" / "sock"):
        with pytest.raises(OSError):
            bind_socket(wrong)
    assert set(os.listdir("/proc/self/fd")) == before
