"""Rows of a ListOps split: distinct, none in two splits, and a longer set keeps its beginning.

Each split has its own stream of keys. Where expressions are short enough to repeat, the hash of an
expression decides which split it may belong to (half of all to train, a quarter each to validation
and test), so that no split needs to know another. Long ones need no such rule: one with more than
`REPEATABLE` symbols has at least `REPEATABLE` / 3 digits, each drawn for itself, so any given one
turns up once in 10**33 draws.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lra.core.dataset import SplitName
from lra.core.errors import UsageError
from tasks.generators import counter
from tasks.generators.listops import Expressions, Grammar, grow
from tasks.generators.listops_level import CLOSE

REPEATABLE = 100

_BATCH = 4096
_CLASSES: dict[SplitName, tuple[int, ...]] = {"train": (2, 3), "validation": (0,), "test": (1,)}
_WINDOW = 2**17
_FEWEST = 2**4
"""New expressions that so many tries must yield."""


def draw(grammar: Grammar, split: SplitName, rows: int, seed: int) -> Expressions:
    """Return the first `rows` expressions of a split's stream.

    Raises `UsageError` where the grammar hardly ever makes an expression that may be kept.
    """
    stream = counter.stream_key("listops", split, seed)
    checked = grammar.longer_than < REPEATABLE
    seen: set[int] = set()
    parts: list[Expressions] = []
    found = tried = before = 0
    while found < rows:
        keys = counter.row_keys(stream, np.arange(tried, tried + _BATCH))
        part = grow(grammar, keys)
        if checked:
            part = _take(part, _new(part, split, seen))
        parts.append(part)
        found += len(part.values)
        tried += _BATCH
        if tried % _WINDOW:
            continue
        if found < min(rows, before + _FEWEST):
            raise UsageError(
                f"listops: only {found} different expressions in {tried} tries, {rows} asked for "
                f"{split}; ask for fewer rows or widen min_length, max_length or max_depth"
            )
        before = found
    return _join(parts, rows)


def expression_hashes(expressions: Expressions) -> counter.U64:
    """Return a 64-bit hash of each expression's symbols and their places."""
    lengths = np.diff(expressions.starts)
    place = np.arange(len(expressions.symbols)) - np.repeat(expressions.starts[:-1], lengths)
    table = counter.bits(
        counter.stream_key("listops", "expression"),
        np.arange((int(lengths.max(initial=0))) * (CLOSE + 1)),
    )
    words = table[place * (CLOSE + 1) + expressions.symbols]
    return np.add.reduceat(words, expressions.starts[:-1]) if len(lengths) else words


def _new(part: Expressions, split: SplitName, seen: set[int]) -> npt.NDArray[np.int64]:
    """Which expressions belong to the split and were not there before; adds them to `seen`."""
    kept = []
    for index, value in enumerate(expression_hashes(part).tolist()):
        if value >> 62 in _CLASSES[split] and value not in seen:
            seen.add(value)
            kept.append(index)
    return np.array(kept, dtype=np.int64)


def _take(part: Expressions, kept: npt.NDArray[np.int64]) -> Expressions:
    lengths = np.diff(part.starts)
    starts = np.append(0, np.cumsum(lengths[kept]))
    shift = np.repeat(part.starts[kept] - starts[:-1], lengths[kept])
    symbols = part.symbols[np.arange(int(starts[-1])) + shift]
    return Expressions(symbols, starts, part.values[kept], part.trees[kept])


def _join(parts: list[Expressions], rows: int) -> Expressions:
    lengths = np.concatenate([np.diff(part.starts) for part in parts])[:rows]
    starts = np.append(0, np.cumsum(lengths))
    symbols = np.concatenate([part.symbols for part in parts])[: int(starts[-1])]
    values = np.concatenate([part.values for part in parts])[:rows]
    trees = np.concatenate([part.trees + i * _BATCH for i, part in enumerate(parts)])[:rows]
    return Expressions(symbols, starts, values, trees)
