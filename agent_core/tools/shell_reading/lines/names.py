"""Names of variables that no program obeys, and expansions that hold no secret."""

import re

TOLD = r"HOME|PATH|PWD|USER|LOGNAME|SHELL|LANG|TERM|HOSTNAME"
_BRACED = rf"{TOLD}|RANDOM|SECONDS|E?UID"
SHOWN = rf"{_BRACED}|PPID|SHLVL|LINENO|OSTYPE|BASH_VERSION"
SHOWN_NOW = re.compile(
    rf"\$(?:{SHOWN})(?![A-Za-z0-9_])|\$\{{(?:{_BRACED})\}}"
    r"|\$\(\([0-9+*/%() -]{1,80}\)\)|\$[?$]|\$\{PIPESTATUS\[\d\]\}"
)
"""Variables that hold no secret, sums, and how a command ended."""
SUM = re.compile(r"\$\(\(([a-z0-9_+*/% -]{1,80})\)\)")
NAME = re.compile(
    r"(?:[a-z_][a-z0-9_]{0,40}|[A-Z]|BASE|BRANCH|COMMIT|COUNT|DIRS?|END|FILES?|NAME|OUT|PATTERN|ROOT|SRC"
    r"|START|TAG|TARGET|TOTAL|VERSION)"
)
"""Names of variables that no program obeys."""
VARIABLE = re.compile(rf"\$(?:({NAME.pattern})(?![A-Za-z0-9_])|\{{({NAME.pattern})\}})")
LENGTH = re.compile(rf"\$\{{#(?:({NAME.pattern})|({TOLD}))\}}")
SHAPED = re.compile(
    rf"\$\{{(?:({NAME.pattern})|{TOLD})(?:(?:%%?|##?)[\w./*?@:-]{{0,40}}|:\d{{1,3}}(?::\d{{1,3}})?"
    r"|\^\^?|,,?|:?-([\w./:@-]{0,40})|//?[\w.:@ -]{1,20}/[\w.:@ -]{0,20})\}"
)
"""A part of a variable, in other letters, or a text where it is empty."""
QUOTED_VARIABLE = re.compile(rf"\"(?:{VARIABLE.pattern})[\w./-]{{0,80}}\"")
ASSIGNED = re.compile(rf"({NAME.pattern})=(?!\()")
TAKEN = frozenset(
    {"_", "argv", "cdpath", "fpath", "mailpath", "manpath", "module_path", "options", "path"}
    | {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "prompt", "status"}
)
"""Names that mean something to some shell or program."""
