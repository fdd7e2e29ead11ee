"""Conversations of any shape in a window of 4,096 tokens: each request leaves room for its answer,
and the person's newest words stand in it whole."""

import random

from agent_core.context.compression import BYTES, Window, estimate
from agent_core.context.limits import limit_observed
from agent_core.context.settings import ContextSettings
from agent_core.errors import ModelFailed
from agent_core.memory.documents import MemoryDocuments
from agent_core.memory.recall import render
from agent_core.messages import Message, Picture, Text, ToolCall, ToolResult, text_of, user
from agent_core.scope import Scope
from tests.agent_core.compression_rig import CompressionRig
from tests.fakes.world import check_order
from tests.sampling import SEED, some_and_every

WINDOW = 4_096
ROOM = ContextSettings().make_limits(WINDOW, "flash")
FIXED = 1_200 * BYTES
"""Bytes of the system text and the tools of a small model."""
WORDS = {
    "en": "please look at the report and say what changed since last week",
    "de": "bitte schauen Sie den Bericht an und sagen Sie was sich geändert hat",
    "es": "por favor mire el informe y diga qué ha cambiado esta semana",
    "fr": "veuillez lire le rapport et dire ce qui a changé depuis hier",
    "pt": "por favor veja o relatório e diga o que mudou desde ontem",
    "ru": "пожалуйста посмотрите отчёт и скажите что изменилось за неделю",
    "ja": "報告書 を 見て 先週 から 何が 変わった か 教えて ください",
    "zh": "请 看 一下 报告 告诉 我 上周 以来 有 什么 变化",
}
PICTURE = Picture(ref="ab/cd", path="shot.png", mime="image/png", size=9)
MOST_SAID = 6_000
"""Bytes of a request that stands in each of its turn's requests whole."""


class Talk:
    """A conversation that is drawn, as the loop makes it grow."""

    def __init__(self, seed: object) -> None:
        self.die = random.Random(f"{SEED}/{seed}")
        self.language = self.die.choice(sorted(WORDS))
        self.calls = 0

    def words(self, least: int, most: int) -> str:
        """About so many characters."""
        size, words = self.die.randint(least, most), WORDS[self.language].split()
        start = self.die.randrange(len(words))
        line = " ".join((*words[start:], *words[:start], str(self.die.random())))
        return (f"{line} " * (size // len(line) + 1))[:size].strip() or "x"

    def request(self) -> str:
        """What a person asks: mostly short, now and then a page."""
        text = self.words(*self.die.choice([(3, 60), (60, 600), (600, 1_800)]))
        return text.encode()[:MOST_SAID].decode(errors="ignore")

    def asked(self, text: str) -> Message:
        """It, with what the gateway adds, and pictures."""
        memory = MemoryDocuments(memory=(self.words(400, 2_000),), user=(self.words(200, 1_300),))
        parts = [Text(text=text)]
        if self.die.random() < 0.3:
            parts[0] = Text(text=f"{text}\n\n{render(memory)}")
        if self.die.random() < 0.3:
            parts[0] = Text(text=f"{parts[0].text}\n\n[Plan]\n{self.words(200, 1_500)}")
        shown = (PICTURE,) * self.die.choice([0, 0, 0, 1, 3])
        return Message(role="user", parts=(*parts, *shown))

    def round_(self) -> tuple[Message, ...]:
        """Calls and their results, as long as a small model is shown; or a word on the way."""
        calls, results = [], []
        for _ in range(self.die.choice([1, 1, 1, 2, 4, 8])):
            self.calls += 1
            name, most = f"c{self.calls}", limit_observed(WINDOW)
            arguments = f'{{"content": "{self.words(2, self.die.choice([20, 400, 3_000]))}"}}'
            content = self.words(2, self.die.choice([20, most // 2, most]))
            shown = (PICTURE,) if self.die.random() < 0.1 else ()
            calls.append(ToolCall(id=name, name="write_file", arguments=arguments))
            results.append(
                ToolResult(call_id=name, name="write_file", content=content, pictures=shown)
            )
        made = (
            Message(role="assistant", parts=tuple(calls)),
            Message(role="tool", parts=(*results,)),
        )
        if self.die.random() < 0.15:
            return (*made, user(f"[Going in circles] {self.words(2, 200)}"))
        return made


def judge(seen: tuple[Message, ...], request: str, newest: str, label: str) -> None:
    """One request, as the model is sent it."""
    check_order(seen)
    tokens = FIXED // BYTES + estimate(seen)
    assert tokens <= ROOM.most, f"{label}: {tokens} tokens"
    texts = "\n".join(text_of(one) for one in seen if one.role == "user")
    assert request in texts, f"{label}: the request was cut"
    assert newest in texts, f"{label}: the newest words were cut"


def tell(seed: int) -> None:
    """A conversation of some turns, each of some rounds."""
    talk = Talk(seed)
    bad = talk.die.random() < 0.3
    answers = [ModelFailed("down") if bad else talk.words(40, 3_000) for _ in range(400)]
    rig, history = CompressionRig(*answers), ()
    for turn in range(talk.die.randint(1, 4)):
        request = talk.request()
        messages = [talk.asked(request)]
        rounds = talk.die.randint(1, 14)

        async def code(
            scope: Scope, request: str = request, rounds: int = rounds, turn: int = turn
        ) -> None:
            window = Window(ROOM, FIXED, messages[0].parts[0].text, request)
            for n in range(rounds):
                part = scope.child(f"t{turn}-r{n}")
                seen = await window.fit(part, (*history, *messages), rig.asking)
                last = messages[-1]
                newest = text_of(last) if last.role == "user" and n else request
                judge(seen, request, newest, f"seed {seed}, turn {turn}, round {n}")
                messages.extend(talk.round_())

        rig.live(code)
        history = (*history, *messages, Message(role="assistant", parts=(Text(text="done"),)))


@some_and_every(60)
def test_each_request_leaves_room_for_its_answer(some: int) -> None:
    for seed in range(some or 3_000):
        tell(seed)
