"""Whom a question in a group mentions: who decides it and would not hear of it otherwise."""

from gateway.access.access import Access
from gateway.access.mentions import MAX_MENTIONS, find_deciders, find_reminded, name_people
from gateway.access.people import AllowLists
from gateway.approvers import Approvers, Deciders, read_approvers

ANN, ROOT = ("telegram:5", "user"), ("telegram:1", "admin")
LISTS = {
    "telegram": AllowLists(admins=frozenset({"1", "2"}), allowed=frozenset({"5", "6"})),
    "discord": AllowLists(admins=frozenset({"@333", "7", "*"})),
}
PLATFORMS = ("telegram", "discord", "slack", "web")


def rule(text: str, platform: str = "telegram") -> Deciders:
    return read_approvers(text, PLATFORMS).find_deciders(["low"], platform)


def test_a_card_mentions_who_decides_but_not_where_the_asker_does() -> None:
    access = Access(LISTS, {"telegram:9": "admin", "telegram:8": "user"})
    for text, asker, ids in (
        ("asker,role:admin", ANN, []), ("role:admin", ANN, ["1", "2", "9"]),
        ("role:admin", ROOT, ["2", "9"]), ("asker:admin,6", ANN, ["6"]), ("asker:admin,6", ROOT, []),
        ("2:asker,6,7", ANN, ["6", "7"]), ("role:user", ANN, []), ("6, slack:U0ANN, 5", ANN, ["6"]),
    ):  # fmt: skip
        found = find_deciders(access, rule(text), "telegram", asker)
        assert [one.id for one in found] == ids, text
    found = find_deciders(access, rule("role:admin", "discord"), "discord", ("discord:1", "user"))
    assert [one.id for one in found] == ["7", "@333"]
    default = Approvers().find_deciders(["high"], "telegram")
    assert find_deciders(access, None, "telegram", ANN) == ()
    assert find_deciders(access, default, "telegram", ANN) == ()


def test_a_reminder_mentions_the_asker_too_and_nobody_who_said_yes() -> None:
    access = Access(LISTS, {})
    for text, gone, ids in (
        ("asker,role:admin", [], ["5"]), ("role:admin", [], ["1", "2"]),
        ("2:asker,role:admin", [], ["5", "1", "2"]), ("2:asker,role:admin", ["telegram:5"], ["1", "2"]),
        ("2:asker,role:admin", ["telegram:1"], ["5", "2"]),
    ):  # fmt: skip
        found = find_reminded(access, rule(text), "telegram", ANN, gone)
        assert [one.id for one in found] == ids, text
    assert [one.id for one in find_reminded(access, None, "slack", ANN)] == []


def test_many_people_are_not_all_mentioned() -> None:
    words = [f"telegram:{n}" for n in range(50)]
    assert len(name_people(Access({}, {}), words, "telegram")) == MAX_MENTIONS
