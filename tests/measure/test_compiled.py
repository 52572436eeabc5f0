"""Compiled cells: what is compiled, what that takes, and that the same work is counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from cells import toy_cell

from attention_impls.dense.sdpa import Sdpa
from lra.core.cells import EfficiencyCell
from lra.core.protocol import Mechanism
from lra.measure import compiled
from lra.measure.efficiency import measure_efficiency
from lra.measure.latency import HostStopwatch

pytestmark = pytest.mark.usefixtures("small_control")


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(**{"mechanism": Mechanism(name="sdpa"), "execution": "compiled", **changes})


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where the compiler was told to keep its files when it was asked to compile."""
    places: list[str] = []

    def compiler(function: Any) -> Any:
        places.append(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        return function

    monkeypatch.setattr(torch, "compile", compiler)
    return places


def test_caches_are_empty_and_gone_afterwards(seen: list[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "mine")
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    for level in ("layer", "attention"):
        measure_efficiency(cell(level=level), Sdpa, Sdpa.Config())
    # Each time something else first, then what is measured, in the same place.
    assert seen[0] == seen[1] != seen[2] == seen[3] and "mine" not in seen
    assert not any(Path(place).exists() for place in seen)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "mine"
    assert "TRITON_CACHE_DIR" not in os.environ


def test_eager_cells_never_meet_the_compiler(seen: list[str]) -> None:
    found = measure_efficiency(cell(execution="eager"), Sdpa, Sdpa.Config())
    assert seen == [] and "compile_time" not in found.metrics
    assert found.method["compile"] == "eager"
    function = object()
    assert compiled.as_executed(cell(execution="eager"), function) is function  # type: ignore[arg-type]


def test_compiling_takes_what_the_first_call_does_more_than_the_second(
    seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured, known = HostStopwatch.time, iter((5.0, 2.0))

    def time(*asked: Any) -> list[float]:
        taken = measured(*asked)
        return [next(known, taken[0]), *taken[1:]]

    monkeypatch.setattr(HostStopwatch, "time", time)
    found = measure_efficiency(cell(), Sdpa, Sdpa.Config()).metrics
    assert (found["first_call"].value, found["compile_time"].value) == (5.0, 3.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch by torch
@pytest.mark.parametrize("mode", ["forward", "train"])
def test_a_compiled_layer_is_timed_and_counts_the_same_operations(mode: Any) -> None:
    found = measure_efficiency(cell(mode=mode), Sdpa, Sdpa.Config())
    eager = measure_efficiency(cell(mode=mode, execution="eager"), Sdpa, Sdpa.Config())
    compile_time, latency = (found.metrics[name].value or 0 for name in ("compile_time", "latency"))
    assert compile_time > latency > 0
    assert found.method["compile"] == "torch.compile, 1 graph"
    assert found.metrics["operations"] == eager.metrics["operations"]
