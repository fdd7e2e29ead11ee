"""Words that have to be hidden stay hidden where text comes in pieces, and nothing else waits."""

import random
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from pydantic import BaseModel

from agent_core.events import OutputAdded
from agent_core.guardrails import redaction
from agent_core.guardrails.answers import ReplyRedactor
from agent_core.guardrails.guard import LONG, work_on_text
from agent_core.guardrails.redaction import MAX_HELD, Redactions, StreamRedactor, _find_border
from agent_core.guardrails.secret_shapes import MAX_KEY, MAX_OPEN, MAX_RUN, find_open_end
from agent_core.messages import Browsed, Text, Thinking, ToolCall, ToolOutput, text_of
from agent_core.models.port import (
    Delta,
    ModelReply,
    ModelRequest,
    OnDelta,
    Restarted,
    TextDelta,
    ThinkingDelta,
)
from agent_core.tools.contract import Tool, ToolContext
from agent_core.tools.toolbox import Toolbox
from tests.agent_core.orchestrator_rig import TurnRig
from tests.agent_core.scope_rig import Disk
from tests.sampling import SEED

SECRET = "abcabd-abcabd"
HIDES = Redactions({SECRET: "[TOKEN]", "abcab": "[SHORT]", "dab-": "[OVER]"})
LETTERS = st.text("abd-", max_size=8)
SECRETS = st.dictionaries(st.text("abd-", min_size=1, max_size=6), st.just("[X]"), max_size=4)


class Shown:
    """What people see of a stream, piece by piece."""

    def __init__(self, words: Redactions) -> None:
        self.pieces: list[str] = []
        self.veil = StreamRedactor(words, self.pieces.append)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@st.composite
def streams(draw: st.DrawFn) -> tuple[dict[str, str], list[str]]:
    """Words, and pieces of a text that is full of them and of their beginnings."""
    names = draw(SECRETS)
    parts = st.one_of(LETTERS, st.sampled_from(sorted(names))) if names else LETTERS
    text = "".join(draw(st.lists(parts, max_size=6)))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=len(text))))
    edges = [0, *cuts, len(text)]
    return names, [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]


@given(streams())
def test_all_pieces_together_are_the_whole_without_the_words(
    stream: tuple[dict[str, str], list[str]],
) -> None:
    names, pieces = stream
    words, told, whole = Redactions(names), "", "".join(pieces)
    shown = Shown(words)
    for piece in pieces:
        shown.veil.add(piece)
        told += piece
        assert words.hide(whole).startswith(shown.text)
        ends = [told[at:] for at in range(len(told))]
        begun = [end for end in ends if any(w.startswith(end) and w != end for w in names)]
        if not begun:
            assert shown.text == words.hide(told), "nothing that could be a word is held back"
    shown.veil.end()
    assert shown.text == words.hide(whole)
    assert not any(word in shown.text for word in names)


def test_many_long_words_are_at_hand_at_once() -> None:
    """A vault is read in the midst of everybody's turns: seconds there are seconds for all."""
    words = {f"{n}-" + "Zx3q" * 1_000: f"[{n}]" for n in range(40)}
    began = time.process_time()
    hides = Redactions(words)
    assert time.process_time() - began < 1.0
    assert hides.hide(f"a {next(iter(words))} b") == "a [0] b"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_word_of_lines_is_known_in_lines_of_another_length(end: str) -> None:
    key = "-----BEGIN-----\nabcdefgh\nijklmnop\n-----END-----"
    joined = key.replace("\n", "")
    text = end.join(joined[at : at + 7] for at in range(0, len(joined), 7))
    assert Redactions({key: "[KEY]"}).hide(f"<{text}>") == "<[KEY]>"
    shown = Shown(Redactions({key: "[KEY]"}))
    for sign in f"<{text}>":
        shown.veil.add(sign)
    shown.veil.end()
    assert shown.text == "<[KEY]>"


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_word_is_hidden_wherever_it_is_cut(cut: int) -> None:
    shown = Shown(HIDES)
    for piece in ("is ", SECRET[:cut], SECRET[cut:], ", you see"):
        shown.veil.add(piece)
    assert shown.text == "is [TOKEN], you see"


def test_what_begins_like_a_word_comes_at_the_end() -> None:
    shown = Shown(HIDES)
    shown.veil.add("x abcabd-")
    assert shown.text == "x "
    shown.veil.end()
    assert shown.text == "x [SHORT]d-", "by then it can be nothing longer"


