"""Trainings that ended well with doubtful figures: other answers token by token, better scores than
possible, and failures after a training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.report.accuracy import ROW, Accuracies, Column
from lra.report.baselines import floor, is_past_floor
from lra.report.load.measurement import protocol_hash
from lra.report.load.select import Evidence
from lra.report.words import figures, percent

AGREEMENT = "decode_agreement"
"""Metric of equal answers in one pass and step by step."""
UNDECODED, UNSEEN = "decode_failed", "look_failed"
"""Keys of a record's method for errors after the training."""
Kind = Literal["impossible", "disagreeing", "undecoded", "unseen"]
_GRAVEST: tuple[Kind, ...] = ("impossible", "disagreeing", "undecoded", "unseen")


class Doubt(msgspec.Struct, frozen=True):
    """One doubt about the trainings of a mechanism on a task."""

    kind: Kind
    origin: str
    variant: str
    protocol: str
    label: str
    task: str
    scale: str
    detail: str
    """Figures, or an error message."""

    @property
    def words(self) -> str:
        """Words for the training and the doubt: `linear on bytes at mini (90.0 % ...)`."""
        mark = " (reference)" if self.origin == "reference" else ""
        return f"{self.label}{mark} on {escape_controls(self.task)} at {self.scale} ({self.detail})"


def doubts(evidence: Evidence, scored: Iterable[Accuracies]) -> list[Doubt]:
    """Return the doubts about trainings, gravest first; for each kind, mechanism and protocol the
    worst seed."""
    known: dict[str, _Floor] = {}
    for scores in scored:
        known |= _floors(evidence, scores)
    found: dict[tuple[str, ...], tuple[float, Doubt]] = {}
    for measurement in evidence.measurements:
        cell, record = measurement.cell, measurement.record
        if not isinstance(cell, QualityCell) or record.status != "ok":
            continue
        metrics = {name: metric.value for name, metric in record.metrics.items()}
        protocol = protocol_hash(cell)
        for kind, value, detail in _of(metrics, record.method, known.get(protocol)):
            key = (kind, measurement.origin, measurement.variant, protocol)
            doubt = Doubt(
                kind, measurement.origin, measurement.variant, protocol, measurement.label,
                cell.data.task, cell.scale, detail,
            )  # fmt: skip
            if key not in found or value < found[key][0]:
                found[key] = (value, doubt)
    return sorted((d for _, d in found.values()), key=lambda d: _GRAVEST.index(d.kind))


class _Floor(NamedTuple):
    """Best possible score of a column."""

    scores: Accuracies
    column: Column
    best: float

    def is_passed_by(self, value: float) -> bool:
        return is_past_floor(self.scores, self.column, value, self.best)

    def words(self, value: float) -> str:
        if self.scores.loss is None:
            return f"{percent(value)} %, above the best possible, {percent(self.best)}"
        unit = self.scores.loss.words
        return f"{figures(value)} {unit}, below the least possible, {figures(self.best)}"


def _of(
    metrics: Mapping[str, float | None], method: Mapping[str, Any], floor: _Floor | None
) -> Iterator[tuple[Kind, float, str]]:
    """Doubts about one training, each with a figure that is worse the lower it is."""
    own = metrics.get(floor.scores.metric) if floor else None
    if floor is not None and own is not None and floor.is_passed_by(own):
        yield "impossible", own if floor.scores.lower else -own, floor.words(own)
    alike = metrics.get(AGREEMENT)
    if alike is not None and alike < 1.0:
        text = f"{agreement_text(alike)} % of answers the same token by token as in one pass"
        yield "disagreeing", alike, text
    if UNDECODED in method:
        yield "undecoded", 0.0, f"decoding failed: {escape_controls(str(method[UNDECODED]))}"
    if UNSEEN in method:
        message = escape_controls(str(method[UNSEEN]))
        yield "unseen", 0.0, f"looking at its attention failed: {message}"


def impossible(evidence: Evidence, scores: Accuracies) -> frozenset[tuple[str, str, str]]:
    """Return origin, variant and protocol of trainings that score better than possible: such a
    model has seen the tokens that it predicts, and is in no comparison."""
    known = _floors(evidence, scores)
    columns = [scores.pooled[name] for name in (*ROW, "protocol", "seeds")]
    return frozenset(
        (origin, variant, protocol)
        for origin, variant, protocol, seeds in zip(*columns, strict=True)
        if protocol in known and any(map(known[protocol].is_passed_by, seeds.values()))
    )


def _floors(evidence: Evidence, scores: Accuracies) -> dict[str, _Floor]:
    """Best possible scores by protocol, where they are known."""
    return {
        column.protocol: _Floor(scores, column, best)
        for column in scores.columns
        if (best := floor(evidence, scores, column)) is not None
    }


def agreement_text(share: float) -> str:
    """Return a share of equal answers in percent, 100 only where all are equal."""
    text = percent(share)
    return "99.9" if text == percent(1.0) and share < 1.0 else text
