"""Secrets in every shape are taken out, also where text comes in pieces; other texts stay."""

import base64
import json
import os
import re
import shlex
import string
import subprocess
import time
import unicodedata
from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_core.guardrails.answers import redact_arguments, redact_proposal
from agent_core.guardrails.command_secrets import OPENINGS
from agent_core.guardrails.named.secret_names import KEYS, PASSWORDS, SIGNS
from agent_core.guardrails.redaction import MAX_HELD, NOTHING, Redactions, StreamRedactor
from agent_core.guardrails.secret_shapes import (
    MARK,
    MAX_RUN,
    SHAPES,
    Shape,
    find_shape,
    has_shape,
    hide_shapes,
)
from agent_core.guardrails.secret_spellings import spell_secret
from agent_core.guardrails.sign_search import find_sign
from agent_core.memory.refusals import refusal
from agent_core.questions import Coverage, Proposal
from gateway.ops.logs import Redactor
from tests.attacks.case_lists import read_cases
from tests.attacks.secret_grammar import PLAIN, spell
from tests.attacks.secret_grammar import SHAPES as DRAWN
from tests.sampling import SEED, dice, examples

AROUND = (
    "{}",
    "It is {} and no other.",
    "`{}`",
    '{{"it": "{}"}}',
    "a\n{}\nb",
    "({})",
    "x={};y",
    "<b>{}</b>",
    "密钥是{}，请勿外传",
    "é{}é",
    "Токен{}это",
    "first\\n{}\\nlast",
    "\\\\t{}\\\\r\\\\n",
    "\x1b[1;31m{}\x1b[0m",
    "\ufffd[32m{}\ufffd[0m",
    "\\u001b[01;31m\\u001b[K{}\\u001b[m",
    "\\033[32m{}",
    "\\u0022{}\\u0022",
    "x%20{}%0Ay",
    "%2522{}%2522",
    "it=&quot;{}&quot;",
    "&amp;#x27;{}&amp;#x27;",
    "%7B%22a%22%3A%22%5Cn{}%5Cn",
    "&#37;5Cn{}&#37;5Cn",
)
LINES = (
    *("{}", "    {}", "\t\t{}", "-{}", "+    {}", "   12\t{}", "12:{}", "docs/a.txt:12:{}", "> {}"),
    *("docs/a.txt-12-{}", "# {}", "// {}", " * {}", '"{}\\n" +', "    '{}\\n'", '  "{}",', "{}\r"),
    *("web_1  | {}", "2026-01-01T00:00:00Z {}", "ab12cd3e (Ann 2026-01-01 12) {}", "{}   ", "{}\\"),
    *("{}<br>", "  12 │ {}"),
)
"""What commands, files and programs put around each line of a key."""
BASE64 = string.ascii_letters + string.digits + "+/"
VALUES = (
    "correct horse battery",
    "p/4+ss=w0rd",
    'qu"ote\\back',
    "<a&b'c>",
    "pässwörd-ß",
    "hunter2-hunter2",
)


def core_of(secret: str) -> str:
    """What of a made secret must not be seen: its last letters before what closes it."""
    kept = (
        secret.partition("-----END")[0].rstrip().removesuffix("\\n")
        if "-----" in secret
        else secret
    )
    return kept.partition("@")[0].rstrip('"=')[-8:]


def stream(words: Redactions, text: str, cuts: list[int]) -> str:
    shown: list[str] = []
    veil = StreamRedactor(words, shown.append)
    edges = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    for a, b in zip(edges, edges[1:], strict=False):
        veil.add(text[a:b])
    veil.end()
    return "".join(shown)


@pytest.mark.parametrize("kind", DRAWN)
def test_every_shape_is_taken_out(kind: str) -> None:
    @seed(SEED)
    @settings(max_examples=examples(80), deadline=None)
    @given(DRAWN[kind], st.sampled_from(AROUND))
    def check(secret: str, around: str) -> None:
        text = around.format(secret)
        hidden = hide_shapes(text)
        assert core_of(secret) not in hidden and MARK in hidden and has_shape(text)
        assert core_of(secret) not in Redactor(()).clean(text), "nor in the log"
        assert refusal(text), "nor in memory"

    check()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[1][:30])
