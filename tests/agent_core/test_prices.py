"""The table of prices: what is published is read, by tiers and dates, and what is unknown stays so."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from agent_core.models.catalog import MODELS, Catalog, Price, cost
from agent_core.models.port import Usage
from agent_core.models.prices.published import make_table
from agent_core.models.prices.table import Match, load_shipped, make_tables, read_table
from agent_core.models.tiers import Models
from agent_core.settings import ModelSettings

TODAY = "2026-11-24"


def publish(prices: object, match: object = None) -> list[object]:
    model = {"id": "m", "match": match or {"equals": "m"}, "prices": prices}
    return [{"id": "house", "name": "House", "models": [model]}]


def price_of(prices: object, date: str = TODAY) -> Price | None:
    try:
        return make_table(publish(prices), "test", date).find("house", "m")
    except ValueError:
        return None


def test_the_table_that_comes_along_is_dated_and_has_a_source() -> None:
    table = load_shipped()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table.date) and "genai-prices" in table.source
    assert len(table.models) > 40 and sum(map(len, table.models.values())) > 2_000


@pytest.mark.parametrize("name", MODELS)
def test_it_says_what_the_catalogue_says(name: str) -> None:
    provider, _, model = name.partition("/")
    known, found = MODELS[name].price, load_shipped().find(provider, model)
    assert known is not None and found is not None
    assert (found.input, found.output) == (known.input, known.output)
    usage = Usage(input_tokens=300_000, output_tokens=1_000)
    assert cost(usage, found) == pytest.approx(cost(usage, known))


@pytest.mark.parametrize(
    ("prices", "date", "price"),
    [
        ({"input_mtok": 1, "output_mtok": 2}, TODAY, Price(input=1, output=2)),
        (
            {"input_mtok": 1, "output_mtok": 2, "cache_read_mtok": 0.1, "cache_write_mtok": 1.25},
            TODAY,
            Price(input=1, output=2, cached=0.1, written=1.25),
        ),
        (
            {"input_mtok": {"base": 1, "tiers": [{"start": 200_000, "price": 2}]},
             "output_mtok": {"base": 2, "tiers": [{"start": 200_000, "price": 3}]}},
            TODAY,
            Price(input=1, output=2, beyond=200_000, input_times=2, output_times=1.5),
        ),
        (
            [{"prices": {"input_mtok": 1, "output_mtok": 2}},
             {"constraint": {"start_date": "2026-12-01"},
              "prices": {"input_mtok": 5, "output_mtok": 6}}],
            TODAY,
            Price(input=1, output=2),
        ),
        (
            [{"prices": {"input_mtok": 1, "output_mtok": 2}},
             {"constraint": {"start_date": "2026-12-01"},
              "prices": {"input_mtok": 5, "output_mtok": 6}}],
            "2026-12-01",
            Price(input=5, output=6),
        ),
        (
            [{"prices": {"input_mtok": 1, "output_mtok": 2}},
             {"constraint": {"start_time": "16:30:00", "end_time": "00:30:00"},
              "prices": {"input_mtok": 0.1, "output_mtok": 0.2}}],
            TODAY,
            Price(input=1, output=2),
        ),
        ({"input_mtok": 0, "output_mtok": 0}, TODAY, Price(input=0, output=0)),
        ({"audio_hours": 3}, TODAY, None),
        ({"input_mtok": "much", "output_mtok": 1}, TODAY, None),
        ({"input_mtok": -1, "output_mtok": 1}, TODAY, None),
        (7, TODAY, None),
    ],
)  # fmt: skip
def test_what_is_published_is_read(prices: object, date: str, price: Price | None) -> None:
    assert price_of(prices, date) == price


@pytest.mark.parametrize("broken", [None, {}, [], [7], [{"id": "x"}], [{"id": 3, "models": 4}]])
def test_what_is_no_list_of_prices_is_refused(broken: object) -> None:
    with pytest.raises(ValueError, match="no "):
        make_table(broken, "test", TODAY)


@pytest.mark.parametrize(
    ("match", "fits", "not_"),
    [
        ({"equals": "a-1"}, ["a-1", "A-1"], ["a-11", ""]),
        ({"starts_with": "a-"}, ["a-1"], ["b-a-"]),
        ({"ends_with": "-x"}, ["a-x"], ["a-xy"]),
        ({"contains": "mid"}, ["amidst"], ["m-i-d"]),
        ({"regex": "^a.z$"}, ["abz"], ["abzz"]),
        ({"or": [{"equals": "a"}, {"equals": "b"}]}, ["a", "b"], ["c"]),
        ({"and": [{"starts_with": "a"}, {"ends_with": "z"}]}, ["az"], ["a", "z"]),
    ],
)
def test_names_are_matched(match: object, fits: list[str], not_: list[str]) -> None:
    prices = {"input_mtok": 1, "output_mtok": 1}
    table = make_table(publish(prices, match), "test", TODAY)
    assert all(table.find("house", name) for name in fits)
    assert not any(table.find("house", name) for name in not_)
    assert not any(Match().fits(name) for name in fits)


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf", float("nan"), -1, 10**400, "1e999"])
@pytest.mark.parametrize("where", ["input_mtok", "output_mtok", "cache_read_mtok"])
def test_a_price_that_is_no_amount_is_none(odd: object, where: str, tmp_path: Path) -> None:
    """With it no limit of money would hold, and the kept table could not be read again."""
    prices = {"input_mtok": 1, "output_mtok": 2, "cache_read_mtok": 0.1, where: odd}
    good = {"match": {"equals": "n"}, "prices": {"input_mtok": 1, "output_mtok": 2}}
    listed = [{"id": "other", "models": [good]}, *publish(prices)]
    table = make_table(listed, "test", TODAY)
    found = table.find("house", "m")
    assert found is None or (where == "cache_read_mtok" and found.cached is None)
    (tmp_path / "prices.json").write_bytes(msgspec.json.encode(table))
    kept = read_table(tmp_path / "prices.json")
    assert kept is not None and kept.find("other", "n") == Price(input=1, output=2)


def test_a_model_that_is_published_in_a_new_way_costs_only_itself() -> None:
    (house,) = publish({"input_mtok": 1, "output_mtok": 1})
    assert isinstance(house, dict)
    odd = {"match": {"regex": "("}, "prices": {"input_mtok": 1, "output_mtok": 1}}
    table = make_table([{**house, "models": [odd, {}, *house["models"]]}], "test", TODAY)
    assert len(table.models["house"]) == 1


def test_settings_come_first_then_what_was_got_anew(tmp_path: Path) -> None:
    new = tmp_path / "prices.json"
    new.write_text(json.dumps({
        "source": "here", "date": TODAY,
        "models": {"openai": [
            {"match": {"starts_with": "gpt-5.6"}, "price": {"input": 9, "output": 9}},
        ]},
    }))  # fmt: skip
    env = {"MODEL_PRICES": '{"openai/gpt-5.6-sol": {"input": 1, "output": 1}}'}
    settings = ModelSettings.read(env).model_copy(update={"price_file": str(new)})
    catalog = Models(settings).catalog
    found = [catalog.price("openai", f"gpt-5.6-{name}") for name in ("sol", "terra")]
    assert [one and one.input for one in found] == [1, 9]
    assert catalog.price("openai", "gpt-4o-mini") == Price(input=0.15, output=0.6, cached=0.075)
    assert catalog.price("openai", "fake-model") is None is catalog.price("house", "gpt-5.6-sol")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"source": 1}'])
def test_a_broken_file_leaves_the_table_that_comes_along(tmp_path: Path, text: str) -> None:
    (tmp_path / "prices.json").write_text(text)
    assert read_table(tmp_path / "prices.json") is None
    catalog = Catalog(tables=make_tables(str(tmp_path / "prices.json")))
    assert catalog.price("openai", "gpt-4o-mini") is not None
