"""Causes of an error, read from the lines of somebody's code that raised it."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Collection, Iterator
from types import FrameType

LONGEST = 120
"""Most characters of a line that is shown."""

_SAID = re.compile(r"(?:divisible by|multiple of)\D{0,40}?(\d+)", re.IGNORECASE)


def argument_left_out(error: Exception, left_out: Collection[str]) -> str:
    """Return the parameter, among those left out, whose None the failing code met; empty where the
    error is of another kind."""
    frames = _innermost_first(error)
    if isinstance(error, AssertionError):
        frames = frames[:1]
    elif "NoneType" not in str(error):
        return ""
    for frame, first, last in frames:
        for name in _names("".join(_lines(frame)[first - 1 : last])):
            if name in left_out and frame.f_locals.get(name, ...) is None:
                return name
    return ""


def _names(text: str) -> list[str]:
    return [str(word) for word in re.findall(r"\w+", text)]


def wordless(error: Exception) -> str:
    """Return the source of an assertion that says nothing; empty for other errors."""
    if not isinstance(error, AssertionError) or str(error):
        return ""
    frame, first, last = _innermost_first(error)[0]
    return " ".join("".join(_lines(frame)[first - 1 : last]).split())[:LONGEST]


def multiple_asked_for(error: Exception, lengths: Collection[int]) -> int:
    """Return the number that one of these lengths must be a multiple of, by the error's words or by
    the condition that led to it; 0 where there is none."""
    said = _SAID.search(str(error))
    if said and any(n % int(said[1]) for n in lengths if int(said[1])):
        return int(said[1])
    if not isinstance(error, AssertionError | ValueError | RuntimeError):
        return 0
    for frame, first, _ in _innermost_first(error)[:1]:
        for length, multiple in _remainders(frame, first):
            if length in lengths and multiple and length % multiple:
                return multiple
    return 0


def _innermost_first(error: Exception) -> list[tuple[FrameType, int, int]]:
    """Return frames, each with the first and the last line of the expression that failed."""
    found = []
    step = error.__traceback__
    while step is not None:
        places = list(step.tb_frame.f_code.co_positions())
        first, last, *_ = places[step.tb_lasti // 2]
        found.append((step.tb_frame, first or step.tb_lineno, last or step.tb_lineno))
        step = step.tb_next
    return found[::-1]


def _lines(frame: FrameType) -> list[str]:
    return linecache.getlines(frame.f_code.co_filename, frame.f_globals)


def _remainders(frame: FrameType, line: int) -> Iterator[tuple[int, int]]:
    """Yield both operands of each remainder in the conditions around a line, where they are whole
    numbers."""
    try:
        tree = ast.parse("".join(_lines(frame)))
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert | ast.If):
            continue
        if not node.lineno <= line <= (node.end_lineno or node.lineno):
            continue
        for part in ast.walk(node.test):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
                ends = [_value(end, frame) for end in (part.left, part.right)]
                if all(isinstance(end, int) for end in ends):
                    yield ends[0], ends[1]  # type: ignore[misc]


def _value(expression: ast.expr, frame: FrameType) -> object:
    """Return the value of a plain expression in a frame: a number, a name, an attribute, an entry,
    a product; None of any other, which might do something."""
    plain = (
        ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.operator,
        ast.unaryop, ast.expr_context,
    )  # fmt: skip
    if not all(isinstance(part, plain) for part in ast.walk(expression)):
        return None
    try:
        return eval(
            compile(ast.Expression(expression), "<condition>", "eval"),
            frame.f_globals,
            frame.f_locals,
        )
    except Exception:
        return None
