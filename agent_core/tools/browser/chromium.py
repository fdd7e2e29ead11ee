"""Chromium itself: where it is, how it is started, and that it never outlives the gateway.

Its driver ends it when the gateway's end of a pipe closes, and it ends itself when the driver's
does. Besides, the kernel kills it with its driver: a browser that hangs listens to no pipe.
"""

import importlib.util
import logging
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_core.errors import ToolFailed
from agent_core.tools.browser.enclosure import Enclosure

if TYPE_CHECKING:  # imported when a browser is first needed
    from playwright.async_api import Browser, Playwright, ProxySettings

log = logging.getLogger("turnkeeper.browser")

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PATH = "/usr/local/bin:/usr/bin:/bin"
NO_BROWSER = "There is no browser on this machine. Install Chromium (Debian: apt install chromium)."
NO_DRIVER = "The browser cannot be driven: pip install 'turnkeeper[browser]', then restart."
DIES_WITH_PARENT = (
    "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,9,0,0,0);os.execv(sys.argv[1],sys.argv[1:])"
)
"""PR_SET_PDEATHSIG, SIGKILL; it holds across exec."""
PLACE_INSIDE = "/tmp"  # noqa: S108  # its HOME inside, which is empty and private
ENV_INSIDE = {"PATH": PATH, "HOME": PLACE_INSIDE, "LANG": "C.UTF-8"}
"""The whole environment of a browser in an enclosure."""
OF_OURS = frozenset(("PATH", "HOME", "LANG", "TMPDIR", "PLAYWRIGHT_BROWSERS_PATH"))
"""The part of the gateway's environment that a browser's driver needs. No proxy: its browser has
its own."""
FLAGS = (
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.*",  # names are resolved by the proxy
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--disable-gpu",
    "--no-pings",
)


class Driven(Struct, frozen=True, kw_only=True):
    """A running browser, and its driver."""

    driver: "Playwright"
    browser: "Browser"

    async def close(self) -> None:
        """End both."""
        try:
            await self.browser.close()
        except Exception:  # boundary: broken parts must be released all the same
            log.warning("browser_close_failed", exc_info=True)
        finally:
            await self.driver.stop()


def find() -> str:
    """Return the browser's path, "" if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


def find_missing(held_by: str = "") -> str:
    """Return what to install for a browser, "" if nothing is missing. `held_by`: the tier of its
    own sandbox, "" for none."""
    if held_by != "docker" and not find():  # it belongs to the image there
        return NO_BROWSER
    return "" if importlib.util.find_spec("playwright") is not None else NO_DRIVER


async def start(folder: Path, proxy: str, enclosure: Enclosure | None = None) -> Driven:
    """Start a browser whose every connection goes through `proxy`; ToolFailed says what is missing.
    `folder` is its home; it is started in `enclosure`, if there is one."""
    path = find() if enclosure is None else enclosure.walls.find_browser()
    if not path:
        raise ToolFailed(NO_BROWSER)
    nests = os.geteuid() != 0 if enclosure is None else enclosure.walls.nests
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError:
        raise ToolFailed(NO_DRIVER) from None
    if enclosure is not None:
        wrapper, downloads = enclosure.write_wrapper(path), enclosure.downloads
    else:
        wrapper, downloads = _write_wrapper(folder, path), None
    _strip_driver_environment()
    driver = await async_playwright().start()
    try:
        try:
            browser = await _launch(driver, wrapper, proxy, downloads, sandbox=nests)
        except Error as error:
            if not nests or "sandbox" not in error.message.lower():
                raise
            log.warning("browser_unsandboxed", extra={"why": "this kernel lets it have none"})
            browser = await _launch(driver, wrapper, proxy, downloads, sandbox=False)
    except Error as error:
        await driver.stop()
        why = error.message.strip().splitlines()[0][:200]
        raise ToolFailed(f"The browser did not start: {why}") from None
    except BaseException:
        await driver.stop()
        raise
    return Driven(driver=driver, browser=browser)


async def _launch(
    driver: "Playwright", wrapper: Path, proxy: str, downloads: Path | None, *, sandbox: bool
) -> "Browser":
    own = {"HOME": str(wrapper.parent)} if downloads is None else {}
    env = ENV_INSIDE | own  # without the gateway's secrets
    return await driver.chromium.launch(
        executable_path=wrapper,
        chromium_sandbox=sandbox,
        proxy=name_proxy(proxy),
        args=FLAGS,
        env=dict(env),
        downloads_path=downloads,
        handle_sigint=False,
        handle_sigterm=False,
        handle_sighup=False,
        timeout=30_000,
    )


def name_proxy(address: str) -> "ProxySettings":
    """Return the settings of the only proxy of a browser, or of a part of it, also for this
    machine's names."""
    return {"server": address, "bypass": "<-loopback>"}


def _strip_driver_environment() -> None:
    """Reduce the driver's environment to `OF_OURS`, without the gateway's secrets. Its library asks
    one function for it."""
    from playwright._impl import _driver, transport

    def take_harmless() -> dict[str, str]:
        given: dict[str, str] = _driver.get_driver_env()
        own = ("PW_LANG_", "PW_CLI_")
        return {name: given[name] for name in given if name in OF_OURS or name.startswith(own)}

    transport.get_driver_env = take_harmless  # type: ignore[attr-defined]  # it is imported there


def words_that_die_with_parent() -> tuple[str, ...]:
    """The words before a program that the kernel is to kill with its parent."""
    return (sys.executable, "-I", "-S", "-c", DIES_WITH_PARENT)


def _write_wrapper(folder: Path, path: str) -> Path:
    """A program that starts the browser so that it dies with its parent."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = folder / "chromium"
    words = (*words_that_die_with_parent(), path)
    new = place.with_suffix(".new")
    new.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    new.chmod(0o700)
    os.replace(new, place)
    return place.absolute()
