"""Prices and windows of models, from the providers' own pages (November 2026).

US dollars per million tokens. An unknown price is None, never a guess; MODEL_PRICES and
MODEL_WINDOWS supply missing or changed figures.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from agent_core.config.declaration import WrongValue
from agent_core.models.port import ModelRequest, Usage

T = TypeVar("T")

WINDOW = 128_000
"""Tokens that a model holds of which nothing is known."""
MIN_WINDOW = 2_048
"""Minimum of a learnt window, as an error may be misread."""
MILLION = 1_000_000
ANSWER = 8_000
"""Tokens of an answer that are reserved where the request sets no limit."""
LETTERS = 4
"""Characters of a token, about."""


class Price(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Dollars per million tokens. `cached`: input read from the provider's cache, `written`: input
    stored there; None: as other input. A request of more than `beyond` input tokens (0: of any
    size) pays `input_times` and `output_times` the price for all of its tokens."""

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    beyond: int = 0
    input_times: float = 1.0
    output_times: float = 1.0

    def __post_init__(self) -> None:
        numbers = (self.input, self.output, self.cached or 0.0, self.written or 0.0)
        times = (self.beyond, self.input_times, self.output_times)
        if not all(0 <= number < math.inf for number in (*numbers, *times)):  # also not NaN
            raise ValueError("a price is never below 0, nor without end")


FindPrice: TypeAlias = Callable[[str, str], Price | None]
"""Returns the price of a provider's model, None if it is unknown."""


class CatalogEntry(Struct, frozen=True, kw_only=True):
    """A model of the catalogue."""

    window: int
    price: Price | None = None


def _openai(read: float, cached: float, said: float) -> CatalogEntry:
    """OpenAI's: a write to the cache costs a quarter more; long requests cost more as a whole."""
    price = Price(
        input=read,
        cached=cached,
        written=read * 1.25,
        output=said,
        beyond=272_000,
        input_times=2.0,
        output_times=1.5,
    )
    return CatalogEntry(window=1_050_000, price=price)


def _claude(read: float, cached: float, said: float) -> CatalogEntry:
    """Anthropic's: a write for five minutes costs a quarter more."""
    price = Price(input=read, cached=cached, written=read * 1.25, output=said)
    return CatalogEntry(window=MILLION, price=price)


_HAIKU = Price(
    input=0.10,
    cached=0.01,
    written=0.125,
    output=0.50,
    beyond=100_000,
    input_times=5.0,
    output_times=5.0,
)
_GEMINI_PRO = Price(
    input=2.00, output=12.00, beyond=200_000, input_times=2.0, output_times=1.5
)  # there is no price for cached input

FREE = {"demo/demo": Price(input=0.0, output=0.0)}
"""Prices of models that are no service: a script."""
MODELS: dict[str, CatalogEntry] = {
    "openai/gpt-5.6-sol": _openai(4.00, 0.40, 20.00),
    "openai/gpt-5.6-terra": _openai(2.00, 0.20, 12.00),
    "openai/gpt-5.6-luna": _openai(0.20, 0.02, 1.20),
    "openai/gpt-6-astra": _openai(10.00, 1.00, 50.00),
    "openai/gpt-6-sol": _openai(2.00, 0.20, 10.00),
    "openai/gpt-6-luna": _openai(0.10, 0.01, 0.50),
    "openai/gpt-6.1-sol": _openai(2.00, 0.10, 10.00),
    "anthropic/claude-opus-5-5": _claude(4.00, 0.20, 20.00),
    "anthropic/claude-sonnet-5-5": _claude(2.00, 0.10, 10.00),
    "anthropic/claude-haiku-5-5": CatalogEntry(window=MILLION, price=_HAIKU),
    "anthropic/claude-fable-5-1": _claude(10.00, 0.25, 50.00),
    "anthropic/claude-opus-5": _claude(5.00, 0.50, 25.00),
    "anthropic/claude-haiku-4-5": CatalogEntry(
        window=200_000, price=Price(input=1.00, output=5.00)
    ),
    "gemini/gemini-3.1-pro-preview": CatalogEntry(window=1_048_576, price=_GEMINI_PRO),
    "gemini/gemini-3.8-flash": CatalogEntry(
        window=1_048_576, price=Price(input=0.75, cached=0.075, output=3.75)
    ),
    "gemini/gemini-3.5-flash": CatalogEntry(
        window=1_048_576, price=Price(input=1.50, cached=0.15, output=9.00)
    ),
    "gemini/gemini-3.5-flash-lite": CatalogEntry(
        window=1_048_576, price=Price(input=0.30, cached=0.03, output=2.50)
    ),
}
"""By provider/model. gemini-3.8-flash: half its price, as until the end of 2026."""


