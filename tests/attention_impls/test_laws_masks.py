"""Laws of what must not be felt: the future, padding, other examples; and of empty rows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer

pytestmark = pytest.mark.usefixtures("small_tiles")

LENGTH = 37
EXACT = {"rtol": 1e-10, "atol": 1e-10}


def inputs(batch: int, length: int = LENGTH, *, seed: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, 12, generator=generator, dtype=torch.float64)


def output_and_gradients(
    layer: Layer, context: Context, x: Tensor, source: Tensor | None = None
) -> list[Tensor]:
    """Return the output, and the gradients of the inputs and of the parameters."""
    inputs = [part.clone().requires_grad_() for part in (x, source) if part is not None]
    y = layer(inputs[0], context, source_BMD=inputs[1] if len(inputs) == 2 else None).y_BND
    gradients = torch.autograd.grad(
        y.square().sum(), [*inputs, *layer.parameters()], allow_unused=True, materialize_grads=True
    )
    return [y, *gradients]


@pytest.mark.parametrize("last", [0, 3, 4, 20, 35])
def test_no_output_feels_a_later_input(strict_case, last, build, positions) -> None:
    """Later inputs grow sixteenfold: outputs stay. The shorter input gives the same."""
    layer = build(strict_case)
    x = inputs(2)
    larger = x.clone()
    larger[:, last + 1 :] *= 16.0
    for position in positions(layer, "bias", "rotary"):
        context = Context(causal=True, position=position)
        y = layer(x, context).y_BND[:, : last + 1]
        torch.testing.assert_close(layer(larger, context).y_BND[:, : last + 1], y, **EXACT)
        torch.testing.assert_close(layer(x[:, : last + 1], context).y_BND, y, **EXACT)


def test_no_output_feels_a_later_value(causal_case, build, draw) -> None:
    layer = build(causal_case)
    q, k, v = (x.detach() for x in draw(2, LENGTH))
    context = Context(causal=True)
    out, _ = layer.attend(q, k, v, context)
    for last in (0, 3, 20):
        other = v.clone()
        other[:, :, last + 1 :] *= 16.0
        found, _ = layer.attend(q, k, other, context)
        torch.testing.assert_close(found[:, :, : last + 1], out[:, :, : last + 1], **EXACT)


@pytest.mark.parametrize("garbage", [1e4, float("nan"), float("inf")])
def test_what_padding_holds_changes_nothing(
    padding_case, garbage, build, directions, positions, some_padding
) -> None:
    """At the layer, whose base zeroes padding; gradients too, and padded outputs are zero."""
    layer = build(padding_case)
    mask = some_padding(3, LENGTH)
    x = inputs(3)
    polluted = x.masked_fill(~mask.unsqueeze(-1), garbage)
    for causal in directions(layer):
        for position in positions(layer, "bias", "rotary"):
            context = Context(causal, query_mask_BN=mask, key_mask_BM=mask, position=position)
            wanted = output_and_gradients(layer, context, x)
            found = output_and_gradients(layer, context, polluted)
            torch.testing.assert_close(found, wanted, **EXACT)
            assert not bool(wanted[0][~mask].any())


@pytest.mark.parametrize("garbage", [1e4, float("nan")])
def test_what_a_masked_source_holds_changes_nothing(
    cross_case, garbage, build, directions, some_padding
) -> None:
    layer = build(cross_case)
    if layer.card.capabilities.padding == "none":
        pytest.skip("its card claims no padding")
    x, source, mask = inputs(3), inputs(3, 41, seed=6), some_padding(3, 41)
    polluted = source.masked_fill(~mask.unsqueeze(-1), garbage)
    for causal in directions(layer):
        context = Context(causal, key_mask_BM=mask)
        wanted = output_and_gradients(layer, context, x, source)
        found = output_and_gradients(layer, context, x, polluted)
        torch.testing.assert_close(found, wanted, **EXACT)


def test_masked_keys_are_not_read(padding_case, build, draw, directions, some_padding) -> None:
    """At `attend`, whose masked keys and values may hold anything finite."""
    layer = build(padding_case)
    q, k, v = (x.detach() for x in draw(3, LENGTH))
    mask = some_padding(3, LENGTH)
    hidden = ~mask[:, None, :, None]
    for causal in directions(layer):
        context = Context(causal=causal, key_mask_BM=mask)
        out, _ = layer.attend(q, k, v, context)
        found, _ = layer.attend(q, k.masked_fill(hidden, 1e4), v.masked_fill(hidden, 1e4), context)
        torch.testing.assert_close(found, out, **EXACT)


@pytest.mark.parametrize("more", [1, 4, 11])
def test_the_amount_of_padding_changes_nothing(
    content_case, more, build, directions, positions
) -> None:
    layer = build(content_case)
    x = inputs(2)
    longer = torch.cat([x, torch.full((2, more, 12), 1e4, dtype=torch.float64)], dim=1)
    mask = torch.arange(LENGTH + more).expand(2, -1) < LENGTH
    for causal in directions(layer):
        for position in positions(layer, "bias", "rotary"):
            y = layer(x, Context(causal, position=position)).y_BND
            padded = layer(longer, Context(causal, query_mask_BN=mask, position=position)).y_BND
            torch.testing.assert_close(padded[:, :LENGTH], y, **EXACT)


def test_examples_do_not_feel_each_other(any_case, build, directions, some_padding) -> None:
    """A row is the same alone and beside rows a thousand times larger, or not finite."""
    layer = build(any_case)
    x = inputs(3)
    masks = [None]
    if layer.card.capabilities.padding != "none":
        masks.append(some_padding(3, LENGTH))
    for outlier in (1e3, float("nan")):
        beside = x.clone()
        beside[0] *= outlier
        for causal in directions(layer):
            for mask in masks:
                y = layer(beside, Context(causal, query_mask_BN=mask)).y_BND
                for row in (1, 2):
                    own = None if mask is None else mask[row : row + 1]
                    alone = layer(x[row : row + 1], Context(causal, query_mask_BN=own)).y_BND
                    torch.testing.assert_close(y[row : row + 1], alone, **EXACT)


def test_a_row_with_nothing_to_attend_to_is_zero(padding_case, build, draw, directions) -> None:
    """One example is all padding; causal, padding also stands in front of another.

    No step of the backward pass may meet a NaN, not even one that is masked afterwards.
    """
    layer = build(padding_case)
    mask = torch.ones(3, LENGTH, dtype=torch.bool)
    mask[0] = False
    mask[1, :9] = False
    for causal in directions(layer):
        qkv = draw(3, LENGTH)
        out, _ = layer.attend(*qkv, Context(causal=causal, key_mask_BM=mask))
        assert not bool(out[0].any())
        if causal:
            assert not bool(out[1, :, :9].any())
        assert bool(out[2].any())
        with torch.autograd.set_detect_anomaly(True):
            gradients = torch.autograd.grad(
                out.square().sum(), qkv, allow_unused=True, materialize_grads=True
            )
        assert all(bool(x.isfinite().all()) for x in gradients)
        assert not any(bool(x[0].any()) for x in gradients)


def test_an_example_of_padding_alone_trains_nothing(padding_case, build, directions) -> None:
    """The whole layer: zero out, finite gradients, none for the example."""
    layer = build(padding_case)
    mask = torch.ones(2, LENGTH, dtype=torch.bool)
    mask[0] = False
    for causal in directions(layer):
        x = inputs(2).requires_grad_()
        y = layer(x, Context(causal, query_mask_BN=mask)).y_BND
        assert not bool(y[0].any())
        y.square().sum().backward()
        assert x.grad is not None and not bool(x.grad[0].any()) and bool(x.grad[1].any())
        assert all(bool(p.grad.isfinite().all()) for p in layer.parameters() if p.grad is not None)
