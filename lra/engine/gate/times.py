"""Times of two builds in comparison: slowdowns that fail a check, changes that `compare` lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lra.changes.compare import Changes, Line, between_stores
from lra.changes.measurements import ASKED, CONDITIONS, Key, measurements
from lra.changes.words import (
    cell_words,
    change_words,
    line_cell,
    line_label,
    reason_words,
    side_words,
)
from lra.core.catalogue import find
from lra.core.cells import Device
from lra.engine.gate import interleave
from lra.engine.gate.baselines import Noise
from lra.engine.gate.cell_keys import time_key
from lra.engine.process.temporary import temporary_folder
from lra.report.load.select import Evidence, join
from lra.report.words import count, percent, span
from lra.verdict.baseline import Judgement, Outcome
from lra.verdict.change import TIME_MARGIN
from lra.verdict.slowdown import (
    PAIRS,
    is_faster,
    is_slower,
    log_deviation,
    margin,
    pairs_needed,
    smallest_slowdown,
)

SUITE = Path(__file__).resolve().parents[2] / "suites" / "check_time.toml"

_CELL = ("mechanism", *(name for name in ASKED if name != "metric"))
"""Columns that tell a cell from all others."""


class TimeComparison:
    """Mechanisms timed in two builds, pair by pair.

    A comparison has `pairs` of processes, None for as many as its noise needs; `noise` is that of
    times on this class of machine.
    """

    def __init__(
        self,
        sides: interleave.Sides,
        device: Device,
        pairs: int | None,
        noise: Mapping[str, Noise],
        log: Callable[[str], None],
    ) -> None:
        self.sides, self.device, self.pairs, self.noise = sides, device, pairs, noise
        self.log = log

    def judge(self, mechanisms: Sequence[str]) -> tuple[list[Judgement], list[str]]:
        """Return every cell's outcome, and a sentence on the smallest slowdown that shows.

        A cell that looks slower is timed again with fresh pairs; it fails only where it is slower
        again.
        """
        with temporary_folder() as folder:
            first = self.changes(mechanisms, folder)
            asked = _cells_asked(folder)
        again: dict[Key, Line] = {}
        names = {line.after.row.mechanism for line in first.lines if self._is_suspect(line)}
        if suspects := sorted(names):
            self.log(f"{', '.join(suspects)}: slower, or ended otherwise; timed once more")
            again = {_figure(line): line for line in self.changes(suspects).lines}
        judged = [self._judge_line(line, again.get(_figure(line))) for line in first.lines]
        notes = self._note_resolution(first.lines)
        if first.busy:
            notes.append(f"{count(first.busy, 'timing')} of a busy machine left out.")
        return [*judged, *_judge_untimed(mechanisms, asked, first)], notes

    def changes(self, mechanisms: Sequence[str], keep: Path | None = None) -> Changes:
        """Time mechanisms in both builds and compare; `keep` is a folder for the records."""
        # `_more_pairs` gives names; a mechanism runs by its reference (file.py:Class).
        asked = {find("mechanism", one).name: one for one in mechanisms}
        with temporary_folder() as scratch:
            folder = keep or scratch
            self._time(mechanisms, range(self.pairs or PAIRS), folder)
            found = self._read(folder)
            more = {} if self.pairs else self._more_pairs(found)
            for name, pairs in more.items():
                self.log(f"{name} is noisy: {pairs} pairs in all")
                self._time([asked[name]], range(PAIRS, pairs), folder)
            return self._read(folder) if more else found

    def _time(self, mechanisms: Sequence[str], turns: range, folder: Path) -> None:
        interleave.time_interleaved(
            self.sides,
            mechanisms,
            suite=SUITE,
            device=self.device,
            turns=turns,
            folder=folder,
            log=self.log,
        )

    def _read(self, folder: Path) -> Changes:
        one, other = _evidence(folder)
        names = (self.sides[0].name, self.sides[1].name)
        return between_stores(one, other, names)

    def _more_pairs(self, found: Changes) -> dict[str, int]:
        """Pairs that mechanisms need, where more than at first, by their noisiest cell."""
        wanted: dict[str, int] = {}
        for line in found.lines:
            spread = log_deviation(line.change) if line.quantity.name == "time" else None
            if spread is not None:
                pairs = pairs_needed(spread, self.allowed(line))
                name = line.after.row.mechanism
                wanted[name] = max(pairs, wanted.get(name, PAIRS))
        return {name: pairs for name, pairs in wanted.items() if pairs > PAIRS}

    def allowed(self, line: Line) -> float:
        """Return the slowdown, as a share, that is within this machine's noise."""
        known = self.noise.get(time_key(line.after.row))
        alike = [known] if known else self.noise.values()
        # With fewer pairs than the noise was measured on, chance alone reaches further.
        pairs = max(2, line.change.pairs)
        return max((max(n.allowed, margin(n.spread, pairs)) for n in alike), default=TIME_MARGIN)

    def _is_suspect(self, line: Line) -> bool:
        if line.quantity.name != "time" or line.change.low is None:
            return line.change.verdict == "worse"
        return is_slower(line.change, self.allowed(line))

    def _judge_line(self, line: Line, again: Line | None) -> Judgement:
        outcome: Outcome = "held"
        why = change_words(line.change)
        if line.change.verdict == "incomparable":
            given_up = line.after.is_unsupported
            outcome, why = "regression" if given_up else "inconclusive", reason_words(line)
        elif line.change.verdict == "ambiguous" and line.change.low is None:
            single = f"{why}, of a single pair of processes that can be used"
            outcome, why = "inconclusive", reason_words(line) or single
        elif self._is_suspect(line):
            if again is None or again.change.verdict == "incomparable":
                outcome, why = (
                    "inconclusive",
                    f"{_change_words(line)}, and could not be timed again",
                )
            else:
                outcome = "regression" if self._is_suspect(again) else "held"
                why = f"{_change_words(line)}, again {_change_words(again)}"
        elif line.quantity.name == "time" and is_faster(line.change, self.allowed(line)):
            outcome = "improvement"
        elif line.quantity.name != "time" and line.change.verdict == "better":
            outcome, why = "improvement", _change_words(line)
        return Judgement(line_label(line), line_cell(line), line.quantity.name, outcome, why)

    def _note_resolution(self, lines: Sequence[Line]) -> list[str]:
        timed = [
            (smallest_slowdown(spread, self.allowed(line), line.change.pairs), line.change.pairs)
            for line in lines
            if line.quantity.name == "time" and (spread := log_deviation(line.change)) is not None
        ]
        if not timed:
            return []
        seen, pairs = sorted(size for size, _ in timed), [n for _, n in timed]
        middle, most = seen[len(seen) // 2], seen[-1]
        return [
            f"Times: {self.sides[1].name} against {self.sides[0].name}, {span(pairs)} pairs of "
            f"processes a cell; the smallest slowdown reliably detected is "
            f"{percent(middle, middle)} % on half of the cells and {percent(most, most)} % on the "
            "noisiest."
        ]


def _evidence(folder: Path) -> list[Evidence]:
    """The records of the two builds."""
    return [join(store.records(), []) for store in interleave.stores_of(folder)]


def _cells_asked(folder: Path) -> dict[Key, str]:
    """Words for every cell that either build was asked for."""
    found = (one for side in _evidence(folder) for one in measurements(side))
    return {one.key(_CELL): cell_words(one) for one in found}


def _judge_untimed(
    mechanisms: Sequence[str], asked: Mapping[Key, str], found: Changes
) -> list[Judgement]:
    """Judgements for cells without a usable timing from both builds, as on a machine that was busy
    throughout."""
    sides = (line.after for line in found.lines if line.quantity.name == "time")
    timed = {one.key(_CELL) for one in sides}
    cells = {one: words for one, words in asked.items() if one[0] in mechanisms}
    missing = [(one[0], words) for one, words in cells.items() if one not in timed]
    missing += [(name, "") for name in mechanisms if name not in {one[0] for one in cells}]
    why = "no usable timing from both builds; check again while the machine does nothing else"
    return [Judgement(name, cell, "time", "inconclusive", why) for name, cell in missing]


def _figure(line: Line) -> Key:
    """Key of a figure, equal in two comparisons of the same builds."""
    return line.after.key(("mechanism", *ASKED, *CONDITIONS))


def _change_words(line: Line) -> str:
    return reason_words(line) or change_words(line.change) or " to ".join(side_words(line))