def test_a_search_by_signs_finds_what_a_search_of_the_whole_text_finds(shape: Shape) -> None:
    signs, expression = shape
    pattern = re.compile(expression, re.ASCII)
    checks = HealthCheck.filter_too_much, HealthCheck.too_slow
    seen = set()

    @seed(SEED)
    @settings(max_examples=examples(60), deadline=None, suppress_health_check=checks)
    @given(strategy_for(pattern))
    def check(found: str) -> None:
        for around in ("", "a", "_", "Aa0", ": ", "\n"):
            text = "".join((" " * 9_000, around, found, around, found, " " * 9_000))
            has_sign = any(next(find_sign(sign, text), None) for sign in signs)
            whole = [one.span() for one in pattern.finditer(text)] if has_sign else []
            assert list(find_shape(shape, text)) == whole
            seen.update(whole)

    check()
    assert seen, "none of the examples had it"


def strategy_for(pattern: re.Pattern[str]) -> st.SearchStrategy[str]:
    """Make texts that the pattern finds. What its beginnings ask of the whole is drawn at once:
    hypothesis would throw nearly all away."""
    for prefix, rest in (("00", 40), ("ak_", 20)):
        if pattern.pattern.startswith((rf"\b{prefix}(?=", rf"\bo?{prefix}(?=")):
            letters = st.text(
                f"{string.ascii_letters}{string.digits}_-", min_size=rest - 4, max_size=rest - 4
            )
            return letters.map(lambda text: f"{prefix}aA0b{text}")
    return st.from_regex(pattern)


@pytest.mark.parametrize("around", LINES)
def test_a_private_key_is_taken_out_whatever_is_around_its_lines(around: str) -> None:
    words = Redactions({}).with_shapes()
    for n in range(examples(20)):
        chance = dice(around, n)
        kind = chance.choice(("RSA PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"))
        head = chance.choice(([], ["Proc-Type: 4,ENCRYPTED", ""], ["Version: GnuPG v2", ""]))
        rows, _ = spell(" ".join(["{a64}"] * chance.randrange(1, 8)) + " {a40}==", chance)
        key = [f"-----BEGIN {kind}-----", *head, *rows.split(), f"-----END {kind}-----"]
        text = "\n".join(("before", *map(around.format, key), "after"))
        hidden = hide_shapes(text)
        assert not any(row[:30] in hidden for row in rows.split()), hidden
        assert hidden.startswith("before\n") and hidden.endswith("\nafter")
        cuts = [chance.randrange(10_000) for _ in range(6)]
        assert stream(words, text, cuts) == words.hide(text)
        assert stream(words, text, list(range(len(text)))) == words.hide(text)


def test_a_private_key_hides_no_other_words_of_a_command() -> None:
    row, _ = spell("{a64}", dice("rows"))
    for line in (f"rm data;#{row}", f"rm data {row}", f"{row};rm data", f"{row} && rm data"):
        text = f"cat <<EOF\n-----BEGIN PRIVATE KEY-----\n{line}\nEOF"
        assert "rm data" in hide_shapes(text), text
    text = f"# -----BEGIN PRIVATE KEY-----\n# {row}\nrm data\n-----END PRIVATE KEY-----"
    assert "rm data" in hide_shapes(text), text


PUBLISHED, LOOKALIKES = read_cases("secrets_published"), read_cases("secrets_lookalikes")


def test_what_providers_and_commands_take_is_not_seen() -> None:
    """Each where it is met: bare, in a setting, in a command's line; 100 %."""
    for case in PUBLISHED:
        for n in range(3):
            text, secrets = spell(case, dice(case, n))
            hidden = hide_shapes(text)
            assert secrets and has_shape(text), case
            for secret in secrets:
                assert secret.rstrip("=/%3D\n")[-8:] not in hidden, f"{case}: {hidden}"


def test_a_bare_token_with_few_digits_is_seen_by_its_capitals() -> None:
    chance = dice("few digits")
    for _ in range(examples(300)):
        drawn = chance.choices(string.ascii_letters, k=40)
        drawn[chance.randrange(6)] = chance.choice(string.digits)
        drawn[7:11], drawn[19:23], drawn[29:33] = "aQXb", "cKVd", "eZRf"
        text = f"curl -H 'Authorization: {''.join(drawn)}' https://api.example.com/"
        assert has_shape(text), text


