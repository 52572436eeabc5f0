"""The tuned track: the learning rates tried, and the one that validates best."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import inf
from statistics import fmean

from lra.core.cells import QualityCell
from lra.core.records import Record
from lra.report.load.measurement import protocol_hash, variant_of


def chosen(records: Iterable[Record]) -> list[Record]:
    """Return the records without tuned trainings at other rates than the best of each mechanism and
    task, by the mean over seeds of the best validation. All are of one version of the sources.

    Only rates with the largest number of seeds count; a diverged training is the worst. The test
    split is not used.
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
    """Return the rates tried for each tuned training, ascending, by its id."""
    return {
        record.id: tuple(sorted(rates))
        for rates in _tried(records).values()
        for own in rates.values()
        for record in own
    }


def _tried(records: Iterable[Record]) -> dict[Hashable, dict[float, list[Record]]]:
    """Tuned trainings by their search (protocol and variant), then by rate."""
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
    # The lowest among equal rates.
    return max(sorted(complete), key=lambda rate: fmean(map(_merit, complete[rate])))


def _merit(record: Record) -> float:
    """Best validation of a training; more is better."""
    assert isinstance(record.cell, QualityCell), "nothing else is tuned"
    if record.status != "ok" or not record.curve:
        return -inf
    if record.cell.metric == "accuracy":
        return max(point.validation_accuracy for point in record.curve)
    return -min(point.validation_loss for point in record.curve)
