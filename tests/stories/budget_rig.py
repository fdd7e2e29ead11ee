"""Prices, and calls that use them up."""

import json

from tests.fakes.model_server import Call

PRICES = json.dumps({"openai/fake-model": {"input": 1.0, "cached": 0.1, "output": 10.0}})


def looks(count: int) -> list[Call]:
    return [Call("list_files", json.dumps({"path": ".", "pattern": f"{n}*"})) for n in range(count)]
