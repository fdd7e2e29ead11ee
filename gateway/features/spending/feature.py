"""Spending: the cost of a conversation's model calls."""

from functools import partial

from gateway.feature import Feature, own_command
from gateway.features.spending.commands import CostLines, usage


def make_feature(job_costs: CostLines) -> Feature:
    """`job_costs` returns the lines about the spending of jobs."""
    run = partial(usage, job_costs)
    command = own_command("usage", run, "viewer", of_talk=True, most_words=0)
    return Feature(name="spending", commands=(command,))
