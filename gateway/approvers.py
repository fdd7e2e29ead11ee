"""The deciders of questions: the grammar of APPROVERS, and the rule under which a question was
asked.

`APPROVERS` is a list of clauses separated by `;`, each `<risk>=<who>,<who>…`. A number and a colon
before `<who>` require that many people: `default=asker,role:admin; high=2:role:admin;
escalate=30m:slack:@S0OPS`.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.roles import Role, at_least, read_role

Risk = Literal["low", "medium", "high"]
RISKS: tuple[Risk, ...] = ("low", "medium", "high")

_COUNT = re.compile(r"(\d+):(.+)")
_TIME = re.compile(r"(\d+)([smhd]):(.+)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_ID = re.compile(r"@?\w[\w.@-]*", re.ASCII)
GROUPED = ("discord", "slack")
"""Platforms that say in which roles or user groups a person is."""


class Person(Struct, frozen=True, kw_only=True):
    """A person who decides, as of now. `accounts`: keys of all their linked accounts; `groups`:
    `slack:@S0OPS` for each role or user group of the acting account."""

    role: Role | None
    accounts: frozenset[str]
    groups: frozenset[str] = frozenset()


class Deciders(Struct, frozen=True, kw_only=True):
    """The rule of one question: `needed` people of `who`, and `after` seconds of `then` too."""

    who: tuple[str, ...] = ("asker", "role:admin")
    needed: int = 1
    then: tuple[str, ...] = ()
    after: float = 0.0

    def words(self, waited: float) -> tuple[str, ...]:
        """Return the words for who decides after `waited` seconds."""
        return (*self.who, *self.then) if self.then and waited >= self.after else self.who

    def entitle(self, person: Person, asker: str, waited: float) -> bool:
        """Return True if `person` may decide what the account `asker` asked for `waited` seconds
        ago. The person who asked decides only as `asker`, never by a role or another account."""
        if not at_least(person.role, "user"):
            return False
        own = asker in person.accounts
        return any(_matches(word, person, own=own) for word in self.words(waited))


DEFAULT = Deciders()


def _matches(word: str, person: Person, *, own: bool) -> bool:
    kind, _, rest = word.partition(":")
    if kind == "asker":
        return own and (not rest or at_least(person.role, read_role(rest)))
    if own:
        return False
    if kind == "role":
        return at_least(person.role, read_role(rest))
    return word in person.accounts or word in person.groups


class Approvers(Struct, frozen=True, kw_only=True):
    """The rules by risk. Plain ids in them are of the platform where the question is asked."""

    default: Deciders = DEFAULT
    risks: dict[Risk, Deciders] = {}

    def find_deciders(self, risks: Iterable[Risk], platform: str) -> Deciders:
        """The rule for a batch of calls: that of the highest risk in it."""
        asked = set(risks)
        highest: Risk = next((risk for risk in reversed(RISKS) if risk in asked), "low")
        rule = self.risks.get(highest, self.default)

        def complete(words: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(
                word if ":" in word or word == "asker" else f"{platform}:{word}" for word in words
            )

        return Deciders(
            who=complete(rule.who), needed=rule.needed, then=complete(rule.then), after=rule.after
        )


def find_undecided(approvers: Approvers, platforms: Collection[str]) -> dict[str, str]:
    """Return the platforms where nobody could decide a question, each with the reason. Roles count
    as held by somebody."""
    found = {}
    for platform in platforms:
        for risk in RISKS:
            rule = approvers.find_deciders((risk,), platform)
            faults = [_find_fault(word, platforms) for word in (*rule.who, *rule.then)]
            if all(faults):
                found[platform] = "; ".join(dict.fromkeys(faults))
    return found


def _find_fault(word: str, platforms: Collection[str]) -> str:
    """Return the reason why the complete word names nobody on these platforms, "" if it may name
    somebody."""
    kind, colon, rest = word.partition(":")
    if kind in ("asker", "role"):
        return ""
    if kind not in platforms:
        return f"{word} is of {kind}, which is not set up"
    if _is_group(word) and kind not in GROUPED:
        return f"{kind} has no group {rest}: write ids, or where it is, as in slack:{rest}"
    return ""


def read_approvers(text: str, platforms: tuple[str, ...]) -> Approvers:
    """The rules that `text` writes down; ValueError with the mend if it cannot be read."""
    clauses = {}
    for clause in filter(None, (piece.strip() for piece in text.split(";"))):
        name, equals, rest = clause.partition("=")
        name, rest = (name.strip().lower(), rest.strip()) if equals else ("default", clause)
        if name not in ("default", "escalate", *RISKS):
            raise ValueError(f"{name!r} is not one of default, low, medium, high and escalate.")
        if name in clauses:
            raise ValueError(f"{name!r} is there twice.")
        clauses[name] = rest
    late = clauses.pop("escalate", None)
    after, then = (0.0, ()) if late is None else _escalation(late, platforms)
    rules = {
        name: replace(_rule(rest, platforms), then=then, after=after)
        for name, rest in clauses.items()
    }
    default = rules.pop("default", replace(DEFAULT, then=then, after=after))
    return Approvers(default=default, risks={risk: rules[risk] for risk in RISKS if risk in rules})


def _rule(text: str, platforms: tuple[str, ...]) -> Deciders:
    counted = _COUNT.fullmatch(text)
    needed = int(counted[1]) if counted else 1
    who = _words(counted[2] if counted else text, platforms)
    single = not any(word.startswith(("role:", "asker")) or _is_group(word) for word in who)
    if needed < 1 or (single and needed > len(set(who))):
        raise ValueError(f"{needed} people cannot be found among {', '.join(who)}.")
    return Deciders(who=who, needed=needed)


def _escalation(text: str, platforms: tuple[str, ...]) -> tuple[float, tuple[str, ...]]:
    timed = _TIME.fullmatch(text)
    if timed is None or not int(timed[1]):
        raise ValueError(f"write escalate=30m:role:admin (s, m, h or d), not {text!r}.")
    return int(timed[1]) * _SECONDS[timed[2]], _words(timed[3], platforms)


def _words(text: str, platforms: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(word for word in re.split(r"[,\s]+", text.strip()) if word)
    if not words:
        raise ValueError("a clause names nobody; write asker, role:admin or an id.")
    for word in words:
        _check(word, platforms)
    return words


def _check(word: str, platforms: tuple[str, ...]) -> None:
    kind, colon, rest = word.partition(":")
    if kind == "role" or (kind == "asker" and colon):
        if read_role(rest) == "viewer":
            raise ValueError("a viewer reads only and decides nothing.")
    elif kind != "asker" and colon and kind not in platforms:
        raise ValueError(f"{kind!r} in {word!r} is no platform; use {', '.join(platforms)}.")
    elif kind != "asker" and not _ID.fullmatch(rest if colon else kind):
        raise ValueError(f"{word!r} is not asker, role:admin, role:user or an id.")
    elif colon and _is_group(word) and kind not in GROUPED:
        groups = " and ".join(GROUPED)
        raise ValueError(f"{kind} has no groups for {word!r}; {groups} have, or write ids.")


def _is_group(word: str) -> bool:
    """The word names a role or user group: `@333`, `slack:@S0OPS`."""
    return word.rpartition(":")[2].startswith("@")


def name_approvers(words: Iterable[str], say: Callable[[str], str]) -> str:
    """The words for people: `say` has the words for `asker` and the roles, ids stay."""
    said = (
        say(word.partition(":")[2] if word.startswith("role:") else word.partition(":")[0])
        if word.startswith(("role:", "asker"))
        else word
        for word in words
    )
    return ", ".join(dict.fromkeys(said))
