"""Read-only programs, and the arguments that keep them so."""

from msgspec import Struct
from msgspec.structs import replace

from agent_core.tools.shell_reading.long_options import LONG_OPTIONS


class Verb(Struct, frozen=True, kw_only=True):
    """The arguments allowed for a program: `flags` are letters; `valued` letters and `takes` long
    options are followed by as many values as they say, no paths; `names` are further long options,
    those ending in `=` hold any value; `free` operands at the start are no paths."""

    flags: str = ""
    valued: str = ""
    names: tuple[str, ...] = ()
    takes: tuple[tuple[str, int], ...] = ()
    free: int = 0
    most: int = 1_000
    least: int = 0
    wild: bool = False
    """A file named like an option could do no harm, so a wildcard may come first."""
    lists: bool = False
    """An option names a list of files, and lines of it that are no files are printed: with another
    file beside it the list is refused, so a wildcard may come first, but no single name."""
    shows: bool = True
    """It prints the content of its files, not only their names and sizes."""
    itself: frozenset[str] = frozenset()
    """Flags with which it describes a folder itself, not its content."""
    is_program: bool = False
    """Its free operands are a program, so no file's name may get there."""
    prints: bool = False
    """It prints its words, so they may be known variables."""
    placed: str = ""
    """Options of `valued` whose value is a path."""
    counted: str = ""
    """Options of `valued` whose value is a number: a program takes another word there for an
    operand."""
    attached: str = ""
    """Letters whose value, if any, is the rest of the word: the next word is an operand."""
    responds: bool = False
    """An operand that begins with `@` is a file of further words, options included, as GNU's
    programs for object files read it."""
    ordered: bool = False
    """Its options end at its first operand."""
    revisions: bool = False
    """Its operands may be revisions of git."""


DIGITS = "0123456789"
ANY = 1_000
ALWAYS = ("--help", "--version")

GREP = Verb(
    flags="abcEFGhHiIlLnoPqrRsTUvVwxyzZ" + DIGITS,
    valued="efmABC",
    placed="f",
    names=(
        *("--include=", "--exclude=", "--exclude-dir=", "--color", "--color=", "--count"),
        *(
            "--ignore-case",
            "--line-number",
            "--recursive",
            "--files-with-matches",
            "--only-matching",
        ),
        *(
            "--extended-regexp",
            "--fixed-strings",
            "--word-regexp",
            "--invert-match",
            "--max-count=",
        ),
        *(
            "--after-context=",
            "--before-context=",
            "--context=",
            "--no-filename",
            "--with-filename",
        ),
    ),
    free=1,
    wild=True,
    shows=False,
)

LIST_FILES = Verb(
    flags="1aAdDfFghHilmrRSTUxX" + DIGITS,
    valued="LIs",
    names=(
        *("--tree", "--long", "--all", "--git", "--icons", "--header", "--level=", "--sort="),
        *("--group-directories-first", "--git-ignore", "--no-user", "--no-permissions"),
        *("--ignore-glob=", "--color=", "--reverse", "--oneline", "--recurse"),
    ),
    shows=False,
)

FIND_NAMES = Verb(
    flags="HIsigapF0u1",
    valued="edEtSj",
    names=(
        *("--hidden", "--no-ignore", "--extension=", "--type=", "--max-depth=", "--exclude="),
        *("--glob", "--absolute-path", "--full-path", "--color=", "--max-results="),
        *("--changed-within=", "--changed-before=", "--size=", "--min-depth=", "--exact-depth="),
        *("--ignore-case", "--case-sensitive", "--fixed-strings", "--no-ignore-vcs", "--print0"),
    ),
    takes=(
        *(("--extension", 1), ("--type", 1), ("--max-depth", 1), ("--exclude", 1), ("--size", 1)),
        *(("--changed-within", 1), ("--changed-before", 1), ("--min-depth", 1)),
    ),
    free=1,
    shows=False,
)

