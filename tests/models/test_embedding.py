from __future__ import annotations

from collections.abc import Callable

import torch

from lra.models.model import Model

Build = Callable[..., Model]


def test_tokens_positions_and_class_token_add_up(build: Build) -> None:
    embedding = build(pooling="cls").embedding
    tokens = torch.tensor([[4, 2, 2]])
    x, mask = embedding(tokens, None)
    table = embedding.tokens.weight
    ramp = torch.arange(4.0)[:, None]
    # The class token starts at zero and stands at position 0.
    expected = torch.stack([torch.zeros(8), table[4], table[2], table[2]]) + ramp
    assert torch.allclose(x[0], expected)
    assert mask is None
    bare = build(pooling="first").embedding
    x, _ = bare(tokens, None)
    assert torch.allclose(x[0], bare.tokens.weight[[4, 2, 2]] + ramp[:3])


def test_rows_are_standard_normal_and_unscaled(build: Build) -> None:
    weight = build(vocabulary=4000).embedding.tokens.weight
    assert abs(weight.mean().item()) < 0.02
    assert abs(weight.std().item() - 1) < 0.02


def test_the_class_token_is_real_or_inherits(build: Build) -> None:
    mask = torch.tensor([[True, False], [False, True]])
    tokens = torch.ones(2, 2, dtype=torch.uint8)
    fixed, original = (
        build(pooling="cls", rules=rules).embedding(tokens, mask)[1]
        for rules in ("fixed", "lra2021")
    )
    assert fixed.tolist() == [[True, True, False], [True, False, True]]
    assert original.tolist() == [[True, True, False], [False, False, True]]


def test_dropout_falls_on_the_embedded_input(build: Build) -> None:
    embedding = build(dropout=0.5).embedding
    x, _ = embedding(torch.ones(50, 6, dtype=torch.uint8), None)
    assert 0.4 < (x == 0).float().mean() < 0.6
    x, _ = embedding.eval()(torch.ones(50, 6, dtype=torch.uint8), None)
    assert (x != 0).all()
