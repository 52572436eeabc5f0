from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from lra.models.head import build_head, feature_width, pair
from lra.models.model import Model

Build = Callable[..., Model]


def test_pair_features() -> None:
    x1, x2 = torch.tensor([[2.0, 3.0]]), torch.tensor([[5.0, 7.0]])
    assert pair(x1, x2, "two").tolist() == [[2, 3, 5, 7]]
    assert pair(x1, x2, "four").tolist() == [[2, 3, 5, 7, 10, 21, -3, -4]]
    assert [feature_width(2, 2, "two"), feature_width(2, 2, "four")] == [4, 8]
    assert feature_width(2, 1, "four") == 2


def test_a_matchers_towers_share_weights_and_pairs_are_interleaved(build: Build) -> None:
    model = build(inputs=2).double()
    tokens = torch.randint(0, 11, (6, 5))
    mask = torch.arange(5) < torch.tensor([5, 3, 4, 5, 1, 2])[:, None]
    towers = torch.stack([model.encode(tokens[i : i + 1], mask[i : i + 1])[0][0] for i in range(6)])
    expected = model.head(pair(towers[0::2], towers[1::2], "four"))
    assert torch.allclose(model(tokens, mask).logits_LC, expected, atol=1e-12)


def test_a_head_is_hidden_relu_layers_and_a_linear_one() -> None:
    head = build_head(6, (5, 4), 3)
    kinds = [type(part) for part in head]
    assert kinds == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert [(p.in_features, p.out_features) for p in head[::2]] == [(6, 5), (5, 4), (4, 3)]
    assert [type(part) for part in build_head(6, (), 3)] == [nn.Linear]


def test_a_head_starts_lecun_normal() -> None:
    torch.manual_seed(0)
    (linear,) = build_head(400, (), 300)
    assert abs(linear.weight.std().item() * 20 - 1) < 0.01
    # Cut at two standard deviations of the uncut normal.
    assert linear.weight.abs().max() <= 2 / 20 / 0.8796
    assert not linear.bias.any()
