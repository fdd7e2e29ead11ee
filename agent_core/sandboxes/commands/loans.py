"""Loans of the network beside those of the proxy: where nothing restricts it, and with advice."""

import re
from collections.abc import Callable

from agent_core.sandboxes.commands.advice import MAX_LOOKED, advise
from agent_core.sandboxes.port import NOTHING, NetworkLoan, ProcessResult


class _NothingClosed:
    """The loan where the network is not restricted."""

    env = NOTHING

    def describe_refused(self, done: ProcessResult) -> str:
        return ""


OPEN_NETWORK: NetworkLoan = _NothingClosed()


_COMPLAINT = re.compile(r"^(?:/bin/(?:ba)?sh: line \d+|[\w./+-]+|Error, do this): .*$", re.M)
"""A message of a program that failed, where the last one of a line succeeded."""


class AdvisedLoan:
    """A loan with advice for other failures; `special`: the tier's, by the end of the output."""

    def __init__(self, loan: NetworkLoan, special: Callable[[str], str]) -> None:
        self.env = loan.env
        self._loan, self._special = loan, special

    def describe_refused(self, done: ProcessResult) -> str:
        """See the port."""
        refused, end = self._loan.describe_refused(done), done.output[-MAX_LOOKED:]
        if done.reason:
            return refused  # the reason is reported already
        special = self._special(end if done.exit_code else _find_complaints(end))
        usual = "" if special or refused else advise(end, done.exit_code)
        return "\n".join(filter(None, (refused, special, usual)))


def _find_complaints(output: str) -> str:
    return "\n".join(_COMPLAINT.findall(output))
