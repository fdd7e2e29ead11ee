"""Secrets that people lend to commands: one file of the data folder, readable by its owner alone.

It is never in the store, in a chat or in a prompt; neither is a secret of the settings. The
command line writes it; the gateway looks whether it changed each time it needs it.
"""

import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agent_core import ambient
from agent_core.config.plain_files import read_plain
from agent_core.guardrails.redaction import Redactions
from agent_core.guardrails.secret_spellings import spell_secret
from agent_core.sandboxes.secrets import find_named
from gateway.messages import digest
from gateway.services.spoilt_files import NO_FILE, set_aside

FILE = "secrets.json"
NAME = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
MIN_VALUE = 6
"""Characters of a value: a shorter one could not be hidden in an output."""
MIN_OWN = 12
"""Minimum length of a hidden secret from the gateway's settings: a shorter one may be an ordinary
word."""
OWN = "[secret]"
_TAKEN = re.compile(r"(PATH|HOME|LANG|IFS|ENV|SHELL|USER|PWD|BASH_ENV|PS4|LD_.*|PYTHON.*|DYLD_.*)")


log = logging.getLogger("turnkeeper.files")
_decode = msgspec.json.Decoder(dict[str, dict[str, str]]).decode


class UnfitSecret(ValueError):
    """The name or the value cannot be used; the text says why."""


class Vault:
    """Secrets by conversation (its address) and name. `own`: those of the gateway's settings, which
    are lent to nobody and hidden like the others."""

    def __init__(self, home: Path, own: Iterable[str] = ()) -> None:
        self._path = home / FILE
        self._seen: tuple[int, int] | None = None
        self._looked = self._unread = False
        self._known: dict[str, dict[str, str]] = {}
        long = (value for value in own if len(value) >= MIN_OWN)
        self._own = {form: OWN for value in long for form in spell_secret(value)}
        self._values = Redactions(self._own)

    def addresses(self) -> tuple[str, ...]:
        """Conversations that have any."""
        return tuple(sorted(self._read()))

    def names(self, address: str) -> tuple[str, ...]:
        """Names that commands of this conversation may use."""
        return tuple(sorted(self._read().get(address, {})))

    def value(self, address: str, name: str) -> str:
        """Return the secret itself, for the gateway's own use; "" if there is none."""
        return self._read().get(address, {}).get(name, "")

    def keep(self, address: str, name: str, value: str) -> None:
        """Keep a secret. Raises Unfit."""
        if not NAME.fullmatch(name) or _TAKEN.fullmatch(name):
            raise UnfitSecret(
                f"{name[:64]!r} cannot be a name: use capitals, digits and _, and no name "
                "that a shell uses itself."
            )
        if len(value) < MIN_VALUE or "\0" in value or "\n" in value:
            raise UnfitSecret(f"The value needs at least {MIN_VALUE} characters, in one line.")
        known = self._read()
        self._write(known | {address: known.get(address, {}) | {name: value}})

    def read_all(self, address: str) -> dict[str, str]:
        """Return all secrets of an address, for the gateway's own use."""
        return dict(self._read().get(address, {}))

    def replace_all(self, address: str, values: dict[str, str]) -> None:
        """Keep these under an address and nothing else, in one write. Raises Unfit."""
        if any(len(value) < MIN_VALUE or "\0" in value for value in values.values()):
            raise UnfitSecret("A value is too short to be hidden in an output.")
        others = {where: own for where, own in self._read().items() if where != address}
        self._write(others | {address: values} if values else others)

    def drop(self, address: str, name: str) -> bool:
        """Forget a secret. Return False if there is none."""
        known = self._read()
        if name not in known.get(address, {}):
            return False
        own = {one: value for one, value in known[address].items() if one != name}
        self._write({where: names for where, names in (known | {address: own}).items() if names})
        return True

    def lend(self, workspace: Path, command: str) -> dict[str, str]:
        """Return the secrets for a command, see `Secrets`; a workspace is named after its
        conversation."""
        own = next((s for a, s in self._read().items() if digest(a.encode()) == workspace.name), {})
        return {name: own[name] for name in find_named(command, own)}

    def hide(self, text: str) -> str:
        """`text` with `[NAME]` in place of each value, also in the forms of `spell_secret`."""
        return self.words().hide(text)

    def words(self) -> Redactions:
        """Return the current redactions; the last known ones while the file cannot be read, as no
        other secret can have been lent. OSError if it never could."""
        try:
            self._read()
        except OSError as error:
            if not self._looked:
                raise
            if not self._unread:  # before the log, which reads the words, too
                self._unread = True
                log.error("secrets_not_read", extra={"why": str(error)})
        else:
            self._unread = False
        return self._values

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            info = self._path.stat()
        except FileNotFoundError:
            self._looked = True
            if self._seen is not None:
                self._seen, self._known, self._values = None, {}, Redactions(self._own)
            return {}
        except OSError as error:
            return self._drop_spoilt(error)
        if (info.st_mtime_ns, info.st_ino) != self._seen:
            try:
                known = _decode(read_plain(self._path))
            except (OSError, msgspec.DecodeError) as error:
                return self._drop_spoilt(error)
            self._seen, self._known = (info.st_mtime_ns, info.st_ino), known
            self._looked = True
            self._values = Redactions(
                self._own
                | {
                    form: f"[{name}]"
                    for own in known.values()
                    for name, value in own.items()
                    for form in spell_secret(value)
                }
            )
        return self._known

    def _drop_spoilt(self, error: Exception) -> dict[str, dict[str, str]]:
        """Set an unreadable file aside; secrets known before stay redacted. OSError if it may
        become readable."""
        if isinstance(error, OSError) and error.errno not in NO_FILE:
            raise error
        self._seen, self._known = None, {}  # first: the log reads the words, too
        set_aside(self._path, error)
        return {}

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        beside = self._path.with_name(f".{FILE}.{ambient.new_id()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(known))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._path)
