"""/timezone, and the lines about jobs in /usage."""

from datetime import datetime
from zoneinfo import ZoneInfo

from agent_core import ambient
from gateway.feature import Call
from gateway.features.jobs.runs import identify
from gateway.jobs_port import MAX_RUNS
from gateway.services.zones import Zones
from gateway.store.spending.tally import utc_day
from gateway.texts import say
from gateway.texts.money import describe_cost

MAX_JOBS = 20


async def timezone(call: Call) -> str:
    """Show or choose the time zone of who asks."""
    context = call.context
    jobs, language = context.services.jobs, call.language
    if jobs is None:
        return say("jobs_off", language)
    who = await identify(context, call.command.sender)
    zones, accounts = Zones(context.services.store), who.accounts | {who.sender.key}
    if not call.words:
        zone = await zones.read_zone(accounts)
        if not zone:
            return say("timezone_none", language, zone=jobs.settings.zone)
        return say("timezone_is", language, zone=zone, time=_time(zone))
    zone = "_".join(call.words)  # 'America/New York'
    try:
        time = _time(zone)
    except (OSError, ValueError, KeyError):
        return say("timezone_wrong", language, zone=zone[:64])
    await zones.choose(accounts, zone)
    return say("timezone_set", language, zone=zone, time=time)


def _time(zone: str) -> str:
    return f"{datetime.fromtimestamp(ambient.now(), ZoneInfo(zone)):%H:%M}"


async def job_costs(call: Call) -> list[str]:
    """Return a line for each job that spent something today, of those that the asker may manage."""
    context = call.context
    jobs = context.services.jobs
    if jobs is None:
        return []
    lines, today = [], utc_day()
    known = await jobs.book.list_visible(await identify(context, call.command.sender))
    for job in known[:MAX_JOBS]:
        runs = await jobs.store.runs(job.id, MAX_RUNS)
        runs = tuple(run for run in runs if f"{ambient.utc(run.at):%Y-%m-%d}" == today)
        cost, unpriced = sum(run.cost for run in runs), sum(run.unpriced for run in runs)
        if cost or unpriced:
            told = describe_cost(cost, unpriced, call.language)
            lines.append(say("usage_job", call.language, title=job.title, cost=told))
    return lines
