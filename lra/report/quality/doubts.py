"""What is wrong with trainings that ended well: other answers step by step than at once, fewer bits
than there can be, and what failed after a training."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from lra.core.cells import QualityCell
from lra.core.escape import escape_controls
from lra.report.entries import Entry, Kept, Origin, protocol_hash
from lra.report.quality.baselines import ENTROPY, FLOOR, fitting
from lra.report.quality.group import group_of
from lra.report.quality.score import BITS
from lra.report.select import Selection
from lra.report.words import figures, listing_of, percent

AGREEMENT = "decode_agreement"
UNDECODED, UNSEEN = "decode_failed", "look_failed"
"""Where a record's method has what went wrong."""

Kind = Literal["undecoded", "disagreeing", "impossible", "unseen"]
_SAYING: Mapping[Kind, tuple[str, str]] = {
    "impossible": (
        f"Fewer bits per byte than {ENTROPY}",
        "Such a model has seen the bytes it predicts; it is left out of all comparisons.",
    ),
    "disagreeing": (
        "Other answers token by token than in one pass",
        "What such a model scores is not what it would tell in use.",
    ),
    "undecoded": ("Decoding a trained model failed", ""),
    "unseen": ("Looking at what a trained model attends to failed", ""),
}
"""By kind, the gravest first: how a sentence on it begins, and what follows from it."""
FAILED_WORD = "failed"
FAILED_NOTE = f"{FAILED_WORD}: the error stands below the answer."
"""In tables, where a decoding or a look failed."""
Leaked = Collection[tuple[Origin, str, str]]
"""Origin, label and protocol of trainings that are in no comparison."""
_TOLD = 5
"""Trainings that a sentence names."""


class Doubt(msgspec.Struct, frozen=True):
    """One thing that is wrong with the trainings of a mechanism on a task."""

    kind: Kind
    origin: Origin
    label: str
    protocol: str
    place: str
    """`bytes at scale mini`."""
    detail: str
    """Figures, or a message."""

    @property
    def words(self) -> str:
        """`linear on bytes at scale mini (90.0 %)`."""
        mark = " (reference)" if self.origin == "reference" else ""
        return f"{self.label}{mark} on {self.place} ({self.detail})"


def doubts(selection: Selection) -> list[Doubt]:
    """Return what is wrong with trainings, of each kind, mechanism and protocol the worst seed."""
    floors = [e for e in selection.entries if e.kind == "baseline" and e.label == FLOOR]
    found: dict[tuple[Kind, Origin, str, str], tuple[float, Doubt]] = {}
    for kept in selection.kept:
        if not isinstance(kept.cell, QualityCell) or kept.record.status != "ok":
            continue
        for value, doubt in _of(kept, kept.cell, floors):
            key = (doubt.kind, doubt.origin, doubt.label, doubt.protocol)
            if key not in found or value < found[key][0]:
                found[key] = (value, doubt)
    return [doubt for _, doubt in found.values()]


def _of(kept: Kept, cell: QualityCell, floors: Sequence[Entry]) -> Iterator[tuple[float, Doubt]]:
    """What is wrong with one training, each with a figure that is the worse the lower it is."""
    metrics, method = kept.record.metrics, kept.record.method
    place = f"{escape_controls(cell.data.task)} at scale {group_of(cell).whole.words}"

    def doubt(kind: Kind, detail: str) -> Doubt:
        return Doubt(kind, kept.origin, kept.label, protocol_hash(cell), place, detail)

    bits = metrics[BITS.metric].value if BITS.metric in metrics else None
    if bits is not None:
        least = max((e.value for e in fitting(floors, cell) if e.value), default=0.0)
        if bits < least:
            yield bits, doubt("impossible", f"{figures(bits)}, {ENTROPY} {figures(least)}")
    alike = metrics[AGREEMENT].value if AGREEMENT in metrics else None
    if alike is not None and alike < 1.0:
        yield alike, doubt("disagreeing", f"{agreement_text(alike)} % are the same")
    if UNDECODED in method:
        yield 0.0, doubt("undecoded", escape_controls(str(method[UNDECODED])))
    if UNSEEN in method:
        yield 0.0, doubt("unseen", escape_controls(str(method[UNSEEN])))


def impossible(found: Iterable[Doubt]) -> Leaked:
    """Return what has fewer bits than there can be."""
    return frozenset((d.origin, d.label, d.protocol) for d in found if d.kind == "impossible")


def agreement_text(share: float) -> str:
    """Return a share of equal answers in percent, 100 only where all are equal."""
    text = percent(share)
    return "99.9" if text == percent(1.0) and share < 1.0 else text


def doubt_sentences(found: Iterable[Doubt]) -> list[str]:
    """Return a sentence on each kind, the gravest first."""
    by_kind: dict[Kind, list[Doubt]] = {kind: [] for kind in _SAYING}
    for one in found:
        by_kind[one.kind].append(one)
    return [_sentence(kind, own) for kind, own in by_kind.items() if own]


def _sentence(kind: Kind, own: list[Doubt]) -> str:
    start, end = _SAYING[kind]
    named = listing_of([one.words for one in own], _TOLD)
    return f"{start}: {named}.{f' {end}' if end else ''}"
