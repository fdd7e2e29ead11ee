"""Who may talk, command and decide: the rules as values."""

from collections.abc import Mapping

import pytest

from agent_core.questions import Approval, Input, Proposal
from gateway.access.access import Access, refusal
from gateway.access.people import PLATFORMS, AllowLists
from gateway.access.policy import (
    TURNS_PER_HOUR,
    GroupPolicy,
    Policy,
    read_chat,
    read_rights,
)
from gateway.approvers import Approvers, Deciders, Person, read_approvers
from gateway.declaration import SettingsError
from gateway.messages import (
    Conversation,
    GatewaySaid,
    MessageReceived,
    Sender,
    read_conversation,
)
from gateway.roles import Role
from gateway.settings import Settings
from gateway.store.rows import QuestionRow

ROOM = Conversation(platform="telegram", account="1", channel="-5", thread="3")
ANN, BOB = "telegram:1", "telegram:2"
CALL = Proposal(call_id="c", tool="t", arguments="{}", digest="d", risk="high", reason="r")


def rules(text: str) -> Approvers:
    return read_approvers(text, PLATFORMS)


def person(role: Role | None, *keys: str) -> Person:
    """`keys`: of accounts, and of groups (`slack:@S0OPS`)."""
    groups = frozenset(key for key in keys if "@" in key)
    return Person(role=role, accounts=frozenset(keys) - groups, groups=groups)


# ---- roles ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lists", "paired", "role"),
    [
        ({}, None, None),
        ({}, "user", "user"),
        ({"allowed": "1"}, None, "user"),
        ({"viewers": "1"}, None, "viewer"),
        ({"viewers": "1", "allowed": "1", "admins": "1"}, None, "admin"),
        ({"allowed": "*"}, None, "user"),
        ({"allowed": "*", "viewers": "1"}, None, "viewer"),
        ({"allowed": "*", "viewers": "1"}, "admin", "viewer"),
        ({"viewers": "*"}, "user", "user"),
        ({"allowed": "*"}, "admin", "admin"),
        ({"allowed": "2"}, None, None),
    ],
)
def test_an_id_that_is_named_counts_before_everybody(
    lists: dict[str, str], paired: Role | None, role: Role | None
) -> None:
    people = AllowLists(**{name: frozenset({value}) for name, value in lists.items()})
    known: Mapping[str, Role] = {ANN: paired} if paired else {}
    access = Access({"telegram": people}, known)
    assert access.role(Sender(platform="telegram", id="1", name="2")) == role
    assert access.role(Sender(platform="web", id="1")) is None


# ---- groups --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "thread", "addressed", "wanted"),
    [
        ("mention", "3", False, False),
        ("mention", "3", True, True),
        ("thread", "3", False, True),
        ("thread", "", False, False),
        ("always", "", False, True),
    ],
)
def test_words_in_groups(policy: GroupPolicy, thread: str, addressed: bool, wanted: bool) -> None:
    access = Access({}, {}, Policy(group=policy))
    where = Conversation(platform="telegram", account="1", channel="-5", thread=thread)
    said = MessageReceived(
        conversation=where, sender=Sender(platform="telegram", id="1"), event="e", message="m",
        text="x", addressed=addressed,
    )  # fmt: skip
    assert access.is_wanted(said) is wanted
    assert access.is_for_agent(said, followed=False) is (addressed or policy == "always")
    assert access.is_for_agent(said, followed=True) is (addressed or policy != "mention")


@pytest.mark.parametrize(
    ("chats", "wanted"), [((), True), (("*",), True), (("-5",), True), (("-6",), False)]
)
def test_groups_in_which_the_agent_works(chats: tuple[str, ...], wanted: bool) -> None:
    access = Access({"telegram": AllowLists(chats=frozenset(chats))}, {})
    sender = Sender(platform="telegram", id="1")
    in_group = MessageReceived(conversation=ROOM, sender=sender, event="e", message="m", text="x")
    private = Conversation(platform="telegram", account="1", channel="1", private=True)
    alone = MessageReceived(conversation=private, sender=sender, event="e", message="m", text="x")
    assert (access.is_wanted(in_group), access.is_wanted(alone)) == (wanted, True)
    assert access.is_wanted(GatewaySaid(conversation=ROOM, event="e", text="x"))


