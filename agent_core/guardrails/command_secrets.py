"""Finds passwords in commands, in `.netrc` and in PuTTY's keys, by the words before them in the
line rather than by their own look.

Only what a program takes for a secret is redacted, and never more than a word of the shell: a card
must show the rest of a command.
"""

import re
from collections.abc import Iterator

from agent_core.guardrails.sign_search import find_sign, search_ranges

_REACH, _LONGEST = 240, 200
"""Characters between a command and the option with its secret; of a secret."""
SIGNS = (
    *("mysql", "mariadb", "sshpass", "login", "redis-cli", "mongo", "sqlcmd", "ldap", "smb"),
    *("curl", "rpcclient", "openssl", "zip", "7z", "sudo", "htpasswd", "chpasswd", "snmp"),
    *("ipmitool", "bcp ", "freerdp", "net use", "wpa_passphrase", "nmcli", "-pass"),
    *("-storepass", "-keypass", "-token", "-secret", "Private-Lines", " password="),
    *("secret_access_key ", "-password", "http -a", "https -a", "PASSWORD FOR"),
    *("--token-stdin", "configure set", "requirepass", "masterauth", "bindpw", "rootpw"),
    *("auth_pass", "AUTH ", "kinit", "net user", "sqlplus"),
    *("SecureString", "ssh-keygen", "sp_addlogin", "community ", "isakmp key ", "password 7 "),
    *("ascii-text", "rabbitmqctl", "secret set", "secret create", "secret put", "env add"),
    *("twine", "snowsql", "poetry", "-bearer"),
)  # fmt: skip
"""One of these occurs in each text with such a secret."""
_BARE = r"[^\s'\"`$;|&<>()\\]"
_PLAIN = rf"{_BARE}{{4,{_LONGEST}}}"
_MIXED = r"(?=[^\s\"'\\]{0,80}\d)(?=[^\s\"'\\]{0,80}[A-Za-z])"
_CASES = rf"{_MIXED}(?=[^\s\"']{{0,80}}[a-z])(?=[^\s\"']{{0,80}}[A-Z])"
"""Letters and digits, as placeholders and prose rarely have together."""
_VALUE = (
    rf"(?:'(?P<single>[^'\"`$;|&<>()\\\n]{{4,{_LONGEST}}})(?=')"
    rf"|\"(?P<double>[^'\"`$;|&<>()\\\n]{{4,{_LONGEST}}})(?=\")"
    rf"|(?P<bare>(?![-<]){_PLAIN}))"
)
_OPTION = re.compile(
    r"(?<!\S)(?P<option>"
    r"--?(?:[a-z]{1,10}-)?(?:password|passwd|passphrase|storepass|keypass|secret|token)"
    r"(?:=|[ \t]{1,4})"
    r"|--(?:pass|oauth2-bearer)(?:=|[ \t]{1,4})|-pass(?:in|out)?[ \t]{1,4}pass:"
    r"|--(?:proxy-)?user[ \t]{1,4}"
    rf"|-[pPawkuUAX][ \t]{{0,4}}|/p:){_VALUE}"
)
_LOOKS_CHOSEN = re.compile(r"[^a-z]")
_ENDS = re.compile(r"['\"]?[ \t]{0,4}(?:\Z|\n|-|[|;&>])")
_NO_VALUE = ("id=", "file:", "env:", "type=")
_TAKES = {
    "-p": r"sshpass|(?:docker|podman|buildah|skopeo|crane|oras|registry|az)[ \t]+login|mongo\w*"
    r"|twine[ \t]+upload|snowsql",
    "-P": r"sqlcmd|bcp|zip|unzip|ipmitool|zipcloak|ssh-keygen",
    "-a": r"redis-cli",
    "-w": r"ldap\w+",
    "-k": r"openssl[ \t]+enc",
    "-u": r"curl",
    "--user": r"curl",
    "--proxy-user": r"curl",
    "-U": r"smb\w+|rpcclient",
    "-A": r"snmp\w+",
    "-X": r"snmp\w+",
    "/p:": r"\w*freerdp\d?",
}
"""The commands that take a secret by an option that means something else elsewhere."""
_COMMANDS = {option: re.compile(rf"(?<![\w./-])(?:{names})\s") for option, names in _TAKES.items()}
_JOINED = re.compile(r"(?<![\w./-])(?:mysql\w*|mariadb(?:-\w+)?|7z[ar]?|sshpass)\s")
_NAME_FIRST = re.compile(r"[\w.@-]{1,64}[:%](?!//)(?=.{4})")
_ONE = re.compile(
    "|".join(
        (
            rf"\becho[ \t]['\"]?(?:\w{{1,32}}:)?(?P<piped>{_PLAIN})['\"]?[ \t]{{0,4}}\|[ \t]{{0,4}}"
            r"(?:sudo[ \t](?:-\w+[ \t]){0,3}-\w*S|(?:sudo[ \t])?chpasswd\b|kinit\b"
            r"|(?:npx[ \t])?(?:docker|podman|wrangler|gh|vercel)[ \t](?:secret|env)[ \t]"
            r"(?:create|put|set|add)\b"
            r"|[^\n|;&]{1,120}--(?:pass(?:word|phrase)?|token)-(?:stdin|fd)\b)",
            rf"\bPASSWORD FOR[ \t][^\n=]{{1,80}}=[ \t]{{0,4}}['\"](?P<sql>{_PLAIN})['\"]",
            rf"\bhttps?[ \t](?:-\w+[ \t]){{0,3}}-a[ \t]['\"]?[\w.@-]{{1,64}}:(?P<pie>{_PLAIN})",
            r"\bconfigure set[ \t]\w{0,40}?(?:secret|token)\w{0,40}[ \t]"
            rf"(?P<set>{_BARE}{{16,{_LONGEST}}})",
            rf"\bchpasswd[ \t]{{0,4}}<<<[ \t]{{0,4}}['\"]?\w{{1,32}}:(?P<given>{_PLAIN})",
            r"\bhtpasswd[ \t](?:-\w+[ \t]){0,3}-\w*b\w*[ \t](?:[^\s-]\S{0,80}[ \t]){1,2}"
            rf"(?P<web>{_PLAIN})",
            rf"\bwpa_passphrase[ \t]\S{{1,64}}[ \t](?P<radio>{_PLAIN})",
            rf"\bnmcli[ \t][^\n]{{0,120}}?[ \t]password[ \t](?P<wifi>{_PLAIN})",
            rf"\bnet use[ \t]\S{{1,3}}[ \t]\S{{1,120}}[ \t](?P<share>(?!/){_PLAIN})",
            r"(?:\bmachine\s{1,8}\S{1,120}|\bdefault)\s{1,8}login\s{1,8}\S{1,120}\s{1,8}"
            r"(?:account\s{1,8}\S{1,120}\s{1,8})?"
            rf"password\s{{1,8}}(?P<netrc>{_PLAIN})",
            r"Private-Lines:[ \t]{0,4}\d{1,4}(?:\s|\\[nr]){1,4}"
            r"(?P<putty>[A-Za-z0-9+/=]{16,80}(?![\w.+/=-])"
            r"(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,80}(?![\w.+/=-])){0,120})",
            r"\b(?:host|user|dbname)=\S{1,80}[ \t](?:\w{1,20}=\S{1,80}[ \t]){0,4}"
            rf"password=(?P<dsn>{_PLAIN})",
            rf"\bsecret_access_key[ \t](?P<key>{_BARE}{{30,{_LONGEST}}})",
            # settings of servers, whose value stands behind blanks
            rf"\b(?:requirepass|masterauth|bindpw|rootpw|auth_pass)[\"']?(?::|[ \t]=)?[ \t]{{1,20}}"
            rf"(?:\{{\w{{1,16}}\}})?+[\"']?(?P<setting>{_MIXED}{_PLAIN})",
            rf"\bAUTH[ \t](?:(?:PLAIN|LOGIN|default)[ \t])?"
            rf"(?P<auth>{_CASES}{_BARE}{{12,{_LONGEST}}})(?=\s|\Z)",
            rf"\b(?:snmp-server community|rocommunity6?|rwcommunity6?)[ \t]"
            rf"(?P<snmp>{_MIXED}{_PLAIN})",
            rf"\bisakmp key[ \t](?:[06][ \t])?"
            rf"(?P<isakmp>{_MIXED}{_PLAIN})[ \t](?=address|hostname)",
            r"\bpassword 7[ \t](?P<cisco>[0-9A-F]{8,64})\b",
            rf"\bascii-text[ \t]\"(?P<ike>{_MIXED}[^\s\"]{{6,{_LONGEST}}})(?=\")",
            rf"\bnet user[ \t][\w.-]{{1,40}}[ \t](?P<account>(?!/){_MIXED}{_PLAIN})",
            rf"\bsqlplus[ \t](?:-\w{{1,8}}[ \t]){{0,3}}[\"']?\w{{1,30}}/"
            rf"(?P<oracle>{_MIXED}[\w#$!.-]{{4,60}})",
            rf"\bConvertTo-SecureString[ \t](?:-String[ \t])?[\"']"
            rf"(?P<secure>{_MIXED}{_PLAIN})[\"']",
            rf"\bssh-keygen[ \t](?:-\w[ \t][^\s-]\S{{0,80}}[ \t]){{0,4}}-N[ \t][\"']?"
            rf"(?P<phrase>{_PLAIN})",
            r"\brabbitmqctl[ \t](?:-\w[ \t]\S{1,80}[ \t]){0,2}(?:add_user|change_password)[ \t]"
            rf"\S{{1,64}}[ \t][\"']?(?P<rabbit>{_PLAIN})",
            r"\bsecret set[ \t]\S{1,64}[ \t](?:--?\w+[ \t][\w./-]{1,80}[ \t]){0,3}"
            rf"(?:--body(?:=|[ \t])|-b[ \t]?)[\"']?(?P<body>{_PLAIN})",
            r"\bpoetry[ \t]config[ \t](?:pypi-token\.\S{1,40}|http-basic\.\S{1,40}[ \t]\S{1,64})"
            rf"[ \t][\"']?(?P<poetry>{_PLAIN})",
            rf"\bmysqlsh[ \t](?:mysqlx?://)?[\w.-]{{1,32}}:(?P<shell>{_MIXED}[\w.!*+%=^~-]{{4,64}})(?=@)",
            rf"\bsp_addlogin[ \t]'[^'\n]{{1,60}}',[ \t]?'(?P<login>{_PLAIN})'",
        )
    )
)
_BEGINNINGS = (
    *("echo", "PASSWORD FOR", "http", "configure set", "chpasswd", "htpasswd", "wpa_passphrase"),
    *("nmcli", "net use", "machine", "default", "Private-Lines:", "host=", "user=", "dbname="),
    *("secret_access_key", "requirepass", "masterauth", "bindpw", "rootpw", "auth_pass", "AUTH"),
    *("snmp-server", "rocommunity", "rwcommunity", "isakmp", "password 7"),
    *("ascii-text", "sqlplus", "ConvertTo-", "ssh-keygen", "sp_addlogin"),
    *("rabbitmqctl", "secret set", "poetry", "mysqlsh"),
)  # fmt: skip
"""Each match of `_ONE` begins with one of these."""
_WORDS = (
    *("mysql", "mariadb", "sshpass", "docker", "podman", "buildah", "skopeo", "crane", "oras"),
    *("helm", "az ", "redis-cli", "mongo", "sqlcmd", "bcp ", "ldap", "smb", "rpcclient"),
    *("curl", "openssl"),
    *("zip", "7z", "echo", "htpasswd", "chpasswd", "snmp", "ipmitool", "freerdp", "net ", "nmcli"),
    *("wpa_passphrase", "host=", "user=", "dbname=", "-pass", "-storepass", "-keypass", "-token"),
    *("-secret", "secret_access_key", "-user ", "-passwd", "http ", "https ", "PASSWORD"),
    *("configure", "requirepass", "masterauth", "bindpw", "rootpw", "auth_pass", "AUTH"),
    *("community", "isakmp", "password 7", "ascii-text"),
    *("sqlplus", "ConvertTo-", "ssh-keygen", "sp_addlogin", "rabbitmqctl", "secret set"),
    *("twine", "snowsql", "poetry", "-bearer"),
)  # fmt: skip
"""After one of these the rest of a line may contain a secret."""
OPENINGS = (*_WORDS, "machine", "default", "Private-Lines:")
"""One of these occurs in each text whose end may become such a secret."""
_NETRC = re.compile(
    r"(?:\bmachine(?:\s{1,8}\S{1,120})?|\bdefault)"
    r"(?:\s{1,8}(?:login|account)(?:\s{1,8}\S{0,120})?){0,2}"
    r"(?:\s{1,8}[a-z]{0,8})?(?:(?<=password)\s{1,8}\S{0,200})?\s{0,8}\Z"
)
_PUTTY = re.compile(r"Private-Lines:[\sA-Za-z0-9+/=\\]{0,10000}\Z")


