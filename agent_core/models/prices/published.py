"""Makes a table of prices from genai-prices, its JSON or the installed package.

Of prices with conditions (valid from a date) the newest valid one counts, of tiers the dearest,
from where the first begins: a price is never too low. Models that are not paid by tokens of text
are left out.
"""

import re
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import cast

import msgspec

from agent_core.models.catalog import Price
from agent_core.models.prices.table import Match, PricedModel, PriceTable

URL = (
    "https://raw.githubusercontent.com/pydantic/genai-prices/refs/heads/main/prices/new_data/v2/"
    "data.json"
)
"""The project's newest data."""
PACKAGE = "genai-prices"
Json = dict[str, object]


def make_table(providers: object, source: str, date: str) -> PriceTable:
    """Make the table of the published list of providers, as of `date`. ValueError if it is none."""
    if not isinstance(providers, list) or not providers:
        raise ValueError("it is no list of providers")
    models = {}
    for one in map(_as_object, providers):
        listed = one.get("models")
        priced = tuple(_price_models(listed if isinstance(listed, list) else (), date))
        if priced and isinstance(one.get("id"), str):
            models[str(one["id"])] = priced
    if not models:
        raise ValueError("it has no prices that can be read")
    return PriceTable(source=source, date=date, models=models)


def read_package() -> tuple[object, str]:
    """The providers of the installed package, as they are published, and its version.
    ImportError."""
    data = import_module("genai_prices.data")
    made = [
        {
            "id": provider.id,
            "models": [
                {"match": _plain_match(one.match), "prices": _plain_prices(one.prices)}
                for one in provider.models
            ],
        }
        for provider in data.providers
    ]
    return made, version(PACKAGE)


def _plain_match(clause: object) -> Json:
    (field, value) = next(iter(vars(clause).items()))
    many = [_plain_match(one) for one in value] if isinstance(value, list) else value
    return {field.removesuffix("_"): many}


def _plain_prices(prices: object) -> object:
    if isinstance(prices, list):
        return [
            {"constraint": _plain_constraint(one.constraint), "prices": _plain_prices(one.prices)}
            for one in prices
        ]
    return {name: _plain_price(value) for name, value in vars(prices).items() if value is not None}


def _plain_price(value: object) -> object:
    tiers = getattr(value, "tiers", None)
    if tiers is None:
        return float(cast(float, value))
    return {
        "base": float(value.base),  # type: ignore[attr-defined]
        "tiers": [{"start": one.start, "price": float(one.price)} for one in tiers],
    }


def _plain_constraint(constraint: object) -> Json | None:
    if constraint is None:
        return None
    return {name: str(value) for name, value in vars(constraint).items()}


def _price_models(listed: Iterable[object], date: str) -> Iterable[PricedModel]:
    for one in map(_as_object, listed):
        prices = _choose(one.get("prices"), date)
        price = _read_price(prices) if prices else None
        try:
            match = msgspec.convert(one.get("match"), Match)
            _check(match)
        except (msgspec.ValidationError, re.error):
            continue  # a model in an unknown format must not affect the others
        if price is not None:
            yield PricedModel(match=match, price=price)


def _check(match: Match) -> None:
    if match.regex is not None:
        re.compile(match.regex)
    for one in (*(match.any_of or ()), *(match.all_of or ())):
        _check(one)


def _choose(prices: object, date: str) -> Json:
    """Return the newest prices valid on `date`, without those for a time of day."""
    if not isinstance(prices, list):
        return _as_object(prices)
    held: Json = {}
    for one in map(_as_object, prices):
        constraint = _as_object(one.get("constraint"))
        start = str(constraint.get("start_date", ""))
        if (not constraint or start) and start <= date:
            held = _as_object(one.get("prices"))
    return held


def _read_price(prices: Json) -> Price | None:
    """Convert a price; None if text is not paid by tokens."""
    read, said = _base(prices.get("input_mtok")), _base(prices.get("output_mtok"))
    if read is None or said is None:
        return None
    beyond, input_times = _tier(prices.get("input_mtok"))
    start, output_times = _tier(prices.get("output_mtok"))
    starts = [one for one in (beyond, start) if one]
    try:
        return Price(
            input=read,
            output=said,
            cached=_base(prices.get("cache_read_mtok")),
            written=_base(prices.get("cache_write_mtok")),
            beyond=min(starts, default=0),
            input_times=input_times,
            output_times=output_times,
        )
    except ValueError:
        return None


def _base(price: object) -> float | None:
    """Dollars for a million tokens of a short request."""
    found = price.get("base") if isinstance(price, dict) else price
    try:
        return float(cast(float, found)) if found is not None else None
    except (TypeError, ValueError, OverflowError):  # OverflowError: hundreds of digits
        return None


def _tier(price: object) -> tuple[int, float]:
    """Return the tokens from which it is dearer, and the maximum factor."""
    base, listed = _base(price), _as_object(price).get("tiers")
    tiers = [_as_object(one) for one in listed] if isinstance(listed, list) else []
    known = [(one.get("start"), _base(one.get("price"))) for one in tiers]
    starts = [start for start, _ in known if isinstance(start, int)]
    dearest = max((cost for _, cost in known if cost is not None), default=0.0)
    if not base or not starts or dearest <= base:
        return 0, 1.0
    return min(starts), dearest / base


def _as_object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
