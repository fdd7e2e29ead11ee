"""What models cost and hold, and what the settings say instead."""

import json

import pytest

from agent_core.models.catalog import MODELS, WINDOW, Catalog, Price, cost
from agent_core.models.port import Usage
from agent_core.models.providers import DEFAULT_MODELS
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings, SettingsError


def test_every_default_model_is_in_the_catalogue() -> None:
    names = {f"{maker}/{model}" for maker, own in DEFAULT_MODELS.items() for model in own.values()}
    assert names <= set(MODELS)
    assert all(MODELS[name].price for name in names)


def test_what_is_not_known_is_not_guessed() -> None:
    catalog = Catalog()
    assert catalog.price("house", "large") is None
    assert catalog.window("house", "large") == WINDOW == 128_000
    assert catalog.window("anthropic", "claude-haiku-4-5") == 200_000


def test_settings_say_what_is_missing_or_has_changed() -> None:
    prices = {"house/large": {"input": 1, "cached": 0.1, "output": 5}}
    windows = {"house/large": 32000, "openai/gpt-5.6-terra": 100}
    env = {"MODEL_PRICES": json.dumps(prices), "MODEL_WINDOWS": json.dumps(windows)}
    catalog = Models(ModelSettings.read(env)).catalog
    assert catalog.price("house", "large") == Price(input=1.0, cached=0.1, output=5.0)
    assert catalog.window("house", "large") == 32000
    assert catalog.window("openai", "gpt-5.6-terra") == 100
    assert catalog.price("openai", "gpt-5.6-terra") == MODELS["openai/gpt-5.6-terra"].price


def test_what_a_call_costs() -> None:
    price = Price(input=2.0, cached=0.2, written=2.5, output=10.0)
    usage = Usage(input_tokens=1000, cached_tokens=600, written_tokens=100, output_tokens=50)
    assert cost(usage, price) == pytest.approx((300 * 2 + 600 * 0.2 + 100 * 2.5 + 500) / 1e6)
    plain = Price(input=2.0, output=10.0)
    assert cost(usage, plain) == pytest.approx((1000 * 2 + 500) / 1e6)
    assert cost(Usage(), price) == 0


def test_a_long_request_costs_more_as_a_whole() -> None:
    price = Price(input=1.0, output=10.0, beyond=1000, input_times=2.0, output_times=1.5)
    at = Usage(input_tokens=1000, output_tokens=10)
    over = Usage(input_tokens=1001, output_tokens=10)
    assert cost(at, price) == pytest.approx((1000 + 100) / 1e6)
    assert cost(over, price) == pytest.approx((2002 + 150) / 1e6)


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"MODEL_PRICES": "{"}, "MODEL_PRICES: it is not valid JSON; write {"),
        ({"MODEL_PRICES": "[]"}, "MODEL_PRICES: Expected `object`, got `array`; write {"),
        ({"MODEL_PRICES": '{"a/b": {"input": 1}}'}, "MODEL_PRICES: Object missing required field"),
        ({"MODEL_PRICES": '{"a/b": {"input": -1, "output": 1}}'}, "MODEL_PRICES: a price is never"),
        ({"MODEL_PRICES": '{"ab": {"input": 1, "output": 1}}'}, "MODEL_PRICES=ab: name it as prov"),
        ({"MODEL_WINDOWS": '{"a/b": 0}'}, "MODEL_WINDOWS=a/b: 0: a window has at least one token."),
    ],
)
def test_figures_that_cannot_be(env: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ModelSettings.read(env)
    assert str(caught.value).startswith(text)
