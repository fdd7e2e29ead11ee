"""The question to sign in at a server, and the tool by which the model asks it."""

from collections.abc import Iterable

from agent_core.mcp.oauth.grants import SignInOffer
from agent_core.phrases import phrase
from agent_core.questions import Decision
from agent_core.tools.finding.mcp_tools import NAME_SEPARATOR, Definition

SIGN_IN = "sign_in"
DONE, LEAVE = "/signed-in", "/leave"
_NO_PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}
MAX_TOOLS = 60
"""Tools that are named."""


def ask_sign_in(server: str, offer: SignInOffer) -> Decision:
    """The question. It is answered by the sign-in itself too (`awaits`)."""
    hints = [phrase("sign_in_once" if offer.link else "sign_in_private", server=server)]
    if offer.local:
        hints.append(phrase("sign_in_local"))
    return Decision(
        lead=(phrase("sign_in_asks", server=server),),
        text=offer.link or f"/mcp signin {server}",
        options=(DONE, LEAVE),
        labels={DONE: phrase("sign_in_done"), LEAVE: phrase("sign_in_leave")},
        hints=tuple(hints),
        awaits=name_sign_in(server),
    )


def name_sign_in(server: str) -> str:
    """Return the event awaited by a question that a sign-in answers."""
    return f"sign-in:{server}"


def define_sign_in_tool(server: str, parameters: dict[str, object] | None = None) -> Definition:
    """Define the tool as one of the server's own."""
    return Definition(
        name=f"{server}{NAME_SEPARATOR}{SIGN_IN}",
        server=server,
        tool=SIGN_IN,
        description=f"Have the person sign in at {server}, if they are not. Its tools are known "
        "then, and can be found and called.",
        parameters=parameters or _NO_PARAMETERS,
        ours=True,
    )


def tell_tools(server: str, tools: Iterable[Definition]) -> str:
    """Name the available tools to the model once the person is signed in."""
    names = sorted(one.name for one in tools)
    more = f" and {len(names) - MAX_TOOLS} more" if len(names) > MAX_TOOLS else ""
    shown = ", ".join(names[:MAX_TOOLS])
    return f"The person is signed in at {server}. Its tools: {shown or 'none'}{more}."
