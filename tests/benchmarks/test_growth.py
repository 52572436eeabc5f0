"""Costs of the suite itself as the number of cells grows: to plan them, to find what is due and
how long that may take, to store and to load their records, and to render the report.

`python -m pytest tests/benchmarks/test_growth.py --benchmark-only` prints medians, by step. Nothing
is asserted of times; `test_counted_growth.py` counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grown import records, suite

from lra.cli import report
from lra.core.records import Record
from lra.engine.jobs import Job
from lra.engine.order.due import Due
from lra.engine.order.estimate import Estimate
from lra.engine.plan.labels import with_labels
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite
from lra.store import Store

SIZES = (1_000, 3_000, 10_000)
ROUNDS = 3

pytestmark = pytest.mark.parametrize("cells", SIZES)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Declarations of mechanisms and tasks, asked for once and kept for all rounds."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Store]:
    """A store of each size."""
    found = {}
    for cells in SIZES:
        found[cells] = Store(tmp_path_factory.mktemp("grown") / str(cells))
        _fill(found[cells], records(cells))
    return found


@pytest.mark.benchmark(group="plan")
def test_planning(benchmark: Any, cells: int, cache: Path) -> None:
    spec = RunSpec(suite=suite(cells), mechanisms=("all",), device="cpu", cache=str(cache))
    jobs = benchmark.pedantic(
        lambda: with_labels(plan_suite(spec)), rounds=ROUNDS, iterations=1, warmup_rounds=1
    )
    benchmark.extra_info["cells"] = len(jobs)


@pytest.mark.benchmark(group="due")
def test_finding_what_is_due(benchmark: Any, cells: int, stores: dict[int, Store]) -> None:
    """For a plan of which every cell has a record, read by rounds, as a rerun does it."""
    jobs = _jobs(records(cells))

    def due() -> list[Job]:
        place = stores[cells]
        place.refuse_newer(job.cell.id for job in jobs)
        found = Due(place, together=True)
        return found.ordered(found.select(jobs))

    benchmark.pedantic(due, rounds=ROUNDS, iterations=1)


@pytest.mark.benchmark(group="estimate")
def test_telling_how_long_it_takes(benchmark: Any, cells: int) -> None:
    """For every cell, by as many earlier records."""
    earlier = records(cells)

    def expected() -> list[float | None]:
        estimate = Estimate(earlier)
        return [estimate.seconds(record.cell) for record in earlier]

    benchmark.pedantic(expected, rounds=ROUNDS, iterations=1)


@pytest.mark.benchmark(group="save")
def test_saving(benchmark: Any, cells: int, tmp_path: Path) -> None:
    """Each record by itself, on the disk before the next."""
    made, folders = records(cells), iter(range(ROUNDS))

    def empty() -> tuple[tuple[Store, list[Record]], dict[str, Any]]:
        return (Store(tmp_path / str(next(folders))), made), {}

    benchmark.pedantic(_fill, setup=empty, rounds=ROUNDS, iterations=1)


@pytest.mark.benchmark(group="load")
def test_loading(benchmark: Any, cells: int, stores: dict[int, Store]) -> None:
    found = benchmark.pedantic(stores[cells].records, rounds=ROUNDS, iterations=1)
    assert len(found) == cells


@pytest.mark.benchmark(group="report")
def test_reporting(
    benchmark: Any,
    cells: int,
    stores: dict[int, Store],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the store to the page, without the committed records, whose number does not grow."""
    monkeypatch.setattr("lra.store.reference.reference_records", list)
    # Work done once, at the first figure of a process, is not counted.
    report.render_store(stores[SIZES[0]], tmp_path / "first")
    benchmark.pedantic(
        report.render_store,
        args=(stores[cells], tmp_path / "out"),
        rounds=ROUNDS,
        iterations=1,
    )


def _fill(store: Store, made: list[Record]) -> None:
    with store.locked():
        for record in made:
            store.save(record)


def _jobs(made: list[Record]) -> list[Job]:
    return [Job(cell=record.cell, cache="") for record in made]
