"""Start a job by the API of a running gateway, and wait for its report.

    python -m examples.run_job http://127.0.0.1:8787/ TOKEN JOB

TOKEN is the setting TURNKEEPER_TOKEN, JOB the id that `turnkeeper jobs list` shows.
"""

import asyncio
import sys
import uuid
from typing import Any

import aiohttp

OVER = ("done", "silent", "failed", "stopped", "skipped")


async def run_job(url: str, token: str, job: str, pause: float = 1.0) -> dict[str, Any]:
    """The finished run. A call that is repeated with the same key starts no second one."""
    key = uuid.uuid4().hex
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers, raise_for_status=True) as http:
        await http.post(f"/api/jobs/{job}/run", json={"key": key})
        while True:
            async with http.get(f"/api/jobs/{job}/runs") as answer:
                runs = (await answer.json())["runs"]
            for run in runs:
                if run["slot"] == f"now-{key}" and run["state"] in OVER:
                    return dict(run)
            await asyncio.sleep(pause)


async def main(url: str, token: str, job: str) -> None:
    run = await run_job(url, token, job)
    print(run["state"], run["text"], sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
