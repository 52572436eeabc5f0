"""What is particular to no mixing: it returns V, under any position scheme."""

from __future__ import annotations

import torch

from attention_impls.contract import Context
from lra.core.catalogue import find, load, names


def test_returns_the_values_whatever_the_positions(build, draw) -> None:
    layer = build(("identity", {}))
    q, k, v = draw(2, 7)
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    expected = layer.output(layer.value(x))
    for name in names("position"):
        position = load(find("position", name))(layer.dims)
        for causal in (False, True):
            context = Context(causal=causal, position=position)
            assert torch.equal(layer.attend(q, k, v, context)[0], v)
            torch.testing.assert_close(layer(x, context).y_BND, expected)


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
