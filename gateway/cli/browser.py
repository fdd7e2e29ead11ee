"""Opens the page for who starts the gateway at a terminal of a desktop."""

import html
import os
import shutil
import subprocess
import sys
from pathlib import Path

from gateway.settings import Settings

FILE = "open.html"
PAGE = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}">'
    '<title>Turnkeeper</title><a href="{link}">Turnkeeper</a>\n'
)
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_page(settings: Settings, link: str) -> None:
    """Open `link` in the person's browser, where there is a terminal, a display and a way to."""
    opener = find_opener(settings)
    if opener is None or not sys.stdout.isatty():
        return
    try:
        path = write_page(settings.home, link)
        subprocess.Popen(  # noqa: S603
            (opener, str(path)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # the link is printed in any case
        return


def find_opener(settings: Settings) -> str | None:
    """Return the program that opens files in the person's default application."""
    if sys.platform == "darwin":
        return shutil.which("open")
    if not any(settings.env.get(name) for name in DISPLAYS):
        return None
    return shutil.which("xdg-open")


def write_page(home: Path, link: str) -> Path:
    """Write a file that redirects to `link`: other users can read a link on a command line."""
    path = home / FILE
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(PAGE.format(link=html.escape(link)))
    return path
