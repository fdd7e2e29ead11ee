"""Shell lines with variables, arrays, functions, conditions and loops around what reads, writes and
shows secrets. What a line does is not known here: it is run where it can do no harm, to see."""

import random

_TEXTS = (
    "a.txt", ".env", "../outside.txt", "src", "1", "7", "-1", "-r", "*", "'*.txt'", "'a .env'", '""', "'$(touch pwn)'", "'a[$(touch pwn)]'",
    "touch", "cat", "rm", "-exec", "'x=.env'", "$(wc -l < a.txt)", "$(ls | head -1)", '"$(cat list.txt)"', "$((1+2))", "$((n+1))", "$((x-3))",
    "$x", '"$x"', "$n", "${x%.*}", "${x:-.env}", "id_rsa", "--files0-from=.env", "a.txt:.env", "'1; touch pwn'", "$(printf .env)", "s*",
)  # fmt: skip
_USES = (
    'cat "$x"', "cat $x", 'head -1 "$n"', "head $n a.txt", 'echo "$x"', "echo $x", "wc -l < $x", '"$x" pwn', "$x pwn", 'ls "$x"', 'tail -1 "$1"',
    'cat "$1"', 'cat "${v[0]}"', 'echo "${v[@]}"', "echo ${v[1]} ${#v[@]}", 'cat "${v[$n]}"', "cat < \"${v[0]}\"", "touch pwn", "cat .env", "rm a.txt",
    'grep -c e "$x"', "echo $((n*2))", "echo $((x+n))", 'seq "$n"', "f a.txt", "f .env", 'f "$x"', "f $n", "pwd", "ls", "cat a.txt", "break", "continue",
    "nice cat $x", "nice -n 5 cat .env", "timeout 5 cat a.txt", "timeout 5 touch pwn", "env cat .env", "env PATH=. ls", "time cat $x", "nice -n sh x.sh",
    "sh -c 'cat a.txt'", "sh -c 'cat .env'", 'sh -c "cat $x"', "bash -c 'touch pwn'", "sh -c 'cat $x'", "xargs cat < list.txt", "xargs < list.txt",
    "xargs -n1 echo < a.txt", "cd src", "pushd src >/dev/null", "popd", "pushd ..", "cat ./a.txt", "cat x.py", "export A=$x", "sed -n ${n}p a.txt",
)  # fmt: skip
_TESTS = (
    '[ "$x" = a.txt ]', "[ $n -lt 3 ]", "[ $x -lt 3 ]", '[ -z "$x" ]', '[ -n "$SECRET" ]', '[ -f "$x" ]', "[[ -f a.txt ]]", "[[ $n -gt 2 ]]",
    "[[ $x -gt 2 ]]", "[[ $x == *.txt ]]", "[[ $x =~ ^a ]]", "[[ -f a.txt && -d src ]]", "[[ -f b || touch pwn ]]", "[[ a || -f a.txt ]]", "! [[ a && touch pwn ]]",
    "[[ a =~ b|touch ]]", "[[ a > pwn ]]", "[[ -v v[$n] ]]", "[[ $x -eq 'v[$(touch pwn)]' ]]", "((n > 2))", "((n < 2))", "true", "false", "grep -q a a.txt",
    "[ -z $x ]", "[[ -n $x ]]", "[[ $(wc -l < a.txt) -gt 0 ]]", "test $n -eq 1", "[[ $1 == a.txt ]]", "[[ x == $x || $x == pwn ]]", "[[ ! -e pwn ]]",
)  # fmt: skip

_CALM_TEXTS = ("a.txt", "1", "$x", "$((n+1))", "src", "$(wc -l < a.txt)", "$n")
_CALM_USES = (
    'echo "$x"',
    "cat $x",
    'cat "$x"',
    'echo "$1" $n',
    "f a.txt",
    "ls",
    'cat "$1"',
    "break",
    "continue",
    'head "$n" a.txt',
    'echo "${v[$n]}"',
)
_CALM_TESTS = ("[ $n -lt 3 ]", "[[ $x == a* ]]", "[ -f a.txt ]", "[[ $n -gt 2 ]]", '[ -z "$x" ]')


def make_flow(chance: random.Random) -> str:
    """A line of two to five statements."""
    return "; ".join(["x=a.txt n=1", *(_make(chance, 2) for _ in range(chance.randint(1, 4)))])


def _make_list(chance: random.Random, depth: int) -> str:
    return "; ".join(_make(chance, depth) for _ in range(chance.randint(1, 3)))


def _pick(chance: random.Random, calm: tuple[str, ...], others: tuple[str, ...]) -> str:
    return chance.choice(calm if chance.random() < 0.8 else others)


def _make(chance: random.Random, depth: int) -> str:
    pick = chance.choice
    if depth == 0 or chance.random() < 0.35:
        return _pick(chance, _CALM_USES, _USES)
    if chance.random() < 0.45:
        text, other = (_pick(chance, _CALM_TEXTS, _TEXTS) for _ in range(2))
        return pick(
            (
                *(f"x={text}", f"n={text}", f"n={text}", "n=1", "x=a.txt", f"x={text} n={other}"),
                *(f"v=({text} {other})", "v=(a.txt src)", f"export x={text}", f"export A={text}"),
                *(f"read x n <<< {text}", f"read -ra v <<< {text}", "mapfile -t v < a.txt"),
                *(
                    f"local x={text}",
                    f"readonly x={text}",
                    f"declare x={text}",
                    "mapfile -t v < .env",
                ),
                *(f"f() {{ {_make_list(chance, 0)}; }}", f"x={text} && n={other}", "n=$((n+1))"),
            )
        )
    body, use = _make_list(chance, depth - 1), _pick(chance, _CALM_USES, _USES)
    test, text = _pick(chance, _CALM_TESTS, _TESTS), _pick(chance, _CALM_TEXTS, _TEXTS)
    return pick(
        (
            f"if {test}; then {body}; fi",
            f"if {test}; then {body}; else {_make_list(chance, depth - 1)}; fi",
            f"{test} && {use}",
            f"{test} || {use}",
            f"for x in {text} a.txt; do {body}; done",
            f"for n in 1 2; do {body}; done",
            f'for x in "${{v[@]}}"; do {body}; done',
            f"for ((k{depth}=0; k{depth}<2; k{depth}++)); do {body}; done",
            f"k{depth}=0; while [ $k{depth} -lt 2 ]; do {body}; k{depth}=$((k{depth}+1)); done",
            f"k{depth}=2; until [ $k{depth} -le 0 ]; do k{depth}=$((k{depth}-1)); {body}; done",
            f"while read -r x; do {body}; done < a.txt",
            f"ls *.txt | while read -r x; do {body}; done",
            f"case {text} in a*) {body};; *) {use};; esac",
            f"f() {{ {body}; }}",
            f"{{ {body}; }}",
            f"({body})",
            f"{use} | {{ {body}; }}",
        )
    )
