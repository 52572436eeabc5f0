"""Machines that time cells with the noise of real ones: spells, luck of a process, spikes.

Speed drifts from one third of a process to the next (autoregressive, 0.9 from process to process);
each process has a luck of its own for its cost, and one for its control, which is the worst case;
and a process reports medians of 20 samples with 1 % noise, of which 2 % are half as long again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lra.verdict.repeatability import ControlledCost, RepeatedCell, repeated_cell

CELLS = 12
"""As many as the self-test has."""


class Machine(NamedTuple):
    """Standard deviations of logarithms."""

    bias: float
    """Luck of a process."""
    drift: float
    uneven: float = 1.0
    """How many times as much bias every second cell has."""


QUIET = Machine(bias=0.01, drift=0.005)
NOISY = Machine(bias=0.03, drift=0.02)
"""An idle machine of one's own."""
SHARED = Machine(bias=0.08, drift=0.05)
"""A hosted runner."""

Sweeps = list[tuple[dict[int, ControlledCost], dict[int, ControlledCost]]]
"""Two sweeps of each cell."""


def sweeps(
    rng: np.random.Generator, machine: Machine, replicates: int, slower: float = 1.0
) -> Sweeps:
    """Run two sweeps of one build, round after round, as the self-test does: A, B, B, A, A, B, ...

    `slower` is how many times as much the second build costs.
    """
    rounds = 2 * replicates
    drift = _drift(rng, machine.drift, 3 * rounds * CELLS).reshape(rounds, CELLS, 3)
    luck = machine.bias * rng.normal(size=(rounds, CELLS, 3))
    luck[..., 2] = luck[..., 0]
    luck *= np.where(np.arange(CELLS) % 2, machine.uneven, 1.0)[:, None]
    times = np.exp(drift + luck) * _medians(rng, (rounds, CELLS, 3))
    found: Sweeps = [({}, {}) for _ in range(CELLS)]
    for turn in range(rounds):
        pair, second = turn // 2, turn % 4 in (1, 2)
        for cell in range(CELLS):
            before, cost, after = times[turn, cell].tolist()
            cost *= (1 + cell) * (slower if second else 1.0)
            found[cell][second][pair] = ControlledCost(cost, before, after)
    return found


def repeats(found: Sweeps) -> list[RepeatedCell]:
    """Put the sweeps beside each other, at lengths of 1024."""
    both = [repeated_cell(1024, first, second) for first, second in found]
    return [one for one in both if one is not None]


def nightly(rng: np.random.Generator, machine: Machine, nights: int) -> NDArray[np.float64]:
    """Return one figure per night: the luck of its process, and a drift from night to night, 0.9
    of which the next has. That is harder than a ratio to the control, which drifts with it."""
    found, now = machine.bias * rng.normal(size=nights), machine.drift * rng.normal()
    for night in range(nights):
        found[night] += now
        now = 0.9 * now + machine.drift * math.sqrt(1 - 0.9**2) * rng.normal()
    return found


def _drift(rng: np.random.Generator, size: float, steps: int) -> NDArray[np.float64]:
    keep = 0.9 ** (1 / 3)
    moves = size * np.sqrt(1 - keep**2) * rng.normal(size=steps)
    now, found = size * rng.normal(), np.empty(steps)
    for step, move in enumerate(moves):
        now = found[step] = keep * now + move
    return found


def _medians(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    samples = np.exp(0.01 * rng.normal(size=(*shape, 20)))
    samples *= np.where(rng.random(samples.shape) < 0.02, 1.5, 1.0)
    return np.median(samples, axis=-1)
