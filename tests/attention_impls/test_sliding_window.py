"""The window's own: its three computations, its memory, its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from attention_impls.pattern import sliding_window
from attention_impls.pattern._band import Band
from attention_impls.pattern._blocked import blocked_attention
from attention_impls.pattern._fused import dense_attention, folded_attention
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError
from lra.core.loading import load

COMPUTATIONS = [blocked_attention, folded_attention, dense_attention]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", [1, 10**6])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (3, 5), (8, 8), (9, 0), (0, 4), (100, 100)])
def test_all_three_computations_equal_the_oracle(
    left: int, right: int, tile: int, causal: bool, build, draw, monkeypatch
) -> None:
    """Around multiples of the block, with a past of 3 keys when causal, padding and ALiBi."""
    monkeypatch.setattr("attention_impls.pattern._blocked.TILE", tile)
    layer = build(("sliding_window", {"left": left, "right": right}))
    alibi = load(find("position", "alibi"))(layer.dims)
    past = min(3, left) if causal else 0
    for n in (1, 7, 8, 9, 25):
        q, k, v = draw(2, n, n + past)
        mask = torch.rand(2, n + past, generator=torch.Generator().manual_seed(n)) > 0.4
        for key_mask, position in ((None, None), (mask, None), (mask, alibi)):
            context = Context(causal, key_mask_BM=key_mask, position=position)
            expected, _ = layer.oracle(q, k, v, context)
            upstream = torch.randn_like(expected)
            wanted = torch.autograd.grad(expected, (q, k, v), upstream)
            band = replace(layer._band(n, n + past, causal=causal, like=q), size=8)
            for compute in COMPUTATIONS:
                out = compute(
                    q, k, v, band, key_mask_BM=key_mask, position=position, origin=past, dropout=0.0
                )
                torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
                found = torch.autograd.grad(out, (q, k, v), upstream)
                torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compute", [blocked_attention, folded_attention])
def test_the_block_that_is_shipped_equals_the_oracle(
    compute, build, draw, check_oracle, some_padding, monkeypatch
) -> None:
    """Blocks of 64 and tiles of full size; the reach is no multiple of the block on either side."""
    monkeypatch.setattr("attention_impls.pattern._parts.DENSE_ADVANTAGE", 0)
    monkeypatch.setattr(sliding_window, "blocked_attention", compute)
    layer = build(("sliding_window", {"left": 70, "right": 5}))
    for causal in (False, True):
        for mask in (None, some_padding(2, 400)):
            check_oracle(layer, draw(2, 400), Context(causal, key_mask_BM=mask))


@pytest.mark.parametrize("compute", [blocked_attention, folded_attention])
@pytest.mark.parametrize("past", [5, 6, 7, 40])
def test_keys_ahead_of_all_windows_get_no_gradient(past: int, compute, build, draw) -> None:
    layer = build(("sliding_window", {"left": 3}))
    q, k, v = draw(2, 9, 9 + past)
    expected, _ = layer.oracle(q, k, v, Context(causal=True))
    band = Band(n=9, m=9 + past, left=3, right=0, size=2)
    out = compute(q, k, v, band, key_mask_BM=None, position=None, origin=past, dropout=0.0)
    torch.testing.assert_close(out, expected)
    found, wanted = (torch.autograd.grad(y.square().sum(), (q, k, v)) for y in (out, expected))
    torch.testing.assert_close(found, wanted)


def test_blocks_compute_bfloat16_inputs_in_float32(draw) -> None:
    """Rounded once, at the end, with or without autocast."""
    band = Band(n=25, m=25, left=3, right=2, size=4)
    rounded = [x.detach().bfloat16().requires_grad_() for x in draw(2, 25)]
    precise = [x.detach().float().requires_grad_() for x in rounded]

    def run(qkv: list[Tensor]) -> list[Tensor]:
        out = blocked_attention(*qkv, band, key_mask_BM=None, position=None, origin=0, dropout=0.0)
        return [out, *torch.autograd.grad(out.sum(), qkv)]

    expected = [x.bfloat16() for x in run(precise)]
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            found = run(rounded)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("compute", COMPUTATIONS)
def test_dropout_keeps_the_mean_and_its_gradient(compute: Callable[..., Tensor], draw) -> None:
    """The backward pass meets the same draws; over many draws the output stays."""
    band = Band(n=9, m=9, left=3, right=2, size=4)
    q, k, v = draw(1, 9, width=3)

    def run(*qkv: Tensor, seed: int = 0, dropout: float = 0.3) -> Tensor:
        torch.manual_seed(seed)
        return compute(*qkv, band, key_mask_BM=None, position=None, origin=0, dropout=dropout)

    assert torch.autograd.gradcheck(run, (q, k, v))
    with torch.no_grad():
        draws = torch.stack([run(q, k, v, seed=seed) for seed in range(500)])
        error = (draws.mean(0) - run(q, k, v, dropout=0.0)).abs()
    assert not torch.equal(draws[0], draws[1])
    assert bool((error <= 5 * draws.std(0) / 500**0.5 + 1e-12).all())


@pytest.mark.parametrize("compute", [blocked_attention, folded_attention])
def test_no_array_grows_with_the_square_of_the_length(compute, draw, watched, monkeypatch) -> None:
    monkeypatch.setattr("attention_impls.pattern._blocked.TILE", 4096)
    largest = []
    for n in (400, 800):
        qkv = draw(1, n, heads=1, width=4)
        band = Band(n, n, left=8, right=8, size=8)
        with watched() as seen:
            out = compute(*qkv, band, key_mask_BM=None, position=None, origin=0, dropout=0.0)
            torch.autograd.grad(out.sum(), qkv)
        largest.append(seen.elements)
    assert largest[1] <= 2.1 * largest[0] and largest[1] < 800 * 800 / 8


@pytest.mark.parametrize(("trained", "memory"), [(False, "O(n d)"), (True, "O(n w)")])
def test_wider_windows_take_the_memory_that_the_card_says(
    trained: bool, memory: str, build, draw, watched, monkeypatch
) -> None:
    monkeypatch.setattr("attention_impls.pattern._blocked.TILE", 1)
    position = None
    if trained:
        position = load(find("position", "alibi"))(build(("sliding_window", {})).dims)
        position.register_parameter("trained", torch.nn.Parameter(torch.zeros(())))
    largest = []
    for reach in (40, 160):
        layer = build(("sliding_window", {"left": reach, "right": reach}))
        qkv = draw(1, 1400, heads=1, width=32, dtype=torch.float32)
        with watched() as seen, torch.no_grad():
            layer.attend(*qkv, Context(position=position))
        largest.append(seen.elements)
    assert (largest[1] > 1.5 * largest[0]) == (memory == "O(n w)")
    assert layer.card.memory == "O(n d); O(n w) on a GPU or with a trained bias"


def test_long_inputs_go_by_blocks_and_short_ones_dense(build, draw, monkeypatch) -> None:
    """The laws at small blocks do reach the blocked computation."""
    ran: list[str] = []
    for name in ("blocked_attention", "dense_attention", "folded_attention"):
        original = getattr(sliding_window, name)
        monkeypatch.setattr(
            sliding_window,
            name,
            lambda *a, name=name, original=original, **k: ran.append(name) or original(*a, **k),
        )
    layer = build(("sliding_window", {"left": 3, "right": 2}))
    layer.attend(*draw(1, 37), Context())
    monkeypatch.setattr(sliding_window, "BLOCK", 4)
    monkeypatch.setattr("attention_impls.pattern._parts.TILE_COST", 0)
    layer.attend(*draw(1, 37), Context())
    layer.attend(*draw(1, 37), Context(causal=True))
    layer.attend(*draw(1, 5), Context())
    assert ran == ["dense_attention", "blocked_attention", "blocked_attention", "dense_attention"]


@torch.no_grad()
def test_the_state_holds_the_last_keys_and_no_more(build) -> None:
    layer = build(("sliding_window", {"left": 3}))
    x = torch.randn(2, 40, 12, dtype=torch.float64)
    expected = layer(x, Context(causal=True)).y_BND
    state = layer.init_state(2, length=40, device=x.device, dtype=x.dtype)
    assert state.held[0].shape == (2, 2, 3, 8) and not bool(state.held[2].any())
    for place in range(40):
        y, state = layer(x[:, place : place + 1], Context(causal=True), state=state)
        torch.testing.assert_close(y, expected[:, place : place + 1])
        assert state.held[2][0].tolist() == [place >= 2, place >= 1, True]
    keys = layer.key(x[:, 37:]).view(2, 3, 2, 8).transpose(1, 2)
    torch.testing.assert_close(state.held[0], keys)
    assert state.k_BHRK.untyped_storage().nbytes() == 2 * state.held[0].nbytes


@torch.no_grad()
def test_a_state_is_a_value_though_a_step_copies_no_window(build) -> None:
    """Continued twice it gives the same, and spoils neither what followed nor what it holds."""
    layer, context = build(("sliding_window", {"left": 5})), Context(causal=True)
    x, other = torch.randn(2, 2, 30, 12, dtype=torch.float64)
    expected = layer(x, context).y_BND
    state = layer.init_state(2, length=30, device=x.device, dtype=x.dtype)
    rooms = set()
    for place in range(30):
        step, held = slice(place, place + 1), [part.clone() for part in state.held]
        y, following = layer(x[:, step], context, state=state)
        for tried in (other, x, other):
            again, _ = layer(tried[:, step], context, state=state)
            assert torch.equal(again, y) == (tried is x)
        assert all(torch.equal(a, b) for a, b in zip(state.held, held, strict=True))
        torch.testing.assert_close(y, expected[:, step])
        state = following
        rooms.add(state.k_BHRK.data_ptr())
    assert len(rooms) <= 30 // 5 + 1


@pytest.mark.parametrize("trained", [False, True])
def test_a_state_rounds_nothing_and_carries_gradients(trained: bool, build) -> None:
    """Made in float32, continued in float64."""
    layer, context = build(("sliding_window", {"left": 5})), Context(causal=True)
    x = torch.randn(2, 9, 12, dtype=torch.float64, requires_grad=trained)
    state, steps = layer.init_state(2, length=9, device=x.device, dtype=torch.float32), []
    with torch.set_grad_enabled(trained):
        for place in range(9):
            y, state = layer(x[:, place : place + 1], context, state=state)
            steps.append(y)
        found, expected = torch.cat(steps, dim=1), layer(x, context).y_BND
    torch.testing.assert_close(found, expected)
    if trained:
        found, expected = (torch.autograd.grad(y.square().sum(), x) for y in (found, expected))
        torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_a_state_shorter_than_the_window_refuses_what_it_would_forget(build) -> None:
    layer = build(("sliding_window", {"left": 10}))
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    state = layer.init_state(2, length=6, device=x.device, dtype=x.dtype)
    assert state.held[0].shape[2] == 6
    _, state = layer(x[:, :6], Context(causal=True), state=state)
    with pytest.raises(UnsupportedError, match=r"\b6\b.*\b7\b.*init_state"):
        layer(x[:, 6:], Context(causal=True), state=state)
