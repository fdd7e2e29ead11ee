"""300 sentences in four languages, labelled with the personal data in them; all numbers are made
up. Half of those without any hold numbers that look like it."""

from collections import Counter
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_core.guardrails.personal_data import find_personal_data


class LabelledSpan(Struct, frozen=True):
    """Personal data in a sentence."""

    kind: str
    text: str


class LabelledSentence(Struct, frozen=True):
    """A sentence and what a scanner has to find in it."""

    language: str
    text: str
    spans: tuple[LabelledSpan, ...]


class ScannerScore(Struct, frozen=True):
    """How a scanner did on one kind."""

    precision: float
    recall: float


SENTENCES = tuple(
    msgspec.json.decode(line, type=LabelledSentence)
    for line in Path(__file__).with_name("personal_sentences.jsonl").read_bytes().splitlines()
)


def score_kinds() -> dict[str, ScannerScore]:
    """Precision and recall of our own scanner, by kind; a span counts if it is exactly right."""
    right, found, meant = Counter[str](), Counter[str](), Counter[str]()
    for one in SENTENCES:
        got = {
            (span.kind, one.text[span.start : span.end]) for span in find_personal_data(one.text)
        }
        want = {(span.kind, span.text) for span in one.spans}
        for counter, spans in ((right, got & want), (found, got), (meant, want)):
            counter.update(kind for kind, _ in spans)
    return {
        kind: ScannerScore(right[kind] / max(found[kind], 1), right[kind] / meant[kind])
        for kind in sorted(meant)
    }
