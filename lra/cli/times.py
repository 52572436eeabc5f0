"""Two builds put beside each other by time: what `lra check` fails for, and `lra compare` shows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lra.report.words import count
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

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lra.changes.compare import Changes, Line
    from lra.core.cells import Device
    from lra.engine.gate.baselines import Noise
    from lra.engine.gate.interleave import Sides
    from lra.report.load.select import Evidence

SUITE = Path(__file__).resolve().parents[1] / "suites" / "check_time.toml"


class Times:
    """Times mechanisms in two builds, pair by pair.

    `pairs` of processes are one comparison, None for as many as their noise asks for; `noise` is
    how this class of machine repeats.
    """

    def __init__(
        self,
        sides: Sides,
        device: Device,
        pairs: int | None,
        noise: Mapping[str, Noise],
        told: Callable[[str], None],
    ) -> None:
        self.sides, self.device, self.pairs, self.noise = sides, device, pairs, noise
        self.told = told

    def judged(self, mechanisms: Sequence[str]) -> tuple[list[Judgement], list[str]]:
        """Return every cell's outcome, and a sentence on what could have been seen.

        What looks slower is timed again with fresh pairs; it fails only where it is slower again.
        """
        with tempfile.TemporaryDirectory() as scratch:
            first = self.changes(mechanisms, Path(scratch))
            asked = _asked(Path(scratch))
        suspects = [line for line in first.lines if self._suspect(line)]
        again: dict[str, Line] = {}
        if suspects:
            names = sorted({line.after.row.mechanism for line in suspects})
            self.told(f"{', '.join(names)}: slower, or ended otherwise; timed once more")
            again = {_place(line): line for line in self.changes(names).lines}
        found = [self._judged(line, again.get(_place(line))) for line in first.lines]
        notes = self._could_see(first.lines)
        if first.busy:
            notes.append(f"{count(first.busy, 'timing')} of a busy machine left out.")
        return [*found, *_untimed(mechanisms, asked, first)], notes

    def changes(self, mechanisms: Sequence[str], keep: Path | None = None) -> Changes:
        """Time mechanisms in both builds and compare; `keep` is a folder for the records."""
        from lra.core.catalogue import find

        # `_more` reports names; run a mechanism by the reference it was asked for (file.py:Class).
        asked = {find("mechanism", one).name: one for one in mechanisms}
        with tempfile.TemporaryDirectory() as scratch:
            folder = keep or Path(scratch)
            self._take(mechanisms, range(self.pairs or PAIRS), folder)
            found = self._read(folder)
            more = {} if self.pairs else self._more(found)
            for name, pairs in more.items():
                self.told(f"{name} is noisy: {pairs} pairs in all")
                self._take([asked[name]], range(PAIRS, pairs), folder)
            return self._read(folder) if more else found

    def _take(self, mechanisms: Sequence[str], turns: range, folder: Path) -> None:
        from lra.engine.gate.interleave import time_interleaved

        time_interleaved(
            self.sides,
            mechanisms,
            suite=SUITE,
            device=self.device,
            turns=turns,
            folder=folder,
            log=self.told,
        )

    def _read(self, folder: Path) -> Changes:
        from lra.changes.compare import between_stores

        one, other = _both(folder)
        names = (self.sides[0].name, self.sides[1].name)
        return between_stores(one, other, names)

    def _more(self, found: Changes) -> dict[str, int]:
        """How many pairs mechanisms need that need more than they had, by their noisiest cell."""
        wanted: dict[str, int] = {}
        for line in found.lines:
            spread = log_deviation(line.change) if line.quantity.name == "time" else None
            if spread is not None:
                pairs = pairs_needed(spread, self.allowed(line))
                name = line.after.row.mechanism
                wanted[name] = max(pairs, wanted.get(name, PAIRS))
        return {name: pairs for name, pairs in wanted.items() if pairs > PAIRS}

    def allowed(self, line: Line) -> float:
        """Return the slowdown, as a share, that this machine cannot tell from noise."""
        from lra.changes.words import line_name

        known = self.noise.get(line_name(line))
        alike = [known] if known else self.noise.values()
        # With fewer pairs than the noise was measured on, chance alone reaches further.
        pairs = max(2, line.change.pairs)
        return max((max(n.allowed, margin(n.spread, pairs)) for n in alike), default=TIME_MARGIN)

    def _suspect(self, line: Line) -> bool:
        if line.quantity.name != "time" or line.change.low is None:
            return line.change.verdict == "worse"
        return is_slower(line.change, self.allowed(line))

    def _judged(self, line: Line, again: Line | None) -> Judgement:
        from lra.changes.words import change_words, line_cell, line_label, reason_words

        outcome: Outcome = "held"
        why = change_words(line.change)
        if line.change.verdict == "incomparable":
            outcome, why = (
                "regression" if line.after.is_unsupported else "inconclusive",
                reason_words(line),
            )
        elif line.change.verdict == "ambiguous" and line.change.low is None:
            single = f"{why}, of a single pair of processes that can be used"
            outcome, why = "inconclusive", reason_words(line) or single
        elif self._suspect(line):
            if again is None or again.change.verdict == "incomparable":
                outcome, why = "inconclusive", f"{_told(line)}, and could not be timed again"
            else:
                outcome = "regression" if self._suspect(again) else "held"
                why = f"{_told(line)}, again {_told(again)}"
        elif line.quantity.name == "time" and is_faster(line.change, self.allowed(line)):
            outcome = "improvement"
        elif line.quantity.name != "time" and line.change.verdict == "better":
            outcome, why = "improvement", _told(line)
        return Judgement(line_label(line), line_cell(line), line.quantity.name, outcome, why)

    def _could_see(self, lines: Sequence[Line]) -> list[str]:
        from lra.report.words import percent, span

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


def _both(folder: Path) -> list[Evidence]:
    """What the two builds gave."""
    from lra.engine.gate.interleave import stores_of
    from lra.report.load.select import join

    return [join(store.records(), []) for store in stores_of(folder)]


def _asked(folder: Path) -> dict[tuple[str, tuple[Any, ...]], str]:
    """Mechanism and place of every cell that either build was asked for, and its words."""
    from lra.changes.measurements import measurements
    from lra.changes.words import cell_words

    found = (one for side in _both(folder) for one in measurements(side))
    return {(one.row.mechanism, one.place): cell_words(one) for one in found}


def _untimed(
    mechanisms: Sequence[str], asked: Mapping[tuple[str, tuple[Any, ...]], str], found: Changes
) -> list[Judgement]:
    """What no process of both builds tells of, as where the machine was busy all along."""
    sides = (line.after for line in found.lines if line.quantity.name == "time")
    timed = {(one.row.mechanism, one.place) for one in sides}
    cells = {one: words for one, words in asked.items() if one[0] in mechanisms}
    missing = [(one[0], words) for one, words in cells.items() if one not in timed]
    missing += [(name, "") for name in mechanisms if name not in {one[0] for one in cells}]
    why = "no usable timing from both builds; check again while the machine does nothing else"
    return [Judgement(name, cell, "time", "inconclusive", why) for name, cell in missing]


def _place(line: Line) -> str:
    from lra.changes.words import line_name

    return f"{line_name(line)} {line.quantity.name}"


def _told(line: Line) -> str:
    from lra.changes.words import change_words, reason_words, side_words

    return reason_words(line) or change_words(line.change) or " to ".join(side_words(line))
