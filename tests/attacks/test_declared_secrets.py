"""Secrets that are declared: with a type in code, as an element with attributes, behind a name that
ends in 'pass'. A stream shows what the whole shows."""

import random

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agent_core.guardrails.redaction import Redactions, StreamRedactor
from agent_core.guardrails.secret_shapes import hide_shapes
from tests.attacks.secret_grammar import spell
from tests.sampling import SEED, examples

KEYS = (
    "api_key",
    "API_KEY",
    "apiKey",
    "ACCESS_TOKEN",
    "token",
    "TOKEN",
    "client_secret",
    "password",
)
DECLARED = (
    'const {n}: &str = "{v}";', "static {n}: &'static str = \"{v}\";", '{n}: Optional[str] = "{v}"',
    '{n}: str | None = "{v}"', "{n}: Final[str] = '{v}'", "{n}: Final = '{v}'", '{n}: str = "{v}"',
    'let {n}: String = "{v}"', 'val {n}: String? = "{v}"', "let {n}: string | undefined = '{v}'",
    'var {n} string = "{v}"', "{n} := \"{v}\"", "private readonly {n}: string = '{v}';",
)  # fmt: skip
ELEMENTS = (
    '<{n} id="1">{v}</{n}>',
    '<{n} type="plain" id="x">{v}</{n}>',
    '<{n} type="plain" id="x" lang="en">{v}</{n}>',
    '<{n} encoding="base64">{v}</{n}>',
)
PASSES = (
    "db",
    "mail",
    "smtp",
    "root",
    "admin",
    "user",
    "auth",
    "remote",
    "ftp",
    "ldap",
    "login",
    "sql",
)
PASSED = ("{n}={v}", "{n} = {v}", "{n}: '{v}'", '"{n}": "{v}"', '"{n}":"{v}"', "{n}: {v}", "-e {n}={v}", "export {n}='{v}'")  # fmt: skip
HARMLESS = (
    "bypass=true", "compass: north", "renderPass: shadowPass01", "let pass: string = next()", "token: str | None = None",
    "const TOKEN: &str = env!(\"TOKEN\");", "val apiKey: String? = null", "def f(api_key: Optional[str] = None):",
    "var token string", "token string = 1", "func f(password string) error {", '<password type="plain"></password>',
    '<input type="password" name="x">', "std::password::hash", "dbPass := os.Getenv(\"DB\")", "dbpass = getpass()",
    "userPass: user.pass", "dbPass=${DB_PASS}", "dbpass=changeme", "userPassword:: ", "authPass = read(2)", '<token id="1"/>',
    "GET /v1/auth/userpass/login/ann", "mailpass: see the wiki", "token\tcount\nhouse\t5\nhouses2\t7\n", "password\tlength\nyes\t12\n", "a\tb\npassword\tx1\n", "api_key: str = Field(min_length=12)", "sonar.login=$SONAR_TOKEN",
)  # fmt: skip


def name_passes() -> list[str]:
    joined = [f"{one}{'pass'}" for one in PASSES]
    return [*joined, *(f"{one}Pass" for one in PASSES), *(one.upper() for one in joined)]


def write_all(chance: random.Random) -> list[tuple[str, str]]:
    """Texts, and the secret in each."""
    cases = []
    for names, forms, value in (
        (KEYS, DECLARED, "{a32}"),
        (("password", "apiKey", "api_key"), ELEMENTS, "{a24}"),
        (name_passes(), PASSED, "{a14}"),
        (("userPassword",), ("{n}:: {v}",), "{a24}"),
        (("fernet_key", "FERNET_KEY", "sonar.login"), ("{n}={v}", "{n} = {v}"), "{a40}"),
    ):
        for name in names:
            for form in forms:
                made, _ = spell(value, chance)
                cases.append((form.format(n=name, v=made), made))
    return cases


def write_tables(chance: random.Random) -> list[tuple[str, str]]:
    """Tables whose columns a tab separates."""
    cases = []
    for column, value in (("password", "{a14}"), ("db_password", "{a12}"), ("token", "{a32}"), ("api_key", "{h32}")):  # fmt: skip
        for names in (("user", column), (column, "user"), ("id", column, "created_at")):
            for end in ("\n", "\r\n"):
                made, _ = spell(value, chance)
                row = "\t".join(made if one == column else "ann" for one in names)
                other = "\t".join("" if one == column else "bob" for one in names)
                cases.append((end.join(("\t".join(names), other, row, "")), made))
    return cases


CASES = [*write_all(random.Random(SEED)), *write_tables(random.Random(SEED))]


def stream(text: str, cuts: list[int]) -> str:
    shown: list[str] = []
    veil = StreamRedactor(Redactions({}).with_shapes(), shown.append)
    edges = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    for a, b in zip(edges, edges[1:], strict=False):
        veil.add(text[a:b])
    veil.end()
    return "".join(shown)


def test_a_declared_secret_is_not_seen() -> None:
    assert len(CASES) > 300
    assert [text for text, made in CASES if made in hide_shapes(text)] == []


@seed(SEED)
@settings(max_examples=examples(1_000), deadline=None)
@given(st.sampled_from(CASES), st.lists(st.integers(0, 200), max_size=8))
def test_nor_in_pieces(case: tuple[str, str], cuts: list[int]) -> None:
    text = f"so: {case[0]}\nend"
    assert stream(text, cuts) == hide_shapes(text)


@pytest.mark.parametrize("case", range(0, 400, 8))
def test_nor_letter_by_letter(case: int) -> None:
    text = CASES[case % len(CASES)][0]
    assert stream(text, list(range(len(text)))) == hide_shapes(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_code_without_a_secret_stays(text: str) -> None:
    assert hide_shapes(text) == text
