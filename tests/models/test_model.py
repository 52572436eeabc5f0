from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from attention_impls.contract import Attention, Position
from lra.models.model import Model
from lra.models.pooling import mean

Build = Callable[..., Model]
TOKENS = torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]], dtype=torch.uint8)


@pytest.mark.parametrize("pooling", ["cls", "mean", "first"])
def test_neither_what_padding_holds_nor_how_much_there_is_matters(
    build: Build, pooling: str
) -> None:
    model = build(pooling=pooling).double()
    bare, _ = model.encode(TOKENS, None)
    for extra, filler in ((1, 0), (2, 7), (2, 0)):
        tokens = torch.cat([TOKENS, torch.full((2, extra), filler, dtype=torch.uint8)], dim=1)
        mask = torch.arange(4 + extra).expand(2, -1) < 4
        assert torch.allclose(model.encode(tokens, mask)[0], bare, atol=1e-12)


def test_the_originals_mean_runs_over_padding(build: Build) -> None:
    model = build(rules="lra2021").double()
    tokens = torch.cat([TOKENS, torch.zeros(2, 2, dtype=torch.uint8)], dim=1)
    mask = tokens > 0
    pooled, _ = model.encode(tokens, mask)
    kept: list[torch.Tensor] = []
    model.body.norm.register_forward_hook(lambda module, given, out: kept.append(out))
    again, _ = model.encode(tokens, mask)
    assert torch.allclose(again, kept[0].mean(dim=1), atol=1e-12)
    assert torch.allclose(pooled, again)
    assert not torch.allclose(pooled, model.encode(TOKENS, None)[0], atol=1e-3)


def test_cls_and_first_read_position_0_after_the_last_norm(build: Build) -> None:
    for pooling, length in (("cls", 5), ("first", 4)):
        model, kept = build(pooling=pooling), []
        model.body.norm.register_forward_hook(
            lambda module, given, out, kept=kept: kept.append(out)
        )
        assert torch.equal(model.encode(TOKENS, None)[0], kept[0][:, 0])
        assert kept[0].shape == (2, length, 8)


def test_mean_of_nothing_is_zero() -> None:
    x = torch.full((1, 3, 2), torch.nan, requires_grad=True)
    pooled = mean(x, torch.zeros(1, 3, dtype=torch.bool))
    assert pooled.tolist() == [[0.0, 0.0]]
    pooled.sum().backward()
    assert torch.equal(x.grad, torch.zeros(1, 3, 2))


@pytest.mark.parametrize("causal", [True, False])
def test_direction_mask_and_positions_reach_the_mechanism(
    build: Build,
    mechanisms: dict[str, type[Attention]],
    positions: dict[str, type[Position]],
    causal: bool,
) -> None:
    class Open(mechanisms["mean"]):
        def _refuse(self, *args: object) -> None:
            pass

    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    for name in ("ramp", "inside"):
        model = build(mechanism=Open, position=positions[name], causal=causal)
        model(TOKENS, mask)
        for block in model.body.blocks:
            context = block.mechanism.context
            assert context.causal == causal
            assert torch.equal(context.query_mask_BN, mask)
            assert torch.equal(context.key_mask_BM, mask)
            # A scheme that only adds to the input is no business of the mechanism.
            found = context.position
            assert found is (model.embedding.position if name == "inside" else None)