def find_command_secrets(text: str) -> list[tuple[int, int]]:
    """(start, end) of each of them, in order."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted((*_find_options(text), *_find_whole(text))):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return kept


def find_open_command(text: str) -> int:
    """Return where the end of `text` begins that more text could make a command with a secret."""
    line = max(text.rfind("\n") + 1, len(text) - _REACH - 2 * _LONGEST)
    tail = text[line:]
    starts = [line + at for word in _WORDS if (at := tail.find(word)) >= 0]
    at = min(starts, default=len(text))
    for word, partial in (("machine", _NETRC), ("default", _NETRC), ("Private-Lines:", _PUTTY)):
        begins = text.rfind(word, max(0, len(text) - 12_000), at)
        if begins >= 0 and (partial.match(text, begins) or partial.match(text, begins, at)):
            at = begins  # the value may continue a word such as `login`
    return at


def _find_whole(text: str) -> Iterator[tuple[int, int]]:
    starts = [at for word in _BEGINNINGS for at, _ in find_sign(word, text)]
    for found in search_ranges(_ONE, text, [(at, at) for at in starts]):
        assert found.lastgroup is not None
        yield found.span(found.lastgroup)


def _find_options(text: str) -> Iterator[tuple[int, int]]:
    for found in _OPTION.finditer(text):
        option = found["option"]
        group = next(name for name in ("single", "double", "bare") if found[name] is not None)
        start, end = found.span(group)
        if (short := option.rstrip()) in _TAKES:
            first = max(text.rfind("\n", 0, found.start()) + 1, found.start() - _REACH)
            if not _takes(short, text[first : found.start()], separate=option != short):
                continue
            if _TAKES[short] == "curl" or short == "-U":
                name = _NAME_FIRST.match(text, start, end)
                if name is None:
                    continue
                start = name.end()
        elif text.startswith(_NO_VALUE, start) or not (
            group != "bare" or option.endswith("=") or _is_chosen(text, start, end)
        ):
            continue
        yield start, end


def _takes(option: str, before: str, *, separate: bool) -> bool:
    """Return True if a command in `before` takes a secret by this option."""
    joined = not separate and option == "-p" and _JOINED.search(before) is not None
    return joined or _COMMANDS[option].search(before) is not None


def _is_chosen(text: str, start: int, end: int) -> bool:
    """Return True if a word after an option is its value, not prose about it."""
    return _LOOKS_CHOSEN.search(text, start, end) is not None or bool(_ENDS.match(text, end))
