"""The self-test of `lra doctor --timing`: two sweeps of one build, and what they say of a machine.

Both are replicates of the same cells in one run, in rounds over all cells: A, B, B, A, A, B, B, ...
A pair is a round of A and its neighbour of B, so that a slow spell falls on both, and each of the
two comes first as often as the other, once more where their number is odd, so that a machine that
slows down steadily favours neither by much.
Their records lie in a folder that is gone afterwards: what a machine resolves is said of now, and
no store gets figures that nobody asked for.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lra.cli.echo import echo, echo_json
from lra.cli.exit_codes import FAILED_CELLS, INCONCLUSIVE
from lra.verdict.repeatability import (
    POWER,
    TARGET,
    ControlledCost,
    Repeatability,
    RepeatedCell,
    repeatability,
    repeated_cell,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lra.core.cells import Device, EfficiencyCell
    from lra.core.records import Record

SUITE = "timing"
FEWEST, USUAL, MOST = 3, 5, 12
"""Processes of each cell in each of the two sweeps."""


class Pair(msgspec.Struct, frozen=True):
    """One cell in both sweeps."""

    cell: EfficiencyCell
    """Of replicate 0."""
    repeat: RepeatedCell


class SelfTest(msgspec.Struct, frozen=True):
    """What came of it."""

    replicates: int
    """Processes of each cell in each sweep."""
    timings: int
    busy: int
    """Timings taken while the machine was busy."""
    found: Repeatability
    pairs: tuple[Pair, ...]


def carry_out(device: Device, replicates: int, *, as_json: bool) -> int:
    """Run the self-test, say what it found, and return the exit code."""
    records = measure(device, 2 * replicates)
    failed = [record for record in records if record.status != "ok"]
    if failed:
        from lra.report.words import count

        echo(f"{count(len(failed), 'cell')} failed; no self-test without them", err=True)
        return FAILED_CELLS
    told = judge(records)
    if as_json:
        echo_json(_plain(told), indented=True)
    else:
        for line in in_words(told):
            echo(line)
    return 0 if told.found.resolves else INCONCLUSIVE


def measure(device: Device, rounds: int) -> list[Record]:
    """Time the suite's cells in so many rounds, in a store of their own."""
    from lra.cli.progress import watcher
    from lra.cli.run_all import run_jobs
    from lra.core.scales import load_suite
    from lra.engine.machine.host import cache_folder
    from lra.engine.plan.planner import RunSpec
    from lra.engine.plan.suite import plan_suite
    from lra.engine.process.launch import ForkServer
    from lra.engine.process.runner import RunStopped
    from lra.store import Store

    suite = load_suite(SUITE)
    blocks = tuple(msgspec.structs.replace(b, replicates=rounds) for b in suite.efficiency)
    spec = RunSpec(
        suite=msgspec.structs.replace(suite, efficiency=blocks),
        mechanisms=(),
        device=device,
        cache=str(cache_folder()),
    )
    with tempfile.TemporaryDirectory() as folder, ForkServer() as server:
        jobs = plan_suite(spec)
        try:
            found = run_jobs(
                Store(Path(folder)),
                server,
                jobs,
                due=lambda _: True,
                watch=lambda due: watcher(due, quiet=False),
                slots=1,
            )
        except RunStopped as stopped:
            raise RunStopped("stopped; the self-test keeps nothing, run it again") from stopped
    return [record for _, record in found]


def judge(records: Sequence[Record]) -> SelfTest:
    """Put the rounds of each cell together again: A, B, B, A, A, B, B, ..."""
    from lra.cli.report import reference
    from lra.core.cells import EfficiencyCell
    from lra.report.load.disturbed import disturbed

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
        busy=len(disturbed(records, reference())),
        found=repeatability([pair.repeat for pair in pairs], MOST),
        pairs=pairs,
    )


def in_words(told: SelfTest) -> list[str]:
    """Return the lines for a person, the last of which is the answer."""
    from lra.report.load.disturbed import SIGNS
    from lra.report.words import count

    found = told.found
    cells = count(found.cells, "cell")
    wide = "not measured" if found.width is None else _share(found.width)
    return [
        f"self-test  two sweeps of one build, {cells}, {told.replicates} processes each",
        f"agreement  on {found.agreeing} of {cells} the 95 % intervals of the two overlap",
        f"interval   median width {wide} of the ratio to the control, at lengths of 1024 and more",
        f"alarms     {found.alarms} of {cells} called slower though equal; 5 % are by chance",
        f"busy       {told.busy} of {count(told.timings, 'timing')} ({SIGNS})",
        f"resolves {_share(TARGET)}: {answer(told)}",
    ]


def answer(told: SelfTest) -> str:
    """Return whether 10 % is resolved, and what to do where it is not."""
    found = told.found
    if not found.agree:
        return (
            f"no: two sweeps of one build agree on {found.agreeing} of {found.cells} cells only, "
            "so that their intervals are too narrow by what changes between them; close other "
            "programs and try again"
        )
    if found.resolves:
        return (
            f"yes (smallest {_share(found.smallest)}, found on {_share(POWER)} of cells by "
            f"{told.replicates} pairs of processes)"
        )
    words = f"no: differences below {_share(found.smallest)} are noise on this machine now; close "
    if told.replicates >= MOST:
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
    from lra.report.words import percent

    return f"{percent(share, share)} %"


def _plain(told: SelfTest) -> dict[str, object]:
    """As JSON has it: fields, and what follows from them."""
    found = told.found
    return {
        "resolves_10_percent": found.resolves,
        "agree": found.agree,
        **{name: value for name, value in msgspec.structs.asdict(told).items() if name != "pairs"},
        "cells": [
            {
                "mechanism": pair.cell.mechanism.name,
                "mode": pair.cell.mode,
                "agrees": pair.repeat.agrees,
                **msgspec.structs.asdict(pair.repeat),
            }
            for pair in told.pairs
        ],
    }
