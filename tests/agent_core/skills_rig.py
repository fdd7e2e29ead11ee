"""A turn that carries out a skill."""

from pathlib import Path

from agent_core.events import SkillEnded
from agent_core.journal import Emitted, Journal, Record
from agent_core.messages import Message, Text
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.drive import drive
from agent_core.policy import Verdict
from agent_core.scope import Scope, Turn
from agent_core.skills.context import SkillDeps, SkillRun
from agent_core.skills.contract import Skill, Values
from agent_core.skills.registry import Skills
from agent_core.skills.tools import skill_tools
from agent_core.tools.contract import Tool
from agent_core.tools.files import file_tools
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.scope_rig import Disk


class SkillRig:
    """A turn whose model says what it is told to say, over a folder."""

    def __init__(self, folder: Path, *skills: Skill, tools: tuple[Tool, ...] = ()) -> None:
        self.requests: list[ModelRequest] = []
        self.answers: list[str | Exception] = []
        self.verdict = Verdict(ruling="allow", rule="t", reason="")
        self.disk = Disk()
        self.skills = Skills(skills, folder / "skills")
        self.workspace = folder / "work"
        self.brief = Brief(
            text="t", system="s", model="pro", tools=(), workspace=str(self.workspace), reach=(),
            cache_key="k",
        )  # fmt: skip
        box = Toolbox((*file_tools(), *skill_tools(self.skills), *tools))
        self.hands = Hands(
            complete=self.complete, toolbox=box, judge=lambda item: self.verdict,
            live=lambda event: None,
        )  # fmt: skip

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelReply(parts=(Text(text=answer),), model=name, provider="p")

    def live(self, event: object) -> None: ...

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return ()

    async def invoke(
        self, skill_id: str, records: list[Record] | None = None, **params: object
    ) -> Values:
        """A life of the turn, after what `records` hold."""
        disk = self.disk = Disk(records or ())
        turn = Turn("turn-0001", Journal(list(disk.records), disk.write), self)

        async def code(scope: Scope, past: tuple[Message, ...]) -> Values:
            deps = SkillDeps(brief=self.brief, hands=self.hands, find=self.skills.look_up)
            return await SkillRun(scope, deps).invoke_skill(skill_id, params)

        try:
            return await drive(turn, code)  # type: ignore[arg-type, return-value]
        finally:
            await turn.journal.barrier()

    @property
    def told(self) -> list[SkillEnded]:
        """What people and programs are told of skills that ended."""
        events = (r.event for r in self.disk.records if isinstance(r, Emitted))
        return [event for event in events if isinstance(event, SkillEnded)]
