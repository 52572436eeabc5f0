"""Trainings that ended well with doubtful figures: other answers token by token, fewer bits than
possible, and failures after a training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.report.accuracy import ROW, Accuracies
from lra.report.baselines import ENTROPY, simple
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
    least: dict[str, float] = {}
    for scores in scored:
        least |= _entropies(evidence, scores)
    found: dict[tuple[str, ...], tuple[float, Doubt]] = {}
    for measurement in evidence.measurements:
        cell, record = measurement.cell, measurement.record
        if not isinstance(cell, QualityCell) or record.status != "ok":
            continue
        metrics = {name: metric.value for name, metric in record.metrics.items()}
        protocol = protocol_hash(cell)
        for kind, value, detail in _of(metrics, record.method, least.get(protocol)):
            key = (kind, measurement.origin, measurement.variant, protocol)
            doubt = Doubt(
                kind, measurement.origin, measurement.variant, protocol, measurement.label,
                cell.data.task, cell.scale, detail,
            )  # fmt: skip
            if key not in found or value < found[key][0]:
                found[key] = (value, doubt)
    return sorted((d for _, d in found.values()), key=lambda d: _GRAVEST.index(d.kind))


def _of(
    metrics: Mapping[str, float | None], method: Mapping[str, Any], least: float | None
) -> Iterator[tuple[Kind, float, str]]:
    """Doubts about one training, each with a figure that is worse the lower it is."""
    bits, alike = metrics.get("bits_per_byte"), metrics.get(AGREEMENT)
    if bits is not None and least is not None and bits < least:
        fewer = f"{figures(bits)} bits per byte, below the text's entropy of {figures(least)}"
        yield "impossible", bits, fewer
    if alike is not None and alike < 1.0:
        text = f"{agreement_text(alike)} % of answers the same token by token as in one pass"
        yield "disagreeing", alike, text
    if UNDECODED in method:
        yield "undecoded", 0.0, f"decoding failed: {escape_controls(str(method[UNDECODED]))}"
    if UNSEEN in method:
        message = escape_controls(str(method[UNSEEN]))
        yield "unseen", 0.0, f"looking at its attention failed: {message}"


def impossible(evidence: Evidence, scores: Accuracies) -> frozenset[tuple[str, str, str]]:
    """Return origin, variant and protocol of trainings that need fewer bits than possible: such a
    model has seen the bytes that it predicts, and is in no comparison."""
    least = _entropies(evidence, scores)
    columns = [scores.pooled[name] for name in (*ROW, "protocol", "seeds")]
    return frozenset(
        (origin, variant, protocol)
        for origin, variant, protocol, seeds in zip(*columns, strict=True)
        if protocol in least and min(seeds.values(), default=least[protocol]) < least[protocol]
    )


def _entropies(evidence: Evidence, scores: Accuracies) -> dict[str, float]:
    """Entropies in bits per byte, by protocol, where the grammar of the text is known."""
    if not scores.lower:
        return {}
    known = {c.protocol: simple(evidence, scores, c).get(ENTROPY) for c in scores.columns}
    return {protocol: one.value for protocol, one in known.items() if one is not None}


def agreement_text(share: float) -> str:
    """Return a share of equal answers in percent, 100 only where all are equal."""
    text = percent(share)
    return "99.9" if text == percent(1.0) and share < 1.0 else text
