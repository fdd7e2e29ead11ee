"""What the library's import costs: `from agent_core import Agent` beside the modules of the standard
library that it brings along.

`python -m benchmarks.importing [times]` prints the two medians in seconds, taken in turns, and
their ratio.
"""

import json
import statistics
import subprocess
import sys

GOAL = 1.3
OURS = "from agent_core import Agent"
LIST = f"import sys; before = set(sys.modules); {OURS}; print(*set(sys.modules) - before)"


def seconds(code: str) -> float:
    """How long a new interpreter takes for `code`."""
    timed = f"import time; began = time.perf_counter()\n{code}\nprint(time.perf_counter() - began)"
    return float(_printed(timed))


def _printed(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def main(times: int) -> bool:
    """Measure and print; True if the goal is reached."""
    standard = [
        name for name in _printed(LIST).split() if name.split(".")[0] in sys.stdlib_module_names
    ]
    theirs = "\n".join(f"import {name}" for name in sorted(standard))
    pairs = [(seconds(OURS), seconds(theirs)) for _ in range(times)]
    ours, base = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(json.dumps({"import_s": ours, "standard_library_s": base, "ratio": ours / base}))
    print(f"| library import | {ours / base:.2f} x its standard library (goal {GOAL}) |")
    return bool(ours / base <= GOAL)


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 21) else 1)
