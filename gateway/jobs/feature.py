"""Scheduled jobs: their cards and commands, and the turns that their due times begin."""

from agent_core.orchestration.brief import Hands
from gateway.agent import TurnMaker
from gateway.feature import (
    Feature,
    FiredTurns,
    TurnCode,
    on_inbound,
    on_press,
    on_queued,
    own_command,
)
from gateway.jobs import running
from gateway.jobs.chat import pressing
from gateway.jobs.commands import jobs
from gateway.jobs.present import make_fold
from gateway.jobs.work.commands import timezone
from gateway.jobs.work.scripts import Scripted
from gateway.messages import JobFailed, JobFired, JobPress, JobReported, WebhookCalled
from gateway.sessions.turns import OpenTurn


def _make_code(agent: TurnMaker, open_turn: OpenTurn, hands: Hands) -> TurnCode:
    return Scripted(agent, open_turn, hands).code


FEATURE = Feature(
    name="jobs",
    commands=(own_command("jobs", jobs), own_command("timezone", timezone)),
    presses=(on_press(JobPress, pressing.press),),
    inbounds=(
        on_inbound(JobFired, running.take),
        on_inbound(JobFailed, running.take),
        on_inbound(JobReported, running.take),
        on_inbound(WebhookCalled, running.take),
    ),
    begins=(on_queued(JobFired, running.begin),),
    fired=FiredTurns(
        fold=make_fold,
        code=_make_code,
        end=running.put_down_end,
        give_up_report=running.pause_undeliverable,
    ),
)
