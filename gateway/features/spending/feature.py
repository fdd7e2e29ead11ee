"""Spending: what the model calls of a conversation took."""

from functools import partial

from gateway.feature import Feature, own_command
from gateway.features.spending.commands import CostLines, usage


def make_feature(job_costs: CostLines) -> Feature:
    """`job_costs` gives the lines about what scheduled jobs spent."""
    run = partial(usage, job_costs)
    return Feature(name="spending", commands=(own_command("usage", run, "viewer"),))
