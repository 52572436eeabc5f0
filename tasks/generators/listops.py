"""Random ListOps expressions in bulk, as the original generator draws them.

Nangia and Bowman, "ListOps: A Diagnostic Dataset for Latent Tree Learning", NAACL SRW 2018
(arXiv 1804.06028), with the grammar of Long Range Arena (arXiv 2011.04006). Many trees grow at
once, level by level in flat arrays; those of a wrong length are dropped as soon as that is known,
the others are evaluated from the leaves up and written out from the root down. A tree is a pure
function of its 64-bit key: node i of a tree, counted level by level, uses draw i and no other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tasks.generators import counter
from tasks.generators.listops_balanced import hand_down, roots_that_balance
from tasks.generators.listops_level import CLOSE, DIGITS, OPERATORS, Bytes, Ints, Level

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Grammar:
    """How expressions are drawn and which are kept."""

    max_depth: int
    """Levels of a tree, the root being the first; the last has only digits."""
    min_args: int
    max_args: int
    shorter_than: int
    """At least 2. Length is symbols without parentheses: one per digit, two per operator."""
    longer_than: int
    operators: tuple[int, ...]
    """Indices into `OPERATORS`."""
    p_operator: float
    balanced: bool = False
    """Whether digits are drawn so that the root says nothing of the value."""

    def longest(self) -> int:
        """Return the length of the longest expression there can be."""
        size = 1
        for _ in range(self.max_depth - 1):
            size = 2 + self.max_args * size
        return size


@dataclass(frozen=True)
class Expressions:
    """Accepted expressions, one after the other."""

    symbols: Bytes
    """(total,) symbols in the order they are written."""
    starts: Ints
    """(count + 1,)"""
    values: Bytes
    """(count,) what each evaluates to."""
    trees: Ints
    """(count,) index of each one's key among the keys tried, ascending."""


def grow(grammar: Grammar, keys: counter.U64) -> Expressions:
    """Grow one tree per key and return those whose length is in range."""
    levels, accepted = _shapes(grammar, keys)
    if grammar.balanced:
        accepted[np.setdiff1d(np.arange(len(keys)), roots_that_balance(levels))] = False
    levels = [_only(level, accepted) for level in levels]
    if grammar.balanced:
        levels = [
            replace(level, symbols=symbols)
            for level, symbols in zip(levels, hand_down(levels, keys), strict=True)
        ]
    values, sizes = _evaluate(levels)
    starts = np.zeros(len(sizes[0]) + 1, dtype=np.int64)
    np.cumsum(sizes[0], out=starts[1:])
    symbols = _write(levels, sizes, starts)
    return Expressions(symbols, starts, values, np.flatnonzero(accepted))


def _shapes(grammar: Grammar, keys: counter.U64) -> tuple[list[Level], npt.NDArray[np.bool_]]:
    """Draw all nodes; also say which trees are accepted."""
    accepted = np.zeros(len(keys), dtype=np.bool_)
    levels: list[Level] = []
    trees = np.arange(len(keys))
    counts = np.ones(len(keys), dtype=np.int64)
    nodes_before = np.zeros(len(keys), dtype=np.int64)
    lengths = np.zeros(len(keys), dtype=np.int64)
    for depth in range(1, grammar.max_depth + 1):
        ends = np.cumsum(counts)
        starts = ends - counts
        index = np.arange(int(ends[-1])) + np.repeat(nodes_before - starts, counts)
        draws = counter.bits(np.repeat(keys[trees], counts), index)
        symbols, where, args = _nodes(grammar, draws, last=depth == grammar.max_depth)
        bounds = np.searchsorted(where, np.append(starts, ends[-1]))
        children = np.diff(np.append(0, np.cumsum(args))[bounds])
        operators = np.diff(bounds)
        levels.append(Level(trees, counts, operators, symbols, args))
        lengths = lengths + counts + operators
        # No complete tree is too long: it would have been dropped a level above.
        accepted[trees[(children == 0) & (lengths > grammar.longer_than)]] = True
        grows = (children > 0) & (lengths + children < grammar.shorter_than)
        if not grows.any():
            break
        nodes_before = (nodes_before + counts)[grows]
        trees, counts, lengths = trees[grows], children[grows], lengths[grows]
    return levels, accepted


