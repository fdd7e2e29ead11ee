"""The three roles of people, each with all rights of the weaker ones."""

from typing import Literal

from gateway.texts import say

Role = Literal["admin", "user", "viewer"]

RANK: dict[Role, int] = {"viewer": 0, "user": 1, "admin": 2}


def at_least(role: Role | None, least: Role) -> bool:
    """The role is `least` or stronger; a stranger's (None) never is."""
    return role is not None and RANK[role] >= RANK[least]


def stronger(one: Role | None, other: Role | None) -> Role | None:
    """The one of two roles that may do more."""
    if one is None or other is None:
        return one or other
    return one if RANK[one] >= RANK[other] else other


def read_role(text: str) -> Role:
    """Parse a role. ValueError if there is none of that name."""
    for role in RANK:
        if role == text:
            return role
    raise ValueError(f"there is no role {text!r}; roles are admin, user and viewer.")


def say_refused(role: Role | None, least: Role, language: str) -> str:
    """Say why `role` may not do what requires `least`, and who may."""
    match role:
        case None:
            return say("not_known", language)
        case "viewer" if least == "user":
            return say("not_allowed", language)
        case _:
            return say("admins_only", language, role=role)
