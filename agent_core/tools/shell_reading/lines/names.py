"""Names of variables that no program obeys, and expansions that hold no secret."""

import re

from agent_core.text import LatePattern

TOLD = (
    r"HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME|OLDPWD|TMPDIR|EDITOR|VISUAL|PAGER|CI|TZ"
    r"|VIRTUAL_ENV|CONDA_DEFAULT_ENV|COLUMNS|LINES|LC_ALL|DISPLAY|HOSTTYPE|MACHTYPE|GOPATH|JAVA_HOME"
)
_BRACED = rf"{TOLD}|RANDOM|SECONDS|E?UID"
SHOWN = rf"{_BRACED}|PPID|SHLVL|LINENO|OSTYPE|BASH_VERSION"
SHOWN_NOW = LatePattern(
    rf"\$(?:{SHOWN})(?![A-Za-z0-9_])|\$\{{(?:{_BRACED})\}}"
    r"|\$\(\([0-9+*/%() -]{1,80}\)\)|\$[?$]|\$\{PIPESTATUS\[\d\]\}"
)
"""Variables that hold no secret, sums, and how a command ended."""
_TERM = "[A-Za-z0-9_$+*/% -]"
SUM = LatePattern(rf"\$\(\(((?:{_TERM}|\({_TERM}{{1,40}}\)){{1,80}})\)\)")
_WORD = (
    r"A(?:PP|RG|UTHOR)|BA(?:SE|R|Z)|BRANCH|COMMIT|COUNT|CURRENT|DAYS?|DATE|DEST|DIRS?|END|EXT|FILES?|FIRST"
    r"|FOO|GREETING|INPUT|ITEMS?|LAST|LATEST|LIMIT|LINE|LIST|LOGS?|MAIN|MAX|MESSAGE|MIN|MSG|NAMES?|NEW"
    r"|NUM(?:BER)?|OLD|OUT(?:PUT)?|PATTERN|PKG|PREFIX|PROJECT|PY|REPO|RESULTS?|REV|ROOT|SHA|SINCE|SIZE"
    r"|SRC|START|SUFFIX|SUM|TAG|TARGET|TEXT|TODAY|TOTAL|VAL(?:UE)?|VAR|VERSION|WORDS?|YEAR"
)
NAME = LatePattern(rf"(?:[a-z_][a-z0-9_]{{0,40}}|(?:[A-Z]|(?:{_WORD})(?:_(?:{_WORD}))?)[0-9]?)")
"""Names of variables that no program obeys."""
VARIABLE = LatePattern(rf"\$(?:({NAME.pattern})(?![A-Za-z0-9_])|\{{({NAME.pattern})\}})")
LENGTH = LatePattern(rf"\$\{{#(?:({NAME.pattern})|({TOLD}))\}}")
SHAPED = LatePattern(
    rf"\$\{{(?:({NAME.pattern})|{TOLD})(?:(?:%%?|##?)[\w./*?@:-]{{0,40}}"
    rf"|: ?-?\d{{1,3}}(?::-?\d{{1,3}})?"
    r"|\^\^?|,,?|:?-([\w./:@-]{0,40})|//?[\w.:@ -]{1,20}/[\w.:@ -]{0,20})\}"
)
"""A part of a variable, in other letters, or a text where it is empty."""
QUOTED_VARIABLE = LatePattern(rf"\"(?:{VARIABLE.pattern})[\w./-]{{0,80}}\"")
ASSIGNED = LatePattern(rf"({NAME.pattern})=(?!\()")
TAKEN = frozenset(
    {"_", "argv", "cdpath", "fpath", "mailpath", "manpath", "module_path", "options"}
    | {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "prompt", "status"}
)
"""Names that mean something to some shell or program."""
EXPORT = LatePattern(rf"export[ \t]+(?!(?:npm|pnpm|yarn|bun|node|pip|uv)_)(?={NAME.pattern}=)")
"""Programs take settings in small letters too, from what is exported."""
READ_TEXT = LatePattern(
    r"(?:IFS=(?:[,:]|'[^'\n]?'|\"[^\"$`\\\n]?\")?[ \t]+)?read[ \t]+(?:-r[ \t]+)?"
    rf"({NAME.pattern}(?:[ \t]+{NAME.pattern}){{0,8}})(?=[ \t]*<<<)"
)
_COUNT = rf"\d{{1,6}}|\$?({NAME.pattern})|\$\{{({NAME.pattern})\}}"
COUNTING = LatePattern(
    rf"for[ \t]*\(\([ \t]*({NAME.pattern})[ \t]*=[ \t]*(\d{{1,6}}|{NAME.pattern})[ \t]*;[ \t]*\1"
    rf"[ \t]*(?:<=?[ \t]*(?:{_COUNT})[ \t]*;[ \t]*\1(?:\+\+|\+=[1-9]\d{{0,5}})"
    rf"|>=?[ \t]*(?:{_COUNT})[ \t]*;[ \t]*\1(?:--|-=[1-9]\d{{0,5}}))[ \t]*\)\)"
)
"""A loop that counts. A shell without it reads no further."""
LOCAL = LatePattern(rf"local[ \t]+(?={NAME.pattern}=)")
FUNCTION = re.compile(r"([a-z_][a-z0-9_]{0,40})[ \t]*\(\)\s*\{(?=\s)")
POSITIONAL = re.compile(r"\$(?:([1-9])|\{([1-9])\})")
ARRAY = LatePattern(rf"({NAME.pattern})=\(")
_INDEX = rf"\d{{1,4}}|-1|[@*]|\$?({NAME.pattern})"
ELEMENTS = LatePattern(
    rf"\$\{{(#?)({NAME.pattern})\[(?:{_INDEX})\](?:: ?-?\d{{1,4}}(?::\d{{1,4}})?)?\}}"
)
EACH = LatePattern(rf"\"\$\{{({NAME.pattern})\[@\]\}}\"(?=[\s;])")
READ_ARRAY = LatePattern(
    r"(?:IFS=(?:[,:]|'[^'\n]?'|\"[^\"$`\\\n]?\")?[ \t]+)?read[ \t]+-(?:ra|a)[ \t]+"
    rf"({NAME.pattern})(?=[ \t]*<<<)"
    rf"|(?:mapfile|readarray)[ \t]+(?:-t[ \t]+)?({NAME.pattern})(?=[ \t]*<)"
)
