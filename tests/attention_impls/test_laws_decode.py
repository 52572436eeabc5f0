"""Laws of decoding: a state continues a sequence as if it had been seen at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("small_tiles")

LENGTH = 29
SPLITS = [
    [1] * LENGTH,
    [LENGTH],
    [0, 20, 0, 9],
    [28, 1],
    [1, 28],
    [20, *[1] * 9],
    [3, 1, 5, 2, 13, 4, 1],
]


@torch.no_grad()
def decode(layer: Any, x: Tensor, pieces: list[int], mask: Tensor | None, position: Any) -> Tensor:
    """Feed pieces one after the other; return all outputs."""
    state = layer.init_state(len(x), length=x.shape[1], device=x.device, dtype=x.dtype)
    outputs, start = [], 0
    for size in pieces:
        own = None if mask is None else mask[:, start : start + size]
        context = Context(causal=True, query_mask_BN=own, position=position)
        y, state = layer(x[:, start : start + size], context, state=state)
        outputs.append(y)
        start += size
        assert state.seen_B.dtype == torch.int64 and state.seen_B.tolist() == [start] * len(x)
    return torch.cat(outputs, dim=1)


def inputs(batch: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(batch, LENGTH, 12, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("pieces", SPLITS, ids=lambda pieces: f"{len(pieces)}-pieces")
def test_decoding_equals_the_parallel_form(decode_case, pieces, build, positions) -> None:
    layer = build(decode_case)
    x = inputs()
    for position in positions(layer, "bias", "rotary"):
        expected = layer(x, Context(causal=True, position=position)).y_BND
        found = decode(layer, x, pieces, None, position)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("pieces", SPLITS, ids=lambda pieces: f"{len(pieces)}-pieces")
def test_decoding_remembers_padding(decode_case, pieces, build, positions) -> None:
    """One row whole, one padded in front, one within: what is padding stays unseen."""
    layer = build(decode_case)
    if layer.card.capabilities.padding == "none":
        pytest.skip("its card claims no padding")
    mask = torch.ones(3, LENGTH, dtype=torch.bool)
    mask[1, :7] = False
    mask[2, 5:12] = False
    x = inputs()
    for position in positions(layer, "bias", "rotary"):
        context = Context(causal=True, query_mask_BN=mask, position=position)
        expected = layer(x, context).y_BND
        polluted = x.masked_fill(~mask.unsqueeze(-1), float("nan"))
        found = decode(layer, polluted, pieces, mask, position)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_a_padded_prefill_needs_no_mask_afterwards(decode_case, build) -> None:
    """Rows of unequal prompts: steps without a mask still do not see the prompt's padding."""
    layer = build(decode_case)
    if layer.card.capabilities.padding == "none":
        pytest.skip("its card claims no padding")
    x = inputs(2)
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[1, 6:20] = False
    expected = layer(x, Context(causal=True, query_mask_BN=mask)).y_BND
    state = layer.init_state(2, length=LENGTH, device=x.device, dtype=x.dtype)
    _, state = layer(x[:, :20], Context(causal=True, query_mask_BN=mask[:, :20]), state=state)
    for place in range(20, LENGTH):
        y, state = layer(x[:, place : place + 1], Context(causal=True), state=state)
        torch.testing.assert_close(y, expected[:, place : place + 1], rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_states_are_tensors_batch_first(decode_case, build) -> None:
    """So that rows of a state can be reordered, as beam search does, by whoever holds it."""
    layer = build(decode_case)
    x, order = inputs(), torch.tensor([2, 0, 1])
    state = layer.init_state(3, length=LENGTH, device=x.device, dtype=x.dtype)
    assert all(isinstance(part, Tensor) and len(part) == 3 for part in state)
    _, state = layer(x[:, :20], Context(causal=True), state=state)
    reordered = type(state)(*(part[order] for part in state))
    expected, _ = layer(x[:, 20:], Context(causal=True), state=state)
    found, _ = layer(x[order, 20:], Context(causal=True), state=reordered)
    torch.testing.assert_close(found, expected[order], rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_more_positions_than_asked_for_are_exact_or_refused(decode_case, build) -> None:
    layer = build(decode_case)
    x = inputs()
    context = Context(causal=True)
    expected = layer(x, context).y_BND
    state = layer.init_state(3, length=4, device=x.device, dtype=x.dtype)
    y, state = layer(x[:, :4], context, state=state)
    torch.testing.assert_close(y, expected[:, :4], rtol=1e-9, atol=1e-9)
    try:
        y, state = layer(x[:, 4:5], context, state=state)
    except UnsupportedError as error:
        assert "init_state" in str(error) and "\n" not in str(error)
    else:
        torch.testing.assert_close(y, expected[:, 4:5], rtol=1e-9, atol=1e-9)
