"""A scripted model that answers by what was said last: asked again after a restart, it says the
same again. And one that breaks off."""

import asyncio
import contextlib
import re
from dataclasses import dataclass

from aiohttp import web

from agent_core.context.surroundings import strip_surroundings
from tests.fakes.model_dialect import Dialect
from tests.fakes.model_server import Json, ModelServer, Say, Step
from tests.gateway.process import KEY

RECAP, HEARD = "What have I said?", "You said: "
EARLIER = re.compile(
    r"\[Data, [^\n]*\]\n\[Said in this thread before.*?\n\[End of data: [0-9a-f]+\.\]\n+", re.DOTALL
)
"""What a platform tells of a thread, which not every one does."""


@dataclass(frozen=True, slots=True)
class Held:
    """`then`, once the test lets go."""

    then: Step


Line = Step | Held


class Mind:
    """`lines`: words of a person -> what the model says to them, one step a round."""

    def __init__(self, model: ModelServer) -> None:
        self._model = model
        self.lines: dict[str, list[Line]] = {}
        self._let_go = False
        self.holds = asyncio.Event()
        """Set while an answer is held back."""
        model.script(*[self._answer] * 200)

    def go_on(self) -> None:
        """From now on no call waits behind its words."""
        self._model.midway.set()

    def let_go(self) -> None:
        """From now on nothing is held back."""
        self._let_go = True
        self.holds.clear()
        if self._model.gate is not None:
            self._model.gate.set()
            self._model.gate = None

    def _answer(self, body: Json) -> Step:
        step = self._line(body["messages"])
        if not isinstance(step, Held):
            return step
        if not self._let_go:
            self._model.gate = self._model.gate or asyncio.Event()
            self.holds.set()
        return step.then

    def _line(self, messages: list[Json]) -> Line:
        said = [n for n, message in enumerate(messages) if message["role"] == "user"]
        last = _strip_added(messages[said[-1]])
        if RECAP in last:
            return Say(HEARD + " | ".join(_briefly(messages[n]) for n in said[:-1]))
        rounds = sum(1 for one in messages[said[-1] :] if one["role"] == "assistant")
        for words, steps in self.lines.items():
            if words in last:
                return steps[rounds]
        return Say(f"ack {last}")


def _strip_added(message: Json) -> str:
    return EARLIER.sub("", strip_surroundings(str(message["content"])))


def _briefly(message: Json) -> str:
    """What was said; of what the gateway adds for its work only how it begins."""
    text = _strip_added(message)
    marks = ("[Planning", "[Finishing]", "[Active Task", "[Research]", "[Synthesis]", "[Report]")
    return text.partition("\n")[0] if any(mark in text for mark in marks) else text


class Fragile(ModelServer):
    """Says a little every 0.02 s, until it is to break: then each of its answers breaks off."""

    def __init__(self) -> None:
        super().__init__(KEY)
        self.breaks = asyncio.Event()

    async def _stream(
        self, request: web.Request, step: Step, dialect: Dialect, lines: list[str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": dialect.content_type})
        await response.prepare(request)
        for line in lines:
            await response.write(f"{line}{dialect.end}".encode())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.breaks.wait(), 0.02)
                break
        assert request.transport
        request.transport.abort()
        return response
