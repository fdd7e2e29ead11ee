"""Shell commands made by a grammar: hostile ones in every dress, and harmless ones that only read."""

from hypothesis import strategies as st

from tests.attacks.shell_cases import HOSTILE

_ACTS = tuple(
    act for kind in ("removes", "runs", "sends") for act in HOSTILE[kind] if "\n" not in act
)
_BEFORE = (
    "",
    "ls; ",
    "ls && ",
    "ls || ",
    "pwd | ",
    "cat a.txt | ",
    "cd src && ",
    "true; true; ",
    "echo 'a'; ",
)
_AFTER = (
    "",
    "; ls",
    " && ls",
    " | head",
    " 2>/dev/null",
    " # ls",
    " || true",
    " >/dev/null 2>&1",
    " ",
)
_AROUND = (
    "{}", "( {} )", "{{ {}; }}", "$({})", "`{}`", "sh -c '{}'", 'bash -c "{}"', "eval '{}'", "! {}",
    "if true; then {}; fi", "for x in 1; do {}; done", "X=1 {}", "env {}", "nohup {} &", "echo $({})",
    'echo "$({})"', "cat <({})", "xargs {}", "time {}", "sudo {}", "command {}", "exec {}",
)  # fmt: skip
_QUOTES = ("'", '"')


@st.composite
def disguise_word(draw: st.DrawFn, word: str) -> str:
    """The word as another spelling of the same."""
    at = draw(st.integers(1, max(1, len(word) - 1)))
    head, tail = word[:at], word[at:]
    quote = draw(st.sampled_from(_QUOTES))
    spelled = "".join(f"\\x{ord(letter):02x}" for letter in word)
    ways = (
        word,
        f"{head}{quote}{quote}{tail}",
        f"{quote}{head}{quote}{tail}",
        f"{head}\\{tail}" if tail else f"\\{head}",
        f"{head}${{x}}{tail}",
        f"$'{spelled}'",
        f"{{{word},}}",
    )
    return draw(st.sampled_from(ways))


@st.composite
def hostile_commands(draw: st.DrawFn) -> str:
    """A command that changes, runs or sends something, dressed and placed."""
    act = draw(st.sampled_from(_ACTS))
    verb, blank, rest = act.partition(" ")
    dressed = draw(disguise_word(verb)) + blank + rest
    around = draw(st.sampled_from(_AROUND))
    return draw(st.sampled_from(_BEFORE)) + around.format(dressed) + draw(st.sampled_from(_AFTER))


_NAMES = st.sampled_from(
    ("a.txt", "src/main.py", "docs/read me.md", "data/2024.csv", "ü.txt", "./x", "/workspace/b.log")
)
_WORDS = st.sampled_from(("hello", "rm -rf /", "a && b", "x | y", "{print}", "100 %", "curl evil"))


def _quote(text: str) -> str:
    plain = text.isascii() and all(char.isalnum() or char in "./_-" for char in text)
    return text if plain else f"'{text}'"


@st.composite
def _reading(draw: st.DrawFn) -> str:
    name, word = _quote(draw(_NAMES)), _quote(draw(_WORDS))
    number = draw(st.integers(1, 999))
    forms = (
        f"cat {name}", f"cat -n {name}", f"head -n {number} {name}", f"tail -{number} {name}",
        f"wc -l {name}", f"ls -la {name}", f"stat -c %s {name}", f"file {name}", f"nl {name}",
        f"grep -n {word} {name}", f"grep -c {word} {name}", f"echo {word}", f"printf '%s' {word}",
        f"sort -k{number} {name}", f"uniq -c {name}", f"cut -d, -f{number} {name}",
        f"sed -n {number}p {name}", f"awk '{{print ${number}}}' {name}", f"du -sh {name}",
        f"find . -name {word}", f"diff {name} {name}", f"git log -n {number} -- {name}",
        f"git diff -- {name}", f"git blame {name}", f"seq {number}", "tr a-z A-Z", "pwd", "date -u",
        f"rg hello {name}", f"jq '.[{number}]' {name}", f"sha256sum {name}", f"xxd -l {number} {name}",
    )  # fmt: skip
    return draw(st.sampled_from(forms))


@st.composite
def reading_commands(draw: st.DrawFn) -> str:
    """A line of commands that only read the workspace."""
    parts = draw(st.lists(_reading(), min_size=1, max_size=4))
    joints = st.sampled_from((" | ", " && ", "; ", " || ", "|", " 2>/dev/null | "))
    line = parts[0]
    for part in parts[1:]:
        line += draw(joints) + part
    return line + draw(st.sampled_from(("", " 2>&1", " >/dev/null", ";", "  ")))
