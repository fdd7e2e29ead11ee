"""A card's buttons are the answers that are taken, and each stores what the card says. Generated
over all combinations of what may be granted for the calls of one card."""

from itertools import combinations_with_replacement

import pytest

from agent_core.journal import QuestionAsked
from agent_core.questions import Answer, Approval, Coverage, Offer, Proposal, offer_hosts
from gateway.access.standing import UNHEEDED, drop_unheeded
from gateway.conversation.decisions import Decisions, make_rules
from gateway.delivery.fold import ViewFold
from gateway.delivery.reasons import describe_coverage
from gateway.messages import ButtonPressed, Conversation, QuestionPress, Sender, read_press
from gateway.store.rows import ConversationRow, ConversationSettings, QuestionRow, Rule
from gateway.views import ApprovalCard

LS, MAKE = Coverage(words="ls"), Coverage(words="make", files=("Makefile",))
OFFERS: tuple[tuple[Offer, ...], ...] = (
    (),
    (Offer(choice="always", tool="run_command", pattern="= ls", covers=LS),),
    (Offer(choice="conversation", tool="write_file", pattern="risk:low", covers=Coverage(risk="low")),),
    tuple(
        Offer(choice=choice, tool="run_command", pattern="= make", covers=MAKE)
        for choice in ("conversation", "always")
    ),
    offer_hosts(("a.test", "b.test")),
)  # fmt: skip
CARDS = tuple(
    tuple(
        Proposal(
            call_id=str(n), tool="run_command", arguments="{}", digest="d", risk="low", reason="",
            offers=each,
        )
        for n, each in enumerate(one)
    )
    for count in (1, 2, 3)
    for one in combinations_with_replacement(OFFERS, count)
)  # fmt: skip
WORDS = ("once", "conversation", "always", "deny", "edit", "expired", "cancelled", "", "0", "wide")


@pytest.mark.parametrize("proposals", CARDS)
def test_the_buttons_are_the_answers_that_are_taken(proposals: tuple[Proposal, ...]) -> None:
    asked = Approval(proposals=proposals)
    fold = ViewFold()
    fold.add(QuestionAsked(key="a", id="q", at=0.0, question=asked))
    card = fold.shapes["ask:a"].view
    assert isinstance(card, ApprovalCard)
    shown = set()
    for button in card.buttons:
        press = read_press(button.token)
        assert isinstance(press, QuestionPress)
        shown.add(press.option)
    sender = Sender(platform="telegram", id="1")
    where = Conversation(platform="telegram", account="b", channel="1", private=True)
    pressed = ButtonPressed(conversation=where, sender=sender, event="e", message="", token="")
    row = QuestionRow(
        id="q",
        turn="t",
        key="a",
        status="open",
        question=asked,
        entitled=(),
        asked=0.0,
        expires=0.0,
    )
    taken = {
        word for word in WORDS
        if Decisions(None)._read(row, pressed, word) is not None  # type: ignore[arg-type]
    }  # fmt: skip
    assert taken == shown
    for choice, told in (("conversation", card.here), ("always", card.rule)):
        rules = make_rules(asked, "telegram:1", Answer(choice=choice))  # type: ignore[arg-type]
        assert bool(told) == (choice in shown)
        if choice in shown:
            said = {describe_coverage(one.tool, one.covers, "") for one in rules if one.covers}
            assert said == set(told.splitlines())
            assert len(rules) == len(said), "each once"
    assert make_rules(asked, "telegram:1", Answer(choice="once")) == ()


def test_rules_of_an_older_version_that_covered_more_than_they_said_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fine = Rule(tool="write_file", pattern="risk:low", person="telegram:1")
    wide = tuple(Rule(tool="run_command", pattern=one, person="telegram:1") for one in UNHEEDED)
    row = ConversationRow(settings=ConversationSettings(rules=(wide[0], fine, *wide[1:])))
    assert drop_unheeded(row, "c").settings.rules == (fine,)
    assert [one.message for one in caplog.records] == ["rule_unheeded"] * len(UNHEEDED)
    assert drop_unheeded(drop_unheeded(row, "c"), "c").settings.rules == (fine,)
