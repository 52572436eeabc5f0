"""Blocks folded into one call, as on a GPU: here on a CPU, against the oracle in float64."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.pattern import _joined, sparse_fixed, sparse_strided
from lra.core.catalogue import find
from lra.core.loading import load
from lra.measure.operations import count_operations

N = 45
ONE_CALL = [
    ("sliding_window", {"left": 3, "right": 9}),
    ("bigbird", {"block": 4, "random": 2}),
    ("longformer", {"window": 6, "leading": 3}),
]
"""Blocks of several positions, that do not divide the length."""
JOINED = [
    ("sparse_strided", {"stride": 8}),
    ("sparse_strided", {"stride": 3}),
    ("sparse_fixed", {"stride": 6, "summary": 2}),
    ("sparse_fixed", {"stride": 5, "summary": 2, "parity": "lra2021"}),
]
CASES = [*ONE_CALL, *JOINED, ("sparse_fixed", {"stride": 6, "summary": 6})]
pytestmark = pytest.mark.usefixtures("small_tiles", "folded")


def masks() -> dict[str, Tensor | None]:
    """Rows that end in a block, at its end, and with holes; and one of nothing but padding."""
    places_N = torch.arange(N)
    holes = torch.stack([places_N % 5 < 2, (places_N > 7) & (places_N < 40)])
    return {
        "whole": None,
        "ends": places_N < torch.tensor([[N], [24]]),
        "holes": holes,
        "nothing": places_N < torch.tensor([[0], [9]]),
    }


def outcome(y_BND: Tensor, x_BND: Tensor) -> list[Tensor]:
    """Return output and gradient of the input."""
    upstream = torch.randn(y_BND.shape, generator=torch.Generator().manual_seed(1))
    return [y_BND, *torch.autograd.grad(y_BND, x_BND, upstream.to(y_BND.dtype))]


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_equals_the_oracle(case, mask: str, build, directions, check_reference) -> None:
    layer = build(case)
    alibi = load(find("position", "alibi"))(layer.dims)
    positions = [None, *[alibi] * layer.card.capabilities.bias]
    x = torch.randn(2, N, 12, dtype=torch.float64, requires_grad=True)
    # With keys alone padded, only the mechanism itself can drop queries without a key.
    of_rows, of_keys = {"query_mask_BN": masks()[mask]}, {"key_mask_BM": masks()[mask]}
    for causal, position in product(directions(layer), positions):
        for padding in (of_rows, of_keys):
            check_reference(layer, x, Context(causal, position=position, **padding))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bfloat16_stays_near_it(case, build, directions) -> None:
    layer, rounded = build(case), build(case).bfloat16()
    layer.load_state_dict(rounded.state_dict())
    x = torch.randn(2, N, 12).bfloat16()
    for causal in directions(layer):
        for mask in masks().values():
            context = Context(causal, query_mask_BN=mask)
            given, exact = x.clone().requires_grad_(), x.double().requires_grad_()
            found = outcome(rounded(given, context).y_BND, given)
            wanted = outcome(layer.reference(exact, context), exact)
            assert all(f.dtype == torch.bfloat16 for f in found)
            for near, far in zip(found, wanted, strict=True):
                error = (near.double() - far).abs().max() / far.abs().max()
                assert error < 0.03


@pytest.mark.parametrize("case", CASES, ids=str)
def test_dropout_keeps_the_mean(case, build, directions) -> None:
    layer = build(case, dropout=0.4, dtype=torch.float32)
    x_1ND = torch.randn(1, N, 12)
    for causal in directions(layer):
        with torch.no_grad():
            wanted_1ND = layer.eval()(x_1ND, Context(causal)).y_BND
            draws_BND = layer.train()(x_1ND.expand(400, -1, -1), Context(causal)).y_BND
        deviation_ND = draws_BND.std(0)
        assert float(deviation_ND.min()) > 0.0
        assert bool(((draws_BND.mean(0) - wanted_1ND).abs() <= deviation_ND / 4).all())


@pytest.mark.parametrize("case", ONE_CALL, ids=str)
@torch.no_grad()
def test_a_mask_serves_all_heads_or_all_rows_of_a_block(case, build, monkeypatch) -> None:
    """And is of a type that torch need not turn into another."""
    seen: list[tuple[Tensor, Tensor]] = []
    inner = torch.nn.functional.scaled_dot_product_attention

    def spied(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, **rest: Any) -> Tensor:
        if attn_mask is not None:
            seen.append((q, attn_mask))
        return inner(q, k, v, attn_mask=attn_mask, **rest)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spied)
    build(case)(torch.randn(2, N, 12, dtype=torch.float64), Context())
    (only,) = seen
    q, mask = only
    assert mask.dtype == q.dtype
    assert 1 in mask.shape[1:3]


@pytest.fixture
def as_a_gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A GPU's kernel and its gradient, in float64, that keep to what those ask of shapes; returns
    which were called."""
    called: list[str] = []

    def weights(q: Tensor, k: Tensor, mask: Tensor, lse: Tensor | None) -> tuple[Tensor, Tensor]:
        assert mask.shape == (*q.shape[:3], k.shape[2]) and mask.dtype == q.dtype
        assert mask.stride(-1) == 1 and mask.stride(-2) % 8 == 0
        logits = q @ k.mT / q.shape[-1] ** 0.5 + mask
        lse = logits.logsumexp(-1) if lse is None else lse
        return torch.exp(logits - lse.unsqueeze(-1)), lse

    def kernel(q, k, v, mask, wanted, dropout):
        called.append("kernel")
        p, lse = weights(q, k, mask, None)
        drawn = (torch.rand_like(p) >= dropout) / (1 - dropout)
        lse = torch.nn.functional.pad(lse, (0, -q.shape[2] % 32), value=float("inf"))
        return (p * drawn) @ v, lse, drawn, torch.zeros(())

    def gradient(dout, q, k, v, mask, out, lse, drawn, offset, dropout, wanted):
        called.append("gradient")
        assert lse.shape == (*q.shape[:2], -(-q.shape[2] // 32) * 32) and lse.is_contiguous()
        assert out.transpose(1, 2).is_contiguous(), "heads innermost"
        p, _ = weights(q, k, mask, lse[..., : q.shape[2]])
        inner = (dout * out).sum(-1, keepdim=True)
        ds = p * (dout @ v.mT * drawn - inner) / q.shape[-1] ** 0.5
        return ds @ k, ds.mT @ q, (p * drawn).mT @ dout, None

    monkeypatch.setattr(_joined, "_KERNEL", kernel)
    monkeypatch.setattr(_joined, "_GRADIENT", gradient)
    monkeypatch.setattr(_joined, "on_cpu", lambda like: False)
    for module in (sparse_strided, sparse_fixed):
        monkeypatch.setattr(module, "has_kernel", lambda q, v, dropout: True)
    return called


@pytest.mark.parametrize("mask", masks())
@pytest.mark.parametrize("case", JOINED, ids=str)
def test_a_gpus_kernel_is_asked_in_its_own_shapes(
    case, mask: str, build, directions, as_a_gpu, check_reference
) -> None:
    layer = build(case)
    x = torch.randn(2, N, 12, dtype=torch.float64, requires_grad=True)
    for causal in directions(layer):
        check_reference(layer, x, Context(causal, query_mask_BN=masks()[mask]))
    assert sorted(as_a_gpu) == ["gradient"] * 4 + ["kernel"] * 4


def test_its_dropout_has_the_gradient_of_its_own_draws(build, draw, as_a_gpu) -> None:
    layer = build(("sparse_strided", {"stride": 3}), dropout=0.3).train()

    def run(*qkv: Tensor) -> Tensor:
        torch.manual_seed(0)
        return layer.in_parts(*qkv, None, Context())

    assert torch.autograd.gradcheck(run, draw(1, 9, width=3))
    assert "gradient" in as_a_gpu


@pytest.mark.parametrize("case", CASES, ids=str)
@torch.no_grad()
def test_what_is_declared_is_what_is_counted(case, build, directions) -> None:
    layer = build(case, max_length=75)
    for causal in directions(layer):
        for n in (32, 75):
            x = torch.randn(1, n, 12, dtype=torch.float64)
            counted = count_operations(lambda x=x, c=causal: layer(x, Context(causal=c)))
            assert layer.operations(n, causal=causal) == counted


@pytest.mark.parametrize("case", [("sparse_strided", {}), ("sparse_fixed", {})], ids=str)
@pytest.mark.parametrize("padded", [False, True])
def test_torchs_own_kernel_takes_what_it_is_given(case, padded, build, monkeypatch) -> None:
    """Its shapes and types, on a device without values, which could tell none to who asked."""
    monkeypatch.undo()
    for module in (sparse_strided, sparse_fixed):
        monkeypatch.setattr(module, "has_kernel", lambda q, v, dropout: True)
    layer = build(case, width=32, qkv_width=32, dtype=torch.bfloat16).to("meta")
    for batch, n in ((3, 1500), (2, 4096)):
        x = torch.empty(batch, n, 32, dtype=torch.bfloat16, device="meta", requires_grad=True)
        mask = torch.empty(batch, n, dtype=torch.bool, device="meta") if padded else None
        for causal in (False, True):
            context = Context(causal, key_mask_BM=mask)
            q, k, v, _ = layer.project(x, context, None, None)
            out = layer.in_parts(q, k, v, mask, context)
            (found,) = torch.autograd.grad(out, x, torch.empty_like(out))
            assert out.shape == q.shape and found.shape == x.shape
            assert out.dtype == found.dtype == torch.bfloat16
