"""Tests run on the event loop that the gateway runs on."""

from collections.abc import Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, object]:
    """The product's loop: its child processes and sockets differ from asyncio's own."""
    return {"uvloop": uvloop.new_event_loop}
