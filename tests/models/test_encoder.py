from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from attention_impls.contract import Attention, Position
from lra.models.classifier import Classifier
from lra.models.encoder import mean

Build = Callable[..., Classifier]
TOKENS = torch.tensor([[3, 1, 4, 1], [5, 9, 2, 6]], dtype=torch.uint8)


@pytest.mark.parametrize("pooling", ["cls", "mean", "first"])
def test_neither_what_padding_holds_nor_how_much_there_is_matters(
    build: Build, pooling: str
) -> None:
    encoder = build(pooling=pooling).double().encoder
    bare = encoder(TOKENS, None)
    for extra, filler in ((1, 0), (2, 7), (2, 0)):
        tokens = torch.cat([TOKENS, torch.full((2, extra), filler, dtype=torch.uint8)], dim=1)
        mask = torch.arange(4 + extra).expand(2, -1) < 4
        assert torch.allclose(encoder(tokens, mask), bare, atol=1e-12)


def test_the_originals_mean_runs_over_padding(build: Build) -> None:
    encoder = build(rules="lra2021").double().encoder
    tokens = torch.cat([TOKENS, torch.zeros(2, 2, dtype=torch.uint8)], dim=1)
    mask = tokens > 0
    pooled = encoder(tokens, mask)
    kept: list[torch.Tensor] = []
    encoder.norm.register_forward_hook(lambda module, given, out: kept.append(out))
    again = encoder(tokens, mask)
    assert torch.allclose(again, kept[0].mean(dim=1), atol=1e-12)
    assert torch.allclose(pooled, again)
    assert not torch.allclose(pooled, encoder(TOKENS, None), atol=1e-3)


def test_cls_and_first_read_position_0_after_the_last_norm(build: Build) -> None:
    for pooling, length in (("cls", 5), ("first", 4)):
        encoder = build(pooling=pooling).encoder
        kept: list[torch.Tensor] = []
        encoder.norm.register_forward_hook(lambda module, given, out, kept=kept: kept.append(out))
        assert torch.equal(encoder(TOKENS, None), kept[0][:, 0])
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
        for block in model.encoder.blocks:
            context = block.mechanism.context
            assert context.causal == causal
            assert torch.equal(context.query_mask_BN, mask)
            assert torch.equal(context.key_mask_BM, mask)
            # A scheme that only adds to the input is no business of the mechanism.
            found = context.position
            assert found is (model.encoder.embedding.position if name == "inside" else None)


def test_recomputing_runs_each_block_again_on_the_way_back(build: Build) -> None:
    encoder = build().encoder
    runs: list[int] = []
    for number, block in enumerate(encoder.blocks):
        block.mlp.register_forward_pre_hook(lambda module, given, n=number: runs.append(n))
    encoder.recompute = True
    encoder(TOKENS, None).sum().backward()
    there, back = list(range(len(encoder.blocks))), list(reversed(range(len(encoder.blocks))))
    assert runs == [*there, *back]
    runs.clear()
    with torch.no_grad():
        encoder(TOKENS, None)
    assert runs == there
