"""The socket by which the command line speaks with a running gateway."""

from pathlib import Path

from gateway.ops import control


async def test_a_folder_that_is_only_read_now_is_no_fault_at_the_end(tmp_path: Path) -> None:
    operations = control.Operations(store=None, pairing=None)  # type: ignore[arg-type]
    async with control.serve(tmp_path, operations):
        (tmp_path / control.SOCKET).unlink()
        (tmp_path / control.SOCKET).mkdir()  # nobody can remove it as a file
