"""Blocks: the arena's strided sets, their masks, their state."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError


def test_the_arenas_sets_are_strided(build) -> None:
    """Its code pads 20 positions in blocks of 5 to 25 and puts every fifth into one set."""
    layer = build(("block_local", {"block": 5, "parity": "lra2021"}))
    support = layer.support(20, 20, Context())
    assert support[0].nonzero().flatten().tolist() == [0, 5, 10, 15]
    assert support[7].nonzero().flatten().tolist() == [2, 7, 12, 17]


@pytest.mark.parametrize("case", ["plain", "short", "causal", "padded", "bias", "both", "dropout"])
@torch.no_grad()
def test_masks_are_written_out_where_the_card_says(
    case: str, build, positions, some_padding, monkeypatch
) -> None:
    """With a bias, causal padding or, on a CPU, dropout; no more elsewhere than a number a key."""
    layer, given = build(("block_local", {"block": 32}), dropout=0.1 * (case == "dropout")), []

    def told(q, k, v, attn_mask=None, inner=F.scaled_dot_product_attention, **options):
        unfused = options["dropout_p"] > 0
        given.append(unfused or (attn_mask is not None and attn_mask.numel() > q.shape[0] * 32))
        return inner(q, k, v, attn_mask=attn_mask, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", told)
    n = 90 if case == "short" else 96
    context = Context(
        case in ("causal", "both"),
        query_mask_BN=some_padding(2, n) if case in ("padded", "both") else None,
        position=positions(layer, "bias")[1] if case == "bias" else None,
    )
    layer.train(case == "dropout")(torch.randn(2, n, 12, dtype=torch.float64), context)
    assert given == [case in ("bias", "both", "dropout")]
    assert (
        layer.card.memory
        == "O(n d + s); O(n s) with a bias, causal padding, a state or, on a CPU, dropout"
    )


@torch.no_grad()
def test_a_decode_step_works_off_one_row(build, positions, some_padding, monkeypatch) -> None:
    """And gives what the blocks give."""
    layer, work = build(("block_local", {"block": 16})), []
    x, mask = torch.randn(2, 37, 12, dtype=torch.float64), some_padding(2, 37)
    for position in positions(layer, "bias", "rotary"):
        expected = layer(x, Context(True, query_mask_BN=mask, position=position)).y_BND
        state = layer.init_state(2, length=37, device=x.device, dtype=x.dtype)
        with monkeypatch.context() as patched:
            patched.setattr(
                F,
                "scaled_dot_product_attention",
                lambda q, k, *a, inner=F.scaled_dot_product_attention, **o: (
                    work.append(q.shape[2] * k.shape[2]) or inner(q, k, *a, **o)
                ),
            )
            for place in range(37):
                context = Context(True, query_mask_BN=mask[:, place : place + 1], position=position)
                y, state = layer(x[:, place : place + 1], context, state=state)
                torch.testing.assert_close(y, expected[:, place : place + 1])
    assert work == [place % 16 + 1 for place in range(37)] * 3


@torch.no_grad()
def test_the_state_holds_less_than_a_block(build) -> None:
    layer = build(("block_local", {"block": 4}))
    state = layer.init_state(2, length=100, device=torch.device("cpu"), dtype=torch.float64)
    assert state.held[0].shape == (2, 2, 3, 8)
    x = torch.randn(2, 3, 12, dtype=torch.float64)
    state = layer.init_state(2, length=2, device=torch.device("cpu"), dtype=torch.float64)
    with pytest.raises(UnsupportedError, match=r"\b2\b.*\b3\b.*init_state"):
        layer(x, Context(causal=True), state=state)
