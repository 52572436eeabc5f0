"""The courses that mechanisms take on a GPU, run on the CPU: the same numbers, in few large calls.

`needs_autograd` and `in_large_tiles` decide by the device; here they are told.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from attention_impls.dense import _streamed
from attention_impls.learned import reformer, sinkhorn, synthesizer
from attention_impls.lowrank import nystromformer

CASES = [
    ("chunked", {"query_chunk": 4, "key_chunk": 3}),
    ("nystromformer", {"landmarks": 5, "convolution": 3}),
    ("reformer", {"chunk": 4, "rounds": 3}),
    ("sinkhorn", {"block": 4}),
    ("synthesizer", {"rank": 3}),
    ("synthesizer", {"logits": "random"}),
    ("synthesizer", {"logits": "dense"}),
    ("synthesizer", {"logits": "dense", "dot_product": True}),
    ("synthesizer", {"dot_product": True}),
]
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (nystromformer, reformer, sinkhorn, synthesizer):
        monkeypatch.setattr(module, "needs_autograd", lambda q, position: True)
    monkeypatch.setattr(_streamed, "in_large_tiles", lambda x: True)


def requests(layer: Layer, directions: Any, some_padding: Any, n: int) -> list[Context]:
    gone = some_padding(2, n)
    gone[1] = False
    masks = [None, some_padding(2, n), gone]
    return [Context(causal, mask) for causal in directions(layer) for mask in masks]


def with_gradients(y: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    grads = torch.autograd.grad(y, leaves, upstream.to(y.dtype), materialize_grads=True)
    return [y.detach(), *grads]


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("n", [1, 7, 24])
def test_it_equals_the_oracle(case, n, build, directions, some_padding, check_reference) -> None:
    layer = build(case)
    x = torch.randn(2, n, 12, dtype=torch.float64, requires_grad=True)
    for context in requests(layer, directions, some_padding, n):
        check_reference(layer, x, context, rtol=1e-7)


@pytest.mark.parametrize("far", [0.0, 1000.0])
@pytest.mark.parametrize("kind", ["factorised", "random"])
def test_many_padded_examples_share_logits_however_far_apart(
    kind, far, build, directions, some_padding, monkeypatch
) -> None:
    """Without asking how far: a padded key a thousand above the rest takes nothing from them."""
    monkeypatch.setattr(synthesizer, "FEW", 1)
    monkeypatch.setattr(synthesizer, "_shared_softmax", None)
    layer = build(("synthesizer", {"logits": kind}))
    with torch.no_grad():
        if kind == "random":
            layer.logits_HPP[:, :, 1] += far
        else:
            layer.left_HPR[:, :, 0] = 1.0
            layer.right_HPR[:, 1, 0] += far
    x, mask = torch.randn(3, 24, 12, dtype=torch.float64), some_padding(3, 24)
    mask[1, 1] = False
    for causal in directions(layer):
        context = Context(causal, mask)
        found, wanted = layer(x, context).y_BND, layer.reference(x, context)
        torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_in_halves_it_is_as_near_as_halves_are(case, build, directions, some_padding) -> None:
    """To the oracle in float64 of the same numbers; its sums are not in halves."""
    layer, precise = build(case, dtype=torch.bfloat16), build(case)
    precise.load_state_dict(layer.state_dict())
    x = torch.randn(2, 37, 12, dtype=torch.bfloat16, requires_grad=True)
    x_precise = x.detach().double().requires_grad_()
    for context in requests(layer, directions, some_padding, 37):
        found = with_gradients(layer(x, context).y_BND, [x])
        wanted = with_gradients(precise.reference(x_precise, context), [x_precise])
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == torch.bfloat16
            assert (one.double() - other).norm() < 0.03 * other.norm()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_calls_do_not_grow_with_batch_heads_or_length(case, build, watched) -> None:
    counts = []
    for batch, heads, n in ((2, 2, 24), (9, 2, 24), (2, 4, 24), (2, 2, 192)):
        if case[0] == "chunked" and n > 24:
            continue  # its chunks of queries are as many as there are
        layer = build(case, heads=heads, max_length=200, dtype=torch.float32)
        x = torch.randn(batch, n, 12, requires_grad=True)
        with watched() as seen:
            layer(x, Context()).y_BND.sum().backward()
        counts.append(seen.calls)
    # A view here or there is none where it would be of all.
    assert max(counts) - min(counts) < 7
