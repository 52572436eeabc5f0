"""Workers that may run cells, and the time for which a run waits for them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

pytest.importorskip("distributed", reason="needs the extra cluster")

from idle_cluster import OURS, Client, handshake, join

from lra.core.errors import LraError
from lra.core.protocol import Machine
from lra.engine.cluster import cluster as cluster_module
from lra.engine.cluster import connect
from lra.engine.cluster.cluster import Cluster
from lra.engine.cluster.connect import wait_for_workers
from lra.engine.cluster.handshake import Handshake, introduce, why_unfit
from lra.engine.cluster.shared_folder import share


@pytest.mark.parametrize("name", ["lra", "torch", "Python", "distributed", "sources"])
def test_a_worker_with_other_software_may_not_run_cells(name: str) -> None:
    assert why_unfit(handshake(), OURS, {}) == ""
    assert name in why_unfit(handshake(software=OURS | {name: "0.0"}), OURS, {})
    assert name in why_unfit(handshake(software={}), {name: OURS[name]}, {})


def test_all_workers_are_of_one_class_of_machine(cluster: Cluster) -> None:
    other = handshake(machines={"cpu": Machine(processor="toy", cores=8)})
    join(cluster, w0=handshake())
    join(cluster, w1=other)
    assert list(cluster.workers) == ["w0"]
    (line,) = cluster.refusals
    assert "w1" in line and "8 cores" in line and "4 cores" in line


def test_a_worker_has_to_see_the_folder(tmp_path: Path) -> None:
    with share(tmp_path / "store") as folder:
        own = msgspec.msgpack.decode(introduce(folder), type=Handshake)
        assert why_unfit(own, OURS, own.machines) == ""
        folder.token_file.unlink()
        own = msgspec.msgpack.decode(introduce(folder), type=Handshake)
        assert str(tmp_path / "store") in why_unfit(own, OURS, {})


def test_a_worker_that_cannot_answer_is_refused(cluster: Cluster) -> None:
    older: Any = {"version": "1.0"}
    join(cluster, w0=ImportError("no lra"), w1=handshake(), w2=older)
    assert list(cluster.workers) == ["w1"]
    assert [line.split()[1] for line in cluster.refusals] == ["w0", "w2"]
    cluster.refusals.clear()
    cluster.update()
    assert not cluster.refusals, "it is told once"


def test_each_worker_gets_a_gpu_of_its_own_and_one_too_many_is_refused(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)
    sees = handshake(gpus=("GPU-a", "GPU-b"))
    for name in ("w0", "w1", "w2"):
        join(cluster, **{name: sees})
    join(cluster, w3=handshake(gpus=("GPU-a",), host="two"))
    assert {name: one.environment for name, one in cluster.workers.items()} == {
        name: {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": gpu}
        for name, gpu in (("w0", "GPU-a"), ("w1", "GPU-b"), ("w3", "GPU-a"))
    }
    (line,) = cluster.refusals
    assert "w2" in line
    del client.handshakes["w0"]
    join(cluster, w4=sees)
    assert cluster.workers["w4"].gpu == "GPU-a"


@pytest.mark.parametrize(
    ("joins", "patience", "budget", "begins"),
    [
        ([5.0, 30.0], 60.0, 1e9, 30),
        ([400.0, 900.0], float("inf"), 1e9, 460),
        ([400.0, 430.0], float("inf"), 1e9, 430),
        ([5.0, 900.0], 60.0, 1e9, 65),
        ([100.0], float("inf"), 120.0, 120),
        ([], 60.0, 1e9, None),
        ([], float("inf"), 90.0, None),
    ],
)
def test_a_run_begins_with_all_workers_or_those_that_come_soon_after_the_first(
    cluster: Cluster,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    joins: list[float],
    patience: float,
    budget: float,
    begins: float | None,
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        client.handshakes |= {f"w{n}": handshake() for n, at in enumerate(joins) if at <= now}

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep)
    monkeypatch.setattr(connect, "time", clock)
    monkeypatch.setattr(cluster_module, "time", clock)
    cluster.patience = patience
    echoed: list[str] = []
    wait = (cluster, 2, echoed.append, lambda: max(0.0, budget - now))
    if begins is None:
        with pytest.raises(LraError, match="no worker has come"):
            wait_for_workers(*wait)
        assert now == pytest.approx(min(patience, budget), abs=0.2)
    else:
        wait_for_workers(*wait)
        assert now == pytest.approx(begins, abs=0.3)
    assert len(echoed) == 1
