"""Every mechanism here is stacked and ends where it ends alone, or is refused."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
import torch

from attention_impls.contract import Layer, Position
from lra.core import catalogue
from lra.core.dataset import Dataset, Split
from lra.core.protocol import ModelSpec, TrainSpec
from lra.models.build import build_model
from lra.training.loop import Run, train
from lra.training.stacked import train_stacked, why_not_stacked

LENGTH, SEEDS = 96, (0, 1)
SPEC = TrainSpec(steps=4, batch=4, learning_rate=1e-2, evaluate_every=4, evaluation_batch=4)
STACKED = (
    "block_local", "full", "grouped_query", "identity", "linformer", "longformer", "multi_query",
    "nystromformer", "reformer", "s4d", "sdpa", "sliding_window", "sparse_fixed", "sparse_strided",
    "synthesizer",
)  # fmt: skip
"""At the least; synthesizer without padding."""

pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


def rows(count: int, seed: int, *, padded: bool) -> Split:
    draws = np.random.default_rng(seed)
    lengths = draws.integers(LENGTH // 2, LENGTH + 1, size=count) if padded else [LENGTH] * count
    sequences = [draws.integers(1, 8, size=n).astype(np.uint8) for n in lengths]
    return Split.of(sequences, draws.integers(0, 2, size=count), 1)


def a_run(name: str, seed: int, *, padded: bool, **settings: int) -> Run:
    mechanism = cast(type[Layer], catalogue.load(catalogue.find("mechanism", name)))
    data = Dataset(*(rows(n, n, padded=padded) for n in (16, 8, 8)), 2, 8, LENGTH)
    model = build_model(
        ModelSpec(layers=2, width=16, qkv_width=16, heads=2, mlp_width=16),
        mechanism=mechanism,
        config=mechanism.Config(**settings),
        position=cast(type[Position], catalogue.load(catalogue.find("position", "sinusoidal"))),
        vocabulary=8,
        classes=2,
        length=LENGTH,
        seed=seed,
    ).double()
    by_length = mechanism.card.capabilities.padding != "content"
    return Run(model, data, SPEC, seed=seed, device=torch.device("cpu"), pad_to_length=by_length)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", catalogue.names("mechanism"))
def test_stacked_or_refused(name: str, padded: bool) -> None:
    runs = [a_run(name, seed, padded=padded) for seed in SEEDS]
    why_not = why_not_stacked(runs)
    refuses = name not in STACKED or (name == "synthesizer" and padded)
    assert not why_not or refuses, why_not
    if why_not:
        return
    train_stacked(runs)
    for seed, run in zip(SEEDS, runs, strict=True):
        alone = a_run(name, seed, padded=padded)
        train(alone)
        state = alone.model.state_dict()
        for part, value in run.model.state_dict().items():
            torch.testing.assert_close(value, state[part], rtol=0, atol=1e-6, msg=part)


def test_a_graph_that_each_seed_draws_is_noticed() -> None:
    """BigBird keeps what it is drawn from beside its parameters and buffers."""
    runs = [a_run("bigbird", seed, padded=False, block=4, random=2) for seed in SEEDS]
    assert why_not_stacked(runs).startswith("its answers differ from those apart, by ")
