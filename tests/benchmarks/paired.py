"""Two layers measured against each other: interleaved rounds, ratios above a floor, peak memory.

A round runs ours, theirs and the goal's other reference (fused attention) once each, in another
order each time, and the floor (no mixing) before each and after the last. A round whose floor takes
more than 1.3 times its lower quartile over all rounds is disturbed: it is left out and counted. A
machine that is busy all the time shows in the floor's milliseconds alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

import numpy as np
import torch
from scipy import stats

from lra.measure.memory import resident_growth

Pass = Callable[[], None]

DISTURBED = 1.3
"""Times the quiet floor, above which a round is rejected."""

FAR = 0.1
"""Share of fused attention's time above the floor, from which on the peer is beaten above it."""

TIED = 1.1
"""Times the floor's peak memory that ours may take where the peer takes less."""

MIB = 1024 * 1024


@dataclass(frozen=True)
class Interval:
    """A median and the interval that holds it with 95 % by order statistics; NaN below 6 values."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> Interval:
        """Make no assumption about how the values are distributed."""
        if not len(values):
            return cls(float("nan"), float("nan"), float("nan"))
        between = stats.quantile_test(values, p=0.5).confidence_interval(0.95)
        return cls(float(np.median(values)), float(between.low), float(between.high))

    def __str__(self) -> str:
        return f"{self.median:5.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Comparison:
    """Ratios of times in the kept rounds, paired by round."""

    above_floor: Interval
    """(ours - floor) / (peer - floor)."""
    whole: Interval
    """ours / peer."""
    to_fused: dict[str, float]
    """Medians of the floor, ours and peer over fused attention."""
    milliseconds: dict[str, float]
    rounds: int
    rejected: int

    @property
    def far(self) -> bool:
        """Whether the peer is far enough above the floor to be beaten there."""
        return self.to_fused["peer"] - self.to_fused["floor"] >= FAR

    @property
    def ratio(self) -> Interval:
        """The ratio that counts."""
        return self.above_floor if self.far else self.whole

    def verdict(self, bar: float) -> str:
        """Compare the ratio that counts with `bar` above the floor; with 1 where it is near it.

        Undecided where the interval holds the bar, or is unknown.
        """
        bar = bar if self.far else 1.0
        if self.ratio.high <= bar:
            return f"meets {bar}"
        return f"misses {bar}" if self.ratio.low > bar else f"undecided, {bar}"


class Rounds:
    """Interleaved rounds of four passes: `floor`, `fused`, `peer` and `ours`.

    `before`, `ours` and `after`, called in turn, are a round, cut so that somebody else can take
    the time of ours too.
    """

    def __init__(self, passes: dict[str, Pass]) -> None:
        """Run each pass once, unmeasured."""
        self._passes = passes
        self._order = random.Random(0)
        self._later: list[str] = []
        self._seconds: dict[str, list[float]] = {name: [] for name in passes}
        for step in passes.values():
            step()

    def before(self) -> None:
        """Begin a round: whatever its order puts before ours."""
        names = self._order.sample(["fused", "peer", "ours"], 3)
        self._seconds["floor"].append(0.0)
        place = names.index("ours")
        for name in names[:place]:
            self._with_floor(name)
        self._floor()
        self._later = names[place + 1 :]

    def ours(self) -> None:
        """Run ours."""
        self._timed("ours")

    def after(self) -> None:
        """Finish the round."""
        for name in self._later:
            self._with_floor(name)
        self._floor()

    def comparison(self) -> Comparison:
        """Return what the rounds so far say."""
        seconds = {name: np.array(values) for name, values in self._seconds.items()}
        floor = seconds["floor"] = seconds["floor"] / len(self._passes)
        kept = floor <= DISTURBED * np.quantile(floor, 0.25)
        floor, fused, peer, ours = (
            seconds[name][kept] for name in ("floor", "fused", "peer", "ours")
        )
        return Comparison(
            above_floor=Interval.of((ours - floor) / (peer - floor)),
            whole=Interval.of(ours / peer),
            to_fused={
                "floor": float(np.median(floor / fused)),
                "ours": float(np.median(ours / fused)),
                "peer": float(np.median(peer / fused)),
            },
            milliseconds={
                name: 1e3 * float(np.median(values[kept])) for name, values in seconds.items()
            },
            rounds=len(kept),
            rejected=int((~kept).sum()),
        )

    def _with_floor(self, name: str) -> None:
        self._floor()
        self._timed(name)

    def _floor(self) -> None:
        # Before each of the three and after the last: a disturbance of any of them shows in it.
        start = perf_counter()
        self._passes["floor"]()
        self._seconds["floor"][-1] += perf_counter() - start

    def _timed(self, name: str) -> None:
        start = perf_counter()
        self._passes[name]()
        self._seconds[name].append(perf_counter() - start)


def peak_mib(build: Callable[[bool], Pass], threads: int) -> float:
    """Return the peak resident size of a pass above the level before it, in a fresh process.

    `build`, which must be importable there, returns the pass, or a small one of its kind, which
    runs first: what libraries set up once is not counted. NaN where the system cannot tell.
    """
    with get_context("spawn").Pool(1) as pool:
        peak = pool.apply(_peak, (build, threads))
    return float("nan") if peak is None else peak / MIB


def _peak(build: Callable[[bool], Pass], threads: int) -> int | None:
    torch.set_num_threads(threads)
    build(True)()
    return resident_growth(build(False))


def memory_verdict(peaks: dict[str, float]) -> str:
    """Compare our peak with the peer's, or with the floor's where the peer takes less."""
    return "meets" if peaks["ours"] <= max(peaks["peer"], TIED * peaks["floor"]) else "misses"


def table_line(name: str, found: Comparison, peaks: dict[str, float], bar: float) -> str:
    """Return one line: the ratio that counts, all over fused attention, rounds, peaks."""
    kind = "above floor" if found.far else "ours / peer"
    fused = " / ".join(f"{found.to_fused[who]:.2f}" for who in ("ours", "peer", "floor"))
    rounds = f"{found.rounds - found.rejected:2d} rounds, {found.rejected} rejected"
    floor = f"{found.milliseconds['floor']:.0f} ms"
    mib = " / ".join(f"{peaks[who]:.0f}" for who in ("ours", "peer", "floor"))
    return (
        f"{name:44s} {kind} {found.ratio} {found.verdict(bar):14s} | ours / peer {found.whole} | "
        f"ours / peer / floor over fused {fused} | floor {floor}, {rounds} "
        f"| MiB {mib} {memory_verdict(peaks)}"
    )
