"""A scripted model that needs no key: it shows the product's features and says that it is a
demo."""

from collections.abc import Sequence, Set
from typing import TypeAlias

import msgspec

from agent_core import ambient
from agent_core.context.surroundings import strip_surroundings
from agent_core.messages import (
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    calls_of,
    text_of,
)
from agent_core.models.port import ModelReply, ModelRequest, OnDelta, TextDelta, Usage

LABEL = "(demo model: scripted, no key set)"
HELP = """I am a script, not a language model: I show what the gateway does and answer nothing else.

Try a message with one of these words:

- **plan**: a plan as a checklist that is worked off
- **list**: the files in the workspace (a tool call)
- **write**: a note in the workspace
- **settings**: a change of an editor's settings, which you are asked about in every mode
- **run**: a command in the sandbox; in mode ask, or where the sandbox does not contain it, you \
are asked first
- **choose**: a question with options
- **every**: a job that reports each working day at nine; the command `jobs` runs it at once

For a real model set `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`, and `PRO_MODEL=provider/model` to \
choose the model yourself. Then start the gateway again."""
PLAN: dict[str, object] = {
    "title": "A note about the files",
    "steps": [
        {"id": "look", "description": "Look at the files in the workspace"},
        {"id": "note", "description": "Write a note there", "needs": ["look"]},
        {"id": "check", "description": "Read the note again", "needs": ["note"]},
    ],
}
JOB: dict[str, object] = {
    "title": "The files, every working day",
    "prompt": "list the files",
    "schedule": "0 9 * * 1-5",
}
STEPS: dict[str, tuple[str, dict[str, object]]] = {
    "look": ("list_files", {}),
    "note": ("write_file", {"path": "plan.txt", "content": "Written by a step of a plan.\n"}),
    "check": ("read_file", {"path": "plan.txt"}),
}
"""The call of each step of the plan."""
QUESTION: dict[str, object] = {
    "question": "Which way shall I go on?",
    "options": ["Short answer", "Long answer", "Stop here"],
    "kind": "decision",
}
SETTINGS: dict[str, object] = {
    "path": ".vscode/settings.json",
    "content": '{\n  "editor.formatOnSave": true\n}\n',
}
"""A file that an editor obeys: its change is asked about in every mode and sandbox."""
Row: TypeAlias = tuple[str, str, str, dict[str, object]]
SCRIPT: tuple[Row, ...] = (
    ("plan plano план 计划 計画", "task_planning", "I make a plan.", PLAN),
    (
        "every daily job jeden jedem täglich chaque cada diário diariamente каждый ежедневно 每 毎",
        "schedule_job",
        "I propose a job.",
        JOB,
    ),
    (
        "settings vscode/settings.json",
        "write_file",
        "I will change an editor's settings.",
        SETTINGS,
    ),
    (
        "list files dateien fichiers archivos arquivos файлы 文件 ファイル",
        "list_files",
        "I will look at the files.",
        {},
    ),
    (
        "write note schreibe schreiben écris écrivez escribe escriba escreve escreva напиши "
        "напишите 写 書",
        "write_file",
        "I will write a note.",
        {"path": "note.txt", "content": "A note from the demo model.\n"},
    ),
    (
        "run command befehl commande comando команду 命令 コマンド",
        "run_command",
        "I will run a command.",
        {"command": "echo hello from the sandbox"},
    ),
    (
        "choose wähle choisir elegir escolher выбрать 选 選",
        "ask_user",
        "I have a question.",
        QUESTION,
    ),
)
"""Words that trigger a row in our languages, its tool, its answer, its arguments. The first match
counts."""
FIRST_KANA = "\u3040"
"""From this character on, words are not separated by blanks."""
MAX_QUOTED = 1000
STEP = "Now do this step and nothing else:\n"
"""Matches the task of a plan's step."""


class DemoModel:
    """Answers from a script keyed on the last words of the person. `delay` is seconds a word."""

    provider = "demo"

    def __init__(self, delay: float = 0.02) -> None:
        self._delay = delay

    async def complete(self, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        """The scripted answer, streamed word by word."""
        parts = _label(_answer(request), request.messages)
        words = 0
        for part in parts:
            if isinstance(part, Text):
                for word in part.text.split(" "):
                    gap = " " if words else ""
                    on_delta(TextDelta(text=gap + word))
                    words += 1
                    await ambient.wait(self._delay)
        calls = any(isinstance(part, ToolCall) for part in parts)
        return ModelReply(
            parts=parts,
            model="demo",
            provider=self.provider,
            finish="tool_calls" if calls else "stop",
            usage=Usage(output_tokens=words),
        )

    async def close(self) -> None:
        """Do nothing."""


def _answer(request: ModelRequest) -> tuple[Part, ...]:
    last = request.messages[-1] if request.messages else None
    if last and last.role == "tool":
        return _say(_quote(last))
    said = strip_surroundings(_find_said(request.messages))
    if "[Finishing]" in said:
        return _say("The plan is finished. The command `todo` changes one while it runs.")
    if (step := said.partition(STEP)[2].partition(":")[0]) in STEPS:
        return (_call(request, *STEPS[step]),)
    offered = {tool.name for tool in request.tools}
    last_words = said.rpartition("\n\n")[2]  # the prompt of a job is there
    for _, tool, text, arguments in _find_rows(last_words) or _find_rows(said):
        if tool not in offered or request.tool_choice == "none":
            return _say(f"This would call the tool `{tool}`, which is not offered here.")
        return (*_say(text), _call(request, tool, arguments))
    return _say(HELP)


def _find_said(messages: Sequence[Message]) -> str:
    return next((text_of(m) for m in reversed(messages) if m.role == "user"), "")


def _find_rows(said: str) -> tuple[Row, ...]:
    text = said.lower()
    words = {word.strip(".,;:!?()'\"`") for word in text.replace("。", " ").split()}
    return tuple(row for row in SCRIPT if any(_is_said(one, words, text) for one in row[0].split()))


def _is_said(word: str, words: Set[str], text: str) -> bool:
    return word in words or (word >= FIRST_KANA and word in text)


def _call(request: ModelRequest, tool: str, arguments: dict[str, object]) -> ToolCall:
    number = sum(len(calls_of(message)) for message in request.messages)
    text = msgspec.json.encode(arguments).decode()
    return ToolCall(id=f"demo_{number + 1}", name=tool, arguments=text)


def _quote(message: Message) -> str:
    """A short final answer around the results."""
    lines = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            what = "failed" if part.error else "gave"
            text = part.content.strip() or "(nothing)"
            text = text if len(text) <= MAX_QUOTED else text[:MAX_QUOTED] + "…"
            lines.append(f"`{part.name}` {what}:\n\n{_fence(text)}")
    return "\n\n".join(lines)


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _say(text: str) -> tuple[Text]:
    return (Text(text=text),)


def _label(parts: tuple[Part, ...], messages: Sequence[Message]) -> tuple[Part, ...]:
    """Label the first answer that people see as the demo's; reports of steps, and words beside a
    call, have no label."""
    known = any(LABEL in text_of(one) for one in messages if one.role == "assistant")
    known = known or STEP in _find_said(messages)
    match parts:
        case (Text(text=text),) if not known:
            return _say(f"{text}\n\n{LABEL}")
        case _:
            return parts
