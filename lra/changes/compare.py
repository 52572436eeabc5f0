"""What changed between two stores, or differs between two mechanisms of one, cell by cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, cast

import msgspec

from lra.changes.counterparts import ASKED, CONDITIONS, Key, key, paired, whereabouts
from lra.core.escape import escape_controls
from lra.report.entries import Busy, Entry
from lra.report.versions import apart, is_earlier, named
from lra.report.words import (
    STATUS,
    TIMES,
    Unit,
    between,
    figures,
    is_failure,
    listing,
    percent,
    quantity,
)
from lra.verdict.change import (
    Change,
    Verdict,
    compare_accuracies,
    compare_bits,
    compare_counts,
    compare_times,
)
from lra.verdict.repeatability import ControlledCost

Judge = Callable[[Mapping[int, float], Mapping[int, float]], Change | None]


Controls = Mapping[str, tuple[float, float]]
"""Times of the control before and after a timing, by its record."""


class Quantity(msgspec.Struct, frozen=True):
    """Something that is compared."""

    name: str
    judge: Judge
    worse: str
    better: str
    controlled: bool = False
    """Whether a figure is taken over the control of its process: a time, which a slow spell of the
    machine and a busy one change."""
    by_seed: bool = False
    """Whether it is of trainings, of which seeds are paired."""


QUANTITIES: dict[str, Quantity] = {
    "latency": Quantity("time", compare_times, "slower", "faster", controlled=True),
    "prefill": Quantity("prefill", compare_times, "slower", "faster", controlled=True),
    "peak_tensor_bytes": Quantity("bytes of tensors", compare_counts, "larger", "smaller"),
    "peak_allocated_bytes": Quantity("allocated bytes", compare_counts, "larger", "smaller"),
    "state_bytes": Quantity("state", compare_counts, "larger", "smaller"),
    "operations": Quantity("operations", compare_counts, "more", "fewer"),
    "test_accuracy": Quantity(
        "accuracy", compare_accuracies, "less accurate", "more accurate", by_seed=True
    ),
    "bits_per_byte": Quantity("bits per byte", compare_bits, "worse", "better", by_seed=True),
    "output_error": Quantity("error", compare_times, "further off", "nearer"),
}
"""By metric. Resident size is left out: it is not the same twice."""


class Line(msgspec.Struct, frozen=True):
    """One figure of one cell on two sides."""

    label: str
    """The mechanism; empty where two are compared."""
    cell: str
    """What was asked: `train 4096 heads 4 x 64`."""
    place: tuple[Any, ...]
    """To sort by."""
    quantity: Quantity
    change: Change
    before: str
    after: str
    why: str = ""
    """Of what cannot be compared, and of cells of which some ended otherwise."""

    @property
    def name(self) -> str:
        """Mechanism and cell."""
        return f"{self.label} {self.cell}".strip()

    @property
    def word(self) -> str:
        """The verdict in the quantity's own words."""
        words = {"worse": self.quantity.worse, "better": self.quantity.better}
        return self.why if self.ended else words.get(self.change.verdict, self.change.verdict)

    @property
    def ended(self) -> bool:
        """Return whether it fails on one side and not on the other."""
        return self.change.verdict in ("worse", "better") and bool(self.why)

    @property
    def size(self) -> float:
        """How large the change is, to sort by; what ended otherwise comes first."""
        if self.ended:
            return float("inf")
        if self.change.ratio is not None:
            return max(self.change.ratio, 1 / self.change.ratio)
        return 1 + abs(self.change.difference or 0.0)

    @property
    def told(self) -> str:
        """The change with its bounds: `1.12 x (1.05 to 1.19)`, `+1.2 points`."""
        change = self.change
        bounds = ""
        if change.ratio is not None:
            if change.low is not None and change.high is not None:
                bounds = f" ({between(change.low, change.high)})"
            return f"{figures(change.ratio, most=3)} {TIMES}{bounds}"
        if change.difference is not None:
            if change.low is not None and change.high is not None:
                bounds = f" ({100 * change.low:+.1f} to {100 * change.high:+.1f})"
            return f"{100 * change.difference:+.1f} points{bounds}"
        return ""


class Changes(msgspec.Struct, frozen=True):
    """Two sides put beside each other."""

    before: str
    """Their names."""
    after: str
    lines: tuple[Line, ...]
    only_before: int
    """Cells that the other side does not have."""
    only_after: int
    busy: int
    """Timings left out, taken while the machine was busy."""
    several: int = 0
    """Cells that one of two mechanisms has with several settings."""

    def of(self, verdict: Verdict) -> list[Line]:
        """Return the lines with this verdict, the largest change first."""
        found = [line for line in self.lines if line.change.verdict == verdict]
        return sorted(found, key=lambda line: (-line.size, line.label, line.place, line.cell))


