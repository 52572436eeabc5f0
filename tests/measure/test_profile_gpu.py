"""The profile of a step on a GPU: questions to fakes, and figures of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]
from torch.profiler import ProfilerActivity

from attention_impls.dense.full import Full
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.dataset import Dataset, Split
from lra.core.profile_metrics import OPERATOR
from lra.core.protocol import ModelSpec, TrainSpec
from lra.measure import profile
from lra.measure.profile import measure_profile
from lra.models.layers import Layers
from lra.training.setup import Network, Training, model_for

CUDA = torch.device("cuda")


def operator(key: str, *, device: float) -> SimpleNamespace:
    """A call of the CPU's: `device` are microseconds of the kernels that it started."""
    return SimpleNamespace(
        key=key,
        count=2,
        is_user_annotation=False,
        device_type=DeviceType.CPU,
        self_cpu_time_total=70_000.0,
        self_device_time_total=device,
    )


def kernel(key: str, microseconds: float, *, count: int, note: bool = False) -> SimpleNamespace:
    """Work of the GPU's, in no time of the CPU's."""
    return SimpleNamespace(
        key=key,
        count=count,
        is_user_annotation=note,
        device_type=DeviceType.CUDA,
        self_cpu_time_total=0.0,
        self_device_time_total=microseconds,
    )


EVENTS = [
    operator("aten::mm", device=4000.0),
    operator("aten::add", device=2000.0),
    operator("autograd::engine::evaluate_function: MmBackward0", device=500.0),
    kernel("gemm", 4000.0, count=6),
    kernel("elementwise", 2000.0, count=4),
    kernel("of nobody", 1000.0, count=2),
    kernel("Memcpy DtoD (Device -> Device)", 600.0, count=5),
    kernel("Memset (Device)", 300.0, count=3),
    kernel("memcpy128", 100.0, count=1),
    kernel("ProfilerStep*", 9000.0, count=2, note=True),
]
"""Events of two steps."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Options that torch's profiler is asked with; it finds the events above."""
    options: list[dict[str, Any]] = []

    @contextmanager
    def found(**given: Any) -> Iterator[SimpleNamespace]:
        options.append(given)
        yield SimpleNamespace(key_averages=lambda: EVENTS)

    monkeypatch.setattr(torch.profiler, "profile", found)
    return options


def operators() -> dict[str, float | None]:
    runs: Any = lambda batches: 0.0  # noqa: E731
    found = profile._operators(runs, [0, 1], CUDA)
    return {name: metric.value for name, metric in found.items()}


def test_operators_have_the_time_of_their_kernels_a_step(asked: list[dict[str, Any]]) -> None:
    found = operators()
    named = {name: value for name, value in found.items() if name.startswith(OPERATOR)}
    assert named == pytest.approx({OPERATOR + "mm": 0.002, OPERATOR + "add": 0.001})
    assert asked[0]["activities"] == [ProfilerActivity.CPU, ProfilerActivity.CUDA]


@pytest.mark.usefixtures("asked")
def test_all_that_the_gpu_did_counts_whoever_started_it() -> None:
    assert operators()["operators_seconds"] == pytest.approx(0.004)


@pytest.mark.usefixtures("asked")
def test_kernels_are_launches_a_step_without_copies() -> None:
    assert operators()["kernels"] == pytest.approx(6.0)


def test_a_gpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    profile._synchronized(CUDA)()
    assert waited == [CUDA]
    profile._synchronized(torch.device("cpu"))()
    assert waited == [CUDA]


def split(rows: int) -> Split:
    tokens = np.random.default_rng(rows).integers(1, 6, size=(rows, 64)).astype(np.uint8)
    return Split.of([*tokens], tokens[:, 0].astype(np.int64) % 2, 1)


@pytest.mark.gpu
def test_a_step_on_a_real_gpu() -> None:
    data = Dataset(split(80), split(16), split(16), classes=2, vocabulary=6, length=64, inputs=1)
    spec = TrainSpec(steps=10, batch=8, learning_rate=1e-2, evaluate_every=10)
    shape = ModelSpec(layers=1, width=16, qkv_width=16, heads=2, mlp_width=16)
    model = model_for(
        data, shape, network=Network.of(Layers.of(Full), Sinusoidal), rules="fixed", seed=0,
    )  # fmt: skip
    found = measure_profile(model, Training(data, spec, seed=0), device=CUDA, seconds=0.1)
    metrics = {name: metric.value or 0.0 for name, metric in found.metrics.items()}
    most = max(value for name, value in metrics.items() if name.startswith(OPERATOR))
    # Parts are waited for, so that nothing of a GPU's work is outside of them.
    assert 0.0 < most <= metrics["operators_seconds"] < metrics["step_in_parts_seconds"]
    assert min(metrics[name] for name in ("step_seconds", "row_seconds", "kernels")) > 0.0
    assert found.method["device"] == "cuda"
    assert found.method["operators"].startswith("self time on the GPU")
