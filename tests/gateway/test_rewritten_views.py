"""Texts of views, rewritten before they are stored: all that people read, nothing that is obeyed."""

from gateway.views import (
    Activity,
    ApprovalCard,
    Button,
    ChoiceCard,
    FormCard,
    Notice,
    PlanStep,
    PlanView,
    ProposalLine,
    ReplyView,
    ReportView,
    SaidView,
    ToolLine,
    View,
    rewrite_texts,
)

S, HIDDEN = "s3cret", "[KEY]"
BUTTON = Button(label=S, token=S)
VIEWS: tuple[View, ...] = (
    ReplyView(text=S, state="final", note=S),
    Activity(lines=(ToolLine(call_id=S, tool=S, summary=S, state="done", output=S),), words=S),
    PlanView(
        title=S, steps=(PlanStep(id=S, text=S, state="done", note=S),), state="open", outcome=S
    ),
    ApprovalCard(
        question=S,
        asker=S,
        proposals=(ProposalLine(tool=S, arguments=S, reason=S, risk="low", detail=S, preview=S),),
        buttons=(BUTTON,),
        outcome=S,
    ),
    ChoiceCard(question=S, text=S, buttons=(BUTTON,), outcome=S),
    FormCard(question=S, text=S, token=S, outcome=S),
    ReportView(title=S, text=S, note=S),
    Notice(text=S, buttons=(BUTTON,)),
    SaidView(name=S, text=S),
)
KEPT = ("call_id=", "tool=", " id=", "(id=", "question=", "token=")


def test_each_text_is_rewritten_and_no_name_that_is_obeyed() -> None:
    for view in VIEWS:
        made = repr(rewrite_texts(view, lambda text: text.replace(S, HIDDEN)))
        parts = made.split(f"'{S}'")[:-1]
        assert HIDDEN in made and all(part.endswith(KEPT) for part in parts), made
        assert rewrite_texts(view, str) is view
