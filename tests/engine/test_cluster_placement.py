"""The worker that gets a cell: threads add up on a machine, and a timing has it to itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_jobs import timing, training

pytest.importorskip("distributed", reason="needs the extra cluster")

from idle_cluster import handshake, join

from lra.core.protocol import Machine
from lra.engine.cluster.cluster import Cluster, Worker
from lra.engine.jobs import Job


def job(cache: Path, **changes: Any) -> Job:
    one = training("Toy", cache)
    return msgspec.structs.replace(one, cell=msgspec.structs.replace(one.cell, **changes))


def put(cluster: Cluster, job: Job, closed: set[str] | None = None) -> Worker | None:
    found = cluster.place(job, set() if closed is None else closed)
    if found is not None:
        found.job = job
    return found


def test_cells_on_one_machine_take_no_more_threads_than_it_has_cores(
    cluster: Cluster, cache: Path
) -> None:
    join(cluster, w0=handshake())
    join(cluster, w1=handshake())
    join(cluster, w2=handshake())
    join(cluster, other=handshake(host="two"))
    placed = [put(cluster, job(cache, threads=threads)) for threads in (3, 2, 1, 8)]
    assert [one and one.name for one in placed] == ["w0", "other", "w1", None]


def test_workers_on_processors_of_their_own_leave_each_other_all_threads(
    cluster: Cluster, cache: Path
) -> None:
    half = {"cpu": Machine(processor="toy", cores=2)}
    for name, cpus in (("w0", (0, 1)), ("w1", (2, 3)), ("w2", (0, 1))):
        join(cluster, **{name: handshake(cpus=cpus, machines=half)})
    placed = [put(cluster, job(cache, threads=2, seed=seed)) for seed in range(3)]
    assert [one and one.name for one in placed] == ["w0", "w1", None]


def test_a_timing_waits_for_a_machine_which_takes_no_more(cluster: Cluster, cache: Path) -> None:
    join(cluster, w0=handshake(), w1=handshake())
    running = put(cluster, job(cache, seed=1))
    assert running is not None
    closed: set[str] = set()
    assert put(cluster, timing("Toy", cache), closed) is None
    assert closed == {"one"} and not cluster.free(closed)
    running.job = None
    assert put(cluster, timing("Toy", cache)) is not None
    assert put(cluster, job(cache, seed=2)) is None


def test_a_timing_takes_the_machine_with_the_fewest_cells(cluster: Cluster, cache: Path) -> None:
    for name, host in (("w0", "one"), ("w1", "one"), ("w2", "one"), ("w3", "two"), ("w4", "two")):
        join(cluster, **{name: handshake(host=host)})
    for name in ("w0", "w1", "w3"):
        cluster.workers[name].job = job(cache)
    closed: set[str] = set()
    assert put(cluster, timing("Toy", cache), closed) is None
    assert closed == {"two"} and [one.name for one in cluster.free(closed)] == ["w2"]
