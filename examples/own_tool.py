"""Tools of your own: one that only reads, and one that a person is asked about first.

The names are those that the scripted demo model calls; a real model reads any name, and what the
docstring's first line says.
"""

import asyncio

from agent_core import Agent, tool
from agent_core.models.demo import DemoModel
from agent_core.questions import Answer, Approval, Question

SHELF = ["Emma", "Dracula", "Ulysses"]


@tool
def list_files() -> str:
    """The books on the shelf."""
    return ", ".join(SHELF)


@tool(access="network", repetition="effect")
def run_command(command: str) -> str:
    """Order a book: it costs money, so that it is asked for, and never done twice."""
    SHELF.append(command)
    return f"{command!r} was ordered."


def decide(question: Question) -> Answer:
    """Say yes to approvals; a chat would show a card with buttons here."""
    assert isinstance(question, Approval)
    print("asked for:", *(proposal.arguments for proposal in question.proposals))
    return Answer(choice="once", by="me")


async def main() -> None:
    tools = (list_files, run_command)
    async with Agent(model=DemoModel(), tools=tools, on_question=decide, plans=False) as agent:
        print(await agent.achat("Which files are there?"))
        print(await agent.achat("Please run it."))


if __name__ == "__main__":
    asyncio.run(main())
