"""Causes of an error, read from the lines of somebody's code that raised it."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Collection, Iterator
from types import FrameType
from typing import NamedTuple

LONGEST = 120
"""Most characters of a line that is shown."""

_WIDTHS = re.compile(r"head|width|channel|embed|feature", re.IGNORECASE)
"""Sizes that are no length."""
_SAID = re.compile(r"(?:divisible by|multiple of)\D{0,40}?(\d+)", re.IGNORECASE)


def argument_left_out(error: Exception, left_out: Collection[str]) -> str:
    """Return the parameter, among those left out, whose None the failing code met; empty where the
    error is of another kind."""
    frames = _innermost_first(error)
    if isinstance(error, AssertionError):
        frames = frames[:1]
    elif "NoneType" not in str(error):
        return ""
    for place in frames:
        frame = place.frame
        # The targets of unpacking stand outside of the expression that fails.
        text = place.text if "unpack" in str(error) else place.expression
        for name in _names(text):
            if name in left_out and frame.f_locals.get(name, ...) is None:
                return name
    return ""


def _names(text: str) -> list[str]:
    return [str(word) for word in re.findall(r"\w+", text)]


def wordless(error: Exception) -> str:
    """Return the source of an assertion that says nothing; empty for other errors."""
    if not isinstance(error, AssertionError) or str(error):
        return ""
    return " ".join(_innermost_first(error)[0].text.split())[:LONGEST]


def multiple_asked_for(error: Exception, lengths: Collection[int]) -> int:
    """Return the number that one of these lengths must be a multiple of, by the error's words or by
    the condition that led to it; 0 where there is none."""
    said = _SAID.search(str(error))
    multiple = int(said[1]) if said and not _WIDTHS.search(str(error)) else 0
    if multiple and any(n % multiple for n in lengths):
        return multiple
    if not isinstance(error, AssertionError | ValueError | RuntimeError):
        return 0
    for place in _innermost_first(error)[:1]:
        for length, other in _remainders(place.frame, place.first):
            if length in lengths and other and length % other:
                return other
    return 0


class _Place(NamedTuple):
    """Place of an expression that failed: its frame, its lines, and its columns in bytes."""

    frame: FrameType
    first: int
    last: int
    start: int | None
    end: int | None

    @property
    def text(self) -> str:
        """Its lines."""
        return "".join(_lines(self.frame)[self.first - 1 : self.last])

    @property
    def expression(self) -> str:
        """The expression alone, where it is on one line."""
        if self.first != self.last:
            return self.text
        return self.text.encode()[self.start : self.end].decode(errors="ignore")


def _innermost_first(error: Exception) -> list[_Place]:
    found = []
    step = error.__traceback__
    while step is not None:
        places = list(step.tb_frame.f_code.co_positions())
        first, last, start, end = places[step.tb_lasti // 2]
        at = step.tb_lineno
        found.append(_Place(step.tb_frame, first or at, last or at, start, end))
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
