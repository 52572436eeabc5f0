"""Dropout of every mechanism, whatever way it computes: each weight falls, and keeps its mean."""

from __future__ import annotations

import sys

import pytest
import torch

from attention_impls.contract import Attention, Context, Layer

NONE_FALLS = {
    "nystromformer": "three softmaxes and a pseudo-inverse; the authors' code drops none of them",
    "performer": "products of features, of which no weight is formed",
}
"""Without dropout though near softmax attention by their cards, each with why."""
OF_ITS_OWN_LOGITS = ("synthesizer",)
"""Whose weights fall too: they are a softmax, though of no queries and keys."""
ARENA_HAD_NONE = ("bigbird", "reformer")
"""Whose weights do not fall in parity."""
N, DRAWS, DROPOUT = 12, 150, 0.5
WAYS = {
    "as it is": {},
    "tiles": {"TILE": 100, "LONG": 100, "DENSE_ADVANTAGE": 0, "TILE_COST": 0},
    "written": {"DENSE_ADVANTAGE": 0, "TILE_COST": 2**14},
}


@torch.no_grad()
def test_every_weight_falls_and_keeps_its_mean(
    any_case, build, directions, small_blocks, monkeypatch
) -> None:
    name, config = any_case
    layer = build(any_case, qkv_width=2 * N, dropout=DROPOUT)
    x = torch.randn(1, N, 12, dtype=torch.float64)
    for causal in directions(layer):
        wanted = layer.eval()(x, Context(causal)).y_BND
        found = layer.train()(x, Context(causal)).y_BND
        if torch.equal(found, wanted):
            arena = name in ARENA_HAD_NONE and config.get("parity") == "lra2021"
            assert arena or not has_to_drop(name, layer), (
                f"{name}: attention dropout changes nothing. Drop weights by `dims.dropout` in "
                "training, as attention_impls/dense/full.py does; or, if it has none that could "
                "fall, add it to NONE_FALLS of tests/attention_impls/test_dropout.py, with why, "
                "or, if only the arena's form has none, to ARENA_HAD_NONE there"
            )
            continue
        if not isinstance(layer, Attention):
            pytest.skip("a layer without queries and keys has no weights to look at")
        assert name not in NONE_FALLS, f"{name} has dropout: take it out of NONE_FALLS"
        calls = DRAWS if shares_weights(layer, causal) else 1
        for constants in WAYS.values():
            with monkeypatch.context() as patch:
                set_everywhere(patch, constants)
                check(layer, x, causal, calls)


def has_to_drop(name: str, layer: Layer) -> bool:
    """Whether its card says that it is, or comes near, softmax attention, whose weights fall."""
    claimed = layer.card.softmax != "never" or name in OF_ITS_OWN_LOGITS
    return claimed and name not in NONE_FALLS


def shares_weights(layer: Attention, causal: bool) -> bool:
    """Whether all examples have the same weights, of which then the same pairs may fall."""
    one, other = weights(layer.eval(), torch.randn(2, N, 12, dtype=torch.float64), causal)
    return torch.equal(one, other)


def set_everywhere(patch: pytest.MonkeyPatch, constants: dict[str, int]) -> None:
    for name, module in list(sys.modules.items()):
        for constant in constants:
            if name.startswith("attention_impls.") and hasattr(module, constant):
                patch.setattr(module, constant, constants[constant])


def check(layer: Attention, x_1ND: torch.Tensor, causal: bool, calls: int) -> None:
    """Each example of a batch is a draw."""
    wanted_HNN = weights(layer.eval(), x_1ND, causal)[0]
    batch_BND = x_1ND.expand(DRAWS // calls, -1, -1)
    torch.manual_seed(0)
    draws = torch.cat([weights(layer.train(), batch_BND, causal) for _ in range(calls)])
    deviation_HNN = draws.std(0)
    assert bool((deviation_HNN[wanted_HNN != 0.0] > 0.0).all())
    error_HNN = (draws.mean(0) - wanted_HNN).abs()
    assert bool((error_HNN <= 5 * deviation_HNN / DRAWS**0.5).all())


def weights(layer: Attention, x_BND: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return what each query takes of each key, (B, H, N, N): the values are unit vectors."""
    training, context = layer.training, Context(causal)
    # The Sinkhorn Transformer's noise is drawn here.
    q, k, v, extra = layer.eval().project(x_BND, context, None, None)
    unit = torch.eye(N, dtype=v.dtype).expand(*v.shape[:2], N, N)
    return layer.train(training).attend(q, k, unit, context, **extra)[0]
