"""The depths of research with their amounts, its kinds, and what it depends on."""

from typing import Literal, get_args

from msgspec import Struct

from agent_core.tools.send import FileStore
from agent_core.tools.web.port import Web

Kind = Literal["academic", "market", "technical", "news"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DepthName = Literal["quick", "standard", "deep"]


class ResearchDeps(Struct, frozen=True, kw_only=True):
    """The web, and the store for copies of reports sent to people."""

    web: Web
    file_store: FileStore


class Depth(Struct, frozen=True, kw_only=True):
    """`rounds` of searching with at most `queries` each; `sources` are read at most, and with
    fewer than `least` the report says that it is thin."""

    rounds: int
    queries: int
    sources: int
    least: int


DEPTHS: dict[DepthName, Depth] = {
    "quick": Depth(rounds=1, queries=3, sources=4, least=2),
    "standard": Depth(rounds=2, queries=4, sources=8, least=4),
    "deep": Depth(rounds=3, queries=6, sources=16, least=10),
}

FOCUS: dict[Kind, str] = {
    "academic": "Prefer papers, preprints, universities and standards. Note method, sample and "
    "year; keep apart what was measured and what was concluded.",
    "market": "Prefer filings, statistics offices, analysts and the companies' own pages. Note "
    "figures with their year, currency and who counted.",
    "technical": "Prefer specifications, official documentation, source repositories, release "
    "notes and measurements. Note versions.",
    "news": "Prefer recent reports of first-hand sources and several outlets. Note dates, and what "
    "is confirmed and what is only claimed.",
}
"""The focus of each kind of research."""
