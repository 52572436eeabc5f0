"""Cells on a real GPU, from the plan's side: through workers, with the machine's own class."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from engine_jobs import timing

from lra.core.cells import CeilingCell
from lra.core.protocol import Mechanism
from lra.engine.jobs import Job
from lra.engine.machine.host import machine
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.store import Store

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("mode", ["forward", "train", "decode"])
def test_a_cell_of_each_mode(mode: Any, server: ForkServer, store: Store, cache: Path) -> None:
    changes: dict[str, Any] = {
        "device": "cuda",
        "machine": machine("cuda"),
        "mechanism": Mechanism(name="sdpa"),
        "direction": "causal" if mode == "decode" else "bidirectional",
    }
    cell = msgspec.structs.replace(timing("", cache, mode=mode).cell, **changes)
    (record,) = Pool(store, server, slots=1).run([Job(cell=cell, cache=str(cache))])
    assert record.status == "ok", record.failure
    for name, metric in record.metrics.items():
        assert metric.value is not None or metric.why_null, name
        assert metric.value is None or math.isfinite(metric.value), name
    for name in ("latency", "latency_wall", "peak_allocated_bytes", "operations"):
        assert record.metrics[name].value, name


def test_the_ceilings(server: ForkServer, store: Store, cache: Path) -> None:
    cell = CeilingCell(machine=machine("cuda"), torch="0", threads=1, versions={}, device="cuda")
    (record,) = Pool(store, server, slots=1).run([Job(cell=cell, cache=str(cache))])
    assert record.status == "ok", record.failure
    assert record.metrics["product_rate"].value and record.metrics["copy_rate"].value
    assert "elements" in record.method["copy"]


def test_the_machine_is_the_gpu_with_its_driver() -> None:
    found = machine("cuda")
    assert found.processor and found.driver.isdigit() and found.cores >= 1
