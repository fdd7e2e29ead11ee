"""Tests run on the event loop that the gateway runs on, and examples take as long as they take."""

import gc
import logging
import os
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.internal.conjecture.engine
import pytest
from hypothesis import HealthCheck

from gateway.ops.event_loop import EventLoop
from gateway.ops.logs import QUIET, Lines
from tests.compiled import compile_share
from tests.fakes.browser import MISSING, chromium
from tests.fakes.browser import find as find_browser
from tests.fakes.docker_browser import put_browser_in
from tests.fakes.docker_engine import EngineNotStarted, run_engine
from tests.sampling import (
    SEED,
    examples,
    is_of_other_part,
    mark_parts,
    mark_what_is_left,
    read_marks,
    seed_examples,
)
from tests.time_limit import cancel_timer, set_timer, watch

SHRINKING = 40
"""Seconds in which hypothesis may make a failing example smaller."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A busy machine is no failure: whole tests have their time limit."""
    read_marks(config.option.markexpr)
    hypothesis.settings.register_profile(
        "busy",
        deadline=None,
        derandomize=False,  # in CI hypothesis would try the same examples for ever
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        max_examples=examples(100),
    )
    hypothesis.settings.load_profile("busy")
    # a failure is told within the test's time limit; the default of 300 s ended the process
    hypothesis.internal.conjecture.engine.MAX_SHRINKING_SECONDS = SHRINKING
    compile_share(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say once which seed repeats this run."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        terminal.write_line(f"TEST_SEED={SEED}")


def pytest_sessionfinish() -> None:
    """End what all tests of this process shared."""
    chromium.end()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A part of `make prove` imports its own tests alone: gateways that are forked from a smaller
    process start faster."""
    path = str(collection_path.relative_to(config.rootpath))
    return (collection_path.suffix == ".py" and is_of_other_part(path)) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: the garbage collector need not look at it
    again and again, neither here nor in processes that are forked off."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a quick run leaves out is slow from here on."""
    mark_what_is_left(items)
    mark_parts(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A failed example comes again with the run's seed."""
    if item.config.option.hypothesis_seed is None:
        seed_examples(item.nodeid)


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, object]:
    """The product's loop: its child processes and sockets differ from asyncio's own."""
    return {"uvloop": EventLoop}


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """Instead of pytest-timeout's own, which does nothing on this loop. The limit that a run is
    given, as `make prove` is for whole proofs, holds for tests with a shorter one too."""
    set_timer(item, max(settings.timeout, item.config.getoption("timeout") or 0))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """Not yet: pytest-timeout calls it when a test fails, which may then hang at its end."""
    return True


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> None:
    """A test that failed may hang at its end; pytest has just ended the watch over it."""
    if isinstance(node, pytest.Item):
        watch(node, float(node.config.getini("timeout")))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """The end of a test and of what it used."""
    try:
        return (yield)
    finally:
        cancel_timer()


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """The command line changes it for the whole process."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _log() -> Iterator[None]:
    """The command line sets it up for the whole process."""
    loggers = [logging.getLogger(name) for name in (None, *QUIET)]
    levels, raising = [one.level for one in loggers], logging.raiseExceptions
    yield
    root = loggers[0]
    for handler in root.handlers[:]:
        if isinstance(handler.formatter, Lines):
            root.removeHandler(handler)
    for one, level in zip(loggers, levels, strict=True):
        if one.level != level:  # each change empties the caches of all loggers
            one.setLevel(level)
    logging.raiseExceptions = raising
    logging.captureWarnings(False)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    """The address of a Docker engine of this process's own; skips where none can be started."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(run_engine())
        except EngineNotStarted as error:
            pytest.skip(str(error))
        yield address


@pytest.fixture
def browser_engine(docker_engine: str) -> Iterator[str]:
    """The same engine, whose image of the sandboxes has Chromium for one test."""
    if find_browser() is None:
        pytest.skip(MISSING)
    with put_browser_in(docker_engine):
        yield docker_engine


@pytest.fixture
async def rig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[object]:
    """A gateway beside Telegram and a model; it has not started. A file that needs more overrides
    this fixture and takes it as its argument. Marks: `as_in_life` (not paced faster), `bugs_are_told`
    (tracebacks in the log are expected)."""
    from tests.stories.rig import living, quick  # it imports all of the gateway

    if request.node.get_closest_marker("as_in_life") is None:
        quick(monkeypatch)
    strict = request.node.get_closest_marker("bugs_are_told") is None
    async with living(tmp_path, strict=strict) as made:
        yield made


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[object]:
    """A folder and servers for real gateway processes, which are killed at the end."""
    from tests.gateway.process import peopled

    async with peopled(tmp_path) as made:
        yield made