PRINT_FILES = Verb(
    flags="npAuP",
    valued="rlH",
    names=(
        *("--plain", "--number", "--line-range=", "--language=", "--style=", "--color="),
        *("--paging=", "--show-all", "--decorations=", "--highlight-line=", "--wrap="),
    ),
    takes=(("--line-range", 1), ("--language", 1), ("--style", 1), ("--color", 1)),
)

SUM = Verb(flags="bctw", wild=True, shows=False)

_KNOWN: dict[str, Verb] = {
    ":": Verb(free=ANY),
    "ag": Verb(flags="cilnoQsSvw", valued="ABCGm", counted="ABCm", free=1, shows=False),
    "arch": Verb(most=0),
    "b2sum": SUM,
    "awk": Verb(valued="Fv", free=1, least=1, is_program=True, ordered=True),
    "base32": Verb(flags="di", valued="w", most=1),
    "base64": Verb(flags="di", valued="w", most=1),
    "bc": Verb(flags="lq", most=0),
    "basename": Verb(free=ANY, prints=True),
    "bat": PRINT_FILES,
    "batcat": PRINT_FILES,
    "bzcat": Verb(wild=True),
    "cal": Verb(flags="13my", free=3, most=3),
    "cat": Verb(flags="AbeEnstTuv", wild=True),
    "cd": Verb(least=1, most=1),
    "cksum": Verb(wild=True, shows=False),
    "cmp": Verb(flags="bls", most=2),
    "crc32": Verb(shows=False),
    "column": Verb(flags="tx", valued="sc"),
    "comm": Verb(flags="123", most=2),
    "cut": Verb(
        flags="sz", valued="bcdf", names=("--complement", "--delimiter=", "--fields="), wild=True
    ),
    "date": Verb(
        flags="uR",
        valued="dr",
        attached="I",
        placed="r",
        names=("--utc", "--iso-8601", "--iso-8601=", "--date=", "--rfc-3339="),
        most=1,
    ),
    "df": Verb(flags="ahHiklTP", free=1, most=1, shows=False),
    "diff": Verb(
        flags="abBcdeEinNpqrstTuwyZ" + DIGITS,
        valued="UWCIF",
        names=(
            *("--color", "--color=", "--brief", "--unified", "--unified=", "--recursive"),
            *("--width=", "--side-by-side", "--ignore-all-space", "--ignore-space-change"),
            *("--ignore-blank-lines", "--suppress-common-lines", "--strip-trailing-cr"),
            *("--ignore-case", "--report-identical-files", "--minimal"),
        ),
    ),
    "dirname": Verb(free=ANY, prints=True),
    "dpkg": Verb(flags="lsLS", free=ANY),
    "du": Verb(
        flags="abcDhHkLlmPsSx",
        valued="dt",
        names=("--max-depth=",),
        wild=True,
        lists=True,
        shows=False,
    ),
    "echo": Verb(free=ANY, prints=True),
    "egrep": GREP,
    "eza": LIST_FILES,
    "exa": LIST_FILES,
    "expand": Verb(flags="i", valued="t", wild=True),
    "export": Verb(free=ANY, least=1),
    "factor": Verb(free=ANY),
    "expr": Verb(free=ANY),
    "false": Verb(most=0),
    "fd": FIND_NAMES,
    "fdfind": FIND_NAMES,
    "fgrep": GREP,
    "file": Verb(flags="bihLkr", names=("--mime-type", "--brief"), shows=False),
    "fmt": Verb(flags="su", valued="w", wild=True),
    "fold": Verb(flags="bs", valued="w", wild=True),
    "free": Verb(flags="bkmghtlw", most=0),
    "grep": GREP,
    "groups": Verb(most=0),
    "getconf": Verb(free=1, least=1, most=1),
    "gunzip": Verb(flags="cklqt", wild=True),
    "gzip": Verb(flags="cdklqt", wild=True),
    "head": Verb(flags="qvz" + DIGITS, valued="nc", names=("--lines=", "--bytes="), wild=True),
    "hexdump": Verb(flags="Cbcdovx", valued="ns"),
    "hostname": Verb(flags="Is", most=0),
    "iconv": Verb(valued="ft", placed="ft", flags="c", most=1),
    "id": Verb(flags="ugnGr", free=1, most=1),
    "join": Verb(flags="iz", valued="12jt", most=2),
    "jq": Verb(
        flags="acCeMnrsSjR",
        names=(
            "--raw-output",
            "--compact-output",
            "--slurp",
            "--sort-keys",
            "--tab",
            "--null-input",
        ),
        takes=(("--arg", 2), ("--argjson", 2), ("--indent", 1)),
        free=1,
        is_program=True,
    ),
    "locale": Verb(flags="a", most=0),
    "ls": Verb(
        flags="aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        valued="wIT",
        names=(
            *("--all", "--color", "--color=", "--human-readable", "--recursive", "--sort="),
            *(
                "--almost-all",
                "--reverse",
                "--time-style=",
                "--group-directories-first",
                "--ignore=",
            ),
            *("--full-time", "--size", "--inode"),
        ),
        wild=True,
        shows=False,
        itself=frozenset("d"),
    ),
    "last": Verb(flags="aFiwx" + DIGITS, valued="n", free=1, most=1),
    "lsb_release": Verb(flags="acdirs", most=0),
    "lsof": Verb(flags="nPt", attached="is", free=1, most=1),
    "lsblk": Verb(flags="abdfilmpnrtS", most=0),
    "lscpu": Verb(most=0),
    "md5sum": SUM,
    "netstat": Verb(flags="aeilnprstuxW46", most=0),
    "nm": Verb(flags="aACDglnoPrSu", names=("--demangle", "--defined-only"), responds=True),
    "ncal": Verb(flags="13bhjyM", free=2, most=2),
    "nl": Verb(flags="p", valued="bwnsv", wild=True),
    "nproc": Verb(names=("--all",), most=0),
    "objdump": Verb(flags="adfhprstTxC", responds=True),  # -S prints files that the object names
    "numfmt": Verb(
        valued="d",
        names=("--to=", "--from=", "--suffix=", "--field=", "--padding=", "--header", "--format="),
        free=ANY,
    ),
    "od": Verb(flags="bcdox", valued="AtNj", attached="w", wild=True),
    "pdfinfo": Verb(most=1),
    "paste": Verb(flags="sz", valued="d", wild=True),
    "pdftotext": Verb(flags="anopgbrkwq", valued="fl", least=2, most=2),
    "pgrep": Verb(flags="lxcnoi", valued="u", free=1, least=1, most=1),
    "ps": Verb(flags="eA", valued="p", most=0),
    "pr": Verb(flags="adtTfJn" + DIGITS, valued="lwoh", wild=True),
    "printf": Verb(free=ANY, prints=True),
    "printenv": Verb(free=1, least=1, most=1),
    "popd": Verb(most=0),
    "pushd": Verb(least=1, most=1),
    "pwd": Verb(flags="LP", most=0),
    "readelf": Verb(flags="adehlnrsSVW", responds=True),
    "readlink": Verb(flags="fem", shows=False),
    "realpath": Verb(flags="emsz", shows=False),
    "rev": Verb(wild=True),
    "rg": Verb(
        flags="acFhHiIlnNoPpqsSuUvwxV0",
        valued="egtTmrdMABC",
        names=(
            *("--files", "--hidden", "--type=", "--glob=", "--ignore-case", "--color=", "--json"),
            *("--no-heading", "--heading", "--line-number", "--stats", "--sort=", "--no-ignore"),
            *("--count", "--files-with-matches", "--word-regexp", "--fixed-strings", "--iglob="),
            *("--context=", "--after-context=", "--before-context=", "--max-depth=", "--vimgrep"),
            *("--smart-case", "--multiline", "--only-matching", "--no-filename", "--max-count="),
            *("--replace=", "--type-list", "--trim", "--column", "--type-not=", "--pcre2"),
            *("--files-without-match", "--count-matches", "--no-line-number", "--max-columns="),
        ),
        takes=(
            *(("--type", 1), ("--glob", 1), ("--max-count", 1), ("--max-depth", 1), ("--sort", 1)),
            *(("--iglob", 1), ("--context", 1), ("--replace", 1), ("--type-not", 1)),
        ),
        free=1,
        shows=False,
    ),
    "sed": Verb(
        flags="nErsuz", valued="e", names=("--quiet", "--regexp-extended"), free=1, is_program=True
    ),
    "seq": Verb(flags="w" + DIGITS, valued="sf", free=3, most=3),
    "sha1sum": SUM,
    "sha224sum": SUM,
    "sha256sum": SUM,
    "sha384sum": SUM,
    "sha512sum": SUM,
    "shasum": Verb(flags="bct", valued="a", shows=False),
    "shuf": Verb(flags="rz", valued="ni", most=1),
    "size": Verb(flags="ABdtx", responds=True, shows=False),
    "sleep": Verb(free=1, least=1, most=1),
    "sort": Verb(
        flags="bcCdfghiMmnrRsuVz", valued="ktS", names=("--reverse", "--unique", "--numeric-sort")
    ),
    "ss": Verb(flags="aeHilmnoprstuxW46", most=0),
    "stat": Verb(flags="Lft", valued="c", names=("--format=",), wild=True, shows=False),
    "strings": Verb(flags="a", valued="nt", responds=True),
    "sum": Verb(wild=True, shows=False),
    "tac": Verb(wild=True),
    "tail": Verb(flags="qvz" + DIGITS, valued="nc", names=("--lines=", "--bytes="), wild=True),
    "test": Verb(free=ANY),
    "top": Verb(flags="b", valued="no", most=0),
    "tr": Verb(flags="cCdst", free=2, most=2),
    "tree": Verb(
        flags="acdfghilnpqrstuvxACDFJNQSUX",
        valued="LIP",
        names=("--dirsfirst", "--noreport", "--prune", "--gitignore"),
        shows=False,
    ),
    "true": Verb(most=0),
    "tsort": Verb(most=1),
    "tty": Verb(flags="s", most=0),
    "type": Verb(flags="at", free=ANY),
    "uname": Verb(flags="asnrvmpio", most=0),
    "unexpand": Verb(flags="a", valued="t", wild=True),
    "uniq": Verb(flags="cdDiuz", valued="fsw", names=("--count",), most=1),
    "uptime": Verb(flags="ps", most=0),
    "wc": Verb(
        flags="clLmw", names=("--lines", "--words", "--bytes"), wild=True, lists=True, shows=False
    ),
    "unzip": Verb(flags="lpqtvZ1"),
    "vmstat": Verb(flags="adsw", free=2, most=2),
    "whereis": Verb(flags="bms", free=ANY, shows=False),
    "which": Verb(flags="a", free=ANY, shows=False),
    "who": Verb(flags="abHqrsu", most=0),
    "whoami": Verb(most=0),
    "xmllint": Verb(names=("--format", "--noout", "--nonet", "--xpath="), takes=(("--xpath", 1),)),
    "xxd": Verb(flags="bpu", valued="lsc", most=1),
    "xz": Verb(flags="cdlqv"),
    "xzcat": Verb(),
    "yq": Verb(flags="rPMCje", valued="op", free=1, least=1, is_program=True),
    "zcat": Verb(wild=True),
    "zgrep": GREP,
    "zstdcat": Verb(),
    "lz4cat": Verb(),
    "lzcat": Verb(),
    "zipinfo": Verb(flags="1shtmv", shows=False),
}


