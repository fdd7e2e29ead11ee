"""Research in the chat: through Telegram, the real gateway, the real model SDK, and a little web on
loopback. Then the same, killed at every point."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_core.context.surroundings import strip_surroundings
from agent_core.events import ResearchMoved
from agent_core.messages import Message, Text, ToolCall, text_of
from agent_core.models.port import ModelReply, ModelRequest, OnDelta
from agent_core.orchestration.brief import Brief, Hands
from agent_core.policy import Verdict
from agent_core.research.depths import ResearchDeps
from agent_core.tools.send import FileStore
from agent_core.tools.web.port import Fetched, Hit, Web
from gateway.conversation.agent import PolicyContext
from gateway.delivery.research_view import apply_research_event, finish_research
from gateway.messages import Conversation
from gateway.store.rows import ConversationSettings
from gateway.views import Media, PlanView
from gateway.views import ReplyView as Answer
from gateway.wiring.agent_default import TurnkeeperAgent
from tests.fakes.documents import make_docx
from tests.fakes.lives import count_points, killed_everywhere
from tests.fakes.model_server import Json
from tests.fakes.web_pages import WebPages, html, served
from tests.fakes.world import Ledger, Life, Points, ScriptedAgent
from tests.sampling import some_and_every
from tests.stories.kills_rig import assert_clean
from tests.stories.research_rig import answer, fact, thinks, web_of
from tests.stories.rig import PERSON, Rig


@pytest.fixture
async def site() -> AsyncIterator[WebPages]:
    async with served() as made:
        for n, name in enumerate(("Alpha", "Beta", "Gamma")):
            words = " ".join(f"{name.lower()}{word}" for word in ("one", "two", "three", "four"))
            made.put(f"/{name}", name, f"{words}. " * 6, fact(name, n))
        made.found.append("/gone")
        yield made


def in_research_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = TurnkeeperAgent.brief

    def brief(
        self: TurnkeeperAgent, where: Conversation, settings: ConversationSettings, text: str
    ) -> Brief:
        return replace(plain(self, where, settings, text), route="research")

    monkeypatch.setattr(TurnkeeperAgent, "brief", brief)


def documents(rig: Rig) -> list[Json]:
    return [m for m in rig.telegram.chats[PERSON] if m.get("shows") == "document"]


async def test_a_research_ticks_and_ends_in_an_answer_and_a_file(
    rig: Rig, site: WebPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_research_mode(monkeypatch)
    await rig.start(**web_of(site))
    rig.model.script(*[answer] * 20)
    rig.telegram.say(PERSON, "Which hosts are cheap?")
    await rig.shows("One host [1]. One host [2]. One host [3].")
    await rig.quiet()
    said = rig.said()
    plan = next(text for text in said if "Search and read" in text)
    stages = ("1. Define the question", "2. Search and read", "3. Analyse the sources")
    for stage in (*stages, "5. Write the report"):
        assert f"☑ {stage}" in plan
    assert "sources: 3" in plan and "findings: 3" in plan and "Cheap hosts" in plan
    activity = next(text for text in said if "About Beta" in text)
    assert "/gone" in activity
    final = next(text for text in said if "One host [1]" in text)
    assert "Sources" in final and "About Gamma" in final and "## " not in final
    assert len(documents(rig)) == 1 and not rig.cards()
    assert all(site.fetched[path] == 1 for path in ("/Alpha", "/Beta", "/Gamma", "/gone"))
    (report,) = (rig.workspace() / "reports").iterdir()
    for n, name in enumerate(("Alpha", "Beta", "Gamma")):
        assert f"“{fact(name, n)}”" in report.read_text()


@pytest.mark.parametrize("again", [False, True])
async def test_a_file_that_comes_with_the_question_is_a_source(
    rig: Rig, site: WebPages, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    in_research_mode(monkeypatch)
    await rig.start(**web_of(site))
    rig.model.script(*[answer] * 40)
    data = rig.telegram.files["f"] = make_docx(fact("Delta", 9))
    file: Json = {"file_id": "f", "file_unique_id": "u", "file_name": "offer.docx"}
    file["file_size"] = len(data)
    rig.telegram.say(PERSON, "", caption="Which hosts are cheap?", document=file)
    await rig.shows("One host [1]. One host [2]. One host [3]. One host [4].")
    await rig.quiet()
    if again:
        rig.telegram.say(PERSON, "/retry")
        await rig.until(lambda: sum("One host [4]" in text for text in rig.said()) == 2)
        await rig.quiet()
    assert "offer.docx" in next(text for text in rig.said() if "About Beta" in text)
    for report in (rig.workspace() / "reports").iterdir():
        assert f"`incoming/offer.docx`\n   - “{fact('Delta', 9)}”" in report.read_text()


async def test_the_loop_asks_before_it_hands_over(rig: Rig, site: WebPages) -> None:
    await rig.start(**web_of(site))
    rig.model.script(*[answer] * 20)
    rig.telegram.say(PERSON, "look it up")
    card = await rig.card()
    assert "Research" in card["text"] and not site.asked
    rig.press(card, "Always")
    await rig.shows("The report says it all.")
    await rig.quiet()
    assert len(documents(rig)) == 1
    rig.telegram.say(PERSON, "look it up")
    await rig.until(lambda: len(documents(rig)) == 2, "nobody is asked again")
    await rig.quiet()
    shown = next(
        r.body for r in reversed(rig.model.requests) if r.body["messages"][-1]["role"] == "tool"
    )
    told = str(shown["messages"][-1]["content"])
    assert told.startswith("# Cheap hosts") and "[1]" in told and "reports/cheap-hosts" in told


def test_what_is_shown_of_a_research_is_a_fold() -> None:
    began = ResearchMoved(stage="init_config", state="running", title="Was kostet das?")
    framed = ResearchMoved(stage="init_config", state="done", title="Preise", count=2)
    searching = ResearchMoved(stage="search_loop", state="running")
    view = None
    for event in (began, framed, searching):
        view = apply_research_event(view, event, "de")
    assert view is not None and view.title == "Preise" and view.state == "running"
    shown = [(step.text, step.state) for step in view.steps[:3]]
    assert shown == [
        ("Den Rahmen abstecken", "done"), ("Suchen und lesen", "running"),
        ("Die Quellen prüfen", "pending"),
    ]  # fmt: skip
    over = finish_research(view, "stopped")
    assert over is not None and over.state == "stopped"
    assert [step.state for step in over.steps] == ["done", *["skipped"] * 4]
    assert finish_research(None, "done") is None
    assert apply_research_event(view, began, "de").steps[1].state == "pending", (
        "the next one begins anew"
    )


# ---- killed ----------------------------------------------------------------------------------


class ResearchAgent(ScriptedAgent):
    """Every turn is a research; the web is in its own folder's ledger."""

    def __init__(self, ledger: Ledger, points: Points, folder: Path) -> None:
        super().__init__(ledger, points, folder)
        web = Web(search=self, fetch=self)
        self._research = ResearchDeps(web=web, file_store=FileStore(folder / "kept"))

    def brief(self, conversation: Conversation, settings: ConversationSettings, text: str) -> Brief:
        return replace(super().brief(conversation, settings, text), route="research")

    def hands(self, circumstances: PolicyContext) -> Hands:
        verdict = Verdict(ruling="ask", rule="network", reason="outside")
        hands = super().hands(circumstances)
        return replace(hands, research=self._research, judge=lambda item: verdict)

    async def find(self, query: str, count: int) -> tuple[Hit, ...]:
        self._points.hit("search")
        self._ledger.note("found", of=query)
        return tuple(Hit(url=f"https://x.example/{n}", title=f"T{n}") for n in ("a", "b", "c"))

    async def get(self, url: str, stay: bool = False) -> Fetched:
        self._points.hit("fetch")
        self._ledger.note("fetched", of=url)
        name = url[-1]
        words = " ".join(f"{name}{word}" for word in ("one", "two", "three", "four"))
        page = html(name, f"{words}. " * 9, fact(name, ord(name)))
        return Fetched(url=url, mime="text/html", charset="utf-8", body=page.encode())

    async def complete(self, name: str, request: ModelRequest, on_delta: OnDelta) -> ModelReply:
        self._ledger.note("thought", of=purpose(strip_surroundings(text_of(request.messages[-1]))))
        return await super().complete(name, request, on_delta)

    def _script(self, messages: Sequence[Message]) -> list[Text | ToolCall]:
        before = text_of(messages[-3]) if len(messages) > 2 else ""
        return [Text(text=thinks(strip_surroundings(text_of(messages[-1])), before))]


