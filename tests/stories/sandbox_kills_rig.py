"""Lives of the product's own agent over real sandboxes, killed also while files are put, replaced
and removed: only its model is scripted."""

import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from agent_core.messages import Message, Text, ToolCall, ToolResult
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta
from agent_core.policy import Mode
from agent_core.sandboxes.buckets.bucket import make_bucket
from agent_core.sandboxes.bwrap import BwrapTier
from agent_core.sandboxes.link import SandboxLimits
from agent_core.sandboxes.network import SandboxNetwork
from agent_core.sandboxes.pool import SandboxPool
from agent_core.sandboxes.port import NO_PERMITS, Permits, ProcessResult
from agent_core.sandboxes.snapshots import Snapshots
from agent_core.sandboxes.tier import Tier
from agent_core.settings import ModelSettings
from agent_core.tools import paths
from agent_core.tools.send import FileStore
from gateway.access.access import Access, AllowLists
from gateway.features.jobs.deps import JobDeps
from gateway.jobs_port import JobSettings
from gateway.messages import Conversation
from gateway.services.ledger import Ledger as Spending
from gateway.services.operator_rules import OperatorRules
from gateway.services.sign_ins import SignIns
from gateway.services.vault import Vault
from gateway.store.jobs.job_stores import make_jobs
from gateway.store.port import Store
from gateway.views import ApprovalCard, Notice, ReplyView
from gateway.wiring.agent_default import Equipment, TurnkeeperAgent
from gateway.wiring.jobs import JobWork, make_job_ports
from tests.fakes.world import ROOM, Life, Points, _words, check_order

Calls = dict[str, list[ToolCall]]
"""What the model asks for, by the word that it hears: one call a round."""


def call(tool: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id=f"c-{tool}", name=tool, arguments=json.dumps(arguments))


class _Past(msgspec.Struct, frozen=True):
    store: Store
    access: Access


