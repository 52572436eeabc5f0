"""The Linformer's own: its projections, how they are shared, and the sources it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attention_impls.contract import Attention, Context
from attention_impls.lowrank.linformer import Linformer, LinformerConfig
from lra.core.errors import UnsupportedError, UsageError

SHARINGS = ["headwise", "key-value", "layerwise"]
sharings = pytest.mark.parametrize("sharing", SHARINGS)


@sharings
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 7), (48, 48), (48, 5), (5, 48)])
@pytest.mark.parametrize("biases", [True, False], ids=["biases", "no-biases"])
def test_mix_equals_attend_of_project(sharing, n, m, biases, build, some_padding) -> None:
    """Output and every gradient, on both sides of the choice which product comes first."""
    orders = set()
    for rank in (2, 40):
        config = {"rank": rank, "sharing": sharing}
        layer = build(("linformer", config), qkv_width=4, projection_biases=biases)
        x = torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True)
        for mask in (None, some_padding(2, m)):
            source = torch.randn(2, m, 12, dtype=torch.float64, requires_grad=True)
            context = Context(key_mask_BM=mask)
            out, state = layer.mix(x, context, source, None)
            assert state is None
            expected, _ = layer.attend(*layer.project(x, context, source, None)[:3], context)
            torch.testing.assert_close(out, expected, rtol=1e-10, atol=1e-10)
            upstream = torch.randn_like(out)
            leaves = [x, source, *layer.parameters()]
            found, wanted = (
                torch.autograd.grad(
                    y,
                    leaves,
                    upstream,
                    retain_graph=True,
                    allow_unused=True,
                    materialize_grads=True,
                )
                for y in (out, expected)
            )
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
        orders.add(layer._input_first(m))
    assert m < 48 or orders == {True, False}


def test_the_input_is_compressed_before_it_is_projected(build, monkeypatch) -> None:
    """Where that is less work, no key or value of all positions is formed."""

    def forbidden(*_: Any) -> None:
        raise AssertionError("keys and values were projected in full")

    layer = build(("linformer", {"rank": 2}))
    monkeypatch.setattr(Attention, "mix", forbidden)
    layer(torch.randn(2, 48, 12, dtype=torch.float64), Context())
    with pytest.raises(AssertionError, match="in full"):
        layer(torch.randn(2, 1, 12, dtype=torch.float64), Context())


@pytest.mark.parametrize(
    ("sharing", "matrices"), [("headwise", 6), ("key-value", 3), ("layerwise", 1)]
)
def test_sharing_says_how_many_projections_three_layers_hold(sharing, matrices, build) -> None:
    dims = build(("linformer", {})).dims
    config = LinformerConfig(rank=8, sharing=sharing)
    shared = Linformer.build_shared(dims, config)
    layers = torch.nn.ModuleList(
        Linformer(dims, config, layer_index=index, shared=shared) for index in range(3)
    )
    plain = 3 * sum(p.numel() for p in build(("identity", {})).parameters())
    held = sum(p.numel() for p in layers.parameters()) - plain
    assert held == matrices * dims.max_length * 8


def test_layerwise_without_the_shared_module_is_refused(build) -> None:
    dims = build(("linformer", {})).dims
    with pytest.raises(UsageError, match="build_shared") as refusal:
        Linformer(dims, LinformerConfig(sharing="layerwise"))
    assert "\n" not in str(refusal.value)


def test_a_source_longer_than_the_projections_is_refused(build) -> None:
    layer = build(("linformer", {}))
    x = torch.randn(2, 49, 12, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match=r"\b48\b.*\b49\b"):
        layer(x[:, :9], Context(), source_BMD=x)
    layer(x[:, :9], Context(), source_BMD=x[:, :48])


@sharings
def test_shorter_inputs_use_and_train_the_first_rows(sharing, build) -> None:
    layer = build(("linformer", {"rank": 8, "sharing": sharing}))
    x = torch.randn(2, 20, 12, dtype=torch.float64)
    y = layer(x, Context()).y_BND
    y.square().sum().backward()
    for matrix in layer.compression.parameters():
        assert bool(matrix.grad[:20].any(1).all()) and not bool(matrix.grad[20:].any())
        with torch.no_grad():
            matrix[20:] = float("nan")
    assert torch.equal(layer(x, Context()).y_BND, y)


@sharings
def test_projections_start_with_variance_one_over_the_rank(sharing, build) -> None:
    layer = build(("linformer", {"rank": 64, "sharing": sharing}), max_length=512)
    for matrix in layer.compression.parameters():
        assert matrix.shape == (512, 64)
        assert abs(matrix.mean()) < 5 / math.sqrt(64 * matrix.numel())
        assert abs(64 * matrix.var() - 1) < 5 * math.sqrt(2 / matrix.numel())
