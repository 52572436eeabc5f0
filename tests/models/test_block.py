from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context
from lra.core.forms import BlockForm, load_preset
from lra.models.block import Block, Mlp
from lra.models.model import Model

Build = Callable[..., Model]


def norm(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_a_block_is_two_pre_norm_branches(build: Build) -> None:
    block: Block = build().body.blocks[0].double()
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    mixed = block.mechanism(norm(x), Context()).y_BND
    assert mixed.abs().max() > 1e-3
    middle = x + mixed
    mlp = block.mlp
    hidden = gelu(norm(middle) @ mlp.widen.weight.T + mlp.widen.bias)
    expected = middle + hidden @ mlp.narrow.weight.T + mlp.narrow.bias
    assert torch.allclose(block(x, Context()), expected, atol=1e-12)


def test_norms_have_flaxs_epsilon(build: Build) -> None:
    model = build()
    epsilons = {m.eps for m in model.modules() if isinstance(m, torch.nn.LayerNorm)}
    assert epsilons == {1e-6}


def test_mlp_starts_as_in_flax() -> None:
    torch.manual_seed(0)
    mlp = Mlp(60, 120, 0.0)
    for linear in (mlp.widen, mlp.narrow):
        bound = math.sqrt(6 / 180)
        assert 0.98 * bound < linear.weight.abs().max() <= bound
        assert 0 < linear.bias.abs().max() < 1e-5


@pytest.mark.parametrize("branch", ["mechanism", "hidden", "output"])
def test_dropout_falls_on_both_branches_and_inside_the_mlp(build: Build, branch: str) -> None:
    block: Block = build(dropout=0.5).body.blocks[0]
    seen: list[Tensor] = []
    module = block.dropout if branch == "mechanism" else block.mlp.dropout
    module.register_forward_hook(lambda module, given, out: seen.append(out))
    block(torch.randn(40, 5, 8), Context())
    dropped = seen[1 if branch == "output" else 0]
    assert dropped.shape[-1] == (16 if branch == "hidden" else 8)
    assert 0.4 < (dropped == 0).float().mean() < 0.6


@pytest.mark.parametrize("hidden_dropout", [False, True])
def test_dropout_within_the_mlp_is_the_forms(hidden_dropout: bool) -> None:
    torch.manual_seed(0)
    mlp = Mlp(6, 500, 0.3, BlockForm(hidden_dropout=hidden_dropout)).train()
    x, read = torch.randn(2, 5, 6), []
    mlp.narrow.register_forward_pre_hook(lambda module, args: read.append(args[0]))
    y = mlp(x)
    whole = mlp.activation(mlp.widen(x))
    assert torch.equal(read[0], whole) != hidden_dropout
    assert (read[0] == 0).any() == hidden_dropout and (y == 0).any()


@pytest.mark.parametrize("preset", ["gpt", "gpt2", "gpt3"])
def test_gpts_drop_nothing_within_the_mlp(preset: str) -> None:
    assert not load_preset(preset).form.hidden_dropout
