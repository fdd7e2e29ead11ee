"""/usage: tokens, cached share and money, of the last turn, of today, of all."""

from collections.abc import Awaitable, Callable

from gateway.feature import Call
from gateway.store.spending.tally import Tally
from gateway.texts import Key, say
from gateway.texts.money import describe_cost, dollars

CostLines = Callable[[Call], Awaitable[list[str]]]
"""Returns lines about today's spending of a person's work of one kind."""


async def usage(job_costs: CostLines, call: Call) -> str:
    """Tell the spending of this conversation's model calls, and of the asker's jobs today."""
    context = call.context
    spent = context.state.row.spent
    if not spent.total.calls:
        return say("usage_none", call.language)
    lines = [
        _line("usage_turn", spent.last, call.language),
        _line("usage_today", spent.of_today, call.language),
        _line("usage_all", spent.total, call.language),
    ]
    lines += await job_costs(call)
    ledger = context.services.ledger
    known = await ledger.today() if ledger is not None and call.role == "admin" else {}
    if cost := known.get("all", 0.0):  # calls with a known price
        lines.append(say("usage_gateway", call.language, cost=dollars(cost)))
    return "\n".join(lines)


def _line(what: Key, tally: Tally, language: str) -> str:
    return say(
        "usage_line",
        language,
        what=say(what, language),
        calls=tally.calls,
        read=f"{tally.read:,}",
        share=tally.share,
        written=f"{tally.written:,}",
        cost=describe_cost(tally.cost, tally.unpriced, language),
    )
