"""The same tasks and faults with mini-swe-agent's loop, where a Python has it.

    python -m venv DIR && DIR/bin/pip install mini-swe-agent
    python -m benchmarks.faults.mini DIR/bin/python

Its one tool is a shell: the tasks' steps are commands there. Prints the column of
benchmarks/faults/README.md.
"""

import asyncio
import json
import logging
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent_core.errors import ModelFailed
from agent_core.messages import Message, Text, ToolCall, ToolResult, user
from agent_core.models.port import Model, ModelReply, ModelRequest
from benchmarks.agent.course import Said
from benchmarks.faults.__main__ import LOST, PADDED, SMALL, WINDOW, Narrow
from benchmarks.faults.faults import FAULTS, Faulty
from benchmarks.faults.mini_child import SUBMIT
from benchmarks.faults.tasks import PAD, TASKS, Step, Task, find_value
from benchmarks.faults.wire import say_nothing, to_step
from tests.fakes.model_server import Fail, Json, ModelServer
from tests.fakes.model_server import Step as Answer

CHILD = Path(__file__).with_name("mini_child.py")
FAILED = "<returncode>0</returncode>\n<output>\n"
FAULTS_HERE = (*FAULTS, "empty answer", SMALL)
"""It streams nothing, so that nothing breaks off in mid-stream."""


def to_command(step: Step, padded: bool) -> str:
    """The step as a command."""
    name, given = step
    path = shlex.quote(str(given.get("path", "")))
    match name:
        case "look_up":
            made = f"sh lookup.sh {shlex.quote(str(given['key']))}"
        case "read_file":
            made = f"cat {path}"
        case "write_file":
            text = shlex.quote(str(given["content"]))
            made = f"mkdir -p $(dirname {path}) && printf %s {text} > {path}"
        case _:
            made = f"ls {given['pattern']}"
    return f"{made} && cat .pad" if padded else made


def make_mind(task: Task, padded: bool) -> Callable[[ModelRequest], Said]:
    """The task's model, whose steps are commands."""

    def think(request: ModelRequest) -> Said:
        results: list[str] = []
        known = _find_outputs(request)
        while not isinstance(step := task.act(results), str):
            command = to_command(step, padded)
            if command not in known:
                return (("bash", {"command": command}),)
            results.append(known[command])
        return (("bash", {"command": f"{SUBMIT} && echo {shlex.quote(step)}"}),)

    return think


def _find_outputs(request: ModelRequest) -> dict[str, str]:
    calls = {p.id: p for m in request.messages for p in m.parts if isinstance(p, ToolCall)}
    found: dict[str, str] = {}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and part.content.startswith(FAILED):
                try:
                    command = json.loads(calls[part.call_id].arguments)["command"]
                except (KeyError, TypeError, ValueError):
                    continue
                text = part.content.removeprefix(FAILED).removesuffix("</output>")
                found.setdefault(command, text.partition(PAD)[0].strip())
    return found


def read_request(body: Json) -> ModelRequest:
    """A request of chat completions as one of ours."""
    messages: list[Message] = []
    for one in body["messages"]:
        if one["role"] == "tool":
            result = ToolResult(call_id=one["tool_call_id"], name="bash", content=one["content"])
            messages.append(Message(role="tool", parts=(result,)))
        elif one["role"] == "assistant":
            calls = tuple(
                ToolCall(
                    id=call["id"],
                    name=call["function"]["name"],
                    arguments=call["function"]["arguments"],
                )
                for call in one.get("tool_calls") or ()
            )
            said = (Text(text=one["content"]),) if one.get("content") else ()
            messages.append(Message(role="assistant", parts=(*said, *calls)))
        else:
            messages.append(user(one["content"]))
    return ModelRequest(model="m", system="", messages=tuple(messages))


async def answer(model: Model, body: Json) -> Answer:
    """What the server answers."""
    try:
        return to_step(await model.complete(read_request(body), lambda delta: None))
    except ModelFailed:
        return Fail(400, message="This model's maximum context length is 4096 tokens.")


class Mini:
    """The loop's process."""

    def __init__(self, python: str, server: ModelServer, url: str) -> None:
        self._python, self._server, self._url = python, server, url
        self._process: asyncio.subprocess.Process | None = None

    async def solve(self, task: Task, n: int, fault: str) -> bool:
        """Whether it solves the task."""
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            place, padded = Path(folder), fault == SMALL
            task.prepare(place)
            keys = {f"part-{k}" for k in range(12)} | {f"link-{k}" for k in range(16, 101)}
            lines = (f"{key}) echo {find_value(key)};;" for key in sorted(keys))
            (place / "lookup.sh").write_text(f"case $1 in {' '.join(lines)} *) exit 1;; esac\n")
            (place / ".pad").write_text(f"{PAD}{'much that nobody needs ' * (PADDED // 23)}")
            inner = Faulty(make_mind(task, padded), FAULTS.get(fault), n % 2)
            self._listen(Narrow(inner, WINDOW) if padded else inner, fault)
            text = await self._ask({"folder": folder, "text": task.text})
            try:
                return task.check(text.strip(), place)
            except OSError:
                return False

    def _listen(self, model: Model, fault: str) -> None:
        """The server answers by `model`; it is asked on its own loop, one request at a time."""
        queue: list[Answer] = [say_nothing(ModelReply(parts=(), model="", provider=""))]
        first = queue if fault in LOST else []

        def step(body: Json) -> Answer:
            if first:
                return first.pop()
            self._server.steps.append(step)
            return _run(answer(model, body))

        self._server.steps[:] = [*([step] * len(first)), step]

    async def _ask(self, task: Json) -> str:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                self._python, str(CHILD), self._url,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, limit=1 << 20,
            )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(task)}\n".encode())
        while line := await self._process.stdout.readline():
            if line.startswith(b'{"text"'):
                return str(json.loads(line)["text"])
        raise RuntimeError("the loop's process has ended")

    async def close(self) -> None:
        """End it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            await self._process.wait()


def _run(work: object) -> Answer:
    """The result of what never waits for anything."""
    try:
        work.send(None)  # type: ignore[attr-defined]
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise RuntimeError("a scripted model waits for nothing")


async def main(python: str, every: int) -> None:
    """The rows."""
    logging.disable(logging.CRITICAL)
    tasks, server = TASKS[::every], ModelServer()
    mini = Mini(python, server, await server.start())
    server.extra_fields |= {"num_retries"}
    try:
        for fault in FAULTS_HERE:
            solved = sum([await mini.solve(task, n, fault) for n, task in enumerate(tasks)])
            print(f"| {fault} | {solved} of {len(tasks)} |", flush=True)
    finally:
        await mini.close()
        await server.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