def test_the_start_of_a_long_text_shows_no_part_of_a_secret_that_goes_on() -> None:
    """Wherever the needed characters, or those read beyond them, end in it."""
    words = Redactions({}).with_shapes()
    for case in dice("starts").sample(PUBLISHED, examples(200)):
        chance = dice(case, "start")
        text, _ = spell(case, chance)
        for ahead in (0, MAX_HELD):
            most = chance.randrange(1, 600)
            before = max(most + ahead - chance.randrange(len(text) + 1), 0)
            whole = f"{'word ' * (before // 5)}{text}{' word' * 4_000}"
            shown = words.hide_start(whole, most)
            assert words.hide(whole).startswith(shown), case
            assert len(shown) >= min(most, before // 5 * 5) and len(shown) < most + 2 * MAX_HELD


def test_only_looked_at_is_what_is_needed_of_a_calls_arguments() -> None:
    secret, _ = spell("⟦ghp_{a36}⟧", dice("arguments"))
    words = Redactions({"hunter2\\hunter2": "[mine]"}).with_shapes()
    given = {"path": secret, "content": [f"a hunter2\\hunter2 {secret} " * 100_000]}
    began = time.process_time()
    shown = redact_arguments(json.dumps(given), words, 500)
    assert time.process_time() - began < 1.0, "a hundredth of the whole"
    assert secret[-8:] not in shown and "hunter2" not in shown
    assert json.loads(shown)["content"][0].startswith(f"a [mine] {MARK} a [mine] {MARK} ")


@pytest.mark.parametrize("around", ["\n" * 5_000, "\n" * 5_000 + "\u0130\n"])
def test_a_long_text_around_it_changes_nothing(around: str) -> None:
    """A long text is searched only where signs are; one letter is two in its small writing."""
    cases = (*PUBLISHED, *LOOKALIKES)
    for case in dice("long", around).sample(cases, examples(len(cases))):
        text, _ = spell(case, dice(case, "long"))
        assert hide_shapes(f"{around}{text}\n") == f"{around}{hide_shapes(text)}\n", case


def test_shapes_are_not_added_to_what_is_without_them() -> None:
    assert not NOTHING.with_shapes().empty and NOTHING.empty
    assert NOTHING.with_shapes().hide("hf_" + "a1B" * 12) == MARK
    assert NOTHING.hide("hf_" + "a1B" * 12) == "hf_" + "a1B" * 12


def test_what_only_looks_like_it_stays() -> None:
    """Hashes, ids, pictures, ports, prose about options; none is taken."""
    for case in LOOKALIKES:
        for n in range(3):
            text, _ = spell(case, dice(case, n))
            assert hide_shapes(text) == text and not has_shape(text), case
            written = json.dumps(text)
            assert hide_shapes(written) == written, case


DIRECT = (
    *(": ", ":", " = ", "=", "： ", " : ", "：", "=> ", '": "', "\u00a0: ", ":= "),
    "＝",
    ": «",
    ': "',
)
BEHIND = (
    *(
        " ist ",
        " est ",
        " es ",
        " — ",
        " → ",
        " -> ",
        " | ",
        ":** ",
        ":\n  ",
        " (prod): ",
        "</b>: ",
    ),
    *(
        " для базы: ",
        "是",
        "は",
        "\t",
        " `",
        "：「",
        " will be ",
        "` | `",
        " for ann: ",
        " set to ",
    ),
)
"""What may stand between a name and its value; with the first a password that somebody chose counts."""
WRITTEN: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    str.title,
    lambda name: (
        unicodedata.normalize("NFD", name) if " " not in name and name < "\u3000" else name
    ),
    lambda name: name.replace(" ", "_").replace("'", "’"),
    lambda name: f"my_{name}",
)
NO_VALUES = (
    *("required", "2024-11-03", "********", "siehe Wiki2", "os.environ['KEY2']", "get_password2()"),
    *(
        "<value>",
        "${PASSWORD2}",
        "varchar(255)",
        "12 Zeichen",
        "忘れた場合",
    ),
)