@pytest.mark.parametrize("who", ["7", "a:b", "p", "ü"])
def test_a_persons_own_line_has_an_address_of_its_own(who: str) -> None:
    own = Conversation(platform="telegram", account="1", channel="-5", thread="3", person=who)
    assert own.id != ROOM.id and read_conversation(own.id) == own
    assert read_conversation(ROOM.id) == ROOM


@pytest.mark.parametrize("address", ["a:b:c:d", "a:b:c:d:e:", "a:b:c:d:e:u", "a:b:c:d:e:x", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="not a conversation"):
        read_conversation(address)


# ---- deciders ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "who", "yes"),
    [
        ("", person("user", ANN), True),
        ("", person("user", BOB), False),
        ("", person("admin", BOB), True),
        ("", person(None, ANN), False),
        ("", person("viewer", ANN), False),
        ("", person("user", BOB, ANN), True),
        ("role:admin", person("admin", ANN), False),
        ("role:admin", person("admin", BOB), True),
        ("role:admin", person("admin", BOB, ANN), False),
        ("asker:admin,role:admin", person("admin", ANN), True),
        ("asker:admin,role:admin", person("user", ANN), False),
        ("role:user", person("user", BOB), True),
        ("role:user", person("user", ANN), False),
        ("2", person("user", BOB), True),
        ("telegram:2", person("user", BOB), True),
        ("slack:2", person("user", BOB), False),
        ("slack:2", person("user", BOB, "slack:2"), True),
        ("2", person("viewer", BOB), False),
        ("slack:@S0OPS", person("user", "slack:2", "slack:@S0OPS"), True),
        ("slack:@S0OPS", person("user", "slack:2", "slack:@S0DEV"), False),
        ("slack:@S0OPS", person("user", "discord:2", "discord:@S0OPS"), False),
        ("slack:@S0OPS", person("viewer", "slack:2", "slack:@S0OPS"), False),
        ("slack:@S0OPS", person("admin", ANN, "slack:@S0OPS"), False),
        ("2:slack:@S0OPS", person("user", "slack:2", "slack:@S0OPS"), True),
        ("low=role:admin", person("user", ANN), True),
        ("high=role:admin", person("user", ANN), False),
        ("medium=asker; high=2", person("user", ANN), False),
    ],
)
def test_who_decides_a_call_of_high_risk_that_ann_asked_for(
    text: str, who: Person, yes: bool
) -> None:
    rule = rules(text).find_deciders(["low", "high"], "telegram")
    assert rule.entitle(who, ANN, 0.0) is yes