def _add_long(name: str, verb: Verb) -> Verb:
    names = LONG_OPTIONS.get(name, "").split()
    bound = [one[:-1] for one in names if one[-1] == "=" and one[:-1] not in names]
    return replace(
        verb,
        names=tuple(dict.fromkeys((*verb.names, *names))),
        takes=tuple({**dict.fromkeys(bound, 1), **dict(verb.takes)}.items()),
    )


VERBS = {name: _add_long(name, verb) for name, verb in _KNOWN.items()}

VERSIONS = frozenset(
    {"bash", "black", "bun", "clang", "clang++", "cc", "cmake", "curl", "deno", "docker", "ffmpeg"}
    | {"g++", "gcc", "gem", "git", "gzip", "java", "javac", "jq", "lua", "make", "mypy", "node"}
    | {"npm", "npx", "openssl", "pandoc", "perl", "php", "pip", "pip3", "psql", "python", "python3"}
    | {
        "rg",
        "ruby",
        "ruff",
        "sh",
        "sqlite3",
        "swift",
        "tar",
        "terraform",
        "unzip",
        "uv",
        "wget",
        "zip",
    }
    | {"aws", "code", "ffprobe", "gh", "helm", "hyperfine", "mysql", "nginx", "redis-cli", "rsync"}
    | {"tmux", "zsh", "ldd", "ld", "as", "split", "tee", "cp", "mv", "rm", "mkdir", "xargs", "find"}
    | {"gawk", "xz", "zstd", "less", "vim", "emacs", "nano", "screen", "strace", "gdb"}
    | {"gfortran", "ninja", "meson", "autoconf", "automake", "pkg-config"}
    | {"systemctl", "journalctl", "nice", "env", "timeout", "bwrap", "fish"}
)
"""Programs that only tell their version. Programs that first look into the workspace for what to
load are left out: cargo, go, yarn, dotnet, pytest."""
TELLING = frozenset(
    {
        ("javac", "-version"),
        ("python", "-V"),
        ("python3", "-V"),
        ("node", "-v"),
        ("npm", "-v"),
        ("ruby", "-v"),
        ("php", "-v"),
    }
    | {("perl", "-v"), ("java", "-version"), ("openssl", "version"), ("git", "version")}
    | {
        ("ffmpeg", "-version"),
        ("lua", "-v"),
        ("terraform", "version"),
        ("pip", "list"),
        ("pip", "freeze"),
    }
    | {("command", "-v"), ("kubectl", "version", "--client"), ("docker", "compose", "version")}
    | {("ffprobe", "-version"), ("openssl", "version", "-a"), ("nginx", "-v"), ("ssh", "-V")}
    | {
        ("apt", "list", "--installed"),
        ("mount",),
        ("stty", "size"),
        ("tput", "cols"),
        ("stty", "-a"),
        ("clear",),
    }
    | {("ifconfig",), ("tput", "lines"), ("tmux", "-V"), ("helm", "version"), ("gh", "version")}
    | {
        *(("break",), ("continue",), ("return", "0"), ("return", "1"), ("exit", "0")),
        ("jobs",),
        ("jobs", "-l"),
        ("jobs", "-p"),
        ("hash",),
        ("umask",),
        ("umask", "-S"),
        ("times",),
    }
    | {("set", "-o"), ("dirs",), ("dirs", "-v"), ("dirs", "-p"), ("trap", "-p"), ("trap", "-l")}
    | {
        ("wait",),
        ("kill", "-l"),
        ("alias",),
        ("tput", "colors"),
        ("tput", "bold"),
        ("tput", "sgr0"),
    }
    | {
        ("ip", *brief, thing, *show)
        for brief in ((), ("-br",), ("-4",), ("-6",), ("-c",))
        for thing in ("a", "addr", "address", "l", "link", "r", "route")
        for show in ((), ("show",))
    }
)
"""Other commands that tell a version, or what is installed, word for word."""
