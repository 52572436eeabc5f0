"""Decoding as it is timed: from a prompt's state, one position more."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cells import toy_cell

from attention_impls.baseline.identity import Identity
from attention_impls.contract import Context
from attention_impls.dense.sdpa import Sdpa
from attention_impls.kernel.linear import Linear
from attention_impls.learned.synthesizer import Synthesizer
from attention_impls.lowrank.linformer import Linformer
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.measure.calls import build_layer
from lra.measure.decode import prepare_decode
from lra.measure.efficiency import measure_efficiency

CPU = torch.device("cpu")


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(**{"mode": "decode", "direction": "causal", "batch": 3, **changes})


def test_a_step_is_the_position_behind_the_prompt_however_often_it_is_taken() -> None:
    wanted = cell()
    layer = build_layer(wanted, Sdpa, Sdpa.Config())
    decoding = prepare_decode(wanted, layer, CPU)
    first, second = decoding.step(), decoding.step()
    assert isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
    assert tuple(first.shape) == (3, 1, 8)
    torch.testing.assert_close(first, second, rtol=0.0, atol=0.0)
    assert decoding.error < 1e-5
    state: Any = decoding.prefill()
    assert state.seen_B.tolist() == [24] * 3


def test_the_error_is_that_of_the_step() -> None:
    class Forgetful(Sdpa):
        def forward(self, x_BND, context: Context, **rest: Any) -> Any:  # type: ignore[no-untyped-def]
            if rest.get("state") is not None and x_BND.shape[1] == 1:
                x_BND = 2.0 * x_BND
            return super().forward(x_BND, context, **rest)

    layer = build_layer(cell(), Forgetful, Forgetful.Config())
    assert prepare_decode(cell(), layer, CPU).error > 0.01


def test_an_error_that_is_no_number_is_none_with_the_reason() -> None:
    class Broken(Sdpa):
        def forward(self, x_BND, context: Context, **rest: Any) -> Any:  # type: ignore[no-untyped-def]
            if x_BND.shape[1] == 1:
                x_BND = x_BND * float("nan")
            return super().forward(x_BND, context, **rest)

    found = prepare_decode(cell(), build_layer(cell(), Broken, Broken.Config()), CPU).metrics()
    assert found["decode_error"].value is None
    assert found["decode_error"].why_null == "it is nan"


def test_a_step_has_to_move_the_state_and_the_parameters_that_it_reads() -> None:
    layer = build_layer(cell(), Identity, Identity.Config())
    decoding = prepare_decode(cell(), layer, CPU)
    # Values and outputs, 8 x 8 with biases each, in float32; it drops its queries and keys.
    assert decoding.parameter_bytes == 2 * 4 * (8 * 8 + 8)


def test_a_cache_grows_with_the_context_and_a_sum_does_not() -> None:
    def state_bytes(kind: Any, length: int) -> int:
        wanted = cell(length=length)
        return prepare_decode(wanted, build_layer(wanted, kind, kind.Config()), CPU).state_bytes

    # Keys and values, of the prompt and of the step, in float32; and one counter an example.
    assert state_bytes(Sdpa, 24) >= 2 * 3 * 8 * 25 * 4
    assert state_bytes(Sdpa, 48) > 1.8 * state_bytes(Sdpa, 24)
    assert state_bytes(Linear, 48) == state_bytes(Linear, 24)


def test_the_cell_has_prefill_a_step_and_what_is_kept() -> None:
    found = measure_efficiency(cell(), Linear, Linear.Config()).metrics
    for name in ("prefill", "latency", "state_bytes", "peak_tensor_bytes", "operations"):
        assert found[name].value, name
    error = found["decode_error"].value
    assert error is not None and error < 1e-5
    assert "first_call" not in found
    assert (
        "prefill" not in measure_efficiency(cell(mode="forward"), Linear, Linear.Config()).metrics
    )


def test_what_does_not_decode_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"\bdecode\b"):
        measure_efficiency(cell(), Linformer, Linformer.Config())
    with pytest.raises(UnsupportedError, match="level layer"):
        measure_efficiency(cell(level="attention"), Sdpa, Sdpa.Config())
    layer = build_layer(cell(), Synthesizer, Synthesizer.Config())
    with pytest.raises(UnsupportedError, match=r"\bdecode\b"):
        prepare_decode(cell(), layer, CPU)
