"""No mixing: the projections that it pays for, and those it trains."""

from __future__ import annotations

import torch

from attention_impls.contract import Context


def test_queries_and_keys_are_projected_and_dropped(build, monkeypatch) -> None:
    """The floor pays for all four projections, and trains two of them."""
    layer = build(("identity", {}))
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    projected = []
    for projection in (layer.query, layer.key, layer.value):
        projection.register_forward_hook(lambda module, *_: projected.append(module))
    layer(x, Context()).y_BND.sum().backward()
    assert projected == [layer.query, layer.key, layer.value]
    assert layer.query.weight.grad is None and layer.key.weight.grad is None
    assert layer.value.weight.grad is not None
