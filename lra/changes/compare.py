"""Changes between two stores, or differences of two mechanisms of one, cell by cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from lra.changes.measurements import (
    ASKED,
    CONDITIONS,
    Ending,
    Key,
    Measurement,
    Quantity,
    measurements,
)
from lra.core.escape import escape_controls
from lra.report.load.select import Evidence
from lra.report.load.versions import apart, is_earlier
from lra.verdict.change import Change, Verdict

WHERE = ("rules", "track", "source", "machine", "threads", "torch")
"""Columns that are part of a cell's name where they vary."""
_UNDER = tuple(name for name in CONDITIONS if name != "variant")


class Line(msgspec.Struct, frozen=True):
    """One metric of one cell on two sides."""

    before: Measurement
    after: Measurement
    same_mechanism: bool
    change: Change = Change("incomparable")
    differing: tuple[str, ...] = ()
    """Conditions that differ, so that nothing is compared."""
    features: tuple[str, ...] = ()
    """Features of the measuring code that differ."""
    lost: tuple[Ending, ...] = ()
    """Endings, on the second side, of replicates or seeds that had a figure on the first."""
    won: tuple[Ending, ...] = ()
    """Endings, on the first side, of replicates or seeds that have a figure on the second."""
    varying: tuple[str, ...] = ()
    """Columns of `WHERE` that tell the cell from others of its kind."""

    @property
    def quantity(self) -> Quantity:
        """The metric as it is compared."""
        return self.after.quantity

    @property
    def has_ended(self) -> bool:
        """Whether the cell fails on one side and not on the other."""
        return self.change.verdict in ("worse", "better") and bool(self.lost or self.won)

    @property
    def size(self) -> float:
        """Size of the change, to sort by; a cell that ended otherwise comes first."""
        if self.has_ended:
            return float("inf")
        if self.change.ratio is not None:
            return max(self.change.ratio, 1 / self.change.ratio)
        return 1 + abs(self.change.difference or 0.0)


class Changes(msgspec.Struct, frozen=True):
    """Two sides in comparison."""

    before: str
    """Name of the first side."""
    after: str
    lines: tuple[Line, ...]
    """Compared lines, in the order of cells."""
    only_before: int
    """Number of cells that the other side does not have."""
    only_after: int
    busy: int
    """Number of timings left out, taken while the machine was busy."""
    several: int = 0
    """Number of cells that one of two mechanisms has with several settings."""

    def of(self, verdict: Verdict) -> list[Line]:
        """Return the lines with this verdict, the largest change first."""
        found = [line for line in self.lines if line.change.verdict == verdict]
        return sorted(found, key=lambda line: -line.size)


def between_stores(before: Evidence, after: Evidence, names: tuple[str, str]) -> Changes:
    """Compare what two stores say of the same mechanisms."""
    return _changes(measurements(before), measurements(after), names, same_mechanism=True)


def between_mechanisms(evidence: Evidence, names: tuple[str, str]) -> Changes:
    """Compare two mechanisms of one store; a name may be that of a row of its report.

    A cell that a mechanism has with several settings is left out.
    """
    known = measurements(evidence)
    sides: list[list[Measurement]] = []
    several: set[Key] = set()
    for name in names:
        side = [one for one in known if name in (one.row.label, one.row.mechanism)]
        variants: dict[Key, set[str]] = defaultdict(set)
        for one in side:
            variants[one.key(ASKED)].add(one.row.variant)
        sides.append([one for one in side if len(variants[one.key(ASKED)]) == 1])
        # Without the metric: a cell, not a figure.
        several |= {asked[:-1] for asked, own in variants.items() if len(own) > 1}
    found = _changes(sides[0], sides[1], names, same_mechanism=False)
    return msgspec.structs.replace(found, several=len(several))