def between_stores(
    before: Sequence[Entry], after: Sequence[Entry], busy: tuple[Busy, Busy], names: tuple[str, str]
) -> Changes:
    """Compare what two stores say of the same mechanisms."""
    sides = [_side(own, bad) for own, bad in zip((before, after), busy, strict=True)]
    return _changes(sides, names, CONDITIONS, ("mechanism",))


def between_mechanisms(entries: Sequence[Entry], busy: Busy, names: tuple[str, str]) -> Changes:
    """Compare two mechanisms of one store: rows of its report, or all rows of a mechanism.

    Of a cell that a mechanism has with several settings nothing is said.
    """
    sides = [_side([e for e in entries if name in (e.label, e.mechanism)], busy) for name in names]
    labels: dict[Key, set[str]] = defaultdict(set)
    for number, side in enumerate(sides):
        for e in side.entries:
            labels[number, *key(e, ASKED)].add(e.label)
    alone = [
        msgspec.structs.replace(
            side,
            entries=tuple(e for e in side.entries if len(labels[n, *key(e, ASKED)]) == 1),
        )
        for n, side in enumerate(sides)
    ]
    # Without the side and the metric: a cell, not a figure.
    several = {place[1:-1] for place, own in labels.items() if len(own) > 1}
    conditions = {name: words for name, words in CONDITIONS.items() if name != "config"}
    found = _changes(alone, names, conditions, ())
    return msgspec.structs.replace(found, several=len(several))


