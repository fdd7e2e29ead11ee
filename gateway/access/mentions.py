"""Mentions on a group's question of its deciders, who would not hear of it otherwise. The asker is
notified already, as the card replies to their message."""

from collections.abc import Iterable, Iterator

from gateway.access.access import Access
from gateway.approvers import DEFAULT, Deciders, Person
from gateway.roles import read_role
from gateway.views import MentionedPerson

MAX_MENTIONS = 10


def find_deciders(
    access: Access, rule: Deciders | None, platform: str, asker: tuple[str, str]
) -> tuple[MentionedPerson, ...]:
    """Return the people whom the card of a question by `asker` (key, role) must mention; none if
    the asker decides it."""
    rule, (key, role) = rule or DEFAULT, asker
    decides = may_decide(rule, key, role)
    return () if decides and rule.needed == 1 else name_people(access, rule.who, platform, (key,))


def find_reminded(
    access: Access,
    rule: Deciders | None,
    platform: str,
    asker: tuple[str, str],
    decided: Iterable[str] = (),
) -> tuple[MentionedPerson, ...]:
    """Return the people whom a reminder must mention: everybody who decides, `asker` too, except
    those who have."""
    rule, (key, role), gone = rule or DEFAULT, asker, frozenset(decided)
    decides = may_decide(rule, key, role)
    own = _name(access, key, platform) if decides and key not in gone else ()
    if decides and rule.needed == 1:
        return own
    return (*own, *name_people(access, rule.who, platform, (key, *gone)))


def name_people(
    access: Access, words: Iterable[str], platform: str, but: Iterable[str] = ()
) -> tuple[MentionedPerson, ...]:
    """The people and groups of the platform that the words of a rule name: admins as the settings
    list them, all users never."""
    gone = frozenset(but)
    keys = dict.fromkeys(one for word in words for one in _list_keys(access, word, platform))
    found = (one for key in keys if key not in gone for one in _name(access, key, platform))
    return tuple(dict.fromkeys(found))[:MAX_MENTIONS]


def may_decide(rule: Deciders, key: str, role: str) -> bool:
    """Return True if who asked, with this account and role, decides alone or among others."""
    person = Person(role="admin" if role == "admin" else "user", accounts=frozenset((key,)))
    return rule.entitle(person, key, 0.0)


def _list_keys(access: Access, word: str, platform: str) -> Iterator[str]:
    kind, _, rest = word.partition(":")
    if kind == "role" and read_role(rest) == "admin":
        yield from (f"{platform}:{one}" for one in sorted(access.list_admins(platform)))
    elif kind not in ("role", "asker"):
        yield word


def _name(access: Access, key: str, platform: str) -> tuple[MentionedPerson, ...]:
    where, _, name = key.partition(":")
    if where != platform or not name or name == "*":
        return ()
    return (MentionedPerson(id=name, name=access.find_name(key)),)