@pytest.mark.parametrize("names", [PASSWORDS, KEYS], ids=["passwords", "keys"])
def test_a_secret_behind_its_name_is_taken_out_in_any_language(names: tuple[str, ...]) -> None:
    words = Redactions({}).with_shapes()
    for n in range(examples(1_600)):
        chance = dice("names", len(names), n)
        name = chance.choice(WRITTEN)(chance.choice(names))
        direct = names is PASSWORDS and chance.random() < 0.5
        between = chance.choice(DIRECT if direct else (*DIRECT, *BEHIND))
        value, _ = spell("{a12}" if direct else "{a40}", chance)
        said = f"{name}{between}{value}"
        if chance.random() < 0.3:
            said = json.dumps(said)
        text = f"{chance.choice(('', 'Hi. ', 'первый ', '数据库', '- '))}{said}{chance.choice(('', '. Bye', '，再见', ' | x'))}"
        hidden = words.hide(text)
        assert value[-8:] not in hidden, text
        assert stream(words, text, [chance.randrange(10_000) for _ in range(6)]) == hidden
        assert stream(words, text, list(range(len(text)))) == hidden
        plain = text.replace(value, chance.choice(NO_VALUES))
        assert hide_shapes(plain) == plain


def test_pieces_of_commands_show_what_the_whole_shows() -> None:
    words = Redactions({}).with_shapes()
    for n in range(examples(300)):
        chance = dice("commands", n)
        cases = chance.sample(PUBLISHED + LOOKALIKES, 3)
        text = chance.choice((" ", "\n", ", ")).join(spell(case, chance)[0] for case in cases)
        cuts = [chance.randrange(10_000) for _ in range(6)]
        assert stream(words, text, cuts) == words.hide(text), (n, text)
        assert stream(words, text, list(range(len(text)))) == words.hide(text), (n, text)


@pytest.mark.parametrize("behind", [", jdbc:oracle", ", x y", " and, so on", "\tdbc"])
def test_pieces_of_a_netrc_end_where_the_whole_does(behind: str) -> None:
    words = Redactions({}).with_shapes()
    for line in ("default", "machine example.com"):
        text = f"{line} login joe password 27Rk8X4ZQpYlxck{behind}"
        assert stream(words, text, list(range(len(text)))) == words.hide(text)


def test_a_token_below_puttys_lines_is_hidden_whole() -> None:
    """Its first part looks like a line of the key, which must not be hidden alone."""
    words = Redactions({}).with_shapes()
    token = ".".join(("ODMxOjRFWXIk8XJXbVt5NV7o", "Lmzdw6", "vZ5iWWqKUuyexI45TFboh0mNVd8"))
    text = f"Private-Lines: 14\n{token}\nand so on"
    assert words.hide(text) == f"Private-Lines: 14\n{MARK}\nand so on"
    assert stream(words, text, list(range(len(text)))) == words.hide(text)


@seed(SEED)
@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.one_of(*DRAWN.values(), st.sampled_from(PLAIN), st.sampled_from(VALUES)), max_size=5
    ),
    st.sampled_from((" ", "\n", ", ", "` and `")),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_pieces_show_what_the_whole_shows(parts: list[str], between: str, cuts: list[int]) -> None:
    words = Redactions({form: "[X]" for one in VALUES for form in spell_secret(one)}).with_shapes()
    text = between.join(parts)
    assert stream(words, text, cuts) == words.hide(text)
    assert stream(words, text, list(range(len(text)))) == words.hide(text), "letter by letter"


