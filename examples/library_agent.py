"""The agent as a library: it calls a tool, answers, and remembers what was said."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_core import Agent
from agent_core.events import Completed, ToolAnswered
from agent_core.models.demo import DemoModel
from agent_core.tools.files import file_tools


async def main() -> None:
    with TemporaryDirectory() as folder:
        workspace = Path(folder)
        # for a real model: model="openai/gpt-5.6-terra", with OPENAI_API_KEY in the environment
        agent = Agent(model=DemoModel(), tools=file_tools(), workspace=workspace, plans=False)
        async with agent:
            print(await agent.achat("Please write a note."))
            async for event in agent.stream("Which files are there?"):
                match event:
                    case ToolAnswered():
                        print(f"[tool] {event.content}")
                    case Completed():
                        print(event.text)


if __name__ == "__main__":
    asyncio.run(main())