class _Side(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    """Those of quantities that are compared."""
    controls: Controls
    busy: int


def _side(entries: Sequence[Entry], busy: Busy) -> _Side:
    found: list[Entry] = []
    controls: dict[str, dict[str, float]] = defaultdict(dict)
    left_out = set()
    for e in entries:
        if e.metric in ("control_before", "control_after") and e.value:
            controls[e.record][e.metric] = e.value
        if e.metric in QUANTITIES:
            if (e.origin, e.record) in busy and QUANTITIES[e.metric].controlled:
                left_out.add(e.record)
            else:
                found.append(e)
    both = {
        id: (own["control_before"], own["control_after"])
        for id, own in controls.items()
        if len(own) > 1
    }
    return _Side(tuple(found), both, len(left_out))


def _changes(
    sides: Sequence[_Side],
    names: tuple[str, str],
    conditions: Mapping[str, str],
    subject: tuple[str, ...],
) -> Changes:
    before, after = sides
    pairs = paired(before.entries, after.entries, (*ASKED, *subject), tuple(conditions))
    told_apart = whereabouts(other[0] for _, other in pairs)
    lines = []
    for one, other in pairs:
        last = other[0]
        if all(e.value is None and e.status == STATUS["ok"] for e in (*one, *other)):
            # Not measured on either side, as memory of a GPU on a CPU.
            continue
        change, why = _judged(one, other, (before.controls, after.controls), conditions)
        words = (*_texts(one, other), why)
        cell = ", ".join([cell_words(last), *told_apart(last)])
        label = last.label if subject else ""
        lines.append(Line(label, cell, place(last), QUANTITIES[last.metric], change, *words))
    met = [len({_cell(pair[side][0]) for pair in pairs}) for side in (0, 1)]
    return Changes(
        before=escape_controls(names[0]),
        after=escape_controls(names[1]),
        lines=tuple(lines),
        only_before=len({_cell(e) for e in before.entries}) - met[0],
        only_after=len({_cell(e) for e in after.entries}) - met[1],
        busy=before.busy + after.busy,
    )


def _judged(
    before: list[Entry],
    after: list[Entry],
    controls: tuple[Controls, Controls],
    conditions: Mapping[str, str],
) -> tuple[Change, str]:
    """Return the change, and why there is none to judge or how a side ended."""
    versions = [side[0].measured_by for side in (before, after)]
    features = apart(versions)
    # Beside a version of today, hashes that an earlier protocol is in say nothing.
    untold = (
        {"data_hash", "protocol"} if len({is_earlier(side) for side in versions}) > 1 else set()
    )
    differing = [
        words
        for name, words in conditions.items()
        if name not in (*untold, "measured_by") and key(before[0], [name]) != key(after[0], [name])
    ]
    if features:
        differing.append(f"{conditions['measured_by']}: {named(features)}")
    if differing:
        return Change("incomparable"), listing(differing)
    asked = QUANTITIES[before[0].metric]
    sides = [_figures(own) for own in (before, after)]
    failures = [_failures(own) for own in (before, after)]
    lost = [failures[1][r] for r in sides[0] if r in failures[1]]
    won = [failures[0][r] for r in sides[1] if r in failures[0]]
    if lost and won:
        verdict = _more(len(lost), len(won))
        return Change(verdict), f"{_share(lost, after)} now, {_share(won, before)} no more"
    if lost:
        return Change("worse"), f"{_share(lost, after)} now"
    if won:
        return Change("better"), f"no {_share(won, before)} any more"
    if not all(sides):
        words = [own[0].word for side, own in zip(sides, (before, after), strict=True) if not side]
        alike = len(words) == 2 and words[0] == words[1]
        why = listing(list(dict.fromkeys(words)))
        return Change("same" if alike else "incomparable"), why
    one, other = ({r: value for r, (value, _) in side.items()} for side in sides)
    if asked.controlled:
        framed = [
            {
                r: ControlledCost(value, *own[id]).ratio
                for r, (value, id) in side.items()
                if id in own
            }
            for side, own in zip(sides, controls, strict=True)
        ]
        # A spell that slows the machine is in the control, too.
        if framed[0].keys() == one.keys() and framed[1].keys() == other.keys():
            one, other = framed
    found = asked.judge(one, other)
    return (found, "") if found else (Change("incomparable"), "no replicate or seed in common")


def _figures(own: list[Entry]) -> dict[int, tuple[float, str]]:
    """Figure and record by replicate or seed."""
    return {_number(e): (e.value, e.record) for e in own if e.value is not None}


def _failures(own: list[Entry]) -> dict[int, str]:
    """How those ended that failed, by replicate or seed."""
    return {_number(e): e.word for e in own if e.value is None and is_failure(e.word)}


def _number(e: Entry) -> int:
    return e.replicate if e.replicate is not None else e.seed or 0


def _more(lost: int, won: int) -> Verdict:
    """Which of the two there are more of; as many of both are no change that can be told."""
    return "ambiguous" if lost == won else "worse" if lost > won else "better"


def _share(words: Sequence[str], own: list[Entry]) -> str:
    """`OOM`, or of how many: `2 of 3 crash (SIGKILL)`."""
    word = Counter(words).most_common(1)[0][0]
    return word if len(words) == len(own) else f"{len(words)} of {len(own)} {word}"


def _texts(before: list[Entry], after: list[Entry]) -> tuple[str, str]:
    """Both sides' figures: of the replicates or seeds that both have, as their change is."""
    shared = _figures(before).keys() & _figures(after).keys()
    one, other = (
        [e for e in own if _number(e) in shared] if shared else own for own in (before, after)
    )
    return _text(one), _text(other)


def _text(own: list[Entry]) -> str:
    """The middle of a side's figures in its unit, or how it ended."""
    values = [e.value for e in own if e.value is not None]
    if not values:
        return own[0].word
    unit = own[0].unit
    if unit == "share":
        return f"{percent(fmean(values))} %"
    if unit in ("s", "B"):
        return quantity(median(values), cast(Unit, unit))
    return f"{median(values):,.0f}" if own[0].metric == "operations" else figures(median(values))


def _cell(e: Entry) -> tuple[Any, ...]:
    """What was asked and under which conditions: on two machines it is two cells."""
    return key(e, (*ASKED[:-1], *CONDITIONS, "mechanism"))


def place(e: Entry) -> tuple[Any, ...]:
    """Return what to sort cells by."""
    return e.kind, e.scale, e.task, e.level, e.mode, e.length


def cell_words(e: Entry) -> str:
    """Return what was asked, in as few words as tell cells of most stores apart."""
    if e.kind == "quality":
        return f"{e.task}, scale {e.scale}"
    parts = [e.mode or "error", str(e.length)]
    parts += [f"on {e.device}"] if e.device == "cuda" else []
    parts += [f"scale {e.scale}"] if e.scale != "mini" else []
    parts += [f"{e.level} {e.task}".strip()] if e.level not in ("", "layer") else []
    parts += [e.direction] if e.direction == "causal" and e.mode != "decode" else []
    parts += [f"batch {e.batch}"] if e.batch not in (None, 1) else []
    parts += [f"heads {e.heads} x {e.head_width}"]
    parts += [e.dtype] if e.dtype != "float32" else []
    parts += [e.execution] if e.execution not in ("", "eager") else []
    parts += [f"inputs {TIMES} {e.input_scale:g}"] if e.input_scale is not None else []
    return " ".join(parts)
