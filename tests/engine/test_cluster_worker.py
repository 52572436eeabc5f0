"""The worker's side of a cluster: its fork server, and its loss of the shared folder."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engine_jobs import training

pytest.importorskip("distributed", reason="needs the extra cluster")

from idle_cluster import failed

from lra.core.records import Record
from lra.engine.cluster import worker
from lra.engine.cluster.shared_folder import SharedFolder, share
from lra.engine.cluster.worker import Order
from lra.engine.jobs import Job


def order(folder: SharedFolder, job: Job, run: str = "run", **variables: str) -> Order:
    return Order(job=job, run=run, folder=folder, environment=variables, grace=1.0)


def test_a_fork_server_is_made_in_the_environment_of_its_run(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("CUDA_VISIBLE_DEVICES", "HF_HUB_OFFLINE", "MALLOC_TRIM_THRESHOLD_")
    seen: list[list[str | None]] = []

    class Server:
        def __init__(self) -> None:
            seen.append([os.environ.get(name) for name in names])

        def close(self) -> None:
            seen.append([])

    monkeypatch.setattr(worker, "ForkServer", Server)
    monkeypatch.setattr(worker.WorkerPool, "run_one", lambda self, task: None)
    for name, value in zip(names, ("0,1", None, "65536"), strict=True):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    job = training("Toy", cache)
    with share(tmp_path / "store") as folder:
        first = order(folder, job, CUDA_VISIBLE_DEVICES="GPU-b", HF_HUB_OFFLINE="1")
        for one in (first, first, order(folder, job, "next", CUDA_VISIBLE_DEVICES="GPU-a")):
            worker._run(SimpleNamespace(order=one))  # type: ignore[arg-type]
            assert dict(os.environ) == before
    worker.release("run")
    assert seen == [["GPU-b", "1", None], [], ["GPU-a", None, None]]
    worker.release("next")
    assert seen[-1] == []


@pytest.mark.parametrize("is_lost", ["before", "meanwhile", "never"])
def test_a_failure_with_the_folder_is_no_row_of_the_cell(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, is_lost: str
) -> None:
    job = training("Toy", cache)
    started: list[Job] = []

    class Pool:
        server = SimpleNamespace(close=lambda: None)

        def __init__(self, order: Order) -> None:
            pass

        def run_one(self, task: Any) -> Record | None:
            started.append(task.order.job)
            if is_lost == "meanwhile":
                task.order.folder.token_file.unlink()
            return failed(job, 1.0).record

    monkeypatch.setattr(worker, "WorkerPool", Pool)
    with share(tmp_path / "store") as folder:
        if is_lost == "before":
            folder.token_file.unlink()
        ended = worker._run(SimpleNamespace(order=order(folder, job)))  # type: ignore[arg-type]
    worker.release("run")
    assert bool(started) is (is_lost != "before")
    assert bool(ended.record) is (is_lost == "never") is not bool(ended.unfit)
