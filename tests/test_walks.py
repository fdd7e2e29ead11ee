"""The walks in docs/architecture.md name functions that there are, each called by one before it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WALK = re.compile(r"^\*\*(A .+?)\*\*\n\n((?:\d+\. .+\n)+)", re.MULTILINE)
NAMED = re.compile(r"`([^`]+)`")


def walks() -> dict[str, str]:
    """The lines of each walk, by its title."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    return {title: lines for title, lines in WALK.findall(text)}


def find(file: str, name: str) -> ast.AST:
    """The function or class `name`, as `Class.method` or alone."""
    node: ast.AST = ast.parse((ROOT / file).read_text())
    for part in name.split("."):
        found = [
            inner
            for inner in ast.walk(node)
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and inner.name == part
        ]
        assert found, f"{file} has no {name}"
        node = found[0]
    return node


def names_in(node: ast.AST) -> set[str]:
    """All names and attributes in a function, without a leading underscore."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    found |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return {name.lstrip("_") for name in found}


def test_there_are_three_walks_of_ten_lines() -> None:
    assert [lines.count("\n") for lines in walks().values()] == [10, 10, 10]


@pytest.mark.parametrize("title", walks())
def test_each_function_is_named_by_one_before_it(title: str) -> None:
    named: set[str] = set()
    for number, line in enumerate(walks()[title].splitlines()):
        file, stored = "", number == 0 or "*later*" in line
        for word in NAMED.findall(line.partition(":")[0]):
            if "/" in word:
                file = word
                continue
            node = find(file, word)
            called = word.rpartition(".")[2].lstrip("_")
            assert stored or called in named, f"nobody before it names {word}: {line}"
            stored = False
            named |= names_in(node)