@pytest.mark.parametrize("gap", [" ", "\\n", "\\\\n"])
def test_words_of_commands_within_keys_are_parts_of_them(gap: str) -> None:
    """Of keys on one line; a word such as `7z` opens a command elsewhere."""
    words = Redactions({}).with_shapes()
    for n, word in enumerate(one for one in OPENINGS if one.isalnum()):
        chance = dice(gap, word)
        kind = chance.choice(("PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"))
        body = [
            word.join(
                ("".join(chance.choices(BASE64, k=30)), "".join(chance.choices(BASE64, k=30)))
            )
            for _ in range(3)
        ]
        key = gap.join((f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----"))
        text = f'{{"first": "{key}", "second": "{key}", "third": {n}}} and so on'
        hidden = words.hide(text)
        assert not any(line in hidden for line in body), hidden
        edges = [chance.randrange(10_000) for _ in range(20)]
        assert stream(words, text, edges) == hidden
        assert stream(words, text, list(range(0, len(text), 7))) == hidden


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_stay(text: str) -> None:
    assert hide_shapes(text) == text
    assert stream(Redactions({}).with_shapes(), text, list(range(len(text)))) == text


@seed(SEED)
@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(min_size=8, max_size=40).filter(lambda text: text.strip() == text),
    st.sampled_from(AROUND),
)
def test_a_known_value_is_taken_out_in_every_form(value: str, around: str) -> None:
    words = Redactions(dict.fromkeys(spell_secret(value), "[X]"))
    for form in spell_secret(value):
        if form not in around:
            assert form not in words.hide(around.format(form))


ESCAPES: tuple[Callable[[str], str], ...] = (
    str,
    lambda char: "".join(f"%{byte:02X}" for byte in char.encode()),
    lambda char: "".join(f"%{byte:02x}" for byte in char.encode()),
    lambda char: f"%25{ord(char):02x}" if ord(char) < 128 else char,
    lambda char: f"\\u{ord(char):04x}",
    lambda char: f"\\\\u{ord(char):04X}",
    lambda char: f"&#{ord(char):04};",
    lambda char: f"&#x{ord(char):X};",
    lambda char: f"&amp;#{ord(char)};",
    lambda char: char if char.isalnum() else f"\\{char}",
)


@seed(SEED)
@settings(max_examples=examples(150), deadline=None)
@given(
    st.text("abcXYZ0189+/=@!_-~:,#", min_size=8, max_size=40),
    st.lists(st.sampled_from(ESCAPES), min_size=1, max_size=40),
    st.sampled_from(AROUND),
    st.sampled_from((0, 30, MAX_RUN)),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_a_known_value_is_known_however_its_characters_are_escaped(
    value: str, ways: list[Callable[[str], str]], around: str, more: int, cuts: list[int]
) -> None:
    """Each program escapes others, in digits of its own case; streamed too, also in a long run."""
    words = Redactions(dict.fromkeys(spell_secret(value), "⟦X⟧")).with_shapes()
    written = "".join(way(char) for way, char in zip(cycle(ways), value, strict=False))
    text = f"{'x%20' * (more // 4)}{around.format(written)}{'%20x' * (more // 4)}"
    assert (hidden := words.hide(text)) != text
    assert stream(words, text, cuts) == hidden
    assert stream(words, text, list(range(0, len(text), 7))) == hidden


@pytest.mark.parametrize(
    "written",
    [
        "say \\u0022it\\u0022 \\u003C\\u0026\\u003E",
        'say \\"it\\" \\u003c\\u0026\\u003e',
        "say &#34;it&#34; &lt;&amp;&gt;",
        "say%20%22it%22%20%3c%26%3e",
        "say+%22it%22+%3c%26%3e",
        "say%20%22it%22%20%3C%26%3E",
        "73:61:79:20:22:69:74:22:20:3C:26:3E",
        "7361 7920 2269 7422 203c 263e",
        base64.b64encode('say "it" <&>'.encode("utf-16-le")).decode(),
        base64.b64encode(base64.b64encode(b'say "it" <&>')).decode(),
        base64.b64encode(b'{"it": "say \\"it\\" <&>"}').decode(),
    ],
)
def test_a_value_with_blanks_is_known_as_programs_write_it(written: str) -> None:
    """.NET, Go, templates, JavaScript, forms, certificates, xxd, PowerShell, Kubernetes."""
    words = Redactions(dict.fromkeys(spell_secret('say "it" <&>'), "⟦X⟧")).with_shapes()
    assert "⟦X⟧" in words.hide(f"It is {written} and no other.")


WORDY = st.text("abYZ09 '\"$`\\!*_#&;()[]{}<>|?~=,.-üЖ\t", min_size=6, max_size=24)
"""Passphrases: with blanks, quotes and letters of other alphabets."""
PRINTED = (
    ("bash", 'printf %q "$K"'),
    ("bash", 'echo "${K@Q}"'),
    ("bash", "declare -p K"),
    ("bash", "export -p"),
    ("bash", "set"),
    ("bash", 'exec 2>&1; set -x; : "$K"'),
    ("sh", "export -p"),
    ("sh", "set"),
    ("sh", 'exec 2>&1; set -x; : "$K"'),
    ("sh", "printf '%s\\n' \"$K\" | cat -v"),
    ("sh", 'printf %s "$K" | base32 -w 0'),
)
QUOTED: tuple[Callable[[str], str], ...] = (
    shlex.quote,
    re.escape,
    lambda value: value.replace("'", "''"),
    lambda value: value.replace('"', '""'),
    lambda value: re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", value),
    lambda value: re.sub(r"([\\`*_\[\]~])", r"\\\1", value),
    lambda value: re.sub(r"([_*\[\]()~`>#+\-=|{}.!\\])", r"\\\1", value),
    lambda value: re.sub(r"(\W)", r"\\\1", value, flags=re.ASCII),
    lambda value: base64.b32encode(b"ab" + value.encode()).decode(),
)
"""A shell, a regular expression, SQL, CSV, markdown of three kinds, Perl, base32."""


@seed(SEED)
@settings(max_examples=examples(120), deadline=None)
@given(WORDY.filter(lambda value: len(value.strip()) > 5), st.sampled_from(PRINTED))
def test_a_passphrase_is_known_as_shells_print_it(value: str, printed: tuple[str, str]) -> None:
    """The programs themselves print it from their environment."""
    environment = {"PATH": os.environ["PATH"], "K": value, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [printed[0], "-c", printed[1]], env=environment, capture_output=True, check=True
    )
    words = Redactions(dict.fromkeys(spell_secret(value), "⟦X⟧")).with_shapes()
    assert "⟦X⟧" in words.hide((done.stdout + done.stderr).decode())


@seed(SEED)
@settings(max_examples=examples(300), deadline=None)
@given(WORDY, st.sampled_from(QUOTED), st.lists(st.integers(0, 80), max_size=4))
def test_a_passphrase_is_known_as_programs_quote_it(
    value: str, quote: Callable[[str], str], cuts: list[int]
) -> None:
    words = Redactions(dict.fromkeys(spell_secret(value), "⟦X⟧")).with_shapes()
    text = f"It is {quote(value)} and no other."
    assert "⟦X⟧" in (hidden := words.hide(text))
    assert stream(words, text, cuts) == hidden


LINE_ENDS = ("\n", "\r\n")


def cut_lines(text: str, width: int, end: str) -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


@seed(SEED)
@settings(max_examples=examples(200), deadline=None)
@given(
    st.text(string.ascii_letters + string.digits + "+/=_-", min_size=16, max_size=90),
    st.integers(1, 80),
    st.sampled_from(LINE_ENDS),
    st.sampled_from(AROUND),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_a_known_value_is_known_where_lines_cut_it(
    value: str, width: int, end: str, around: str, cuts: list[int]
) -> None:
    """As `base64`, `xxd -p` and `fold -w` print it; streamed too."""
    words = Redactions(dict.fromkeys(spell_secret(value), "⟦X⟧"))
    for form in (
        value,
        base64.b64encode(value.encode()).decode().rstrip("="),
        value.encode().hex(),
    ):
        text = around.format(cut_lines(form, width, end))
        hidden = words.hide(text)
        assert form not in hidden.replace("\n", "").replace("\r", ""), "not a line of it"
        assert "⟦X⟧" in hidden
        assert stream(words, text, cuts) == hidden
        assert stream(words, text, list(range(len(text)))) == hidden, "letter by letter"


def test_what_is_hidden_on_a_card_is_no_command() -> None:
    """Nothing of what runs may stand between what looks like a secret's ends."""
    for text in (
        "-----BEGIN PRIVATE KEY-----; rm -rf data; echo -----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nrm -rf data\n-----END PRIVATE KEY-----",
        "curl https://a:$(rm${IFS}data)@example.com/",
        "curl 'https://a.example/?token=`rm data`'",
        "x sk-proj-aaaaaaaaaaaaaaaaaaaaaaaa;rm data",
        "password: aaaaaaaaaaaaaaaaaaaa7;rm data",
        "sshpass -p secret7;rm data",
        "sshpass -p 'secret7' rm data",
        "mysql -psecret7$(rm data)",
        "echo secret7 | sudo -S rm data",
        "curl -u ann:secret7`rm data`",
        "docker login -p secret7&&rm data",
        "machine a login b password secret7\nrm data",
        "Private-Lines: 2\nAAAAAAAAAAAAAAAAAAAA\nrm data",
    ):
        assert "rm" in hide_shapes(text) and "data" in hide_shapes(text), text


def test_a_card_shows_no_secret_and_offers_no_rule_with_one() -> None:
    words = Redactions({"hunter2": "[KEY]"}).with_shapes()
    token = f"ghp_{'a' * 36}"
    plain = Proposal(
        call_id="c", tool="run_command", arguments='{"command": "ls"}', digest="d", risk="low",
        reason="It only reads.", rule="= ls", covers=Coverage(words="ls"),
    )  # fmt: skip
    assert redact_proposal(plain, words) == plain
    for secret in ("hunter2", token):
        given = replace(
            plain, arguments=f'{{"command": "x {secret}"}}', rule=f"= x {secret}", preview=secret
        )
        shown = redact_proposal(given, words)
        assert secret not in str(shown) and (shown.rule, shown.covers) == ("", None)
        assert shown.digest == given.digest, "what runs is what was judged"


@pytest.mark.timing
@pytest.mark.slow
def test_ten_kilobytes_take_five_milliseconds() -> None:
    words = Redactions({form: "[X]" for one in VALUES for form in spell_secret(one)}).with_shapes()
    text = ("The fox reads https://example.com/a?b=c and calls foo(bar) with key=value. " * 150)[
        :10_000
    ]
    words.hide(text)
    took = min(_spend(words, text) for _ in range(7))
    assert took <= 0.005, f"{took * 1_000:.1f} ms"


@pytest.mark.pick("text that hides secrets slowly", 6)
@pytest.mark.parametrize(
    "unit",
    ["a", "1", "-----BEGIN RSA PRIVATE KEY-----", f"-----BEGIN PRIVATE KEY-----\n# {'aA7' * 20}\n#\n", "\\n", "%41",
     "&amp;", "\x1b[31m", "\\nghp_", "eyJaaaaaaaa.", "token=", "Bearer ", "://a:b", "sk-", "password: ",
     "?token=aaaaaaaa", "M", "MNO", "mysql ", "mysql -p", "curl -u a:", " -p aaaa", "echo a", "machine a login b ",
     "Private-Lines: 1\n", "AAAAAAAAAAAAAAAA\n", "host=a ", "--password ", "htpasswd -b a ", "nmcli a", "$6$", "00aA", "a.", "password=a-", "://a:b@", "-----BEGIN ", "=", "a=", "\\n", "Proc-Type: a\n",
     "/hooks/a", "hook/", "/hooks/a1a1a1a1a1", "appid=a", "пароль ", "密码", "pass ", "pass: aA1aA1aA1aA1(", "mot de ",
     "password **", "pass\n", "\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c ", "".join(SIGNS), "user,password\n",
     "| a | token |\n", "|\n", "key,\n", '"token",', "kind: Secret\n", "apiVersion: v1\n", "data:\n", "token is ",
     "a:1a@/", "thin:a/", "TOKEN ", "AUTH ", "requirepass ", 'secret"value":'],
)  # fmt: skip
def test_no_text_takes_long(unit: str) -> None:
    words = Redactions({}).with_shapes()
    for text in (
        unit * (100_000 // len(unit)),
        "-----BEGIN PRIVATE KEY-----" + unit * (50_000 // len(unit)),
    ):
        assert _spend(words, text) < 1.0


def _spend(words: Redactions, text: str) -> float:
    began = time.process_time()
    words.hide(text)
    words.part(text)
    return (time.process_time() - began) / 2
