"""The self-test of `lra doctor --timing`: two sweeps of one build, and the repeatability that they
show.

Both are replicates of the same cells in one run, in rounds over all cells: A, B, B, A, A, B, B, ...
A pair is a round of A and its neighbour of B, so that a slow spell falls on both, and each of the
two comes first as often as the other (once more where their number is odd), so that a steady
slowdown favours neither by much. Their records lie in a temporary folder: the result holds for now,
and no store gets figures that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lra.core.cells import Device, EfficiencyCell
from lra.core.records import Record
from lra.core.scales import load_suite
from lra.engine.plan.spec import MOST, RunSpec
from lra.engine.plan.suite import plan_suite
from lra.engine.process.launch import ForkServer
from lra.engine.process.run_jobs import Watch, run_jobs
from lra.engine.process.runner import RunStopped
from lra.engine.process.temporary import temporary_folder
from lra.report.load.disturbed import SIGNS, disturbed
from lra.report.words import count, percent
from lra.store import Store
from lra.store.reference import reference_records
from lra.verdict.repeatability import (
    POWER,
    TARGET,
    ControlledCost,
    Repeatability,
    RepeatedCell,
    repeatability,
    repeated_cell,
)

SUITE = "timing"


class Pair(msgspec.Struct, frozen=True):
    """One cell in both sweeps."""

    cell: EfficiencyCell
    """The cell, as of replicate 0."""
    repeat: RepeatedCell


class SelfTest(msgspec.Struct, frozen=True):
    """The result of a self-test."""

    replicates: int
    """Processes of each cell in each sweep."""
    timings: int
    busy: int
    """Timings taken while the machine was busy."""
    found: Repeatability
    pairs: tuple[Pair, ...]


def measure(device: Device, rounds: int, watch: Watch) -> list[Record]:
    """Time the suite's cells in that many rounds, in a store of their own."""
    suite = load_suite(SUITE)
    blocks = tuple(msgspec.structs.replace(b, replicates=rounds) for b in suite.efficiency)
    spec = RunSpec(suite=msgspec.structs.replace(suite, efficiency=blocks), device=device)
    with temporary_folder() as folder, ForkServer() as server:
        jobs, store = plan_suite(spec), Store(folder)
        try:
            found = run_jobs(store, server, jobs, due=lambda _: True, watch=watch, slots=1)
        except RunStopped as stopped:
            raise RunStopped("stopped; the self-test keeps nothing, run it again") from stopped
    return [record for _, record in found]


def judge(records: Sequence[Record]) -> SelfTest:
    """Restore the rounds of each cell: A, B, B, A, A, B, B, ..."""
    cells: dict[str, EfficiencyCell] = {}
    sweeps: dict[str, tuple[dict[int, ControlledCost], dict[int, ControlledCost]]] = {}
    for record in records:
        assert isinstance(record.cell, EfficiencyCell), "the suite has no others"
        turn, cell = record.cell.replicate, msgspec.structs.replace(record.cell, replicate=0)
        cells[cell.id] = cell
        sweeps.setdefault(cell.id, ({}, {}))[turn % 4 in (1, 2)][turn // 2] = _process(record)
    pairs = tuple(
        Pair(cells[id], found)
        for id, (first, second) in sweeps.items()
        if (found := repeated_cell(cells[id].length, first, second)) is not None
    )
    return SelfTest(
        replicates=max(len(first) for first, _ in sweeps.values()),
        timings=len(records),
        busy=len(disturbed(records, reference_records())),
        found=repeatability([pair.repeat for pair in pairs], MOST),
        pairs=pairs,
    )


def lines(test: SelfTest) -> list[str]:
    """Return the result line by line; the last line is the answer."""
    found = test.found
    cells = count(found.cells, "cell")
    wide = "not measured" if found.width is None else _share(found.width)
    return [
        f"self-test  two sweeps of one build, {cells}, {test.replicates} processes each",
        f"agreement  on {found.agreeing} of {cells} the 95 % intervals of the two overlap",
        f"interval   median width {wide} of the ratio to the control, at lengths of 1024 and more",
        f"alarms     {found.alarms} of {cells} called slower though equal; 5 % are by chance",
        f"busy       {test.busy} of {count(test.timings, 'timing')} ({SIGNS})",
        f"resolves {_share(TARGET)}: {answer(test)}",
    ]


def answer(test: SelfTest) -> str:
    """Return whether 10 % is resolved, and the remedy where it is not."""
    found = test.found
    if not found.agree:
        return (
            f"no: two sweeps of one build agree on {found.agreeing} of {found.cells} cells only, "
            "so that their intervals are too narrow by what changes between them; close other "
            "programs and try again"
        )
    if found.resolves:
        return (
            f"yes (smallest {_share(found.smallest)}, found on {_share(POWER)} of cells by "
            f"{test.replicates} pairs of processes)"
        )
    words = f"no: differences below {_share(found.smallest)} are noise on this machine now; close "
    if test.replicates >= MOST:
        return f"{words}other programs"
    if found.smallest_of_most <= TARGET:
        return f"{words}other programs, or use --replicates {MOST}"
    return (
        f"{words}other programs (--replicates {MOST} alone would leave "
        f"{_share(found.smallest_of_most)})"
    )


def _process(record: Record) -> ControlledCost:
    names = ("latency", "control_before", "control_after")
    return ControlledCost(*(record.metrics[name].value or 0.0 for name in names))


def _share(share: float) -> str:
    return f"{percent(share, share)} %"


def plain(test: SelfTest) -> dict[str, object]:
    """Return the result as plain values."""
    found = test.found
    return {
        "resolves_10_percent": found.resolves,
        "agree": found.agree,
        **{name: value for name, value in msgspec.structs.asdict(test).items() if name != "pairs"},
        "cells": [
            {
                "mechanism": pair.cell.mechanism.name,
                "mode": pair.cell.mode,
                "agrees": pair.repeat.agrees,
                **msgspec.structs.asdict(pair.repeat),
            }
            for pair in test.pairs
        ],
    }
