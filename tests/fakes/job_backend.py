"""What the HTTP API asks about jobs, in memory. Who asks may do everything."""

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from gateway.messages import Sender
from gateway.shown_jobs import Delivery, ShownJob, ShownRun, Try


class FakeJobBackend:
    """gateway.ports.JobBackend; `acts`: what was done, in order."""

    def __init__(self) -> None:
        self.kept: dict[str, ShownJob] = {}
        self.past: dict[str, list[ShownRun]] = {}
        self.acts: list[tuple[str, str]] = []

    def put(self, job: ShownJob, *runs: ShownRun) -> None:
        """`runs`: the newest first."""
        self.kept[job.id] = replace(job, last=runs[0] if runs else None)
        self.past[job.id] = list(runs)

    async def role(self, sender: Sender) -> Literal["admin", "user", "viewer"] | None:
        return "admin"

    async def jobs(self, sender: Sender) -> tuple[ShownJob, ...]:
        return tuple(self.kept.values())

    async def runs(self, sender: Sender, name: str) -> tuple[ShownRun, ...] | None:
        return tuple(self.past[name]) if name in self.kept else None

    async def act(self, sender: Sender, name: str, action: str, key: str) -> bool | None:
        job = self.kept.get(name)
        if job is None:
            return None
        self.acts.append((name, action))
        match action:
            case "delete":
                del self.kept[name]
            case "run":
                self.put(job, run("running", "fired"), *self.past[name])
            case _:
                wanted = "paused" if action == "pause" else "active"
                if job.state == wanted:
                    return False
                self.kept[name] = replace(job, state=wanted)
        return True

    async def edit(self, sender: Sender, name: str, fields: Mapping[str, str]) -> str | None:
        """Any but the model `nope`."""
        if name not in self.kept:
            return None
        if fields.get("model") == "nope":
            return "nope: no such provider; use one of pro, max."
        self.acts.append((name, f"edit {sorted(fields)}"))
        self.kept[name] = replace(self.kept[name], **fields)
        return ""


def job(name: str, title: str, **more: object) -> ShownJob:
    """One of every weekday at 9 in Berlin."""
    about = ShownJob(
        id=name, title=title, state="active", why="", schedule="0 9 * * 1-5",
        words="At 09:00, Monday through Friday", zone="Europe/Berlin",
        next=("2031-03-03T08:00:00Z", "2031-03-04T08:00:00Z", "2031-03-05T08:00:00Z"),
        where="web:local::owner~c1::p", owner="web:owner", prompt="List the open incidents.",
        script="", context_from="", hook="", deliver=(), missed="latest", overlap="skip",
        jitter=0.0, spend=0.0, last=None,
    )  # fmt: skip
    return replace(about, **more)


def run(words: str, state: str = "done", text: str = "", **more: object) -> ShownRun:
    """One of the Friday before."""
    about = ShownRun(
        slot="s", due="2031-02-28T08:00:00Z", state=state, reason="", words=words, tries=0,
        tried=(), count=1, cost=0.0, unpriced=0, delivered=(), text=text,
    )  # fmt: skip
    return replace(about, **more)


def some() -> tuple[tuple[ShownJob, tuple[ShownRun, ...]], ...]:
    """A job that is well, one that is paused after a failure, one that never ran."""
    tried = (Try(at=1_930_000_000.0, reason="model", text="openai rejected the API key (401)."),)
    bad = run("failed. The model could not be reached.", "failed", "The key is refused.",
              tries=1, tried=tried)  # fmt: skip
    there = (Delivery(to="file:reports/today.md"), Delivery(to="slack:T1:C1", why="is gone"))
    good = run("done, $0.01", text="Two are open.\nThe second is older.", delivered=there)
    means = {"model": "pro", "profile": "research", "tools": "safe"}
    return (
        (job("j1", "Open incidents", **means), (good, run("skipped. The previous run had not ended.", "skipped"))),
        (job("j2", "Disk space on all hosts of the north", state="paused", words="Every 2 h", next=()), (bad,)),
        (job("j3", "<b>Deployments</b>", words="When the webhook deploy is called", next=()), ()),
    )  # fmt: skip
