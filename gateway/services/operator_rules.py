"""The operator's rules of the data folder, `policy.toml`: read at the start and on SIGHUP."""

from collections.abc import Collection
from pathlib import Path

from agent_core.config.plain_files import read_plain
from agent_core.policy_file import MAX_BYTES, parse_rules
from agent_core.policy_rules import OperatorRule
from gateway.declaration import SettingsError

FILE = "policy.toml"


class OperatorRules:
    """The current rules. `rules` is replaced as a whole."""

    def __init__(self, home: Path, tools: Collection[str]) -> None:
        self._file, self._tools = home / FILE, tools
        self.rules: tuple[OperatorRule, ...] = ()

    def load(self) -> None:
        """Load the file. SettingsError if it cannot be used: then the old rules stay."""
        self.rules = read_rules(self._file, self._tools)


def read_rules(file: Path, tools: Collection[str]) -> tuple[OperatorRule, ...]:
    """Return the rules of `file`, none if there is no file; `tools` as for `parse_rules`.
    SettingsError."""
    try:
        data = read_plain(file, MAX_BYTES + 1)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise SettingsError(str(file), "", f"it cannot be read: {error.strerror}.") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SettingsError(f"{file}, line {line}", "", "write it in UTF-8.") from None
    return parse_rules(text, str(file), tools)
