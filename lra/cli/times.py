"""Two builds put beside each other by time: what `lra check` fails for, and `lra compare` shows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from lra.verdict.baseline import Held, Outcome
from lra.verdict.change import MARGIN
from lra.verdict.gate import faster, margin, slower, smallest, spread_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lra.engine.baselines import Noise
    from lra.engine.side_by_side import Sides
    from lra.report.changes.between import Changes, Line

SUITE = Path(__file__).resolve().parents[1] / "suites" / "check_time.toml"


class Times:
    """Times mechanisms in two builds, pair by pair.

    `pairs` of processes are one comparison; `noise` is how this class of machine repeats.
    """

    def __init__(
        self,
        sides: Sides,
        device: Literal["cpu", "cuda"],
        pairs: int,
        noise: Mapping[str, Noise],
        told: Callable[[str], None],
    ) -> None:
        self.sides, self.device, self.pairs, self.noise = sides, device, pairs, noise
        self.told = told

    def judged(self, mechanisms: Sequence[str]) -> tuple[list[Held], list[str]]:
        """Return every cell's outcome, and a sentence on what could have been seen.

        What looks slower is timed again with fresh pairs; it fails only where it is slower again.
        """
        first = self.changes(mechanisms)
        suspects = [line for line in first.lines if self._suspect(line)]
        again: dict[str, Line] = {}
        if suspects:
            names = sorted({line.label for line in suspects})
            self.told(f"{', '.join(names)}: slower, or ended otherwise; timed once more")
            again = {_place(line): line for line in self.changes(names).lines}
        found = [self._held(line, again.get(_place(line))) for line in first.lines]
        return [*found, *_untimed(mechanisms, first)], self._could_see(first.lines)

    def changes(self, mechanisms: Sequence[str], keep: Path | None = None) -> Changes:
        """Time mechanisms in both builds and compare; `keep` is a folder for the records."""
        from lra.engine.side_by_side import in_turns
        from lra.report.changes.between import between_stores
        from lra.report.select import join

        with tempfile.TemporaryDirectory() as scratch:
            stores = in_turns(
                self.sides,
                mechanisms,
                suite=SUITE,
                device=self.device,
                turns=range(self.pairs),
                folder=keep or Path(scratch) / "times",
                told=self.told,
            )
            one, other = (join(store.records(), []) for store in stores)
            names = (self.sides[0].name, self.sides[1].name)
            return between_stores(one.entries, other.entries, (one.busy, other.busy), names)

    def allowed(self, line: Line) -> float:
        """Return the slowdown, as a share, that this machine cannot tell from noise."""
        known = self.noise.get(line.name)
        alike = [known] if known else self.noise.values()
        # Of fewer pairs than it was measured with, noise alone makes more.
        pairs = max(2, line.change.pairs)
        return max((max(n.allowed, margin(n.spread, pairs)) for n in alike), default=MARGIN)

    def _suspect(self, line: Line) -> bool:
        if line.quantity.name != "time" or line.change.low is None:
            return line.change.verdict == "worse"
        return slower(line.change, self.allowed(line))

    def _held(self, line: Line, again: Line | None) -> Held:
        outcome: Outcome = "held"
        why = line.told
        if line.change.verdict == "incomparable":
            outcome, why = "inconclusive", line.why
        elif self._suspect(line):
            if again is None or again.change.verdict == "incomparable":
                outcome, why = "inconclusive", f"{_told(line)}, and could not be timed again"
            else:
                outcome = "regression" if self._suspect(again) else "held"
                why = f"{_told(line)}, again {_told(again)}"
        elif line.quantity.name == "time" and faster(line.change, self.allowed(line)):
            outcome = "improvement"
        elif line.quantity.name != "time" and line.change.verdict == "better":
            outcome, why = "improvement", _told(line)
        return Held(line.label, line.cell, line.quantity.name, outcome, why)

    def _could_see(self, lines: Iterable[Line]) -> list[str]:
        from lra.report.words import percent

        seen = [
            smallest(spread, self.allowed(line), line.change.pairs)
            for line in lines
            if line.quantity.name == "time" and (spread := spread_of(line.change)) is not None
        ]
        if not seen:
            return []
        middle, most = sorted(seen)[len(seen) // 2], max(seen)
        return [
            f"Times: {self.sides[1].name} against {self.sides[0].name}, {self.pairs} pairs of "
            f"processes a cell; the smallest slowdown found for sure is {percent(middle, middle)} "
            f"% on half of the cells and {percent(most, most)} % on the noisiest."
        ]


def _untimed(mechanisms: Iterable[str], found: Changes) -> list[Held]:
    """What no process of both builds tells of, as where the machine was busy all along."""
    timed = {line.label for line in found.lines if line.quantity.name == "time"}
    why = "no timing of both builds can be used; check again while the machine does nothing else"
    return [Held(name, "", "time", "inconclusive", why) for name in mechanisms if name not in timed]


def _place(line: Line) -> str:
    return f"{line.name} {line.quantity.name}"


def _told(line: Line) -> str:
    return line.told or f"{line.before} to {line.after}" if not line.why else line.why


def echo(quiet: bool) -> Callable[[str], None]:
    """Return what says what goes on, on the standard error; nothing where `quiet`."""
    return (lambda _: None) if quiet else (lambda words: click.echo(words, err=True))