def _nodes(grammar: Grammar, draws: counter.U64, last: bool) -> tuple[Bytes, Ints, Ints]:
    """Return each node's symbol, which nodes are operators, and how many arguments those take.

    The upper half of a draw decides between digit and operator, the lower half which: as all its
    bits are used once, argument count and operator are independent, as if drawn one after another.
    """
    low = draws & _LOW
    symbols = ((low * np.uint64(DIGITS)) >> _SHIFT).astype(np.uint8)
    if last:
        return symbols, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    threshold = np.uint64(round(grammar.p_operator * 2**32))
    where = np.flatnonzero((draws >> _SHIFT) < threshold)
    kinds = len(grammar.operators)
    choices = np.uint64((grammar.max_args - grammar.min_args + 1) * kinds)
    chosen = ((low[where] * choices) >> _SHIFT).astype(np.int64)
    symbols[where] = np.array(grammar.operators, dtype=np.uint8)[chosen % kinds] + DIGITS
    return symbols, where, grammar.min_args + chosen // kinds


def _only(level: Level, accepted: npt.NDArray[np.bool_]) -> Level:
    """Drop the nodes of rejected trees."""
    kept = accepted[level.trees]
    return Level(
        level.trees[kept],
        level.nodes_per_tree[kept],
        level.operators_per_tree[kept],
        level.symbols[np.repeat(kept, level.nodes_per_tree)],
        level.args[np.repeat(kept, level.operators_per_tree)],
    )


def _evaluate(levels: list[Level]) -> tuple[Bytes, list[Ints]]:
    """Return the value of every root, and for each level the length of each node's expression."""
    values = np.zeros(0, dtype=np.uint8)
    sizes: list[Ints] = []
    for level in reversed(levels):
        here = level.symbols.copy()
        size = np.ones(len(here), dtype=np.int64)
        if len(level.args):
            where = np.flatnonzero(here >= DIGITS)
            ends = np.cumsum(level.args)
            first = ends - level.args
            size[where] = 2 + np.add.reduceat(sizes[-1], first)
            here[where] = _apply(here[where] - DIGITS, values, first, level.args)
        values = here
        sizes.append(size)
    return values, sizes[::-1]


def _apply(operators: Bytes, values: Bytes, first: Ints, args: Ints) -> Bytes:
    """Apply each operator to its arguments values[first : first + args]."""
    results = np.zeros(len(operators), dtype=np.uint8)
    for operator, name in enumerate(OPERATORS):
        mine = np.flatnonzero(operators == operator)
        if not len(mine):
            continue
        count = args[mine]
        ends = np.cumsum(count)
        begin = ends - count
        own = values[np.arange(int(ends[-1])) + np.repeat(first[mine] - begin, count)]
        match name:
            case "MIN":
                results[mine] = np.minimum.reduceat(own, begin)
            case "MAX":
                results[mine] = np.maximum.reduceat(own, begin)
            case "SM":
                results[mine] = np.add.reduceat(own.astype(np.int64), begin) % 10
            case "MED":
                # Sorting by (operator, value) sorts every argument list in one call.
                ranked = np.sort(np.repeat(np.arange(len(mine)) * DIGITS, count) + own)
                middle = ranked[begin + (count - 1) // 2] + ranked[begin + count // 2]
                results[mine] = (middle - 2 * DIGITS * np.arange(len(mine))) // 2
    return results


def _write(levels: list[Level], sizes: list[Ints], starts: Ints) -> Bytes:
    """Put every symbol in its place: an operator, its arguments in order, the closing bracket."""
    written = np.full(int(starts[-1]), CLOSE, dtype=np.uint8)
    position = starts[:-1]
    for depth, level in enumerate(levels):
        written[position] = level.symbols
        if not len(level.args):
            break
        parents = position[level.symbols >= DIGITS]
        before = np.cumsum(sizes[depth + 1]) - sizes[depth + 1]
        first = np.cumsum(level.args) - level.args
        position = np.repeat(parents + 1 - before[first], level.args) + before
    return written
