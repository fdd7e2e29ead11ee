"""The table of prices: which models of which providers cost what, by a source and a date.

The one that comes along was made of the package genai-prices (MIT); a newer one beside it, made by
`turnkeeper prices refresh`, comes first.
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
"""Models whose price is kept, as a search of the table takes as long as a send."""


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which names of a model are meant: the one field that is set says how."""

    equals: str | None = None
    starts_with: str | None = None
    ends_with: str | None = None
    contains: str | None = None
    regex: str | None = None
    any_of: "tuple[Match, ...] | None" = msgspec.field(default=None, name="or")
    all_of: "tuple[Match, ...] | None" = msgspec.field(default=None, name="and")

    def fits(self, name: str) -> bool:
        """Whether the model of this name is meant."""
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
    """Models by provider, as `source` had them on `date` (ISO)."""

    source: str
    date: str
    models: dict[str, tuple[PricedModel, ...]]

    def find(self, provider: str, model: str) -> Price | None:
        """What the model costs; None where the table does not say."""
        listed = self.models.get(ALIASES.get(provider, provider), ())
        return next((one.price for one in listed if one.match.fits(model)), None)


def read_table(path: Path) -> PriceTable | None:
    """The table in the file; None where there is none that can be read."""
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
    """The prices of the table in the file `newer`, None without one, and of the one that comes
    along, which is read when it is first needed."""
    table = read_table(Path(newer)) if newer else None
    return lru_cache(LATEST)(table.find) if table is not None else None, find_shipped


@lru_cache(LATEST)
def find_shipped(provider: str, model: str) -> Price | None:
    """What the model costs by the table that comes along; None where it does not say."""
    return load_shipped().find(provider, model)


@lru_cache(maxsize=1)
def load_shipped() -> PriceTable:
    """The table that comes along."""
    return _read(SHIPPED)
