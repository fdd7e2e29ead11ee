"""Discord's cards: what is code and what is said about it, and which button stands out."""

import json

from msgspec.structs import replace

from adapters.discord.components import QUIET
from adapters.discord.markdown import write_native
from adapters.discord.render import render
from gateway.views import ApprovalCard, MentionedPerson, Notice, PlanStep, PlanView, ProposalLine
from tests.fakes.discord_server import Json, text_of, walk
from tests.fakes.web_server import approval


def drawn(view: ApprovalCard | PlanView) -> Json:
    (payload,) = render(view)
    message: Json = json.loads(payload)
    return message


def with_detail(detail: str) -> str:
    card = approval()
    line = replace(card.proposals[0], arguments='{"command": "ls"}', detail=detail)
    return text_of(drawn(replace(card, proposals=(line,))))


def test_a_word_on_a_call_does_not_look_like_what_will_run() -> None:
    text = with_detail("Isolation: none. *All* is in reach.")
    assert text.endswith("```\nls\n```\n> Isolation: none. \\*All\\* is in reach.")


def test_a_change_is_code() -> None:
    diff = "--- a.txt\n+++ a.txt\n+x"
    line = ProposalLine(tool="write_file", arguments="{}", reason="", risk="low", preview=diff)
    card = ApprovalCard(question="1", asker="", proposals=(line,))
    assert f"```diff\n{diff}\n```" in str(text_of(drawn(card)))


def test_one_refusal_is_red() -> None:
    styles = {
        one["label"]: one["style"]
        for one in walk(drawn(approval())["components"])
        if one["type"] == 2
    }
    assert styles["Deny"] == 4 and styles["Deny with reason"] == 2


def test_steps_bear_the_numbers_that_buttons_and_todo_use() -> None:
    steps = (
        PlanStep(id="a", text="Find", state="skipped"),
        PlanStep(id="b", text="Compare", state="running", note="two left"),
        PlanStep(id="c", text="Write"),
    )
    text = text_of(drawn(PlanView(title="Hosts", steps=steps)))
    assert text.split("\n")[1:] == ["– 1. ~~Find~~", "◐ 2. **Compare** *(two left)*", "☐ 3. Write"]


def test_a_table_stands_in_columns_without_markup_and_with_its_links_below() -> None:
    table = """
| Host | Price | 名 |
|:--|--:|:-:|
| [one](https://one.example/a) | 3 € | **x** |
| `a_b` \\| c | 12 € | 日本 |
"""
    assert write_native(table.strip()).split("\n") == [
        "```",
        "Host    | Price |  名",
        "--------+-------+-----",
        "one     |   3 € |  x",
        "a_b | c |  12 € | 日本",
        "```",
        "-# [one](https://one.example/a)",
    ]


def test_a_wide_table_is_a_list_in_which_each_cell_says_what_it_is() -> None:
    long = "words " * 20
    table = f"| Host | Why | Price |\n|---|---|---|\n| **one** | {long} | 3 |\n| two | | |"
    assert write_native(table).split("\n") == [
        "Host",
        f"- **one** · Why: {long.strip()} · Price: 3",
        "- two",
    ]


def test_a_table_that_a_phone_would_wrap_is_a_list() -> None:
    for wide in range(20, 60):
        table = f"| Host | Why |\n|---|---|\n| one | {'x' * (wide - 7)} |"
        lines = write_native(table).split("\n")
        columns = max(map(len, lines[1:-1])) if lines[0] == "```" else 0
        assert columns == (wide if wide <= 44 else 0)


def test_how_far_it_is_rings_nowhere_and_a_plan_that_waits_does() -> None:
    plan = PlanView(title="Move", steps=(PlanStep(id="a", text="Copy"),))
    assert drawn(plan)["flags"] & QUIET
    assert not drawn(replace(plan, state="open"))["flags"] & QUIET
    assert not drawn(approval())["flags"] & QUIET


def test_only_true_ids_are_pinged_and_each_once() -> None:
    ids = ("5", "5", "\uff15", "<@5>", "@6", "@all", "U0ANN", "")
    people = tuple(MentionedPerson(id=one, name=f"{n}") for n, one in enumerate(ids))
    (message,) = map(json.loads, render(Notice(text="Still waiting", mentions=people)))
    assert message["allowed_mentions"] == {"parse": [], "users": ["5"], "roles": ["6"]}
    assert message["components"][0]["content"] == "Still waiting\n<@5> <@&6>"
