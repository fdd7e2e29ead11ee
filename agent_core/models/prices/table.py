"""The table of prices: of models by provider, with source and date.

The built-in one was made from the package genai-prices (MIT); a newer one made by `turnkeeper
prices refresh` takes precedence.
"""

import logging
import re
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.config.plain_files import read_plain
from agent_core.models.catalog import FindPrice, Price

log = logging.getLogger("turnkeeper.models")

SHIPPED = Path(__file__).parent / "data" / "prices.json"
ALIASES = {"gemini": "google"}
"""Our providers that the table knows by another name."""
MAX_BYTES = 5_000_000
MAX_MODEL = 200
LATEST = 1_000
"""Models whose prices are cached, as a search of the table takes as long as a send."""


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Matches names of a model: the one field that is set says how."""

    equals: str | None = None
    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    regex: str | None = None
    any_of: "tuple[Match, ...] | None" = msgspec.field(default=None, name="or")
    all_of: "tuple[Match, ...] | None" = msgspec.field(default=None, name="and")

    def fits(self, name: str) -> bool:
        """Return True if the name matches."""
        low = name.lower()
        if self.equals is not None:
            return low == self.equals.lower()
        if self.starts_with is not None:
            return low.startswith(self.starts_with.lower())
        if self.ends_with is not None:
            return low.endswith(self.ends_with.lower())
        if self.contains is not None:
            return self.contains.lower() in low
        if self.regex is not None:
            return bool(re.search(self.regex, name[:MAX_MODEL]))
        if self.any_of is not None:
            return any(one.fits(name) for one in self.any_of)
        return bool(self.all_of) and all(one.fits(name) for one in self.all_of or ())


class PricedModel(Struct, frozen=True, kw_only=True):
    """A model, or several of one price."""

    match: Match
    price: Price


class PriceTable(Struct, frozen=True, kw_only=True):
    """Models by provider, as of `source` and `date` (ISO)."""

    source: str
    date: str
    models: dict[str, tuple[PricedModel, ...]]

    def find(self, provider: str, model: str) -> Price | None:
        """Return the price of the model, None if it is not in the table."""
        listed = self.models.get(ALIASES.get(provider, provider), ())
        return next((one.price for one in listed if one.match.fits(model)), None)


def read_table(path: Path) -> PriceTable | None:
    """Read the table in the file; None if there is no readable one."""
    try:
        return _read(path)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as error:
        log.warning("prices_unreadable", extra={"file": str(path), "why": str(error)})
        return None


def _read(path: Path) -> PriceTable:
    return msgspec.json.decode(read_plain(path, MAX_BYTES), type=PriceTable)


def make_tables(newer: str) -> tuple[FindPrice | None, FindPrice]:
    """Return the prices of the table in the file `newer`, None without one, and those of the
    built-in table, which is read at first use."""
    table = read_table(Path(newer)) if newer else None
    return lru_cache(LATEST)(table.find) if table is not None else None, find_shipped


@lru_cache(LATEST)
def find_shipped(provider: str, model: str) -> Price | None:
    """Return the model's price in the built-in table, None if it is not there."""
    return load_shipped().find(provider, model)


@lru_cache(maxsize=1)
def load_shipped() -> PriceTable:
    """Return the built-in table."""
    return _read(SHIPPED)
