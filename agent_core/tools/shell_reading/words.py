"""A word of a command, and a command of a line, as a shell hands them to a program."""

from msgspec import Struct

from agent_core.phrases import Phrase


class Strange(Exception):
    """The line is not in the grammar, for `reason`."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(reason)
        self.reason = reason


class Word(Struct, frozen=True, kw_only=True):
    """A word as the program receives it.

    `plain`: written without quotes, escapes, expansions and wildcards; `glob`: it has an unquoted
    wildcard; `expands`: a part is unknown, and if `wild` could be a wildcard; `feeds`: it stands
    for a file that another command of the line prints into. Known about an expansion: `stands`: it
    is the name of an existing file, which a wildcard like this matches too; `fact`: it is a
    revision of git, and no option or path; `branch`: it is one by its name, which may read like an
    option; `loose`: a shell splits it at its blanks, so that each part of a name is a word;
    `counts`: then there is never a single one; `number`: it consists of digits, or is empty.
    """

    text: str
    plain: bool = True
    glob: bool = False
    expands: bool = False
    wild: bool = False
    feeds: bool = False
    stands: str = ""
    fact: bool = False
    branch: bool = False
    loose: bool = False
    counts: bool = False
    number: bool = False


class PlainCommand(Struct, frozen=True, kw_only=True):
    """One program with its words. `source`: the file that is its input; `targets`: those that its
    output goes to; `fed`: a text of the line is its input; `piped`: another command's output is;
    `nested`: it is in a group, a substitution, a loop or after `!`."""

    words: tuple[Word, ...]
    source: Word | None = None
    targets: tuple[Word, ...] = ()
    fed: bool = False
    piped: "PlainCommand | None" = None
    nested: bool = False


def join_parts(parts: list[Word]) -> Word:
    """The parts of a word as one."""
    parts = [one for one in parts if one.text or one.expands]
    unknown = [one for one in parts if one.expands]
    lone = parts[0] if len(parts) == 1 else Word(text="")
    return Word(
        text="".join(one.text for one in parts),
        plain=False,
        glob=any(one.glob for one in parts),
        expands=bool(unknown),
        wild=any(one.wild for one in parts),
        stands=lone.stands,
        fact=bool(unknown)
        and all(one.fact or (one.branch and one is not parts[0]) for one in unknown),
        branch=lone.branch,
        loose=any(one.loose for one in parts),
        counts=lone.counts,
        number=lone.number,
    )
