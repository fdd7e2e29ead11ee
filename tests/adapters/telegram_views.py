"""Hypothesis strategies of views as an agent and its users might make them: hostile and huge."""

from hypothesis import strategies as st

from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Media,
    MediaFile,
    MentionedPerson,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
    View,
)

TABLE = "| a | b |\n|---|:-:|\n| 1 | **2** |\n| `x` | @somebody |\n\n"
WIDE = "|" + "c|" * 30 + "\n|" + "-|" * 30 + "\n|" + "1|" * 30 + "\n"
PIECES = [
    "**b**", "`c`", "```py\n", "```", "\n\n", "\n", TABLE, WIDE, "- x\n", "- [x] y\n", "> q\n", "> " * 20 + "deep",
    "[l](https://a.b)", "[l](tg://user?id=5)", "![i](http://e/x.png)", "||s||", "<b>", "<script>", "# h\n",
    "𝕏" * 300, "x" * 900, "1. a\n", "~~s~~", "$x$", "@mention_me ", "https://a.b/c?d=e&f ", "\u202e", "\x00", "\ufdd0",
    "&amp;", "|", "***", "__", "a | b\n--|--\n", "   ", "\u200b", "\r\n", "- " * 30 + "nest", "![](x)", "[](y)",
    "Some words that make a sentence. " * 20, "word\n\n" * 120, "***x** y* ", "[**b** `c`](http://x.y)",
]  # fmt: skip
HUGE = [
    "p\n\n" * 9_000, TABLE * 300, "```\n" + "line of code\n" * 4_000 + "```", "𝕏" * 20_000, "- item\n" * 6_000,
    "word " * 20_000, "|a|\n|-|\n" + "|x|\n" * 3_000,
]  # fmt: skip
LANGUAGES = st.sampled_from(["", "en", "de", "de-AT", "fr"])


def texts(most: int = 12, huge: bool = False) -> st.SearchStrategy[str]:
    """Markdown as it comes, and as it should not come."""
    plain = st.text(max_size=40).map(lambda text: text.encode("utf-8", "replace").decode())
    mixed = st.lists(plain | st.sampled_from(PIECES), max_size=most).map("".join)
    return mixed | st.sampled_from(HUGE) if huge else mixed


BUTTONS = st.lists(
    st.builds(
        Button,
        label=texts(1).map(lambda text: text[:60].strip() or "Go"),
        token=st.just("q:1:once"),
        style=st.sampled_from(["plain", "good", "bad"]),
    ),
    max_size=6,
).map(tuple)
CARD_STATES = st.sampled_from(["open", "approved", "denied", "answered", "expired", "cancelled"])
LINES = st.builds(
    ToolLine,
    call_id=st.uuids().map(str),
    tool=st.sampled_from(["shell", "search", "web_fetch_page"]),
    summary=texts(3),
    state=st.sampled_from(["running", "done", "failed", "waiting", "denied", "unknown", "stopped"]),
    output=texts(3) | st.just("o" * 2_000),
)
STEPS = st.builds(
    PlanStep,
    id=st.just("step-1"),
    text=texts(3),
    state=st.sampled_from(["pending", "running", "done", "failed", "skipped"]),
    note=texts(2),
)
FILES = st.builds(
    MediaFile,
    ref=st.just("turn/1"),
    name=texts(1).map(lambda text: text[:80] or "file"),
    mime=st.sampled_from(["image/png", "image/gif", "text/csv", "application/pdf", ""]),
    size=st.sampled_from([0, 5, 9 << 20, 11 << 20, 40 << 20, 51 << 20]),
)
PROPOSALS = st.builds(
    ProposalLine,
    tool=st.just("shell"),
    arguments=st.sampled_from(['{"cmd": "ls"}', "{}", "not json", '{"a": "' + "x" * 9_000 + '"}'])
    | texts(4),
    reason=texts(2),
    risk=st.sampled_from(["low", "medium", "high"]),
    detail=texts(2),
)


def many(one: st.SearchStrategy[ToolLine]) -> st.SearchStrategy[tuple[ToolLine, ...]]:
    """A few, or far too many of the same."""
    few = st.lists(one, max_size=6).map(tuple)
    return few | st.builds(lambda line, count: (line,) * count, one, st.sampled_from([90, 400]))


def many_steps(one: st.SearchStrategy[PlanStep]) -> st.SearchStrategy[tuple[PlanStep, ...]]:
    """The same of steps."""
    few = st.lists(one, max_size=6).map(tuple)
    return few | st.builds(lambda step, count: (step,) * count, one, st.sampled_from([60, 700]))


PEOPLE = st.lists(
    st.builds(
        MentionedPerson,
        id=st.sampled_from(["5", "@333", "U0ANN", "@S0OPS", "", "@", "<@5>", "9" * 40, "５"]),
        name=st.sampled_from(["", " ", "Ann\u202e <@7> @all", "😀" * 70]),
    ),
    max_size=4,
).map(tuple)

VIEWS: st.SearchStrategy[View] = st.one_of(
    st.builds(
        ReplyView,
        text=texts(30, huge=True),
        state=st.sampled_from(["streaming", "final", "stopped"]),
        note=st.sampled_from(["", "Stopped here."]),
    ),
    st.builds(Activity, lines=many(LINES), words=texts(8), language=LANGUAGES),
    st.builds(
        PlanView,
        title=texts(3),
        steps=many_steps(STEPS),
        state=st.sampled_from(["open", "running", "done", "failed", "stopped"]),
        buttons=BUTTONS,
        outcome=texts(3),
        language=LANGUAGES,
    ),
    st.builds(
        ApprovalCard,
        question=st.just("1"),
        asker=st.sampled_from(["", "Ann"]),
        proposals=st.lists(PROPOSALS, min_size=1, max_size=3).map(tuple),
        state=CARD_STATES,
        buttons=BUTTONS,
        rule=texts(2),
        outcome=texts(2),
        language=LANGUAGES,
        mentions=PEOPLE,
    ),
    st.builds(
        ChoiceCard,
        question=st.just("1"),
        text=texts(20),
        state=CARD_STATES,
        buttons=BUTTONS,
        outcome=texts(2),
        language=LANGUAGES,
    ),
    st.builds(
        FormCard,
        question=st.just("1"),
        text=texts(20),
        token=st.just("q:1:text"),
        state=CARD_STATES,
        outcome=texts(2),
        language=LANGUAGES,
    ),
    st.builds(
        Media, files=st.lists(FILES, max_size=13).map(tuple), caption=texts(20), language=LANGUAGES
    ),
    st.builds(
        ReportView,
        title=texts(3),
        text=texts(30, huge=True),
        note=st.sampled_from(["", "Every day at 8."]),
        language=LANGUAGES,
    ),
    st.builds(
        Notice, mentions=PEOPLE, text=texts(20), tone=st.sampled_from(["info", "warning", "error"])
    ),
    st.builds(SaidView, name=st.just("Ann"), text=texts(2)),
)
