"""How often steps are found where there are some and where there is none, on simulated machines.

`PYTHONPATH=. python -m tests.verdict.step_rates` prints the figures of docs/history.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median

import numpy as np

from lra.verdict.steps import segment

from .simulated import NOISY, QUIET, SHARED, Machine, nightly

MACHINES = {"quiet": QUIET, "noisy": NOISY, "shared": SHARED}
TRIALS = 400
NEVER = 99


def false_steps(machine: Machine, nights: int, trials: int) -> float:
    """Share of courses without a step that have one."""
    rng = np.random.default_rng(0)
    return fmean(bool(segment(list(nightly(rng, machine, nights))).steps) for _ in range(trials))


def found(machine: Machine, ratio: float) -> float:
    """Share of steps after 30 of 60 nights that are found within two nights of it."""
    return fmean(_near(machine, ratio, 60, 30, seed) for seed in range(TRIALS))


def creeps(machine: Machine) -> float:
    """Share of creeps, 1 % a night for 20 of 60 nights, that end 10 % above the first level."""

    def risen(seed: int) -> bool:
        values = nightly(np.random.default_rng(seed), machine, 60)
        told = segment(list(values + np.clip(0.01 * (np.arange(60) - 19), 0.0, 0.2)))
        return bool(told.steps) and told.levels[-1].value > told.levels[0].value + 0.1

    return fmean(map(risen, range(TRIALS)))


def waits(machine: Machine, ratio: float) -> float:
    """Median of the nights until a step after 60 nights is told; 99 is more than 30."""

    def wait(seed: int) -> int:
        nights = range(3, 31)
        return next((n for n in nights if _near(machine, ratio, 60 + n, 60, seed)), NEVER)

    return median(map(wait, range(TRIALS // 4)))


def _near(machine: Machine, ratio: float, nights: int, at: int, seed: int) -> bool:
    # The same nights of one seed, however many of them there are yet.
    values = nightly(np.random.default_rng(seed), machine, 90)[:nights]
    values[at:] += math.log(ratio)
    return any(abs(step.at - at) <= 2 for step in segment(list(values)).steps)


def main() -> None:
    """Print one line per figure and one column per machine."""
    lines: list[tuple[str, Callable[[Machine], float]]] = [
        ("false steps over 30 nights", lambda m: false_steps(m, 30, 4000)),
        ("false steps over 60 nights", lambda m: false_steps(m, 60, 4000)),
        ("false steps over 365 nights", lambda m: false_steps(m, 365, 400)),
        ("10 % found within 2 nights", lambda m: found(m, 1.1)),
        ("20 % found within 2 nights", lambda m: found(m, 1.2)),
        ("creep of 20 % found", creeps),
        ("nights until 10 % is told", lambda m: waits(m, 1.1)),
        ("nights until 20 % is told", lambda m: waits(m, 1.2)),
    ]
    print(f"{'':30}" + "".join(f"{name:>9}" for name in MACHINES))
    for title, figure in lines:
        print(f"{title:30}" + "".join(f"{figure(m):9.4g}" for m in MACHINES.values()))


if __name__ == "__main__":
    main()
