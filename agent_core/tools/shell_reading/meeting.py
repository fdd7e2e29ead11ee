"""Decides whether a command with unknown parts could be one that a rule's pattern means."""

from functools import cache

from agent_core.tools.shell_reach import can_meet
from agent_core.tools.shell_reading.possible_words import UNKNOWN, PossibleCommand

_GIT_VALUED = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"}
)


def could_begin(command: PossibleCommand, wanted: tuple[str, ...]) -> bool:
    """Return True if its first words could be the wanted ones, with options after the first; only
    if a part of it is unknown."""
    words, many = command.words, command.many
    if len(wanted) > 1 and _could_be(wanted[0], words[0]) and _has_alias(words):
        return True
    if UNKNOWN not in "".join(words):
        return False

    @cache
    def fits(at: int, to: int, unsure: bool) -> bool:
        if to == len(wanted):
            return unsure
        if at >= len(words):
            return False
        word = words[at].rpartition("/")[2] if not to and "/" not in wanted[0] else words[at]
        unsure_now = unsure or UNKNOWN in word
        if at in many and fits(at + 1, to, True):
            return True
        if _could_be(wanted[to], word) and (
            fits(at + 1, to + 1, unsure_now) or (at in many and fits(at, to + 1, True))
        ):
            return True
        if not to or not words[at].startswith("-"):
            return False
        if wanted[0] == "git" and words[at] in _GIT_VALUED:
            return fits(at + 2, to, unsure)
        return fits(at + 1, to, unsure)

    return fits(0, 0, False)


def could_name(command: PossibleCommand, glob: str) -> bool:
    """One of its words could be a path that fits the pattern, and is not known."""
    return any(UNKNOWN in word and _could_fit(glob, word) for word in command.words[1:])


def _could_fit(glob: str, path: str) -> bool:
    plain = path.removeprefix("/workspace/").removeprefix("./")
    return can_meet(glob.replace("**", "*"), _write_stars(plain))


def _could_be(wanted: str, word: str) -> bool:
    return can_meet(wanted, _write_stars(word))


def _has_alias(words: tuple[str, ...]) -> bool:
    """Return True if git is given an alias for a command."""
    return any(word.startswith("alias.") for word in words)


def _write_stars(word: str) -> str:
    """Write the word as a pattern: an unknown part is a star, its own stars are literal."""
    return word.replace("*", "\ue001").replace("?", "\ue001").replace(UNKNOWN, "*")
