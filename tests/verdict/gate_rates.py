"""How often the gate on times fails equal cells and finds slower ones: the figures of docs/gate.md.

`PYTHONPATH=. python -m tests.verdict.gate_rates` prints them.

Machines are those of `simulated`, and this one: the ratios to the control of the committed
reference sweep, as the replicates of its cells scattered. Every cell is calibrated first, by a
comparison of one build with itself, and then compared twice, as `lra check` does.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from lra.report.costs.disturbed import disturbed
from numpy.typing import NDArray

from lra.core.cells import EfficiencyCell
from lra.store import Store
from lra.verdict.change import Change, compare_times
from lra.verdict.repeatability import ControlledCost
from lra.verdict.slowdown import (
    MOST,
    PAIRS,
    calibrated_margin,
    is_slower,
    log_deviation,
    pairs_needed,
)

from .simulated import CELLS, NOISY, QUIET, SHARED, Machine, sweeps

COMPARISONS = 10_000
SLOWER = (1.0, 1.1, 1.2)
REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference" / "amd-epyc-2c"

Sides = tuple[Sequence[float], Sequence[float]]
"""A cell's ratios to the control in two runs of one build, as many pairs as there may be."""
Batch = Callable[[], list[Sides]]
"""Times the cells of a machine once more: the same cells in the same order."""


def simulated(rng: np.random.Generator, machine: Machine) -> Iterator[Batch]:
    """Yield machines of one kind."""

    def batch() -> list[Sides]:
        return [_ratios(*both) for both in sweeps(rng, machine, MOST)]

    while True:
        yield batch


def recorded(rng: np.random.Generator) -> Iterator[Batch]:
    """Yield machines with cells as noisy as some of the reference sweep."""
    cells = scatter()
    pool = np.concatenate([own / own.std() for own in cells])
    while True:
        spreads = [cells[n].std() for n in rng.integers(len(cells), size=CELLS)]

        def batch(spreads: Sequence[float] = spreads) -> list[Sides]:
            drawn = [np.exp(own * rng.choice(pool, size=(2, MOST))) for own in spreads]
            return [(one.tolist(), other.tolist()) for one, other in drawn]

        yield batch


def scatter() -> list[NDArray[np.float64]]:
    """Logarithms of ratios to the control by cell, of three replicates or more, round their mean;
    as wide as they lay round the true one."""
    records = Store(REFERENCE).records()
    busy = disturbed(records)
    cells: dict[str, list[float]] = defaultdict(list)
    for record in records:
        cell = record.cell
        if isinstance(cell, EfficiencyCell) and record.status == "ok" and record.id not in busy:
            names = ("latency", "control_before", "control_after")
            values = [record.metrics[n].value for n in names if n in record.metrics]
            if len(values) == len(names) and all(values):
                alike = type(cell)(**{**_fields(cell), "replicate": 0})
                cells[alike.id].append(np.log(ControlledCost(*[v or 0.0 for v in values]).ratio))
    several = [np.array(own) for own in cells.values() if len(own) > 2]
    wide = [(own - own.mean()) * np.sqrt(len(own) / (len(own) - 1)) for own in several]
    return [own for own in wide if own.std() > 0]


def rates(machines: Iterator[Batch], ratio: float, comparisons: int) -> tuple[float, float, float]:
    """Return how often a cell that is so many times as slow is called slower, how often it is so
    twice in a row, and the mean number of pairs."""
    once: list[bool] = []
    twice: list[bool] = []
    pairs: list[int] = []
    while len(once) < comparisons:
        batch = next(machines)
        allowed = [calibrated_margin(_compared(both, 1.0, 0.0)) for both in batch()]
        for first, again, own in zip(batch(), batch(), allowed, strict=True):
            change = _compared(first, ratio, own)
            once.append(is_slower(change, own))
            twice.append(once[-1] and is_slower(_compared(again, ratio, own), own))
            pairs.append(change.pairs)
    return fmean(once[:comparisons]), fmean(twice[:comparisons]), fmean(pairs)


def _compared(both: Sides, ratio: float, allowed: float) -> Change:
    """Compare over as many pairs as their noise asks for."""
    first = _change(both, ratio, PAIRS)
    more = pairs_needed(log_deviation(first) or 0.0, allowed)
    return _change(both, ratio, more) if more > PAIRS else first


def _change(both: Sides, ratio: float, pairs: int) -> Change:
    before, after = both
    found = compare_times(
        dict(enumerate(before[:pairs])), {n: ratio * v for n, v in enumerate(after[:pairs])}
    )
    assert found is not None
    return found


def _ratios(one: Mapping[int, ControlledCost], other: Mapping[int, ControlledCost]) -> Sides:
    return [p.ratio for p in one.values()], [p.ratio for p in other.values()]


def _fields(cell: EfficiencyCell) -> dict[str, object]:
    return {name: getattr(cell, name) for name in cell.__struct_fields__}


def main(comparisons: int) -> None:
    """Print a line for each machine and slowdown."""
    rng = np.random.default_rng(0)
    machines = {
        "quiet": simulated(rng, QUIET),
        "noisy": simulated(rng, NOISY),
        "shared": simulated(rng, SHARED),
        "recorded here": recorded(rng),
    }
    print(f"{comparisons} cells each, {PAIRS} to {MOST} pairs; share called slower")
    for name, machine in machines.items():
        for ratio in SLOWER:
            once, twice, pairs = rates(machine, ratio, comparisons)
            print(f"{name:<13}  x {ratio:<3g}  once {once:.4f}  and again {twice:.4f}"
                  f"  mean pairs {pairs:.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COMPARISONS)
