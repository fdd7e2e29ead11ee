"""Scheduled jobs: their cards and commands, and the turns that their due times begin."""

from agent_core.orchestration.brief import Hands
from gateway.conversation.agent import TurnMaker
from gateway.conversation.turns import OpenTurn
from gateway.feature import (
    Feature,
    FiredTurns,
    TurnCode,
    on_inbound,
    on_press,
    on_queued,
    own_command,
)
from gateway.features.jobs import presses as pressing
from gateway.features.jobs import runs as running
from gateway.features.jobs.commands import jobs
from gateway.features.jobs.present import make_fold
from gateway.features.jobs.reports import lost_chats
from gateway.features.jobs.scripts import Scripted
from gateway.features.jobs.settings import TABLES
from gateway.features.jobs.zone_command import timezone
from gateway.messages import ChatLost, JobFailed, JobFired, JobPress, JobReported, WebhookCalled


def _make_code(agent: TurnMaker, open_turn: OpenTurn, hands: Hands) -> TurnCode:
    return Scripted(agent, open_turn, hands).code


FEATURE = Feature(
    name="jobs",
    commands=(own_command("jobs", jobs), own_command("timezone", timezone)),
    presses=(on_press(JobPress, pressing.press, least=None),),
    inbounds=(
        on_inbound(JobFired, running.take),
        on_inbound(JobFailed, running.take),
        on_inbound(JobReported, running.take),
        on_inbound(ChatLost, lost_chats.pause_jobs),
        on_inbound(WebhookCalled, running.take),
    ),
    begins=(on_queued(JobFired, running.begin), on_queued(WebhookCalled, running.begin_talk)),
    settings=TABLES["jobs"],
    on_end=(running.note_end,),
    fired=FiredTurns(
        fold=make_fold,
        code=_make_code,
        give_up_report=lost_chats.note_refusal,
    ),
)
