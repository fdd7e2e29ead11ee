"""What guardrails cost, and how well they find personal data.

    .venv/bin/python -m benchmarks.guardrails

10 KB of plain text through each scanner that needs no model; goal: 5 ms of the processor for all
of them, `scan_stream` beside it, which takes an answer in pieces of 40 characters. Precision
and recall on 300 labelled sentences in four languages; goal: 0.95 for what has a check digit.
Prints one line of JSON and one row for each; ends with 1 if a goal is missed.
"""

import json
import statistics
import sys
import time

from agent_core.guardrails.dangerous_code import find_dangerous_code
from agent_core.guardrails.guard import AnswerGate
from agent_core.guardrails.injections import find_injection
from agent_core.guardrails.settings import GuardrailSettings
from tests.attacks.personal_set import SENTENCES, score_kinds

SIZE, ROUNDS = 10_000, 50
MOST_MS = 5.0
LEAST = 0.95
CHECKED = ("card", "iban")
PLAIN = (
    "Please look at the report of the second quarter, which Anna sent on 12 May 2024, and tell me "
    "how sales in Germany went compared with the year before. The invoice 2024-0815 is still open.\n"
)


def scan_answer(text: str, piece: int = SIZE) -> None:
    gate = AnswerGate(GuardrailSettings(personal="redact"), lambda shown: None)
    for at in range(0, len(text), piece):
        gate.add(text[at : at + piece])
    gate.end()


def scan_stream(text: str) -> None:
    scan_answer(text, 40)


def main() -> int:
    text = (PLAIN * (SIZE // len(PLAIN) + 1))[:SIZE]
    took: dict[str, float] = {}
    for scan in (find_injection, scan_answer, scan_stream, find_dangerous_code):
        times = []
        for _ in range(ROUNDS):
            began = time.process_time()
            scan(text)
            times.append((time.process_time() - began) * 1_000)
        took[scan.__name__] = round(statistics.median(times), 3)
    scores = score_kinds()
    total = sum(took.values()) - took["scan_stream"]
    quality = {kind: [round(s.precision, 3), round(s.recall, 3)] for kind, s in scores.items()}
    print(json.dumps({"ms": took, "total_ms": round(total, 3), "personal_data": quality}))
    for name, value in took.items():
        print(f"{name:22} {value:7.3f} ms for 10 KB")
    print(f"personal data in {len(SENTENCES)} sentences: kind, precision, recall")
    for kind, (precision, recall) in quality.items():
        print(f"{kind:22} {precision:7.3f} {recall:7.3f}")
    good = all(min(scores[kind].precision, scores[kind].recall) >= LEAST for kind in CHECKED)
    return 0 if total <= MOST_MS and good else 1


if __name__ == "__main__":
    sys.exit(main())
