"""The mean of the values: which of them, how exactly, and that nothing is compared."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError
from lra.core.loading import load


def test_each_position_gets_the_mean_of_the_values_that_it_may_see(build, draw) -> None:
    layer = build(("mean", {}))
    q, k, v = draw(2, 5, 7)
    real = torch.tensor([[True] * 7, [False, True, True, False, True, False, True]])
    whole, _ = layer.attend(q, k, v, Context(key_mask_BM=real))
    running, _ = layer.attend(q, k, v, Context(causal=True, key_mask_BM=real))
    for example, query in ((0, 0), (0, 4), (1, 0), (1, 3)):
        values = v[example][:, real[example]]
        torch.testing.assert_close(whole[example, :, query], values.mean(1))
        seen = v[example, :, : query + 3][:, real[example, : query + 3]]
        torch.testing.assert_close(running[example, :, query], seen.mean(1))


def test_queries_before_the_first_key_get_zero(build, draw) -> None:
    out, _ = build(("mean", {})).attend(*draw(2, 5, 3), Context(causal=True))
    assert not out[:, :, :2].any() and out[:, :, 2:].all()


def test_queries_and_keys_are_projected_and_dropped(build) -> None:
    """It pays for all four projections, as the floor does, and trains two of them."""
    layer = build(("mean", {}))
    projected = []
    for projection in (layer.query, layer.key, layer.value):
        projection.register_forward_hook(lambda module, *_: projected.append(module))
    layer(torch.randn(2, 7, 12, dtype=torch.float64), Context()).y_BND.sum().backward()
    assert projected == [layer.query, layer.key, layer.value]
    assert layer.query.weight.grad is None and layer.key.weight.grad is None
    assert layer.value.weight.grad is not None


@pytest.mark.parametrize(
    ("dtype", "epsilons"), [(torch.float32, 1.0), (torch.bfloat16, 0.51)], ids=str
)
def test_a_long_running_mean_keeps_the_digits_of_its_type(
    build, dtype: torch.dtype, epsilons: float
) -> None:
    """In bfloat16 the mean alone is rounded, not sums and counts too, which would take another
    epsilon."""
    layer, n = build(("mean", {}), dtype=dtype), 1 << 16
    generator = torch.Generator().manual_seed(3)
    v = (1 + 0.1 * torch.randn(1, 1, n, 2, generator=generator)).to(dtype)
    out, _ = layer.attend(v, v, v, Context(causal=True))
    wanted = v.double().cumsum(2) / torch.arange(1.0, n + 1).double().unsqueeze(-1)
    error = ((out.double() - wanted).abs() / wanted).max().item()
    assert error <= epsilons * torch.finfo(dtype).eps


def test_schemes_that_would_give_unequal_weights_are_refused(build) -> None:
    layer = build(("mean", {}))
    alibi = load(find("position", "alibi"))(layer.dims)
    with pytest.raises(UnsupportedError):
        layer(torch.zeros(1, 3, 12, dtype=torch.float64), Context(position=alibi))


def test_a_state_goes_on_with_as_many_keys_as_queries(build, draw) -> None:
    layer = build(("mean", {}))
    state = layer.init_state(2, length=9, device=torch.device("cpu"), dtype=torch.float64)
    with pytest.raises(UnsupportedError):
        layer.attend(*draw(2, 5, 3), Context(causal=True), state)
