"""Secrets of which something before them tells are hidden: tables by their header, manifests by
kind, statements by their columns."""

import base64
import json
import random

import pytest

from agent_core.guardrails.redaction import Redactions, StreamRedactor
from tests.attacks.secret_grammar import spell
from tests.sampling import dice, examples

WORDS = Redactions({}).with_shapes()
SECRET = ("password", "passwd", "pwd", "db_password", "API_KEY", "token", "Access Token", "secret")
PLAIN = ("name", "user", "url", "id", "role", "created", "key_name", "page_token", "sha256")
INSERT = "insert into t (user, password) values "
VALUES = {"name": "ann", "user": "bob2", "url": "https://a.example/x1", "id": "12", "role": "admin"}


def stream(text: str, chance: random.Random) -> str:
    shown: list[str] = []
    redactor, at = StreamRedactor(WORDS, shown.append), 0
    most = chance.choice((1, 4, 40))
    while at < len(text):
        step = chance.randrange(1, most + 1)
        redactor.add(text[at : at + step])
        at += step
    redactor.end()
    return "".join(shown)


def draw(name: str, chance: random.Random) -> str:
    given = {"created": "2026-01-05", "key_name": "key-2", "page_token": "{a32}", "sha256": "{h64}"}
    return spell(given.get(name, VALUES.get(name, "{a24}")), chance)[0]


def write_row(kind: str, cells: list[str]) -> str:
    match kind:
        case "bars":
            return f"| {' | '.join(cells)} |"
        case "psql":
            return f" {' | '.join(f'{one:12}' for one in cells)}"
        case "quoted":
            return ",".join(f'"{one}"' for one in cells)
        case _:
            return kind.join(cells)


@pytest.mark.parametrize("kind", ["bars", "psql", "quoted", ",", ";"])
def test_a_column_of_secrets_is_hidden_in_tables(kind: str) -> None:
    for n in range(examples(40)):
        chance = dice(kind, n)
        names = chance.sample(PLAIN, chance.randrange(1, 5))
        secret = chance.choice(
            [one for one in SECRET if " " not in one or kind in ("bars", "psql")]
        )
        names.insert(chance.randrange(kind == "psql", len(names) + 1), secret)
        rows = [[draw(name, chance) for name in names] for _ in range(chance.randrange(1, 30))]
        lines = [write_row(kind, names), *(write_row(kind, row) for row in rows)]
        if kind in ("bars", "psql"):
            lines.insert(1, "|---" * len(names) + "|" if kind == "bars" else "-----+----")
        around = chance.choice(("{}", "Here it is:\n\n{}\n\nand so on.", "```\n{}\n```"))
        text = around.format("\n".join(lines))
        hidden = WORDS.hide(text)
        for row in rows:
            for name, cell in zip(names, row, strict=True):
                assert (cell in hidden) == (name != secret), (name, cell, hidden)
        assert stream(text, chance) == hidden


def write_manifest(form: str, kind: str, fields: dict[str, str], chance: random.Random) -> str:
    block = chance.choice(("data", "stringData")) if kind == "Secret" else "data"
    parts: dict[str, object] = {
        "apiVersion": "v1",
        block: fields,
        "kind": kind,
        "metadata": {"name": "app", "labels": {"app": "shop", "tier": "web"}},
    }
    if form == "json":
        return json.dumps(parts, indent=4)
    order = list(parts)
    if chance.random() < 0.5:
        order = ["apiVersion", "kind", "metadata", block]
    lines = []
    for name in order:
        if isinstance(part := parts[name], dict):
            lines.append(f"{name}:")
            for key, value in part.items():
                lines.append(f"  {key}: {value if isinstance(value, str) else ''}".rstrip())
                lines += (
                    [f"    {a}: {b}" for a, b in value.items()]
                    if not isinstance(value, str)
                    else []
                )
        else:
            lines.append(f"{name}: {part}")
    return "\n".join(lines)


def write_value(value: str, chance: random.Random) -> str:
    plain = value.replace("'", "''")
    ways = ["'{}'", "'{}'", "E'{}'", "N'{}'", "crypt('{}', gen_salt('bf'))", "SHA2('{}', 256)"]
    return chance.choice(ways).format(plain)


def write_statement(names: list[str], rows: list[list[str]], chance: random.Random) -> str:
    quote = chance.choice(("{}", "`{}`", '"{}"'))
    shape = chance.choice(("{} {} ({}) {}{}", "{} {}({}) {}{}", "{} {}\n  ({})\n{}{}"))
    begin, word = chance.choice((("INSERT INTO", "VALUES"), ("insert ignore into", "values")))
    told = (f"({', '.join(row)})" for row in rows)
    space = chance.choice((" ", "\n", "\n  "))
    table = chance.choice(("users", "public.users", "`app`.`keys`"))
    columns = ", ".join(map(quote.format, names))
    return shape.format(begin, table, columns, word, space) + f",{space}".join(told)