class Catalog:
    """The figures of this module, overridden by the settings'. `tables`: refreshed prices that come
    before these figures, and others that come after."""

    def __init__(
        self,
        prices: Mapping[str, Price] | None = None,
        windows: Mapping[str, int] | None = None,
        tables: tuple[FindPrice | None, FindPrice] = (None, lambda provider, model: None),
    ) -> None:
        self._newer, self._shipped = tables
        self._prices = prices or {}
        self._windows = dict(windows or {})
        self._said: dict[str, int] = {}
        self._learnt: dict[str, int] = {}
        self._trained: dict[str, int] = {}

    def price(self, provider: str, model: str) -> Price | None:
        """Return the price of the model, None if it is unknown."""
        name = f"{provider}/{model}"
        if (own := self._prices.get(name) or FREE.get(name)) is not None:
            return own
        if self._newer is not None and (newer := self._newer(provider, model)) is not None:
            return newer
        known = MODELS.get(name)
        return known.price if known and known.price else self._shipped(provider, model)

    def window(self, provider: str, model: str) -> int:
        """Tokens that a request and its answer may have together."""
        name = f"{provider}/{model}"
        known = MODELS.get(name)
        said = self._said.get(name, WINDOW)
        window = self._windows.get(name) or (known.window if known else said)
        return min(window, self._learnt.get(name, window))

    def knows_window(self, provider: str, model: str) -> bool:
        """Return True if its window is set, or in the catalogue: no server needs to be asked."""
        name = f"{provider}/{model}"
        return name in self._windows or name in MODELS

    def has_window(self, provider: str, model: str) -> bool:
        """Return True if its window is known, also from its server."""
        return self.knows_window(provider, model) or f"{provider}/{model}" in self._said

    def note_window(self, provider: str, model: str, tokens: int, trained: int = 0) -> None:
        """Note the window that the model's server tells. `trained`: the model's maximum, where the
        server may give it less and cuts longer requests silently."""
        self._said[f"{provider}/{model}"] = tokens
        if trained:
            self._trained[f"{provider}/{model}"] = trained

    def find_trained(self, provider: str, model: str) -> int:
        """Return the model's maximum where its server may give it less and cuts longer requests
        silently; otherwise 0."""
        return self._trained.get(f"{provider}/{model}", 0)

    def learn(self, provider: str, model: str, tokens: int) -> None:
        """Note that the model holds at most so many tokens, as it said or showed. Kept for the life
        of the process."""
        held = min(self.window(provider, model), tokens)
        self._learnt[f"{provider}/{model}"] = max(MIN_WINDOW, held)


def cost(usage: Usage, price: Price) -> float:
    """Dollars that a call cost."""
    long = bool(price.beyond) and usage.input_tokens > price.beyond
    cached = price.input if price.cached is None else price.cached
    written = price.input if price.written is None else price.written
    fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.written_tokens)
    read = fresh * price.input + usage.cached_tokens * cached + usage.written_tokens * written
    said = usage.output_tokens * price.output
    if long:
        read, said = read * price.input_times, said * price.output_times
    return (read + said) / MILLION


def estimate_cost(request: ModelRequest, price: Price) -> float:
    """Dollars that the call may cost at most, about."""
    tools = sum(
        len(msgspec.json.encode(tool.parameters)) + len(tool.description) for tool in request.tools
    )
    read = (len(request.system) + tools + len(msgspec.json.encode(request.messages))) / LETTERS
    said = request.max_tokens or ANSWER
    return (read * price.input + said * price.output) / MILLION


def parse_prices(text: str) -> dict[str, Price]:
    """The JSON object `text` of prices by provider/model."""
    example = '{"provider/model": {"input": 1.0, "cached": 0.1, "output": 5.0}}'
    return _parse_entries(text, dict[str, Price], example)


def parse_windows(text: str) -> dict[str, int]:
    """The JSON object `text` of windows by provider/model."""
    found = _parse_entries(text, dict[str, int], '{"provider/model": 128000}')
    for name, window in found.items():
        if window < 1:
            raise WrongValue("a window has at least one token.", f"{name}: {window}")
    return found


def _parse_entries(text: str, kind: type[dict[str, T]], example: str) -> dict[str, T]:
    try:
        found = msgspec.convert(json.loads(text), kind)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        why = str(error) if isinstance(error, msgspec.ValidationError) else "it is not valid JSON"
        raise WrongValue(f"{why}; write {example}.") from None
    for name in found:
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            raise WrongValue("name it as provider/model.", name)
    return found
