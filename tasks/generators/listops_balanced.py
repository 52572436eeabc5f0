"""ListOps expressions whose root says nothing: values are handed down, from a label drawn first.

Given the original's shape and operators, a label is drawn evenly, then the values of the root's
arguments so that the root has that label, and so on down to the digits. No shape and no operator
depends on a value. The root's own digits decide nothing: 9 under MIN, 0 under MAX, as many 0 as 9
under MED, any under SM. So the label is even given all shapes, all operators and the root's digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tasks.generators import counter
from tasks.generators.listops_level import DIGITS, Bytes, Ints, Level

Flags = npt.NDArray[np.bool_]

MIN, MAX, MED, SM = range(DIGITS, DIGITS + 4)

_VALUES = 2**40
"""Draw of a tree's key that keys its values; no tree has so many nodes."""
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)


def roots_that_balance(levels: Sequence[Level]) -> Ints:
    """Return the trees whose root can have any value whatever its own digits are.

    Its operator has a nested argument at least and, if it is MED, an even number of digits.
    """
    root = levels[0]
    if not len(root.args):
        return np.zeros(0, dtype=np.int64)
    operators = root.symbols[root.symbols >= DIGITS]
    first = np.cumsum(root.args) - root.args
    nested = np.add.reduceat((levels[1].symbols >= DIGITS).astype(np.int64), first)
    even = (root.args - nested) % 2 == 0
    kept: Ints = root.trees[root.symbols >= DIGITS][(nested > 0) & (even | (operators != MED))]
    return kept


def hand_down(levels: Sequence[Level], keys: counter.U64) -> list[Bytes]:
    """Return each level's symbols with other digits, so that each root has a label drawn evenly.

    `keys` has one key a tree, by the numbers in `trees`; the result depends on the tree's own key
    and shape alone. All roots are as `roots_that_balance` asks.
    """
    keys = counter.bits(keys, _VALUES)
    nodes_before = np.zeros(len(keys), dtype=np.int64)
    written = [level.symbols.copy() for level in levels]
    values = counter.below(keys[levels[0].trees], 0, DIGITS)
    for depth, level in enumerate(levels[:-1]):
        below = levels[depth + 1]
        nodes_before[level.trees] += level.nodes_per_tree
        owner = np.repeat(below.trees, below.nodes_per_tree)
        starts = np.cumsum(below.nodes_per_tree) - below.nodes_per_tree
        place = np.arange(len(owner)) - np.repeat(starts, below.nodes_per_tree)
        draws = counter.bits(keys[owner], nodes_before[owner] + place + 1)
        where = level.symbols >= DIGITS
        parent = np.repeat(np.arange(len(level.args)), level.args)
        operators, wanted = level.symbols[where], values[where]
        nested = below.symbols >= DIGITS
        if depth == 0:
            values = _under_root(operators, wanted, parent, nested, draws)
        else:
            values = _arguments(operators, wanted, parent, draws)
        written[depth + 1][~nested] = values[~nested]
    return written


def _under_root(
    operators: Bytes, wanted: Ints, parent: Ints, nested: Flags, draws: counter.U64
) -> Ints:
    """Return values of the roots' arguments: digits that decide nothing, and nested ones that give
    the wanted value with them."""
    operator = operators[parent]
    own = ~nested
    nth = np.cumsum(own) - 1
    first = np.searchsorted(parent, np.arange(len(operators)))
    nth = nth - (np.cumsum(own) - own)[first][parent]
    digits = ((draws >> _SHIFT) * np.uint64(DIGITS) >> _SHIFT).astype(np.int64)
    digits = np.select(
        [operator == MIN, operator == MAX, operator == MED], [9, 0, 9 * (nth % 2)], digits
    )
    sums = np.bincount(parent, np.where(own, digits, 0), len(operators)).astype(np.int64)
    wanted = np.where(operators == SM, (wanted - sums) % 10, wanted)
    digits[nested] = _arguments(operators, wanted, parent[nested], draws[nested])
    return digits


def _arguments(operators: Bytes, wanted: Ints, parent: Ints, draws: counter.U64) -> Ints:
    """Return values of arguments that give each operator its wanted value.

    `parent` is the operator of each argument, ascending; an operator has one argument or more.
    """
    order = np.lexsort((draws & _LOW, parent))
    count = np.bincount(parent, minlength=len(operators))
    first = np.cumsum(count) - count
    rank = np.empty(len(parent), dtype=np.int64)
    rank[order] = np.arange(len(parent)) - first[parent]
    operator, value, size = operators[parent], wanted[parent], count[parent]
    chosen = rank == 0

    def uniform(least: Ints, most: Ints) -> Ints:
        spread = (most - least + 1).astype(np.uint64)
        return least + (((draws >> _SHIFT) * spread) >> _SHIFT).astype(np.int64)

    zero, nine = np.zeros_like(value), np.full_like(value, 9)
    # An even number of arguments has two middle ones, of which the median is the mean rounded down.
    below, above = _middle(wanted, draws[order][first], count)
    lower, upper = (size - 1) // 2, size // 2
    least = np.select(
        [operator == MIN, (operator == MED) & (rank > upper)], [value, above[parent]], zero
    )
    most = np.select(
        [operator == MAX, (operator == MED) & (rank < lower)], [value, below[parent]], nine
    )
    values = uniform(least, most)
    values = np.where((operator == MED) & (rank == lower), below[parent], values)
    values = np.where((operator == MED) & (rank == upper), above[parent], values)
    values = np.where(chosen & ((operator == MIN) | (operator == MAX)), value, values)
    rest = np.bincount(parent, np.where(chosen, 0, values), len(operators)).astype(np.int64)
    return np.where(chosen & (operator == SM), (value - rest[parent]) % 10, values)


def _middle(wanted: Ints, draws: counter.U64, count: Ints) -> tuple[Ints, Ints]:
    """Return both middle values of each median: any two whose mean, rounded down, is wanted."""
    alike = np.minimum(wanted, 9 - wanted) + 1
    odd = np.where(wanted < 9, np.minimum(wanted, 8 - wanted) + 1, 0)
    pick = (((draws >> _SHIFT) * (alike + odd).astype(np.uint64)) >> _SHIFT).astype(np.int64)
    away, more = np.where(
        pick < alike, (pick, np.zeros_like(pick)), (pick - alike, np.ones_like(pick))
    )
    even = count % 2 == 0
    below = np.where(even, wanted - away, wanted)
    return below, np.where(even, wanted + away + more, wanted)