def test_columns_of_secrets_are_hidden_in_statements() -> None:
    for n in range(examples(120)):
        chance = dice("statement", n)
        names = chance.sample(PLAIN, chance.randrange(1, 5))
        secret = chance.choice([one for one in SECRET if " " not in one])
        names.insert(chance.randrange(len(names) + 1), secret)
        cells = [[draw(name, chance) for name in names] for _ in range(chance.randrange(1, 9))]
        rows = [
            [
                write_value(cell, chance)
                if name == secret
                else chance.choice((f"'{cell}'", f"'it''s ({cell}, '", "NULL", "now()", "12"))
                for name, cell in zip(names, row, strict=True)
            ]
            for row in cells
        ]
        around = chance.choice(
            ("{};", "Run this:\n```sql\n{};\n```\nand in it", "i in ins insert {} ON")
        )
        text = around.format(write_statement(names, rows, chance))
        hidden = WORDS.hide(text)
        for row, written in zip(cells, rows, strict=True):
            for name, cell, shown in zip(names, row, written, strict=True):
                near = secret == names[-1] and row is cells[0]  # may be said of its name too
                if name == secret or (cell in shown and not near):
                    assert (cell in hidden) == (name != secret), (name, cell, hidden)
        assert stream(text, chance) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t (a, token) SELECT a, 'Zx9kqLmw8TrsVb2n' FROM x",
        "please insert into the (user, password) values that fit: (1, 'abc1def2x)",
        "INSERT INTO t (id, password_changed, pwd) VALUES (1, '2026-01-05', 'none')",
        "insert into t (name, token_count) values ('a', 'x1y2z3a4b5')",
        "insert into t (id, token) values ('Zx9kqLmw8TrsVb2n'), (1, 2, 'Zx9kqLmw8TrsVb2n')",
        "insert into t (id, token, note) values (1, 'Zx9kqLmw8TrsVb2n')",
    ],
)
def test_what_no_statement_tells_of_is_shown(text: str) -> None:
    assert WORDS.hide(text) == text == stream(text, random.Random(text))


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("kind", ["Secret", "ConfigMap", "Service"])
def test_values_of_a_manifest_of_secrets_are_hidden_whatever_their_keys(
    kind: str, form: str
) -> None:
    for n in range(examples(40)):
        chance = dice(kind, form, n)
        keys = chance.sample(("main", "conn", "app.yaml", "a-b", "x", "ca.crt", "n_1"), 3)
        fields = {
            key: spell(chance.choice(("{a24}==", "{l9}", "{a40}")), chance)[0] for key in keys
        }
        text = write_manifest(form, kind, fields, chance)
        text = chance.choice(("{}\n", "$ kubectl get -o yaml\n{}\n", "```\n{}\n```\nDone.")).format(
            text
        )
        hidden = WORDS.hide(text)
        for value in fields.values():
            assert (value in hidden) == (kind != "Secret"), hidden
        assert "shop" in hidden and "app" in hidden
        assert stream(text, chance) == hidden


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_of_a_list_the_values_of_secrets_are_hidden(form: str) -> None:
    for n in range(examples(40)):
        chance = dice("list", form, n)
        kinds = [chance.choice(("Secret", "ConfigMap")) for _ in range(chance.randrange(1, 5))]
        values = [spell("{a24}==", chance)[0] for _ in kinds]
        items = [
            {"apiVersion": "v1", "data": {"main": value}, "kind": kind, "metadata": {"name": "app"}}
            for kind, value in zip(kinds, values, strict=True)
        ]
        if form == "json":
            text = json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4)
        else:
            lines = [
                f"- apiVersion: v1\n  data:\n    main: {value}\n  kind: {kind}\n  metadata:"
                "\n    name: app"
                for kind, value in zip(kinds, values, strict=True)
            ]
            text = "\n".join(("apiVersion: v1", "items:", *lines, "kind: List"))
        hidden = WORDS.hide(text)
        assert [value in hidden for value in values] == [kind != "Secret" for kind in kinds]
        assert stream(text, chance) == hidden


@pytest.mark.parametrize("head", ["-----BEGIN RSA PRIVATE KEY-----\n", '{"auths":{"'])
def test_a_key_in_base64_is_hidden_whole_however_long_it_is(head: str) -> None:
    """A key of 4,096 bits is longer than the longest run in which other tokens are looked for."""
    for n in range(examples(8)):
        chance = dice(head, n)
        body = spell("{a64}\n" * chance.randrange(40, 150), chance)[0]
        coded = base64.b64encode(f"{head}{body}".encode()).decode()
        text = f"client-key-data: {coded}\nnext: 1 {chance.choice(('', 'and so on'))}"
        hidden = WORDS.hide(text)
        assert coded[-60:-10] not in hidden and "next: 1" in hidden
        for step in (chance.randrange(1, 9), chance.randrange(9, 5_000)):
            shown: list[str] = []
            redactor = StreamRedactor(WORDS, shown.append)
            for at in range(0, len(text), step):
                redactor.add(text[at : at + step])
            redactor.end()
            assert "".join(shown) == hidden, step


@pytest.mark.parametrize(
    "begin", ["user,password\n", "| a | token |\n", "kind: Secret\ndata:\n", INSERT]
)
def test_what_may_go_on_for_ever_is_shown_at_last(begin: str) -> None:
    row = {"u": "ann,x\n", "|": "| a | b |\n", "k": "  a: b\n", "i": "('a', 'b'), "}[begin[0]]
    shown: list[str] = []
    redactor, text = StreamRedactor(WORDS, shown.append), begin + row * 4_000
    most = 0
    for at in range(0, len(text), 50):
        redactor.add(text[at : at + 50])
        most = max(most, at + 50 - len("".join(shown)))
    redactor.end()
    assert "".join(shown) == WORDS.hide(text) and most < 10_000
