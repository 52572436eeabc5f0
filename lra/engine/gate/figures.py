"""Figures of a check: counts, losses, accuracies and verdicts, by mechanism and cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from lra.core.cells import Cell, EfficiencyCell, QualityCell, VerifyCell
from lra.core.hashing import value_hash
from lra.core.records import FAILED, Record
from lra.engine.gate.cell_keys import cell_key
from lra.verdict.baseline import Figures

COUNTED = ("peak_tensor_bytes", "peak_allocated_bytes", "operations", "state_bytes")
"""Metrics that repeat exactly. Resident size does not."""
CURVES = "check"
"""Scale whose losses are compared; longer trainings drift apart by rounding alone."""


def figures(records: Iterable[Record]) -> dict[str, dict[str, Figures]]:
    """Return the figures of cells, by mechanism and by the cell's key; other cells give none.

    Trainings of several seeds are one cell, with the worst status among them. Cells that differ in
    their conditions alone have the hash of the request in their keys.
    """
    known: dict[tuple[str, str], dict[str, Figures]] = defaultdict(dict)
    for record in records:
        if isinstance(record.cell, EfficiencyCell | QualityCell | VerifyCell):
            own = known[record.cell.mechanism.name, cell_key(record.cell)]
            now = _figures(record)
            own[now.asked] = _group_by_seed(own[now.asked], now) if now.asked in own else now
    found: dict[str, dict[str, Figures]] = defaultdict(dict)
    for name, key in sorted(known):
        for asked, now in sorted(known[name, key].items()):
            alone = len(known[name, key]) == 1
            found[name][key if alone else f"{key}, asked {asked}"] = now
    return dict(found)


def _figures(record: Record) -> Figures:
    cell = record.cell
    common = Figures(asked=_question_hash(cell), status=record.status)
    if record.status != "ok":
        return common
    if isinstance(cell, VerifyCell):
        laws = {finding.law: finding.verdict for finding in record.findings}
        return msgspec.structs.replace(common, laws=laws)
    if isinstance(cell, QualityCell) and cell.scale != CURVES:
        # Losses, where less is better, are not compared.
        found = record.metrics.get("test_accuracy")
        accuracy = None if found is None else found.value
        own = {} if accuracy is None else {str(cell.seed): accuracy}
        return msgspec.structs.replace(common, accuracies=own)
    return msgspec.structs.replace(
        common, counts=dict(_counts(record)), losses=list(_losses(record))
    )


def _counts(record: Record) -> Iterator[tuple[str, float]]:
    if record.parameters is not None:
        yield "parameters", record.parameters
    for name in COUNTED:
        metric = record.metrics.get(name)
        if metric is not None and metric.value is not None:
            yield name, metric.value


def _losses(record: Record) -> Iterator[float]:
    for point in record.curve:
        yield point.train_loss
        yield point.validation_loss


def _question_hash(cell: Cell) -> str:
    """Hash of a cell without its seed and the versions of the code."""
    plain = msgspec.to_builtins(cell)
    for name in ("versions", "seed"):
        plain.pop(name, None)
    return value_hash(plain)


def _group_by_seed(one: Figures, other: Figures) -> Figures:
    # A failure is worse than a law that could not be tried.
    status = min((one.status, other.status), key=lambda ended: (ended not in FAILED, ended == "ok"))
    return msgspec.structs.replace(
        one, status=status, accuracies={**one.accuracies, **other.accuracies}
    )
