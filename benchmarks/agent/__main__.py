"""Which mechanisms of the agent fire, and what they save.

`python -m benchmarks.agent` runs the suite on scripted models: the numbers are the same each time.
`--model provider/model` runs it on a real one, with the keys of the environment; only its tokens
are real then, and a mechanism that a good model does not need does not fire.
Prints JSON and the rows for benchmarks/agent/README.md; ends with 1 if a scripted case gains nothing.
"""

import argparse
import asyncio
import json
import sys

from benchmarks.agent.course import Named
from benchmarks.agent.report import HEAD, rows


async def main(name: str) -> int:
    model = None
    if name:
        from agent_core.models.tiers import Models
        from agent_core.settings import ModelSettings

        model = Named(*Models(ModelSettings.read()).pick(name))
    made = await rows(model, name)
    if model is not None:
        await model.close()
    print(json.dumps({"agent": [row.plain() for row in made]}))
    print("\n".join((*HEAD, *(row.line() for row in made))))
    failed = [row.case.name for row in made if not (row.fired and row.alone and row.gains)]
    bad = [] if model is not None else failed
    if bad:
        print(f"no gain: {', '.join(bad)}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.agent")
    parser.add_argument("--model", default="", help="provider/model")
    sys.exit(asyncio.run(main(parser.parse_args().model)))
