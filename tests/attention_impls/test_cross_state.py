"""The state of a layer that reads another sequence: its bytes, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context, CrossState, Layer
from lra.core.catalogue import find, names
from lra.core.errors import UnsupportedError, UsageError
from lra.core.loading import load

KEEPING = {
    "chunked", "full", "grouped_query", "linear", "linformer", "mean", "multi_query", "performer",
    "sdpa",
}  # fmt: skip
"""Mechanisms whose outputs follow from one query and the source alone."""


def kept(layer: Layer, m: int, *, rows: int = 2, **options: Any) -> CrossState:
    source = torch.randn(rows, m, 12, dtype=torch.float64)
    return layer.init_state(
        rows, length=5, device=source.device, dtype=source.dtype, source_BMD=source, **options
    )


def size(state: Any) -> int:
    if isinstance(state, Tensor):
        return state.nbytes
    return sum(map(size, state)) if isinstance(state, tuple) else 0


def test_these_keep_a_source() -> None:
    cards = {name: load(find("mechanism", name)).card for name in names("mechanism")}
    assert {n for n, card in cards.items() if card.capabilities.cross_decode == "exact"} == KEEPING


@pytest.mark.parametrize(
    ("mechanism", "groups"), [("full", 2), ("sdpa", 2), ("chunked", 2), ("multi_query", 1)]
)
def test_exact_mechanisms_keep_keys_and_values_of_each_group(mechanism, groups, build) -> None:
    layer = build((mechanism, {}))
    width = layer.dims.head_width
    for m in (1, 9, 40):
        assert size(kept(layer, m).kept) == 2 * (2 * m * groups * width * 8)


@pytest.mark.parametrize(
    ("mechanism", "config"), [("linear", {}), ("performer", {}), ("linformer", {"rank": 4})]
)
def test_sums_and_slots_do_not_grow_with_the_source(mechanism, config, build) -> None:
    layer = build((mechanism, config))
    assert size(kept(layer, 3)) == size(kept(layer, 20)) > 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"context": Context(causal=True)}, UnsupportedError),
        ({"context": Context(key_mask_BM=torch.ones(2, 5, dtype=torch.bool))}, UsageError),
        ({"source_BMD": torch.zeros(2, 9, 12, dtype=torch.float64)}, UsageError),
    ],
)
def test_a_call_that_says_the_source_twice_or_in_part_is_refused(change, error, build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    state = kept(layer, 9)
    asked = {"context": Context(), **change}
    with pytest.raises(error, match=r"^full: [^\n]+$"):
        layer(x, asked.pop("context"), state=state, **asked)


@pytest.mark.parametrize("scheme", ["alibi", "rope"])
def test_positions_across_sequences_are_refused(scheme, build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    position = load(find("position", scheme))(layer.dims)
    with pytest.raises(UnsupportedError, match="positions"):
        layer(x, Context(position=position), state=kept(layer, 9))


@pytest.mark.parametrize("mechanism", ["nystromformer", "sliding_window", "lstm"])
def test_a_mechanism_that_keeps_nothing_says_so(mechanism, build) -> None:
    with pytest.raises(UnsupportedError, match=mechanism):
        kept(build((mechanism, {})), 9)


def test_a_source_of_other_rows_or_with_another_mask_is_refused(build) -> None:
    layer = build(("full", {}))
    source = torch.zeros(3, 9, 12, dtype=torch.float64)
    with pytest.raises(UsageError, match=r"2 rows.* 3;"):
        layer.init_state(
            2, length=5, device=source.device, dtype=source.dtype, source_BMD=source
        )  # fmt: skip
    with pytest.raises(UsageError, match="source_mask_BM"):
        kept(layer, 9, source_mask_BM=torch.ones(2, 8, dtype=torch.bool))


def test_a_source_longer_than_the_parameters_is_refused(build) -> None:
    layer = build(("linformer", {"rank": 4}))
    with pytest.raises(UnsupportedError, match=str(layer.dims.max_length)):
        kept(layer, layer.dims.max_length + 1)


@pytest.mark.parametrize("mechanism", sorted(KEEPING))
def test_gradients_reach_the_source_through_its_state(mechanism, build) -> None:
    layer = build((mechanism, {}))
    x, source = (torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True) for n in (5, 9))
    state = layer.init_state(
        2, length=5, device=x.device, dtype=x.dtype, source_BMD=source
    )  # fmt: skip
    pair = (layer(x, Context(), state=state).y_BND, layer(x, Context(), source_BMD=source).y_BND)
    # A mechanism without queries feels the source alone.
    found, wanted = (
        torch.autograd.grad(y.square().sum(), [x, source], materialize_grads=True) for y in pair
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