def test_one_letter_at_a_time_is_no_delay_where_nothing_begins() -> None:
    shown = Shown(HIDES)
    for letter in "quick, now":
        shown.veil.add(letter)
    assert shown.pieces == list("quick, now")


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_long_run_of_a_letter_that_begins_a_word_is_not_held_back(size: int) -> None:
    """The part that waits is searched again with each piece: it may not grow with the run."""
    shown = Shown(HIDES.with_shapes())
    for _ in range(100_000 // size):
        shown.veil.add(SECRET[0] * size)
    assert 100_000 - len(shown.text) <= MAX_HELD + 2 * MAX_RUN


@pytest.mark.parametrize("line", ["0123456789\n", "word\n\n", "a,b\n", "\u00fcx\n"])
def test_lines_whose_ends_begin_a_word_cost_little(line: str) -> None:
    """A command printed them: what waits is looked for without reading all of it again."""
    names = {f"{line.strip()[-1]}{n}{SECRET * 8}": "[KEY]" for n in range(30)}
    shown, text = Shown(Redactions(names).with_shapes()), line * (300_000 // len(line))
    began = time.process_time()
    shown.veil.add(text)
    shown.veil.add(f"{next(iter(names))}\n")
    assert time.process_time() - began < 1.0
    shown.veil.end()
    assert shown.text == f"{text}[KEY]\n"


@pytest.mark.pick("a stream with shapes", 2)
@pytest.mark.parametrize("seed", range(8))
def test_pieces_with_beginnings_everywhere_are_the_whole(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redaction, "MAX_HELD", 60)
    luck = random.Random(f"{SEED}{seed}")
    for _ in range(100):
        sizes = [luck.choice((1, 3, 17, 30)) for _ in range(4)]
        names = {"".join(luck.choices("01a-\n", k=n)): f"[{n}]" for n in sizes}
        some = [
            *names,
            *(one[: luck.randrange(30)] for one in names),
            "01a0",
            " ",
            "\n\n",
            "key = ",
        ]
        pieces = ["".join(luck.choices(some, k=luck.randrange(30))) for _ in range(3)]
        shown = Shown(Redactions(names).with_shapes())
        for piece in pieces:
            shown.veil.add(piece)
        shown.veil.end()
        assert shown.text == Redactions(names).with_shapes().hide("".join(pieces))


@pytest.mark.parametrize(
    ("at", "border"), [(1, 1), (2, 2), (3, 2), (6, 2), (8, 2), (9, 9), (21, 20), (30, 30)]
)
def test_a_text_is_cut_within_no_word(at: int, border: int) -> None:
    assert _find_border([(2, 6, "a"), (4, 9, "b"), (20, 22, "c")], at) == border


@pytest.mark.parametrize("size", [100, 2_000, MAX_KEY - 100])
def test_a_key_that_has_not_ended_is_held_behind_a_text_of_any_length(size: int) -> None:
    before = "Some words before it. " * 5_000
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + ("Ab0/" * 16 + "\n") * (size // 65)
    assert find_open_end(before + key) <= len(before)
    assert find_open_end(before + key + "\n" * MAX_OPEN + "words ") > len(before)


# ---- where it is used --------------------------------------------------------------------


class Nothing(BaseModel):
    """No arguments."""


class Leaks(TurnRig):
    """A model and a tool that say a secret piece by piece."""

    def __init__(self, folder: Path, pieces: tuple[str, ...]) -> None:
        super().__init__(folder)
        self.pieces, self.printed = pieces, ""

        async def call(arguments: BaseModel, context: ToolContext) -> ToolOutput:
            for piece in pieces:
                context.output(piece)
            page = Browsed(action="look", url=f"https://a.example/{SECRET}")
            return ToolOutput(text="".join(pieces), browsed=page)

        leak = Tool(
            name="leak", description="d", arguments=Nothing, repetition="pure", access="read",
            call=call,
        )  # fmt: skip
        self.brief = replace(self.brief, route="simple", tools=("leak",))
        self.hands = replace(
            self.hands, hides=lambda: HIDES, toolbox=Toolbox((leak,)), live=self.print_live
        )

    def print_live(self, event: OutputAdded) -> None:
        self.printed += event.text

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self.requests.append(request)
        if request.messages[-1].role == "tool":
            for piece in self.pieces:
                on_delta(TextDelta(text=piece))
            said = Text(text="".join(self.pieces))
            return ModelReply(parts=(said,), model="m", provider="p")
        return ModelReply(
            parts=(ToolCall(id="c", name="leak", arguments="{}"),), model="m", provider="p"
        )


@pytest.mark.parametrize("cut", [3, 7, 12])
async def test_output_and_answer_hide_it_live_and_on_record(cut: int, tmp_path: Path) -> None:
    world, disk = Leaks(tmp_path, ("it is ", SECRET[:cut], SECRET[cut:], ". abc")), Disk()
    result = await world.run(disk)
    hidden = "it is [TOKEN]. abc"
    assert world.printed == hidden and world.streamed == hidden
    assert result.text == hidden and SECRET not in str(disk.records)
    assert [text_of(message) for message in result.messages][-1] == hidden


async def test_what_was_held_back_is_void_where_the_answer_begins_anew() -> None:
    seen: list[Delta] = []
    answer = ReplyRedactor(HIDES, seen.append)
    deltas: list[Delta] = [
        TextDelta(text="see abc"), Restarted(), ThinkingDelta(text="ab"), TextDelta(text="see a"),
    ]  # fmt: skip
    for delta in deltas:
        answer.add(delta)
    thought = Thinking(text=SECRET, provider="p", signature="s")
    reply = ModelReply(parts=(thought, Text(text="see a")), model="m", provider="p")
    assert await answer.finish(reply) is reply, "what a provider signed stays as it is"
    assert seen == [
        TextDelta(text="see "), Restarted(), ThinkingDelta(text="ab"), TextDelta(text="see "),
        TextDelta(text="a"),
    ]  # fmt: skip


async def test_what_a_model_thinks_is_hidden_while_it_is_shown() -> None:
    seen: list[Delta] = []
    answer = ReplyRedactor(HIDES, seen.append)
    for piece in ("so ", SECRET[:4], SECRET[4:], "."):
        answer.add(ThinkingDelta(text=piece))
    await answer.finish(ModelReply(parts=(Text(text="x"),), model="m", provider="p"))
    assert all(isinstance(one, ThinkingDelta) for one in seen)
    assert "".join(one.text for one in seen if isinstance(one, ThinkingDelta)) == "so [TOKEN]."


@pytest.mark.parametrize(("length", "aside"), [(LONG, False), (LONG + 1, True)])
async def test_only_work_on_long_texts_is_done_in_a_thread(length: int, aside: bool) -> None:
    assert (await work_on_text(length, threading.get_ident) != threading.get_ident()) is aside
