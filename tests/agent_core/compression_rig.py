"""A model that summarises, and what is asked of it, over a journal."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_core.context.compression import SummaryRequest
from agent_core.errors import ModelFailed
from agent_core.journal import Journal, Record
from agent_core.messages import Text, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.scope import Scope, Turn


class Company:
    def live(self, event: object) -> None:
        raise AssertionError("a summary is not shown while it comes")

    def take_steers(self) -> tuple[tuple[int, str], ...]:
        return ()

    def __getattr__(self, name: str) -> object:
        return lambda *_: ()


class CompressionRig:
    """A model that summarises, and a journal that is kept from one life to the next."""

    def __init__(self, *answers: str | ModelFailed) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.records: list[Record] = []

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.asked.append(text_of(request.messages[0]))
        answer = self.answers.pop(0)
        if isinstance(answer, ModelFailed):
            raise answer
        return ModelReply(parts=(Text(text=answer),), model=name, provider="p")

    def live(self, code: Callable[[Scope], Awaitable[None]]) -> None:
        """Run `code` over what the journal holds."""

        async def main() -> None:
            async def write(batch: tuple[Record, ...]) -> None:
                self.records += batch

            journal = Journal(self.records, write)
            turn = Turn("t", journal, Company())
            turn.tasks.add(asyncio.current_task())
            await code(Scope(turn))
            await journal.barrier()

        asyncio.run(main())

    @property
    def asking(self) -> SummaryRequest:
        return SummaryRequest(complete=self.complete, limit=5.0)