class ContainedAgent(TurnkeeperAgent):
    """The product's agent in mode auto. Its model answers with `calls`, one after another, and in
    the end says what came of them."""

    points: Points
    calls: Calls

    def permission(self, conversation: Conversation, settings: object, asker: object) -> Mode:
        return "auto"

    async def _complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.points.hit("model")
        check_order(request.messages)
        parts = (self._think(request.messages),)
        if isinstance(parts[0], Text):
            on_delta(TextDelta(text=parts[0].text))
        self.points.hit("model done")
        finish = "tool_calls" if isinstance(parts[0], ToolCall) else "stop"
        return ModelReply(parts=parts, model="m", provider="scripted", finish=finish)

    def _think(self, messages: Sequence[Message]) -> Text | ToolCall:
        start = max(n for n, m in enumerate(messages) if m.role == "user")
        word = _words(messages[start]).split()[0]
        results = [
            part.content
            for message in messages[start:]
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        wanted = self.calls[word]
        if len(results) < len(wanted):
            return msgspec.structs.replace(wanted[len(results)], id=f"{word}-{len(results)}")
        return Text(text=f"done {word}: {'; '.join(results)}")


class PointedPool(SandboxPool):
    """Each command's begin and end is a point, and its run is noted."""

    life: Life

    async def run(
        self,
        command: str,
        cwd: Path,
        limit: float,
        output: Callable[[str], None],
        permits: Permits = NO_PERMITS,
    ) -> ProcessResult:
        self.life.points.hit("command")
        self.life.ledger.note("ran", command=command)
        done = await super().run(command, cwd, limit, output, permits)
        self.life.points.hit("command done")
        return done


class _ClosedWith:
    """A store that takes along the agent that works over it."""

    def __init__(self, store: Store, stack: AsyncExitStack) -> None:
        self._store, self._stack = store, stack

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def close(self) -> None:
        await self._stack.aclose()
        await self._store.close()


def contain(
    life: Life,
    calls: Calls,
    allowed: frozenset[str] = frozenset(),
    quiet: float = Snapshots.quiet,
    tier: Tier | None = None,
    limits: SandboxLimits | None = None,
    **env: str,
) -> None:
    """The life has the product's agent, which may reach the hosts `allowed` once they are opened.
    `quiet`: seconds after which its sandbox is idle; `tier`: bubblewrap, if it is not given."""
    pool = partial(PointedPool, tier or BwrapTier(), limits, network=SandboxNetwork(allowed))
    open_store: Callable[[Path], Awaitable[Store]] = life.open_store

    async def open_both(folder: Path) -> Store:
        store, stack = await open_store(folder), AsyncExitStack()
        agent = _make_agent(
            life, store, quiet, pool, {"WEB_ALLOWED_HOSTS": ",".join(allowed), **env}
        )
        agent.points, agent.calls = life.points, calls
        stack.push_async_callback(agent._sandbox.close)
        life.agent = agent  # type: ignore[assignment]
        await agent.open(stack)
        agent._tried.set()
        return _ClosedWith(store, stack)  # type: ignore[return-value]

    life.open_store = open_both
    _point_at_files(life.points)


def _make_agent(
    life: Life, store: Store, quiet: float, make: Callable[..., PointedPool], env: dict[str, str]
) -> ContainedAgent:
    folder = life.folder
    people = AllowLists(allowed=frozenset({"ann", "bob"}), admins=frozenset())
    access = Access({"test": people}, {})

    async def accept(inbounds: object) -> None:
        raise AssertionError("no job is due")

    deps = JobDeps(
        store=store,
        accept=accept,
        folder=folder / "work",
        platforms=frozenset({"test"}),
        fits=lambda *_: None,
    )
    jobs = JobWork(make_job_ports(make_jobs(store), JobSettings(), deps), deps, access, folder, {})
    models = ModelSettings.read(env)
    vault = Vault(folder)
    snapshots = Snapshots(bucket=make_bucket(models.tools.bucket))
    snapshots.quiet = quiet
    equipment = Equipment(
        vault=vault,
        sign_ins=SignIns(store, vault, "http://127.0.0.1", public=False),
        jobs=jobs,
        memory=lambda _: None,
        ledger=None,
        job_ledger=Spending(store, models.agent.limits),
        operator=OperatorRules(folder, ()),
        past=_Past(store=store, access=access),
        snapshots=snapshots,
    )
    pool = make(keeper=snapshots)
    pool.life = life
    pool.contains = True  # its self-test is a test of its own
    return ContainedAgent(folder / "work", models, pool, FileStore(folder / "out"), equipment)


def _point_at_files(points: Points) -> None:
    """In this process each file that the product puts, replaces or removes is a point."""

    def pointed(name: str, act: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*args: object, **more: object) -> None:
            points.hit(name)
            act(*args, **more)
            points.hit(f"{name} done")

        return wrapped

    os.replace = pointed("replace", os.replace)
    for name in ("put_file", "put_link", "remove", "remove_folder"):
        setattr(paths, name, pointed(name, getattr(paths, name)))


def workspace(life: Life) -> Path:
    return life.agent.workspace(ROOM)


def read_tree(folder: Path) -> dict[str, str]:
    """All that stands in a workspace but for the gateway's own, with what it is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if ".turnkeeper" in path.parts:
            continue
        if path.is_symlink():
            what = f"-> {os.readlink(path)}"
        else:
            what = f"{path.stat().st_mode:o} {path.read_text() if path.is_file() else ''}"
        found[str(path.relative_to(folder))] = what
    return found


def open_card(life: Life) -> ApprovalCard | None:
    """The newest one, if it is open: an older one that was sent twice may look open for ever."""
    cards = [one for one in life.cards() if isinstance(one, ApprovalCard)]
    return cards[-1] if cards and cards[-1].state == "open" else None


def find_final(life: Life, word: str) -> str:
    """What the answer to `word` says in the end, "" as long as there is none."""
    return next(
        (
            view.text
            for view in life.screen().values()
            if isinstance(view, ReplyView)
            and view.state == "final"
            and view.text.startswith(f"done {word}:")
        ),
        "",
    )


def find_link(life: Life) -> str:
    """Where the newest button leads that opens something, "" if there is none."""
    return next(
        (
            button.url
            for view in reversed(life.screen().values())
            for button in getattr(view, "buttons", ())
            if button.url
        ),
        "",
    )


def list_notices(life: Life) -> list[str]:
    return [view.text for view in life.screen().values() if isinstance(view, Notice)]
