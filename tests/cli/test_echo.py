"""Whatever is printed goes through one place, which leaves nothing in it invisible."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from lra.cli.echo import echo, echo_json, on_stderr

NAME = "a\u202eb\u2066\x1b[2J\u00e9\U000e0001"
ESCAPED = r"a\u202eb\u2066\x1b[2J" + "\u00e9" + r"\U000e0001"
CLI = Path(__file__).parents[2] / "lra" / "cli"
OUTSIDE = {("echo.py", "echo"), ("echo.py", "echo_json"), ("identity.py", "_progress")}
"""The last prints our own words with a carriage return."""


def test_lines_are_printed_with_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"one {NAME}\ntwo")
    echo(NAME, err=True)
    on_stderr(quiet=False)(NAME)
    told = capsys.readouterr()
    assert told.out == f"one {ESCAPED}\ntwo\n"
    assert told.err == f"{ESCAPED}\n" * 2


@pytest.mark.parametrize("indented", [False, True])
def test_json_is_read_as_it_was(indented: bool, capsys: pytest.CaptureFixture[str]) -> None:
    echo_json({"name": NAME, "n": [1, 2.5]}, indented=indented)
    told = capsys.readouterr().out
    assert told.replace("\n", "").isprintable() and "\u00e9" in told
    assert json.loads(told) == {"name": NAME, "n": [1, 2.5]}


def test_nothing_else_of_the_command_line_prints() -> None:
    found = set()
    for file in CLI.glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                called = {
                    ast.unparse(node.func)
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                }
                if called & {"click.echo", "click.secho", "print", "sys.stdout.write"}:
                    found.add((file.name, function.name))
    assert found == OUTSIDE
