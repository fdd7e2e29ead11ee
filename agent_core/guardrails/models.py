"""Scanners from optional packages: llm-guard's models and presidio's recognisers.

Used if installed, in a thread, and imported with the first text; a failing one finds nothing and is
logged.
"""

import importlib
import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from typing import Protocol, cast

from msgspec import Struct

from agent_core.config.declaration import Setting, SettingsError
from agent_core.guardrails.settings import (
    LLM_GUARD,
    PRESIDIO,
    GuardrailSettings,
    ModelScanner,
)

log = logging.getLogger("turnkeeper.guardrails")

MIN_SCORE = 0.6
_ENTITIES = (
    *("CREDIT_CARD", "IBAN_CODE", "EMAIL_ADDRESS", "PHONE_NUMBER", "US_SSN", "UK_NHS", "ES_NIF"),
    *("IT_FISCAL_CODE", "PL_PESEL"),
)


class GuardModels(Struct, frozen=True, kw_only=True):
    """The installed scanners: each takes a text, in a thread; None if it is not installed."""

    is_injection: Callable[[str], bool] | None = None
    is_toxic: Callable[[str], bool] | None = None
    find_spans: Callable[[str], list[tuple[int, int]]] | None = None


class _Scanner(Protocol):
    def scan(self, *texts: str) -> tuple[str, bool, float]: ...


class _Span(Protocol):
    start: int
    end: int
    score: float


class _Analyzer(Protocol):
    def analyze(self, *, text: str, language: str, entities: list[str]) -> list[_Span]: ...


def load_models(settings: GuardrailSettings) -> GuardModels:
    """Return the wanted and installed scanners without importing them. SettingsError if one named
    in a setting is missing."""
    guard = _is_wanted(settings.llm_guard, "llm_guard", "llm-guard", LLM_GUARD)
    spans = _is_wanted(settings.presidio, "presidio_analyzer", "presidio-analyzer", PRESIDIO)
    return GuardModels(
        is_injection=_scan_injection if guard and settings.input else None,
        is_toxic=_scan_toxicity if guard and settings.output else None,
        find_spans=_find_spans
        if spans and settings.output and settings.personal != "off"
        else None,
    )


def find_packages() -> dict[str, bool]:
    """Return the optional packages, and whether each is installed."""
    names = {"llm_guard": "llm-guard", "presidio_analyzer": "presidio-analyzer"}
    return {shown: _is_installed(name) for name, shown in names.items()}


def _is_wanted(
    wanted: ModelScanner, module: str, package: str, setting: Setting[ModelScanner]
) -> bool:
    if wanted == "off":
        return False
    found = _is_installed(module)
    if wanted == "on" and not found:
        mend = f"{package} is not installed; install it, or use auto."
        raise SettingsError(setting.name, wanted, mend)
    return found


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _scan_injection(text: str) -> bool:
    return not _make_scanner("llm_guard.input_scanners", "PromptInjection").scan(text)[1]


def _scan_toxicity(text: str) -> bool:
    return not _make_scanner("llm_guard.output_scanners", "Toxicity").scan("", text)[1]


def _find_spans(text: str) -> list[tuple[int, int]]:
    found = _make_analyzer().analyze(text=text, language="en", entities=list(_ENTITIES))
    return [(one.start, one.end) for one in found if one.score >= MIN_SCORE]


@cache
def _make_scanner(module: str, name: str) -> _Scanner:
    return cast(_Scanner, getattr(importlib.import_module(module), name)())


@cache
def _make_analyzer() -> _Analyzer:
    """Build presidio's recognisers without spaCy's language models, which are not installed with
    it."""
    spacy = importlib.import_module("spacy")
    engines = importlib.import_module("presidio_analyzer.nlp_engine")
    engine = engines.SpacyNlpEngine()
    engine.nlp = {"en": spacy.blank("en")}
    make = importlib.import_module("presidio_analyzer").AnalyzerEngine
    return cast(_Analyzer, make(nlp_engine=engine, supported_languages=["en"]))
