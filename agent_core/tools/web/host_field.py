"""The field `hosts` of calls that run something."""

from typing import Annotated

from pydantic import AfterValidator, Field

from agent_core.tools.web.hosts import MAX_HOSTS, read_hosts

HostNames = Annotated[
    tuple[str, ...],
    AfterValidator(read_hosts),
    Field(
        max_length=MAX_HOSTS,
        description="Hosts it needs, by name; 'packages' or 'git': the usual ones. A "
        "person may be asked.",
    ),
]
"""The hosts that the call needs, as `read_hosts` returns them."""
