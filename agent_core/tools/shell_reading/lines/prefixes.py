"""Programs and settings before a command, which run it otherwise unchanged: `time`, `nice`, `env`.

A program among them finds programs only: the word behind it is no setting, keyword or builtin.
"""

import re

from agent_core.tools.shell_reading.words import Word

CALM = re.compile(
    r"(?:LC_[A-Z]{1,20}|LANG|LANGUAGE)=[A-Za-z0-9_.@-]{0,40}|NO_COLOR=1?|COLUMNS=\d{1,4}"
    r"|TZ=(?:[A-Z][A-Za-z0-9_+-]{0,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2})?"
    r"|(?:GIT_|MAN)?PAGER=(?:cat)?|GIT_(?:OPTIONAL_LOCKS|TERMINAL_PROMPT)=0|CLICOLOR=[01]"
)
"""Variables that may be set for a command: the language, the time zone, the width, no pager."""
_TIME = r"\d{1,6}(?:\.\d{1,3})?[smh]?"
_OPTIONS: dict[str, re.Pattern[str]] = {
    "nice": re.compile(r"-n ?-?\d{1,2} |-\d{1,2} |--adjustment=-?\d{1,2} "),
    "ionice": re.compile(r"-c ?[0-3] |-n ?[0-7] |-t "),
    "timeout": re.compile(
        rf"-k ?{_TIME} |-s ?[A-Z0-9]{{1,8}} |-[v] |--(?:preserve-status|foreground|verbose) "
        rf"|--signal=[A-Z0-9]{{1,8}} |--kill-after={_TIME} "
    ),
    "stdbuf": re.compile(r"-[ioe] ?(?:L|\d{1,7}) |--(?:input|output|error)=(?:L|\d{1,7}) "),
    "env": re.compile(rf"(?:{CALM.pattern}) "),
    "time": re.compile(r"-p "),
}
"""Options of each, as the next words with blanks behind them."""
_LIMIT = re.compile(_TIME)


def drop_before(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words without those that run the rest; all of them where they run nothing."""
    given, is_program = words, False
    while len(given) > 1 and given[0].plain:
        name = given[0].text
        if not is_program and CALM.fullmatch(name):
            given = given[1:]
            continue
        if name not in _OPTIONS:
            break
        rest = _drop_options(name, given[1:])
        if name == "timeout":
            if len(rest) < 2 or not (rest[0].plain and _LIMIT.fullmatch(rest[0].text)):
                break
            rest = rest[1:]
        if not rest:
            break
        given, is_program = rest, is_program or name != "time"
    return given


def _drop_options(name: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words behind the program's own options."""
    while words and words[0].plain:
        for count in (1, 2):
            taken = words[:count]
            text = "".join(f"{word.text} " for word in taken)
            if all(word.plain for word in taken) and _OPTIONS[name].fullmatch(text):
                words = words[count:]
                break
        else:
            break
    return words
