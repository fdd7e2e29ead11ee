"""`turnkeeper prices`: prices of the configured models, and a refreshed table."""

import argparse
import asyncio
import json
import os
import sys

import msgspec

from agent_core import ambient
from agent_core.models.prices.published import PACKAGE, URL, make_table, read_package
from agent_core.models.prices.table import MAX_BYTES, PriceTable, load_shipped, read_table
from agent_core.models.tiers import Models
from agent_core.settings import TIERS
from gateway.model_settings import PRICES, read_models
from gateway.settings import Settings

LIMIT = 30.0
"""Seconds for the download."""
UNKNOWN = "unknown: set MODEL_PRICES"


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Show, or get a newer table; 1 if that failed."""
    if args.action == "show":
        return _show(settings)
    url = args.url or URL
    today = f"{ambient.utc(ambient.now()):%Y-%m-%d}"
    try:
        if args.package:
            raw, version = read_package()
            table = make_table(raw, f"{PACKAGE} {version}", today)
        else:
            table = make_table(asyncio.run(_fetch(url)), url, today)
    except ImportError:
        return _fail(f"{PACKAGE} is not installed here: pip install {PACKAGE}")
    except (OSError, ValueError) as error:
        return _fail(f"No table could be read from {url} ({error}). Nothing was changed.")
    path = settings.home / PRICES
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(table))
    os.replace(new, path)
    print(f"{_describe(table)}\nIt is in {path}. A running gateway takes it up when it restarts.")
    return 0


async def _fetch(url: str) -> object:
    """The JSON at `url`. OSError, ValueError."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=LIMIT)
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, timeout=timeout) as session,
            session.get(url) as answer,
        ):
            if answer.status != 200:
                raise OSError(f"it answered {answer.status}")
            body = b""
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > MAX_BYTES:
                    raise OSError("it is too large")
    except (aiohttp.ClientError, TimeoutError) as error:
        raise OSError(str(error) or f"nothing came within {LIMIT:g} s") from None
    return json.loads(body)


def _show(settings: Settings) -> int:
    table = read_table(settings.home / PRICES)
    print(_describe(table if table is not None else load_shipped()))
    found = read_models(settings)
    models = Models(found)
    if models.demo:
        print("No model is set.")
        return 0
    for name in dict.fromkeys((*map(models.describe, TIERS), *found.fallbacks)):
        provider, _, model = name.partition("/")
        price = models.catalog.price(provider, model)
        told = f"${price.input:g} in, ${price.output:g} out" if price is not None else UNKNOWN
        print(f"{name}: {told}")
    return 0


def _describe(table: PriceTable) -> str:
    count = sum(map(len, table.models.values()))
    return f"Prices of {table.date}, from {table.source}: {count} models. Dollars a million tokens."


def _fail(text: str) -> int:
    print(f"turnkeeper: {text}", file=sys.stderr)
    return 1
