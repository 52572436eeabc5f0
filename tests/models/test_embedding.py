from __future__ import annotations

from collections.abc import Callable

import torch

from lra.models.embedding import Embedding
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


def embedding(build: Build, **options: object) -> Embedding:
    return Embedding(
        60,
        8,
        position=build().embedding.position,
        class_token=False,
        dropout=0.0,
        rules="fixed",
        **options,
    )


def test_a_token_of_several_parts_has_the_sum_of_their_rows(build: Build) -> None:
    several = embedding(build, parts=(3, 4, 5))
    assert several.tokens.weight.shape == (3 + 4 + 5, 8)
    first, second, third = several.tokens.weight.split([3, 4, 5])
    tokens = torch.arange(60, dtype=torch.uint8).reshape(4, 15)
    x, _ = several(tokens, None)
    places = torch.arange(15.0)[:, None]
    for token, found in zip(range(60), (x - places).flatten(0, 1), strict=True):
        a, b, c = token % 3, token // 3 % 4, token // 12
        torch.testing.assert_close(found, first[a] + second[b] + third[c])


def test_tokens_of_one_part_are_embedded_as_ever(build: Build) -> None:
    plain = embedding(build)
    tokens = torch.arange(60).reshape(4, 15)
    places = torch.arange(15.0)[:, None]
    assert torch.equal(plain(tokens, None)[0], plain.tokens.weight[tokens] + places)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        one = embedding(build)
        torch.manual_seed(3)
        table = torch.nn.Embedding(60, 8)
    assert torch.equal(one.tokens.weight, table.weight)
