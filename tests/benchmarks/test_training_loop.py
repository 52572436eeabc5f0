"""The training loop against a bare PyTorch loop on the same batches.

The model is mini's (2 layers, width 64, 4 heads, MLP 128) on 64 x 32 tokens. The bare loop has its
batches ready as tensors and neither schedule, curve, validation nor checkpoints; model, optimiser
and clipping are the same. Ours is timed from call to return, with a validation and a test of a row
or two. `python tests/benchmarks/test_training_loop.py` prints the paired ratio of the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from time import perf_counter, process_time
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

from attention_impls.contract import Layer, Position
from lra.core.catalogue import find
from lra.core.dataset import Dataset, Split
from lra.core.loading import load
from lra.core.protocol import ModelSpec, TrainSpec
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.model import Model
from lra.training.batches import Batch, Collator, Order
from lra.training.loop import Run, train
from lra.training.setup import Training

STEPS, BATCH, LENGTH, VOCABULARY, CLASSES = 100, 64, 32, 17, 10
CPU, THREADS = torch.device("cpu"), 1
SPEC = TrainSpec(steps=STEPS, batch=BATCH, learning_rate=2e-3, warmup=10, weight_decay=0.01,
                 clip=1.0, evaluate_every=STEPS)  # fmt: skip


def rows(count: int) -> Split:
    draws = np.random.default_rng(count)
    tokens = draws.integers(1, VOCABULARY, size=count * LENGTH).astype(np.uint8)
    return Split(tokens, np.arange(count + 1) * LENGTH, draws.integers(0, CLASSES, size=count))


DATA = Dataset(rows(STEPS * BATCH), rows(1), rows(2), CLASSES, VOCABULARY, LENGTH)


def model() -> Model:
    return build_model(
        ModelSpec(layers=2, width=64, qkv_width=64, heads=4, mlp_width=128),
        layers=Layers.of(cast(type[Layer], load(find("mechanism", "full")))),
        position=cast(type[Position], load(find("position", "sinusoidal"))),
        vocabulary=VOCABULARY,
        classes=CLASSES,
        length=LENGTH,
    )


def ready_batches() -> list[Batch]:
    """The batches that our loop makes for itself."""
    order = Order(DATA.train, BATCH, seed=0, by_length=True)
    collate = Collator(DATA.train, length=None, rules="fixed")
    return [collate(order.rows(step)) for step in range(STEPS)]


def bare_loop(network: nn.Module, batches: list[Batch]) -> Iterator[None]:
    """Train; pause after each step."""
    optimiser = torch.optim.AdamW(
        network.parameters(), lr=SPEC.learning_rate, betas=SPEC.betas,
        weight_decay=SPEC.weight_decay, fused=True,
    )  # fmt: skip
    network.train()
    for batch in batches:
        optimiser.zero_grad()
        logits_EC = network(batch.tokens_SN, batch.mask_SN).logits_LC
        loss = F.cross_entropy(logits_EC, batch.labels_L)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        yield


@pytest.mark.usefixtures("threads")
@pytest.mark.benchmark(group="training-loop")
def test_our_loop(benchmark: Any) -> None:
    def ours(network: nn.Module) -> None:
        train(Run(network, Training(DATA, SPEC, seed=0), device=CPU))

    benchmark.pedantic(ours, setup=lambda: ((model(),), {}), rounds=10, warmup_rounds=1)


@pytest.mark.usefixtures("threads")
@pytest.mark.benchmark(group="training-loop")
def test_bare_loop(benchmark: Any) -> None:
    def bare(network: nn.Module) -> None:
        deque(bare_loop(network, batches), maxlen=0)

    batches = ready_batches()
    benchmark.pedantic(bare, setup=lambda: ((model(),), {}), rounds=10, warmup_rounds=1)


def clocks() -> np.ndarray:
    """Wall seconds, and processor seconds of this process."""
    return np.array([perf_counter(), process_time()])


def pair_seconds(batches: list[Batch]) -> tuple[np.ndarray, np.ndarray]:
    """Time both loops, step by step in turn: a machine that is disturbed disturbs both.

    Our loop asks `stop` before each step, and there the bare one takes its step.
    """
    bare, bare_seconds = bare_loop(model(), batches), np.zeros(2)

    def bare_step() -> bool:
        nonlocal bare_seconds
        started = clocks()
        next(bare, None)
        bare_seconds += clocks() - started
        return False

    network = model()
    started = clocks()
    train(Run(network, Training(DATA, SPEC, seed=0), device=CPU, stop=bare_step))
    return clocks() - started - bare_seconds, bare_seconds


def paired_ratios(pairs: int = 20) -> np.ndarray:
    """Return ours / bare by both clocks, (2, 3): the geometric mean and its 95 % interval (t)."""
    batches = ready_batches()
    pair_seconds(batches)
    logs = []
    for _ in range(pairs):
        ours, bare = pair_seconds(batches)
        logs.append(np.log(ours / bare))
    half = stats.t.ppf(0.975, pairs - 1) * stats.sem(logs)
    centre = np.mean(logs, axis=0)
    ratios: np.ndarray = np.exp(np.stack([centre, centre - half, centre + half], axis=1))
    return ratios


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    for name, (middle, low, high) in zip(("wall", "processor"), paired_ratios(), strict=True):
        print(
            f"ours / bare, {name} time, 20 interleaved pairs of {STEPS} steps: "
            f"{middle:.4f} [{low:.4f}, {high:.4f}]"
        )