def test_more_people_decide_after_a_time() -> None:
    rule = rules("high=2:5,6; escalate=30m:role:user").find_deciders(["high"], "slack")
    late = Deciders(who=("slack:5", "slack:6"), needed=2, then=("role:user",), after=1800.0)
    assert rule == late
    assert not rule.entitle(person("user", BOB), ANN, 1799.0)
    assert rule.entitle(person("user", BOB), ANN, 1800.0)
    assert not rule.entitle(person("user", ANN), ANN, 1800.0)
    assert rules("2:@5").find_deciders([], "discord").who == ("discord:@5",)
    assert rules("escalate=1d:role:user").find_deciders([], "slack").who == ("asker", "role:admin")


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("APPROVERS", "high=role:boss", "there is no role 'boss'"),
        ("APPROVERS", "high=role:viewer", "reads only"),
        ("APPROVERS", "hihg=asker", "'hihg' is not one of"),
        ("APPROVERS", "high=asker;high=5", "twice"),
        ("APPROVERS", "high=", "names nobody"),
        ("APPROVERS", "high=3:5,6", "3 people cannot be found among 5, 6"),
        ("APPROVERS", "high=0:role:admin", "0 people"),
        ("APPROVERS", "myspace:5", "'myspace' in 'myspace:5' is no platform"),
        ("APPROVERS", "@", "is not asker"),
        ("APPROVERS", "slack:@", "is not asker"),
        ("APPROVERS", "telegram:@5", "telegram has no groups for 'telegram:@5'; discord and slack"),
        ("APPROVERS", "telegram:", "is not asker"),
        ("APPROVERS", "escalate=role:admin", "write escalate=30m"),
        ("APPROVERS", "escalate=0m:role:admin", "write escalate=30m"),
        ("APPROVERS_CHAT", "board", "write telegram: and the id"),
        ("APPROVERS_CHAT", "telegram:@board", "write telegram: and the id"),
        ("COMMAND_RIGHTS", "model", "write command=role"),
        ("COMMAND_RIGHTS", "model=king", "there is no role 'king'"),
        ("QUOTA_TURNS_PER_HOUR", "0", "from 1 to 10000"),
        ("QUOTA_TURNS_PER_HOUR", "many", "from 1 to 10000"),
        ("GROUP_POLICY", "sometimes", "mention, thread, always"),
        ("GROUP_SCOPE", "private", "shared, per_person"),
        ("QUESTION_REMINDER", "soon", "write seconds"),
    ],
)
def test_what_cannot_work_is_named_with_its_mend(name: str, value: str, mend: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.read({name: value, "TURNKEEPER_HOME": "/nowhere"})
    assert f"{name}={value}: " in str(caught.value) and mend in str(caught.value)


BOTS = {
    "telegram": {"TELEGRAM_BOT_TOKEN": "123456789:AAfake-token-of-a-bot-0123456789"},
    "discord": {"DISCORD_BOT_TOKEN": "MTIz.GaBcDe.a-token-of-tests-that-is-none-0123456789"},
    "slack": {"SLACK_BOT_TOKEN": "xoxb-1-token", "SLACK_APP_TOKEN": "xapp-1-token"},
}


@pytest.mark.parametrize(
    ("approvers", "bots", "undecided"),
    [
        ("@S0OPS", "telegram", "refused"),
        ("@S0OPS", "", "refused"),
        ("@S0OPS", "slack", "web"),
        ("@S0OPS", "telegram slack", "telegram web"),
        ("slack:@S0OPS", "telegram", "refused"),
        ("slack:@S0OPS", "telegram slack", ""),
        ("discord:5", "slack", "refused"),
        ("discord:5", "slack discord", ""),
        ("asker; high=@S0OPS", "telegram", "refused"),
        ("asker; high=@S0OPS", "telegram discord", "telegram web"),
        ("@S0OPS; escalate=30m:role:admin", "telegram", ""),
        ("@S0OPS,11", "telegram", ""),
        ("role:admin", "", ""),
        ("11", "telegram", ""),
    ],
)
def test_rules_by_which_nobody_could_decide_are_told(
    approvers: str, bots: str, undecided: str
) -> None:
    given = {"APPROVERS": approvers, "TURNKEEPER_HOME": "/nowhere"}
    for name in bots.split():
        given |= BOTS[name]
    if undecided == "refused":
        with pytest.raises(SettingsError, match="nobody could approve what is asked"):
            Settings.read(given)
    else:
        assert sorted(Settings.read(given).find_undecided()) == sorted(undecided.split())


def test_settings_of_people() -> None:
    settings = Settings.read(
        {
            "TURNKEEPER_HOME": "/nowhere", "APPROVERS": "role:admin", "GROUP_POLICY": "Thread",
            "GROUP_SCOPE": "per_person", "COMMAND_RIGHTS": "/Model=admin, new=viewer",
            "QUOTA_TURNS_PER_HOUR": "20", "TELEGRAM_VIEWER_USERS": "7,8",
            "TELEGRAM_ALLOWED_CHATS": "-5", "QUESTION_REMINDER": "never",
        }
    )  # fmt: skip
    assert settings.policy == Policy(
        approvers=rules("role:admin"), group="thread", scope="per_person",
        rights={"model": "admin", "new": "viewer"}, turns_per_hour=20,
    )  # fmt: skip
    telegram = settings.people["telegram"]
    assert (telegram.viewers, telegram.chats) == (frozenset({"7", "8"}), frozenset({"-5"}))
    assert settings.question_reminder == 0.0
    plain = Settings.read({"TURNKEEPER_HOME": "/nowhere"})
    assert (plain.policy, plain.question_reminder) == (Policy(), 4 * 3600.0)
    assert (read_rights(""), TURNS_PER_HOUR.kind("never")) == ({}, 0)


# ---- presses -------------------------------------------------------------------------------


def asked(**more: object) -> QuestionRow:
    row: dict[str, object] = {
        "id": "q", "turn": "t", "key": "k", "status": "open", "entitled": (ANN,), "asked": 0.0,
        "question": Approval(proposals=(CALL,)), "expires": 0.0,
    }  # fmt: skip
    return QuestionRow(**(row | more))  # type: ignore[arg-type]


def test_why_a_press_changes_nothing() -> None:
    ann, bob = person("user", ANN), person("user", BOB)
    assert refusal(asked(), ROOM.id, ROOM, ann) is None
    assert refusal(asked(), "elsewhere", ROOM, ann) == "not_here"
    assert refusal(asked(), ROOM.id, ROOM, bob) == "not_yours"
    assert refusal(asked(status="answered"), ROOM.id, ROOM, ann) == "not_open"
    assert refusal(asked(status="answered"), ROOM.id, ROOM, bob) == "not_yours"
    strict = asked(deciders=Deciders(who=("role:admin",)))
    assert refusal(strict, ROOM.id, ROOM, ann) == "not_entitled"
    for one in (strict, asked()):
        assert refusal(one, ROOM.id, ROOM, person(None, ANN)) == "not_known"
        assert refusal(one, ROOM.id, ROOM, person("viewer", ANN)) == "not_allowed"
        assert refusal(one, ROOM.id, ROOM, person(None, BOB)) == "not_yours"


def test_the_next_moment_of_a_question() -> None:
    late = Deciders(then=("role:user",), after=50.0)
    assert asked().due == 0.0
    assert asked(expires=100.0).due == 100.0
    assert asked(expires=100.0, remind=40.0).due == 40.0
    assert asked(expires=100.0, remind=40.0, reminded=True).due == 100.0
    assert asked(expires=100.0, remind=60.0, deciders=late).due == 50.0
    assert asked(remind=60.0, deciders=late, escalated=True).due == 60.0
    assert asked(remind=60.0, reminded=True, question=Input(text="?")).due == 0.0


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("telegram:-100", "telegram:42::-100:"),
        ("telegram::-100", "telegram:42::-100:"),
        ("telegram:7", "telegram:42::7::p"),
        ("web:a::b:", "web:a::b:"),
    ],
)
def test_the_address_of_the_approvers_chat(text: str, address: str) -> None:
    assert read_chat(text, "42") == address


async def test_where_everybody_is_an_admin_nobody_is_looked_up() -> None:
    async def look_up(key: str) -> bytes | None:
        raise AssertionError(f"a read for every message: {key}")

    lists = {"telegram": AllowLists(admins=frozenset({"*"}), viewers=frozenset({"9"}))}
    access = Access(lists, {}, look_up=look_up)
    assert await access.learn(Sender(platform="telegram", id="1")) == "admin"
    assert await access.learn(Sender(platform="telegram", id="9")) == "viewer"
