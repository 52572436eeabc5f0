"""A training step and a greedy generation by our decoder against transformers' GPT-2, whose weights
are the same.

Four layers of width 256 with four heads; float32, no dropout, 2 threads. A step is forward pass,
cross-entropy and backward pass over 1,024 bytes, without an optimiser; a generation writes 512
bytes after a prompt of 16, with caches. Equal losses and equal bytes hold that both compute the
same: theirs has its activation as one kernel (`gelu_pytorch_tanh`) and its attention fused, as ours
has. Nothing is asserted of times: they are read. Needs the extra `peers`.

`pytest tests/benchmarks/test_against_gpt2.py -m peers --benchmark-only`, or
`python tests/benchmarks/test_against_gpt2.py step [--rounds 30] [--batch 1]` for interleaved pairs,
and `generation` likewise.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Attention, Position
from lra.core.catalogue import find
from lra.core.forms import Size, load_preset
from lra.core.loading import load
from lra.models.block import NORM_EPSILON, Block
from lra.models.language import build_decoder, named_layers
from lra.models.model import Model
from lra.training.generate import greedy

THREADS, ROUNDS = 2, 30
PROMPT, NEW = 16, 512
"""Tokens that a generation goes on from, and those it writes."""
SIZE = Size(
    layers=4, width=256, qkv_width=256, heads=4, mlp_width=1024, vocabulary=256, length=1024
)
Work = Callable[[], list[float]]
"""Something both sides do; returns values that show that they do the same."""

pytestmark = [pytest.mark.peers, pytest.mark.usefixtures("threads")]


def decoder() -> Model:
    preset = load_preset("gpt2")
    return build_decoder(
        SIZE,
        preset.form,
        layers=named_layers(preset.decoder.mechanisms),
        position=cast(type[Position], load(find("position", preset.decoder.position))),
    )


def gpt2(ours: Model) -> nn.Module:
    """Return theirs with the weights of ours."""
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=SIZE.vocabulary, n_positions=SIZE.length, n_embd=SIZE.width,
        n_layer=SIZE.layers, n_head=SIZE.heads, activation_function="gelu_pytorch_tanh",
        layer_norm_epsilon=NORM_EPSILON, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        use_cache=False, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model: nn.Module = transformers.GPT2LMHeadModel(config)
    body = cast(Any, model).transformer
    with torch.no_grad():
        body.wte.weight.copy_(ours.embedding.tokens.weight)
        body.wpe.weight.copy_(cast(Any, ours.embedding.position).table)
        for layer, block in zip(body.h, cast(Any, ours.body).blocks, strict=True):
            copy_block(block, layer)
        copy_linear([cast(Any, ours.body).norm], body.ln_f)
    return model


def copy_block(block: Block, layer: Any) -> None:
    mechanism = cast(Attention, block.mechanism)
    copy_linear([block.mechanism_norm], layer.ln_1)
    copy_linear([mechanism.query, mechanism.key, mechanism.value], layer.attn.c_attn)
    copy_linear([mechanism.output], layer.attn.c_proj)
    copy_linear([block.mlp_norm], layer.ln_2)
    copy_linear([block.mlp.widen], layer.mlp.c_fc)
    copy_linear([block.mlp.narrow], layer.mlp.c_proj)


def copy_linear(ours: list[Any], theirs: Any) -> None:
    """Copy weights and biases, of several side by side; their matrices are ours transposed."""
    theirs.weight.copy_(torch.cat([one.weight for one in ours]).t())
    theirs.bias.copy_(torch.cat([one.bias for one in ours]))


def steps(batch: int) -> dict[str, Work]:
    """Return a training step of each, which returns its loss, in nat."""
    tokens_BN, ours, theirs = models(batch)
    given_BN, asked_BN = tokens_BN[:, :-1].contiguous(), tokens_BN[:, 1:].contiguous()

    def step(model: nn.Module, logits: Callable[[], Tensor]) -> Work:
        model.train()

        def run() -> list[float]:
            model.zero_grad()
            loss = F.cross_entropy(logits().flatten(0, 1), asked_BN.flatten())
            torch.autograd.backward(loss)
            return [loss.item()]

        return run

    return {
        "ours": step(ours, lambda: ours(given_BN).logits_LC),
        "theirs": step(theirs, lambda: cast(Tensor, theirs(given_BN).logits)),
    }


def generations(batch: int) -> dict[str, Work]:
    """Return a generation of each, which returns its tokens."""
    tokens_BN, ours, theirs = models(batch)
    prompt_BN = tokens_BN[:, :PROMPT].contiguous()
    given = {"attention_mask": torch.ones_like(prompt_BN), "do_sample": False, "use_cache": True}
    theirs.eval()

    def write() -> list[float]:
        return greedy(ours, prompt_BN, end=None, limit=NEW).tokens_BN.flatten().tolist()

    def write_theirs() -> list[float]:
        all_BN = cast(Any, theirs).generate(prompt_BN, max_new_tokens=NEW, **given)
        return cast(Tensor, all_BN)[:, PROMPT:].flatten().tolist()

    return {"ours": write, "theirs": write_theirs}


def models(batch: int) -> tuple[Tensor, Model, nn.Module]:
    """Return random tokens, our decoder, and theirs with its weights."""
    torch.manual_seed(0)
    tokens_BN = torch.randint(SIZE.vocabulary, (batch, SIZE.length + 1))
    ours = decoder()
    return tokens_BN, ours, gpt2(ours)


WORKS: dict[str, Callable[[int], dict[str, Work]]] = {"step": steps, "generation": generations}


@pytest.mark.benchmark(group="decoder of 4 layers, against GPT-2")
@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("work", WORKS)
def test_against_gpt2(benchmark: Any, work: str, side: str) -> None:
    both = WORKS[work](1)
    assert both["ours"]() == pytest.approx(both["theirs"](), abs=1e-5)
    benchmark.pedantic(both[side], rounds=10, warmup_rounds=2)


def compare(work: str, batch: int, rounds: int) -> str:
    """Return a line: milliseconds of both, and the quartiles of their ratio by pairs."""
    both, order = WORKS[work](batch), random.Random(0)
    seconds: dict[str, list[float]] = {side: [] for side in both}
    for run in both.values():
        run()
    for _ in range(rounds):
        for side in order.sample(list(both), 2):
            started = perf_counter()
            both[side]()
            seconds[side].append(perf_counter() - started)
    ours, theirs = (np.array(seconds[side]) for side in ("ours", "theirs"))
    low, middle, high = np.quantile(ours / theirs, (0.25, 0.5, 0.75))
    return (
        f"{work}, batch {batch}: ours {1e3 * np.median(ours):.1f} ms, GPT-2 "
        f"{1e3 * np.median(theirs):.1f} ms; ours / GPT-2 {middle:.3f}, quartiles {low:.3f} to "
        f"{high:.3f}, {rounds} pairs"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--batch", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    print(compare(asked.work, asked.batch, asked.rounds))
