"""Gather, plan, act, verify: an agent behind the calls of a loop that is switched on and off.

    loop = AgenticLoop(Agent(model="pro"))
    loop.activate()
    loop.register_tool("lookup", lookup, "Look a word up.", {"word": "string"}, access="read")
    print(loop.process_request("What is a lease?")["verification"]["summary"])

What it reports is what a real turn did; the planning, the policy and the checks are the agent's.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import NotRequired, TypedDict

from agent_core import ambient
from agent_core.agent import Agent
from agent_core.errors import Misuse
from agent_core.library.entries import Entries, Entry
from agent_core.library.history import History, read_history
from agent_core.library.registering import Function, make_tool
from agent_core.library.turn_recorder import (
    Done,
    Planned,
    TurnRecorder,
    Verification,
    summarize_results,
)
from agent_core.messages import Access, text_of
from agent_core.policy import Mode

log = logging.getLogger("turnkeeper.agentic")

GATHERED = 5
"""Messages shown in the report's context; the model gets all of them."""
INACTIVE = "The loop is not active: call activate() first."


class AgenticContext(TypedDict):
    """The context before the turn. `timestamp` in seconds since 1970."""

    user_input: str
    conversation_history: list[dict[str, str]]
    workspace: str
    available_tools: list[str]
    timestamp: float


class Report(TypedDict):
    """The report of a turn. `error`: why there was no turn; `context`: with `debug` alone."""

    success: bool
    plan: list[Planned]
    results: list[Done]
    verification: Verification
    error: NotRequired[str]
    context: NotRequired[AgenticContext]


class Stats(TypedDict):
    """Totals over the history; times in seconds, `success_rate` from 0 to 1."""

    total_executions: int
    successful_executions: int
    failed_executions: int
    success_rate: float
    total_execution_time: float
    average_execution_time: float
    tools: dict[str, int]


class AgenticLoop:
    """A loop of requests to `agent`. `debug`: reports have the context, and the log each phase. If
    the agent keeps a journal, the history is stored there too, and is read at the start."""

    def __init__(self, agent: Agent) -> None:
        if not isinstance(agent, Agent):
            raise Misuse(f"an AgenticLoop is made of an Agent, not {agent!r:.200}")
        self.agent = agent
        self.active = False
        self.debug = False
        self.current_plan: list[Planned] | None = None
        self._history = Entries(agent.journal)

    def activate(self) -> bool:
        """Accept requests from now on. Return True if that is new."""
        was, self.active = self.active, True
        return not was

    def deactivate(self) -> bool:
        """Accept no more requests. Return True if that is new."""
        was, self.active = self.active, False
        return was

    def set_mode(self, mode: str) -> None:
        """Set the mode: `ask` about every change, or `auto`, only about risky ones. Raises
        Misuse."""
        modes: dict[str, Mode] = {"ask": "ask", "auto": "auto"}
        if mode not in modes:
            raise Misuse(f"no mode {mode!r}; there are ask and auto")
        self.agent.mode = modes[mode]

    def register_tool(
        self,
        name: str,
        func: Function,
        description: str,
        parameters: Mapping[str, object],
        access: Access = "network",
    ) -> None:
        """Add `func` as a tool for later turns; see `registering`. `access`: its reach; with the
        default a person is asked before each call. Raises Misuse."""
        self.agent.add_tools(make_tool(name, func, description, parameters, access))

    @property
    def execution_history(self) -> list[Entry]:
        """The last turns, oldest first."""
        return list(self._history)

    def process_request(
        self, user_input: str, conversation_history: History | None = None
    ) -> Report:
        """Run one turn, by default after the previous ones. Raises Misuse inside a running loop:
        use `aprocess_request` there."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._process_and_close(user_input, conversation_history))
        raise Misuse("a loop is running here: use `await loop.aprocess_request(text)`")

    async def _process_and_close(self, text: str, said: History | None) -> Report:
        try:
            return await self.aprocess_request(text, said)
        finally:
            await self.agent.close()

    async def aprocess_request(
        self, user_input: str, conversation_history: History | None = None
    ) -> Report:
        """Run one turn like `process_request`, inside a running loop."""
        if not self.active:
            nothing = summarize_results((), False)
            return Report(success=False, plan=[], results=[], verification=nothing, error=INACTIVE)
        if conversation_history is not None:
            self.agent.history = read_history(conversation_history)
        context = self._gather_context(user_input)
        recorder, self.current_plan = TurnRecorder(user_input), None
        self._tell("gather", context)
        async for event in self.agent.stream(user_input):
            recorder.take(event)
            if recorder.plan != self.current_plan:
                self.current_plan = recorder.plan
                self._tell("plan", recorder.plan)
        verification = recorder.verify()
        self._tell("verify", verification)
        report = Report(
            success=verification["overall_success"],
            plan=recorder.plan,
            results=recorder.results,
            verification=verification,
        )
        await asyncio.to_thread(self._history.add, _entry(report, context["timestamp"]))
        if self.debug:
            report["context"] = context
        return report

    def get_execution_stats(self) -> Stats:
        """The turns of the history counted."""
        entries = self._history
        good = sum(entry["success"] for entry in entries)
        spent = sum(entry["execution_time"] for entry in entries)
        names = [row["tool"] for entry in entries for row in entry["results"]]
        return Stats(
            total_executions=len(entries),
            successful_executions=good,
            failed_executions=len(entries) - good,
            success_rate=good / len(entries) if entries else 0.0,
            total_execution_time=spent,
            average_execution_time=spent / len(entries) if entries else 0.0,
            tools={name: names.count(name) for name in dict.fromkeys(names)},
        )

    def _gather_context(self, text: str) -> AgenticContext:
        last = self.agent.history[-GATHERED:]
        return AgenticContext(
            user_input=text,
            conversation_history=[{"role": m.role, "content": text_of(m)} for m in last],
            workspace=str(self.agent.workspace),
            available_tools=list(self.agent.toolbox.names),
            timestamp=ambient.now(),
        )

    def _tell(self, phase: str, what: object) -> None:
        if self.debug:
            log.info("agentic", extra={"phase": phase, "what": what})


def _entry(report: Report, at: float) -> Entry:
    return Entry(
        timestamp=at,
        plan=report["plan"],
        results=report["results"],
        verification=report["verification"],
        success=report["success"],
        execution_time=report["verification"]["total_execution_time"],
    )


__all__ = ["AgenticLoop", "Report", "Stats"]
