"""The operator's instructions: a setting and, in the data folder, `instructions.md` for all
conversations and `instructions.<name>.md` for those of a platform or a profile.

Read at the start and on SIGHUP.
"""

import difflib
import logging
from pathlib import Path

from agent_core.config.plain_files import read_plain
from agent_core.profiles.built_in import PROFILES
from gateway.access.people import PLATFORMS
from gateway.declaration import SettingsError

log = logging.getLogger("turnkeeper.instructions")

FILES = "instructions*.md"
MAX_INSTRUCTIONS = 8_000
"""Maximum characters of one file or setting, which are part of every request."""


class OperatorInstructions:
    """The current instructions, replaced as a whole."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._texts: dict[str, str] = {}
        """By name; "" is for all."""
        self._set = ""

    def load(self, setting: str) -> None:
        """Load the setting and the files. SettingsError if one cannot be used: then the old ones
        stay."""
        self._texts = {_read_name(file): _read_text(file) for file in self._list_files()}
        self._set = setting
        for unused in self.find_unused():
            log.warning("instructions_unused", extra={"why": unused})

    def find_unused(self) -> tuple[str, ...]:
        """Describe the loaded files that hold nowhere, as their name is no platform's and no
        profile's."""
        known = (*PLATFORMS, *PROFILES)
        found = []
        for name in self._texts:
            if name and name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.6)
                mend = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
                found.append(f"instructions.{name}.md is of no platform and no profile; {mend}")
        return tuple(found)

    def select(self, *names: str) -> tuple[str, ...]:
        """The texts for all and for `names`, in this order."""
        found = (self._texts.get(name, "") for name in dict.fromkeys(("", *names)))
        return tuple(filter(None, (self._set, *found)))

    def _list_files(self) -> list[Path]:
        found = sorted(self._home.glob(FILES)) if self._home.is_dir() else []
        return [file for file in found if file.name == "instructions.md" or _read_name(file)]


def _read_name(file: Path) -> str:
    return file.name.removeprefix("instructions").removesuffix("md").strip(".").lower()


def _read_text(file: Path) -> str:
    """The text of `file`. SettingsError."""
    try:
        data = read_plain(file, 4 * MAX_INSTRUCTIONS + 1)
        text = data.decode("utf-8-sig").strip()
    except OSError as error:
        raise SettingsError(str(file), "", f"it cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        if len(data) > 4 * MAX_INSTRUCTIONS:  # the cut may split a character
            raise _make_size_error(file) from None
        raise SettingsError(str(file), "", "write it in UTF-8.") from None
    if len(text) > MAX_INSTRUCTIONS:
        raise _make_size_error(file)
    return text


def _make_size_error(file: Path) -> SettingsError:
    mend = (
        f"it stands in every request, so it may have {MAX_INSTRUCTIONS:,} characters; shorten it."
    )
    return SettingsError(str(file), "", mend)
