"""The tuned track: the learning rates that were tried, and the one that validates best."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import inf
from statistics import fmean

from lra.core.cells import QualityCell
from lra.core.records import Record
from lra.report.load.kept import protocol_hash, variant_of


def chosen(records: Iterable[Record]) -> list[Record]:
    """Return the records without tuned trainings at other rates than the best of each mechanism and
    task: by the mean over seeds of the best validation. All are of one version of the sources.

    A rate counts with as many seeds as the rate that has most; one that diverged is the worst.
    The test split has no say.
    """
    found = list(records)
    best = {search: _best(rates) for search, rates in _tried(found).items()}
    return [
        record
        for record in found
        if not isinstance(record.cell, QualityCell)
        or record.cell.track != "tuned"
        or record.cell.training.learning_rate == best[_search(record.cell)]
    ]


def rates_tried(records: Iterable[Record]) -> dict[str, tuple[float, ...]]:
    """Return, by the id of each tuned training, the rates that its was chosen among, ascending."""
    return {
        record.id: tuple(sorted(rates))
        for rates in _tried(records).values()
        for own in rates.values()
        for record in own
    }


def _tried(records: Iterable[Record]) -> dict[Hashable, dict[float, list[Record]]]:
    """Tuned trainings by what a rate is searched for, and by rate."""
    found: dict[Hashable, dict[float, list[Record]]] = {}
    for record in records:
        cell = record.cell
        if isinstance(cell, QualityCell) and cell.track == "tuned":
            rates = found.setdefault(_search(cell), {})
            rates.setdefault(cell.training.learning_rate, []).append(record)
    return found


def _search(cell: QualityCell) -> Hashable:
    return (protocol_hash(cell), variant_of(cell))


def _best(rates: dict[float, list[Record]]) -> float:
    seeds = max(map(len, rates.values()))
    complete = {rate: own for rate, own in rates.items() if len(own) == seeds}
    # Of equals the lowest rate.
    return max(sorted(complete), key=lambda rate: fmean(map(_merit, complete[rate])))


def _merit(record: Record) -> float:
    """The best validation of a training, the more the better."""
    assert isinstance(record.cell, QualityCell), "nothing else is tuned"
    if record.status != "ok" or not record.curve:
        return -inf
    if record.cell.metric == "accuracy":
        return max(point.validation_accuracy for point in record.curve)
    return -min(point.validation_loss for point in record.curve)