def prepare(life: Life) -> None:
    life.agent = ResearchAgent(life.ledger, life.points, life.folder)


async def story(life: Life) -> None:
    await life.say("m1", "Which hosts are cheap?")
    await life.until(
        lambda: any(isinstance(v, Answer) and v.state == "final" for v in life.screen().values())
    )
    await life.quiet()
    await assert_clean(life, 1)


def check(folder: Path, label: str) -> None:
    ledger = Ledger(folder / "ledger.jsonl")
    screen = ledger.read_screen()
    final = [v for v in screen.values() if isinstance(v, Answer)]
    assert len([v for v in final if not v.note]) <= 1 <= len(final), f"{label}: {final}"
    assert "One host [1]. One host [2]. One host [3]." in final[-1].text, f"{label}: {final}"
    media = [v for v in screen.values() if isinstance(v, Media)]
    assert len({v.files[0].ref for v in media}) == 1, f"{label}: one report: {media}"
    assert len([v for v in media if not v.caption]) <= 1 <= len(media), f"{label}: {media}"
    plans = [v for v in screen.values() if isinstance(v, PlanView)]
    assert {step.state for step in plans[-1].steps} == {"done"}, f"{label}: {plans}"
    for what, at_once in (("found", 2), ("fetched", 3), ("thought", 3)):
        times = Counter(line["of"] for line in ledger.all(what))
        again = {of for of, count in times.items() if count > 1}
        assert max(times.values()) <= 2 and len(again) <= at_once, f"{label}: {what}: {times}"
    assert not backwards(ledger), f"{label}: {backwards(ledger)}"


def purpose(shown: str) -> str:
    """What a call of the model is for."""
    for mark in ("[Research]", "[Synthesis]", "[Report]"):
        if mark in shown:
            return mark
    return "analyze " + shown.partition("Source: ")[2].partition("\n")[0]


def backwards(ledger: Ledger) -> list[str]:
    """Work of a stage after a later one had begun."""
    after = {"[Research]": 0, "found": 1, "fetched": 2, "[Synthesis]": 4, "[Report]": 5}
    order = [
        (after.get(line["what"], after.get(line["of"], 3)), line["of"])
        for line in ledger.all()
        if line["what"] in ("found", "fetched", "thought")
    ]
    return [
        f"{one[1]} after {later[1]}"
        for n, one in enumerate(order)
        for later in order[:n]
        if later[0] > one[0]
    ]


@pytest.mark.timeout(240)
@some_and_every()
def test_a_kill_at_any_point_of_a_research(some: int) -> None:
    points = count_points(story, prepare)
    assert points["count"] > 50, points
    killed_everywhere(points, story, check, prepare, some=some)