def _changes(
    before: Sequence[Measurement],
    after: Sequence[Measurement],
    names: tuple[str, str],
    *,
    same_mechanism: bool,
) -> Changes:
    quiet = [[one for one in side if one.values or one.endings] for side in (before, after)]
    pairs = _paired(quiet, same_mechanism=same_mechanism)
    lines = [
        _judged(Line(one, other, same_mechanism))
        for one, other in pairs
        # Else measured on neither side, as memory of a GPU on a CPU.
        if one.is_known or other.is_known
    ]
    alone = [
        len({_cell(one) for one in side} - {_cell(pair[number]) for pair in pairs})
        for number, side in enumerate(quiet)
    ]
    return Changes(
        before=escape_controls(names[0]),
        after=escape_controls(names[1]),
        lines=tuple(_distinguished(lines)),
        only_before=alone[0],
        only_after=alone[1],
        busy=sum(len(frozenset().union(*(m.busy for m in side))) for side in (before, after)),
    )


def _cell(one: Measurement) -> Key:
    """The cell that a measurement is of; cells of two machines are two."""
    return one.key((*ASKED[:-1], *CONDITIONS))


def _paired(
    sides: Sequence[Sequence[Measurement]], *, same_mechanism: bool
) -> list[tuple[Measurement, Measurement]]:
    """Pairs of measurements of one question: first those under the same conditions, then of the
    rest those where each side has a single candidate."""
    strict = (*ASKED, *(CONDITIONS if same_mechanism else _UNDER))
    loose = (*ASKED, *(["mechanism"] if same_mechanism else []))
    pairs, rest = [], list(sides)
    for names in (strict, loose):
        numbers = [Counter(one.key(names) for one in side) for side in rest]
        met = {key for key, number in numbers[0].items() if number == numbers[1][key] == 1}
        found = [{one.key(names): one for one in side} for side in rest]
        pairs += [(found[0][key], found[1][key]) for key in met]
        rest = [[one for one in side if one.key(names) not in met] for side in rest]
    order = {id(one): place for place, one in enumerate(sides[1])}
    return sorted(pairs, key=lambda pair: order[id(pair[1])])


def _judged(line: Line) -> Line:
    before, after, replace = line.before, line.after, msgspec.structs.replace
    features = tuple(apart([before.row.measuring, after.row.measuring]))
    if (differing := _differing(line)) or features:
        return replace(line, differing=differing, features=features)
    lost = tuple(one for number, one in after.failures.items() if number in before.values)
    won = tuple(one for number, one in before.failures.items() if number in after.values)
    if lost or won:
        more = len(lost) - len(won)
        # As many of both: no change that can be told.
        verdict: Verdict = "worse" if more > 0 else "better" if more < 0 else "ambiguous"
        return replace(line, change=Change(verdict), lost=lost, won=won)
    one, other = before.values, after.values
    if not (one or other):
        endings = [{own[:2] for own in side.endings.values()} for side in (before, after)]
        return replace(line, change=Change("same")) if endings[0] == endings[1] else line
    if before.controlled.keys() == one.keys() and after.controlled.keys() == other.keys():
        # A spell that slows the machine is in the control, too.
        one, other = before.controlled, after.controlled
    found = line.quantity.judge(one, other) if one and other else None
    return replace(line, change=found) if found else line


def _differing(line: Line) -> tuple[str, ...]:
    """Names of the conditions that differ; for measuring code its features say more."""
    ignored = {"measuring"} if line.same_mechanism else {"measuring", "variant"}
    sides = (line.before, line.after)
    if len({is_earlier(side.row.measuring) for side in sides}) > 1:
        # Where one side has feature versions, the hashes that an earlier protocol kept say nothing.
        ignored |= {"data_hash", "protocol"}
    return tuple(
        name
        for name in CONDITIONS
        if name not in ignored and sides[0].key([name]) != sides[1].key([name])
    )


def _distinguished(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, with the columns that tell cells of their kind apart."""
    found: dict[str, set[Key]] = defaultdict(set)
    for line in lines:
        found[line.after.row.kind].add(line.after.key(WHERE))
    for line in lines:
        columns = zip(WHERE, zip(*found[line.after.row.kind], strict=True), strict=True)
        varying = tuple(name for name, own in columns if len(set(own)) > 1)
        yield msgspec.structs.replace(line, varying=varying)
