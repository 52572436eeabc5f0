"""Work of the suite itself grows no faster than the number of cells, by counts and not by clocks:
records read and written, hashes, and lines of `lra` that run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from grown import ROOT, Axes, lengths, records, records_of, suite
from matplotlib.figure import Figure
from msgspec.structs import replace

import lra.core.cells
import lra.engine.plan.describe
import lra.engine.plan.versions
import lra.store.folder
import lra.store.unreadable
from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.order.due import Due
from lra.engine.order.estimate import Estimate
from lra.engine.plan.labels import with_labels
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite
from lra.report.plots import style
from lra.report.render import render
from lra.store import Store

MORE = 1.1
"""Times what a straight line would give; with four times the cells, what grows with their square
comes to twice."""
AXES = ("mechanisms", "repeats", "lengths")


@pytest.mark.parametrize("cells", [50, 100])
def test_a_record_is_written_once_and_synced_with_its_folder(
    cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = _counted(monkeypatch, lra.store.folder, "encode")
    synced = _counted(monkeypatch, os, "fsync")
    _filled(tmp_path / "store", records(cells))
    assert (len(written), len(synced)) == (cells, 2 * cells)


@pytest.mark.parametrize("cells", [50, 100])
def test_a_record_is_read_once_to_be_loaded(
    cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _filled(tmp_path / "store", records(cells))
    read = _counted(monkeypatch, lra.store.unreadable, "decode")
    assert len(store.records()) == len(read) == cells


@pytest.mark.parametrize("cells", [50, 100])
def test_a_record_is_read_a_fixed_number_of_times_to_know_what_is_due(
    cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = records(cells)
    store = _filled(tmp_path / "store", made)
    read = _counted(monkeypatch, lra.store.unreadable, "decode")
    assert _due(store, made) == []
    # For its version, for how it ended, and with all others for what leaves longer inputs out.
    assert len(read) == 3 * cells


def test_planning_hashes_each_cell_once_and_sources_however_many_cells_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plan(1, tmp_path)
    cells = _counted(monkeypatch, lra.core.cells, "value_hash")
    sources = _counted(monkeypatch, lra.engine.plan.versions, "source_hash")
    declared = _counted(monkeypatch, lra.engine.plan.describe, "source_hash")
    counts = []
    for times in (1, 2):
        for calls in (cells, sources, declared):
            calls.clear()
        jobs = _plan(times, tmp_path)
        assert len(cells) == len(jobs)
        counts.append((len(sources), len(declared)))
    assert counts[0] == counts[1]


def test_lines_that_plan_grow_with_the_cells(tmp_path: Path) -> None:
    _plan(1, tmp_path)
    _assert_linear(lambda times: _lines(lambda: _plan(times, tmp_path)))


@pytest.mark.parametrize("axis", AXES)
def test_lines_that_find_what_is_due_grow_with_the_cells(axis: str, tmp_path: Path) -> None:
    def lines(times: int) -> int:
        made = _grown(axis, times)
        store = _filled(tmp_path / str(times), made)
        return _lines(lambda: _due(store, made))

    _assert_linear(lines)


@pytest.mark.parametrize("axis", AXES)
def test_lines_that_tell_how_long_it_takes_grow_with_the_cells(axis: str) -> None:
    def lines(times: int) -> int:
        made = _grown(axis, times)
        return _lines(lambda: [*map(Estimate(made).seconds, (record.cell for record in made))])

    _assert_linear(lines)


@pytest.mark.parametrize(
    "axis", [pytest.param(one, marks=pytest.mark.slow) if one != AXES[0] else one for one in AXES]
)
def test_lines_that_render_a_report_grow_with_the_cells(
    axis: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures are painted, and not written: that is all matplotlib's. By default more mechanisms
    alone, which come one by one."""

    def painted(paint: Callable[[Figure], None], width: float, height: float, **_: object) -> bytes:
        paint(Figure(figsize=(width, height), layout="constrained"))
        return b"<svg></svg>"

    monkeypatch.setattr(style, "_drawn", painted)
    render(_grown(axis, 1), [], tmp_path, title="once")

    def lines(times: int) -> int:
        made = _grown(axis, times)
        return _lines(lambda: render(made, [], tmp_path, title="grown"))

    _assert_linear(lines)


def _grown(axis: str, times: int) -> list[Record]:
    """Records of a store that has so many times as much of one axis."""
    copies, repeats, number = ((times if axis == one else 1) for one in AXES)
    return records_of(copies, Axes(2 * repeats, lengths(4 * number)))


def _filled(folder: Path, made: list[Record]) -> Store:
    with (store := Store(folder)).locked():
        for record in made:
            store.save(record)
    return store


def _due(store: Store, made: list[Record]) -> list[Job]:
    jobs = [Job(cell=record.cell, cache="") for record in made]
    store.refuse_newer(job.cell.id for job in jobs)
    return Due(store).select(jobs)


def _plan(times: int, cache: Path) -> list[Job]:
    """A plan with so many times as many seeds and replicates."""
    once = suite(100)
    [quality], [timed] = once.quality, once.efficiency
    asked = replace(
        once,
        quality=(replace(quality, seeds=times * quality.seeds),),
        efficiency=(replace(timed, replicates=times * timed.replicates),),
    )
    spec = RunSpec(
        suite=asked, mechanisms=("sdpa", "linear", "performer"), device="cpu", cache=str(cache)
    )
    return with_labels(plan_suite(spec))


def _counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[None]:
    """Have a function's calls counted: the list gets longer with each."""
    function, calls = getattr(module, name), list[None]()

    def counting(*args: Any, **named: Any) -> Any:
        calls.append(None)
        return function(*args, **named)

    monkeypatch.setattr(module, name, counting)
    return calls


def _lines(call: Callable[[], object]) -> int:
    """How many lines of `lra` run in a call, each as often as it does."""
    ours, number = str(ROOT / "lra"), 0

    def line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal number
        number += event == "line"
        return line

    def entered(frame: FrameType, event: str, _: object) -> Any:
        return line if frame.f_code.co_filename.startswith(ours) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return number


def _assert_linear(work: Callable[[int], int]) -> None:
    """Hold the work of the last two quarters of the cells to that of the second: what does not grow
    with them is in neither."""
    once, twice, four_times = map(work, (1, 2, 4))
    assert four_times - twice <= MORE * 2 * (twice - once), (once, twice, four_times)
