"""The research steps: init_config, search_loop, analyze, synthesize, write_report. Plain code over
a scope: after a crash it continues after the last recorded search, page or answer.

The thread with the model only grows; each source is judged in a separate call. Further searches are
chosen in separate calls too: foreign pages could dictate them, so no page takes part in a decision
together with anything that a search must not reveal.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_core.errors import ModelFailed
from agent_core.events import ResearchMoved, ResearchStage, SourceFound
from agent_core.handoffs.artifacts import Artifact
from agent_core.messages import GivenFile, Message, Text, user
from agent_core.models.port import ModelRequest
from agent_core.orchestration.brief import Brief, Hands
from agent_core.orchestration.fitting import ask_within, make_window
from agent_core.orchestration.side_calls import ask_json, tier, words
from agent_core.research import prompts
from agent_core.research.depths import DEPTHS, FOCUS, Depth, ResearchDeps
from agent_core.research.evidence import Finding, analyze
from agent_core.research.report import send_report
from agent_core.research.sources import (
    AT_ONCE,
    Skipped,
    SourcePage,
    Sources,
    digest_of,
    drop_seen,
    read,
    read_files,
    search,
)
from agent_core.research.stages import (
    Frame,
    ResearchRequest,
    plain_frame,
    read_frame,
    read_queries,
    read_themes,
)
from agent_core.research.writing import Gathered, Written, check, write_report
from agent_core.scope import Scope

LIMIT = 300.0
"""Seconds of one call of the model."""
BEGINNING = 300
"""Characters of a source that the model sees while it searches."""
HEAD = 4_000
"""Characters of a file that the model sees before it searches."""

T = TypeVar("T")


class Researched(Struct, frozen=True, kw_only=True):
    """The result of a research: the answer for the chat, the whole report ("" if nothing was
    found), its file, and the thread with the model."""

    answer: str
    messages: tuple[Message, ...]
    report: str = ""
    path: str = ""
    file: GivenFile | None = None


class Research:
    """A running research. `steers`: it takes people's messages meanwhile."""

    def __init__(
        self, scope: Scope, brief: Brief, hands: Hands, deps: ResearchDeps, steers: bool = False
    ) -> None:
        self._scope = scope
        self._brief = brief
        self._hands = hands
        self._deps = deps
        self._steers = steers
        self.window = make_window(brief, hands)
        """The model's view of history and thread."""
        self._history: tuple[Message, ...] = ()
        self._thread: tuple[Message, ...] = ()
        self._said: tuple[str, ...] = ()
        self._sources = Sources()
        self._skipped: tuple[Skipped, ...] = ()

    async def run(
        self,
        history: tuple[Message, ...] = (),
        wish: ResearchRequest | None = None,
        files: tuple[Artifact, ...] = (),
    ) -> Researched:
        """Research the brief's question; `files` are sources too. Raises what a model call
        raises."""
        self._history = history
        await self._take_files(files)
        frame = await self._init_config(wish or ResearchRequest())
        depth = DEPTHS[frame.depth]
        await self._search_loop(frame, depth)
        findings = await self._analyze(frame) if len(self._sources) else ()
        if not findings:
            return await self._report_nothing()
        await self._synthesize(findings)
        return await self._write_report(frame, depth, findings)

    async def _take_files(self, files: tuple[Artifact, ...]) -> None:
        scope, workspace = self._scope.child("files"), Path(self._brief.workspace)
        for got in await read_files(scope, workspace, files, self._hands.hides):
            self._take(scope, got.url if isinstance(got, SourcePage) else got.what, got)

    async def _init_config(self, wish: ResearchRequest) -> Frame:
        await self._enter("init_config")
        most = max(depth.queries for depth in DEPTHS.values())
        heads = "\n".join(f"--- {one.url}\n{one.text[:HEAD]}" for one in self._sources.pages)
        told = f"\n\n{prompts.FILES.format(files=heads)}" if heads else ""
        ask = f"{self._brief.text}{told}\n\n{prompts.INIT.format(queries=most)}"
        text = self._brief.said or self._brief.request_text()
        frame = await self._consult("init", ask, lambda said: read_frame(said, text, wish))
        frame = frame or plain_frame(text, wish)
        self._leave("init_config", len(frame.queries), frame.title)
        return frame

    async def _search_loop(self, frame: Frame, depth: Depth) -> None:
        await self._enter("search_loop")
        queries, asked, seen = frame.queries, set[str](), set[str]()
        for n in range(1, depth.rounds + 1):
            await self._search(self._scope.child(f"round-{n}"), queries, seen, depth.sources)
            asked.update(queries)
            if self._steers:
                self._said = (*self._said, *await self._scope.child(f"round-{n}").steer())
            if n == depth.rounds or self._count_pages() >= depth.sources:
                break
            more = await self._find_more(n, depth, tuple(sorted(asked)))
            queries = tuple(query for query in more if query not in asked)
            if not queries:
                break
        self._leave("search_loop", len(self._sources))

    async def _search(
        self, scope: Scope, queries: tuple[str, ...], seen: set[str], most: int
    ) -> None:
        """Search once, then read new pages until there are `most` of them in all."""
        hits, failed = await search(scope, self._deps.web, queries)
        self._skipped = (*self._skipped, *failed)
        waiting = drop_seen(hits, seen)
        while waiting and (room := most - self._count_pages()) > 0:
            wave, waiting = waiting[: min(room, AT_ONCE)], waiting[min(room, AT_ONCE) :]
            for hit, got in zip(wave, await read(scope, self._deps.web, wave), strict=True):
                self._take(scope, hit.url, got)
            await self._scope.show()

    def _count_pages(self) -> int:
        return sum(not one.is_file for one in self._sources.pages)

    def _take(self, scope: Scope, url: str, got: SourcePage | Skipped) -> None:
        """Count a page as a source, unless it cannot be or another says the same."""
        if isinstance(got, SourcePage):
            twin = self._sources.take(got)
            if twin is None:
                scope.emit(SourceFound(url=got.url, title=got.title), f"source:{digest_of(url)}")
                return
            got = Skipped(what=url, why=f"It says the same as {twin.url}")
        self._skipped = (*self._skipped, got)
        scope.emit(SourceFound(url=url, why=got.why), f"source:{digest_of(url)}")

    async def _find_more(self, n: int, depth: Depth, asked: tuple[str, ...]) -> tuple[str, ...]:
        """Choose further searches by the question and the pages alone: searches need no approval,
        so the model that reads pages for them sees no instructions, memory, conversation or
        files."""
        known = "\n".join(
            f"- {one.title} ({one.url}): {' '.join(one.text[:BEGINNING].split())}"
            for one in self._sources.pages
            if not one.is_file
        )
        ask = prompts.MORE.format(
            question="\n".join((self._brief.request_text(), *self._said)),
            asked="\n".join(f"- {query}" for query in asked),
            sources=known or "(nothing yet)",
            queries=depth.queries,
        )
        request = ModelRequest(
            model=tier(self._brief.model, "pro"),
            system=prompts.SEARCHES,
            messages=(user(ask),),
        )
        limit = min(self._brief.limit, LIMIT)
        part = self._scope.child(f"more-{n}")
        try:
            found, _ = await ask_json(part, self._hands, request, read_queries, limit)
        except ModelFailed as failed:
            if failed.fault not in ("overflow", "truncated"):
                raise
            found = None  # partial findings count as research too
        return (found or ())[: depth.queries]

    async def _analyze(self, frame: Frame) -> tuple[Finding, ...]:
        await self._enter("analyze")
        brief = self._brief
        if self._said:
            brief = replace(brief, text="\n".join((brief.text, *self._said)))
        scope = self._scope.child("analyze")
        findings = await analyze(scope, brief, self._hands, frame.kind, self._sources.pages)
        self._leave("analyze", len(findings))
        return findings

    async def _synthesize(self, findings: tuple[Finding, ...]) -> None:
        await self._enter("synthesize")
        rows = "\n".join(
            f'{f.id} (source {f.source + 1}): {f.claim} | "{f.quote}"' for f in findings
        )
        said = "\n".join((*("The person said meanwhile:" for _ in self._said[:1]), *self._said, ""))
        ask = prompts.SYNTHESIZE.format(
            said=said.lstrip("\n"), count=len({f.source for f in findings}), findings=rows
        )
        await self._consult("synthesis", ask, read_themes)
        self._leave("synthesize")

    async def _write_report(
        self, frame: Frame, depth: Depth, findings: tuple[Finding, ...]
    ) -> Researched:
        await self._enter("write_report")
        ask = prompts.REPORT.format(focus=FOCUS[frame.kind])
        draft = await self._consult("report", ask, lambda said: check(said, findings))
        gathered = Gathered(
            title=frame.title,
            sources=self._sources.pages,
            findings=findings,
            skipped=self._skipped,
            labels=frame.labels,
            thin=len(self._sources) < depth.least,
        )
        made = write_report(draft or _list_findings(findings, frame.title), gathered)
        path, file = await send_report(
            self._scope.child("report"),
            self._brief,
            self._deps.file_store,
            frame.title,
            made.report,
        )
        self._leave("write_report", made.cited)
        return self._finish(made, frame, path, file)

    def _finish(self, made: Written, frame: Frame, path: str, file: GivenFile | None) -> Researched:
        where = f"\n\n{frame.labels.whole}: {file.name}" if file is not None else ""
        answer = f"{made.summary}{where}"
        kept = Message(role="assistant", parts=user(f"{answer}\n({path})").parts)
        return Researched(
            answer=answer,
            messages=(*self._thread[:-1], kept),
            report=made.report,
            path=path,
            file=file,
        )

    async def _report_nothing(self) -> Researched:
        """Report that nothing was found, in the model's words."""
        why = "\n".join(f"- {one.what}: {one.why}" for one in self._skipped)
        why = why or "- No source says anything about it."
        said = await self._consult("nothing", prompts.NOTHING.format(why=why), words)
        if said is None:
            told = Message(role="assistant", parts=(Text(text=why),))
            return Researched(answer=why, messages=(*self._thread[:-1], told))
        return Researched(answer=said, messages=self._thread)

    async def _consult(self, name: str, ask: str, use: Callable[[str], T]) -> T | None:
        """Ask in the thread; return `use` of the answer, None if it is unusable."""
        thread = (*self._thread, user(ask))
        limit = min(self._brief.limit, LIMIT)

        async def consult(
            part: Scope, seen: tuple[Message, ...]
        ) -> tuple[T | None, tuple[Message, ...]]:
            request = ModelRequest(
                model=tier(self._brief.model, "pro"),
                system=self._brief.system,
                messages=seen,
                tools=self._hands.toolbox.specs(self._brief.tools),
                tool_choice="none",
                cache_key=self._brief.cache_key,
            )
            return await ask_json(part, self._hands, request, use, limit)

        said_before = (*self._history, *thread)
        part = self._scope.child(name)
        made, said = await ask_within(
            part, self._brief, self._hands, self.window, said_before, consult
        )
        self._thread = (*thread, *said)
        return made

    async def _enter(self, stage: ResearchStage) -> None:
        name = self._brief.choose_title() if stage == "init_config" else ""
        moved = ResearchMoved(stage=stage, state="running", title=name)
        self._scope.emit(moved, f"{stage}:began")
        await self._scope.show()

    def _leave(self, stage: ResearchStage, count: int = 0, name: str = "") -> None:
        moved = ResearchMoved(stage=stage, state="done", title=name, count=count)
        self._scope.emit(moved, f"{stage}:ended")


def _list_findings(findings: tuple[Finding, ...], name: str) -> str:
    """A report that needs no model: the findings one after another."""
    return "\n".join((f"## {name}", *(f"- {one.claim} [{one.id}]" for one in findings)))
