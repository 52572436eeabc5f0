"""What ListOps expressions are worth: one by a stack, with its fault; many at once, if all is well.

The original writes every expression as nested pairs: `( ( ( [MAX 2 ) 9 ) ] )` is `[MAX`, paired
with 2, paired with 9, paired with `]`. MED is the median rounded down, SM the sum modulo 10.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

OPERATORS = (b"[MIN", b"[MAX", b"[MED", b"[SM")
SYMBOLS = (*(b"%d" % digit for digit in range(10)), *OPERATORS, b"]")
"""Tokens by the number that stands for them in arrays."""

_MIN, _MAX, _MED, _SM, _CLOSE, _END, _LEFT, _RIGHT, _UNKNOWN = range(10, 19)

_ORDER = b"0123456789IAES]\n()"
"""The characters that tell tokens, ends of rows and parentheses apart, by their numbers."""
_NUMBERS = bytes(_ORDER.find(byte) if byte in _ORDER else _UNKNOWN for byte in range(256))
_DROPPED = b" [MNXD"
_WORDS = [int.from_bytes(word, "big") for word in (b"MIN", b"MAX", b"MED", b"SM ")]

_DIGIT_BIT, _OPERATOR_BIT, _CLOSE_BIT, _END_BIT, _LEFT_BIT, _RIGHT_BIT = (1 << i for i in range(6))
_GROUP = bytes(
    [_DIGIT_BIT] * 10 + [_OPERATOR_BIT] * 4 + [_CLOSE_BIT, _END_BIT, _LEFT_BIT, _RIGHT_BIT]
).ljust(256, b"\0")
"""The group of each symbol, a bit."""
_FOLLOWING = bytes(
    [_RIGHT_BIT | _END_BIT] * 10
    + [_LEFT_BIT | _DIGIT_BIT] * 4
    + [_RIGHT_BIT, _LEFT_BIT | _DIGIT_BIT, _LEFT_BIT | _OPERATOR_BIT, 63 - _OPERATOR_BIT]
).ljust(256, b"\0")
"""The groups of which one may follow each symbol where expressions are written as pairs."""


def evaluate(tokens: Sequence[bytes]) -> tuple[int, bytes]:
    """Return the value of one expression without parentheses, and the original's form of it.

    Raises `ValueError` saying what keeps the tokens, all of `SYMBOLS`, from being an expression.
    """
    if not tokens:
        raise ValueError("holds no token")
    opened, closed = sum(token in OPERATORS for token in tokens), tokens.count(b"]")
    if opened != closed:
        raise ValueError(f"has {opened} operators and {closed} ']'")
    value = 0
    pieces: list[bytes] = []
    waiting: list[tuple[int, list[int]]] = []
    for place, token in enumerate(tokens, 1):
        pieces.append(token)
        if token in OPERATORS:
            waiting.append((len(pieces) - 1, []))
            continue
        if token != b"]":
            value = int(token)
        elif waiting:
            start, args = waiting.pop()
            if not args:
                raise ValueError("has an operator without arguments")
            value = _applied(pieces[start], sorted(args))
            pieces[start] = b"( " * (len(args) + 1) + pieces[start]
            pieces.append(b")")
        if waiting:
            waiting[-1][1].append(value)
            pieces.append(b")")
        elif place < len(tokens):
            raise ValueError(f"is over after token {place} of {len(tokens)}")
    return value, b" ".join(pieces)


def _applied(operator: bytes, ranked: list[int]) -> int:
    match operator:
        case b"[MIN":
            return ranked[0]
        case b"[MAX":
            return ranked[-1]
        case b"[SM":
            return sum(ranked) % 10
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) // 2


def proved(sources: Sequence[bytes], targets: Sequence[int]) -> tuple[Bytes, Ints] | None:
    """Return the symbols of all expressions and where each ends, or None unless sure of them.

    Sure is: tokens parted by single spaces, parentheses as in the original or none at all, at most
    127 levels, and each worth its target. Of others `evaluate` says what they are.
    """
    text = b" ".join([b"", *(source + b" \n" for source in sources), b""])
    # One number for each token, end of row or parenthesis.
    short = text.translate(_NUMBERS, _DROPPED)
    symbols = np.frombuffer(short, dtype=np.uint8)
    operators = np.flatnonzero((symbols >= _MIN) & (symbols <= _SM))
    if symbols.max() == _UNKNOWN or not _is_spelled(text, len(symbols), len(operators)):
        return None
    tokens = symbols[symbols < _LEFT]
    opens, closes = (tokens >= _MIN) & (tokens <= _SM), tokens == _CLOSE
    if (opens[:-1] & closes[1:]).any():
        return None
    # In steps of 1 a depth too large for 8 bits comes by -128.
    open_after = np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int8)
    if open_after.min() < 0:
        return None
    # Each expression is over at its last token, and then comes the end of its row.
    over, ends = np.flatnonzero(open_after == 0), np.flatnonzero(tokens == _END)
    if len(over) != 2 * len(ends) or (over[1::2] != ends).any():
        return None
    nodes = tokens < _CLOSE
    values, args = _evaluated(tokens[nodes], (open_after - opens.view(np.int8))[nodes])
    if not np.array_equal(values, targets):
        return None
    if len(symbols) > len(tokens) and not _is_paired(short, symbols, operators, args):
        return None
    bare: Bytes = tokens[tokens != _END]
    return bare, ends - np.arange(len(ends))


def _is_spelled(text: bytes, symbols: int, operators: int) -> bool:
    """Whether single spaces part as many symbols, all of one character but for the operators."""
    each = np.frombuffer(text, dtype=np.uint8)
    space = each == ord(" ")
    start = np.flatnonzero(each == ord("["))
    if len(start) != operators or np.count_nonzero(space) != symbols + 1:
        return False
    # What a row ends with leaves place for three more characters.
    first, second, third = (each[start + offset].astype(np.int32) for offset in (1, 2, 3))
    words = (first << 16) | (second << 8) | third
    short = words == _WORDS[-1]
    known = short.copy()
    for word in _WORDS[:-1]:
        known |= words == word
    inside = 3 * operators - np.count_nonzero(short)
    joined = np.count_nonzero(~(space[:-1] | space[1:]))
    return bool(known.all()) and joined == inside


def _is_paired(short: bytes, symbols: Bytes, operators: Ints, args: Ints) -> bool:
    """Whether parentheses pair whole expressions, one a row, as the original does.

    `n + 1` of `(` come before an operator of n arguments, a `)` after each argument and each `]`.
    """
    group, following = (
        np.frombuffer(short.translate(table), dtype=np.uint8) for table in (_GROUP, _FOLLOWING)
    )
    if symbols[0] == _RIGHT or not (group[1:] & following[:-1]).all():
        return False
    # As many `(` and `)` as there should be in all, and nowhere fewer than there should be.
    left = args + 1
    first = operators - left
    if (first[1:] <= operators[:-1]).any() or (first < 0).any():
        return False
    closes = np.flatnonzero(symbols == _CLOSE)
    second = symbols[closes + 2]
    right = np.count_nonzero(symbols < _MIN) + 2 * len(closes) - np.count_nonzero(symbols == _END)
    return (
        bool((symbols[first] == _LEFT).all() and ((second == _RIGHT) | (second == _END)).all())
        and np.count_nonzero(symbols == _LEFT) == left.sum()
        and np.count_nonzero(symbols == _RIGHT) == right
    )


def _evaluated(symbols: Bytes, depths: npt.NDArray[np.int8]) -> tuple[Bytes, Ints]:
    """Return the value of every root and the number of arguments of every operator.

    The nodes of a depth, in order, hold the argument lists of the depth above one after the other.
    """
    order = np.argsort(depths, kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(depths)))
    args = np.zeros(len(symbols), dtype=np.int64)
    below, lower = np.zeros(0, dtype=np.uint8), order[:0]
    for depth in reversed(range(len(bounds) - 1)):
        level = order[bounds[depth] : bounds[depth + 1]]
        values = symbols[level]
        where = np.flatnonzero(values >= _MIN)
        if len(where):
            first = np.searchsorted(lower, level[where])
            count = np.diff(first, append=len(lower))
            args[level[where]] = count
            values[where] = _applied_at_once(values[where], below, first, count)
        below, lower = values, level
    return below, args[symbols >= _MIN]


def _applied_at_once(operators: Bytes, values: Bytes, first: Ints, count: Ints) -> Bytes:
    """Apply each operator to its arguments values[first : first + count]."""
    totals = np.append(0, np.cumsum(values, dtype=np.int64))
    results: Bytes = ((totals[first + count] - totals[first]) % 10).astype(np.uint8)
    least, most = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    np.copyto(results, least, where=operators == _MIN)
    np.copyto(results, most, where=operators == _MAX)
    middle = operators == _MED
    count, own = count[middle], values[np.repeat(middle, count)]
    # Sorting by (operator, value) sorts every argument list in one call.
    offsets = np.arange(len(count), dtype=np.int32) * 10
    ranked = np.sort(np.repeat(offsets, count) + own)
    start = np.cumsum(count) - count
    both = ranked[start + (count - 1) // 2] + ranked[start + count // 2] - 2 * offsets
    results[middle] = both // 2
    return results
