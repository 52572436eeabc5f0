"""A training step of ours against one of the Nystromformer suite, the most used port of the arena.

Its code (Xiong et al., AAAI 2021, arXiv:2102.03902; github.com/mlpen/Nystromformer) is not part of
this project: say where its folder LRA/code lies in the variable NYSTROMFORMER. Both train two
layers of width 64 with two heads on four rows of random tokens, 2,000 or 4,000 of them; theirs are
padded to the next power of two, as that suite does. A step is batch, forward pass, backward pass
and AdamW; theirs reads its loss, as it always does. Float32, two threads, interleaved rounds in one
process, each in another order; peak memory is that of fresh processes. Nothing is asserted: timings
are read.

`python tests/benchmarks/test_against_nystromformer.py [--rounds 20] [--rows ...] [--lengths ...]`,
or `pytest tests/benchmarks/test_against_nystromformer.py -m peers --benchmark-only`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import torch
from paired import Interval, Pass, peak_mib
from torch import nn

from attention_impls.contract import Layer, Position
from lra.core.catalogue import find
from lra.core.dataset import Dataset, Split
from lra.core.loading import load
from lra.core.scales import load_scale
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.training.setup import Training
from lra.training.step import Step

BATCH, VOCABULARY, CLASSES, THREADS, ROUNDS, WARM_LENGTH = 4, 31, 10, 2, 20, 512
CPU = torch.device("cpu")

ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "softmax": ("sdpa", {}, {"attention_grad_checkpointing": True}),
    "linformer-256": ("linformer", {"rank": 256}, {"linformer_k": 256}),
    "performer-256": ("performer", {"features": 256}, {"rp_dim": 256, "kernel_type": "relu"}),
    "nystrom-64": (
        "nystromformer",
        {"landmarks": 64},
        {"num_landmarks": 64, "conv_kernel_size": 35},
    ),
    "reformer-2": ("reformer", {"rounds": 2}, {"num_hash": 2}),
    "linear": ("linear", {}, {}),
    "none": ("identity", {}, {}),
}
"""Theirs to ours: the name here, its settings, and those of theirs. Their Performer with a ReLU
kernel asks its library for the softmax kernel, as ours is here."""
LENGTHS = (2000, 4000)

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif("NYSTROMFORMER" not in os.environ, reason="NYSTROMFORMER names no folder"),
    pytest.mark.filterwarnings("ignore"),
]


def padded(length: int) -> int:
    """The next power of two."""
    return 1 << (length - 1).bit_length()


def tokens(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(1, VOCABULARY, size=(BATCH, length))


def ours(row: str, length: int) -> Pass:
    """A step of ours, on a new batch each time, the same rows."""
    name, settings, _ = ROWS[row]
    mechanism = cast(type[Layer], load(find("mechanism", name)))
    scale = load_scale("compact")
    # Theirs drops weights of exact attention alone.
    rate = 0.1 if row == "softmax" else 0.0
    shape = msgspec.structs.replace(scale.model_spec("listops"), attention_dropout=rate)
    model = build_model(
        shape,
        layers=Layers.of(mechanism, mechanism.Config(**settings)),
        position=cast(type[Position], load(find("position", shape.position))),
        vocabulary=VOCABULARY,
        classes=CLASSES,
        length=length,
    )
    rows = tokens(length).astype(np.uint8)
    split = Split(rows.ravel(), np.arange(BATCH + 1) * length, np.arange(BATCH) % CLASSES)
    spec = scale.train_spec("listops")
    data = Dataset(
        split, split, split, classes=CLASSES, vocabulary=VOCABULARY, length=length, inputs=1
    )
    step = Step(model.train(), Training(data, spec, seed=0), device=CPU)
    step.join()
    loss_sum = torch.zeros((), dtype=torch.float64)
    return lambda: step(100, loss_sum)


def theirs(row: str, length: int) -> Pass:
    """A step of theirs, as `run_tasks.py` makes it."""
    wrapper = their_code()
    long = padded(length)
    config = {
        "tied_weights": False, "embedding_dim": 64, "transformer_dim": 64,
        "transformer_hidden_dim": 128, "head_dim": 32, "num_head": 2, "num_layers": 2,
        "vocab_size": VOCABULARY + 1, "max_seq_len": long, "seq_len": long, "dropout_prob": 0.1,
        "attention_dropout": 0.1, "pooling_mode": "MEAN", "num_classes": CLASSES,
        "mixed_precision": False, "attn_type": row, "attention_grad_checkpointing": False,
        **ROWS[row][2],
    }  # fmt: skip
    if row.startswith("linformer"):
        # Its projection is shared by all models of a process, whatever their length.
        import_module("attention_linformer").LinformerAttention.projection_matrix = None
    model: nn.Module = wrapper.ModelForSC(config).train()
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=1e-4, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=1e-4, pct_start=0.2, anneal_strategy="linear", total_steps=5000
    )
    ids = torch.zeros(BATCH, long, dtype=torch.long)
    ids[:, :length] = torch.from_numpy(tokens(length))
    mask = (ids != 0).float()
    labels = torch.arange(BATCH) % CLASSES

    def step() -> None:
        optimiser.zero_grad()
        loss = model(ids, mask, labels)["loss"].mean()
        loss.backward()
        optimiser.step()
        schedule.step()
        loss.item()

    return step


def their_code() -> Any:
    """Import their models; a module of a library has moved since, and a default of torch's."""
    folder = os.environ["NYSTROMFORMER"]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    reformer = import_module("transformers.models.reformer.modeling_reformer")
    settings = import_module("transformers.models.reformer.configuration_reformer")
    reformer.ReformerConfig = settings.ReformerConfig  # type: ignore[attr-defined]
    sys.modules.setdefault("transformers.modeling_reformer", reformer)
    checkpoint = partial(torch.utils.checkpoint.checkpoint, use_reentrant=False)
    import_module("attention").checkpoint = checkpoint  # type: ignore[attr-defined]
    return import_module("model_wrapper")


def memory_of(side: Callable[[str, int], Pass], row: str, length: int, small: bool) -> Pass:
    warnings.simplefilter("ignore")
    return side(row, WARM_LENGTH if small else length)


def compare(row: str, length: int, rounds: int) -> str:
    """Return a line: steps a second of both, their ratio by rounds, and both peaks."""
    passes = {"ours": ours(row, length), "theirs": theirs(row, length)}
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    order = random.Random(0)
    for step in passes.values():
        step()
    for _ in range(rounds):
        for name in order.sample(list(passes), len(passes)):
            started = perf_counter()
            passes[name]()
            seconds[name].append(perf_counter() - started)
    both = {name: np.array(values) for name, values in seconds.items()}
    faster = Interval.of(both["theirs"] / both["ours"])
    rate = {name: 1.0 / float(np.median(values)) for name, values in both.items()}
    sides = {"ours": ours, "theirs": theirs}
    peak = {
        name: peak_mib(partial(memory_of, side, row, length), THREADS)
        for name, side in sides.items()
    }
    return (
        f"{row:14s} {length}: ours {rate['ours']:6.2f}, theirs {rate['theirs']:6.2f} steps/s; "
        f"times as fast {faster}, {rounds} rounds; "
        f"MiB {peak['ours']:.0f} / {peak['theirs']:.0f}"
    )


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("side", [ours, theirs])
def test_a_step(benchmark: Any, side: Callable[[str, int], Pass], row: str, length: int) -> None:
    torch.set_num_threads(THREADS)
    benchmark.group = f"{row} {length}"
    benchmark.pedantic(side(row, length), rounds=5, warmup_rounds=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--rows", nargs="+", default=list(ROWS))
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS))
    asked = parser.parse_args()
    torch.set_num_threads(THREADS)
    warnings.simplefilter("ignore")
    for length in asked.lengths:
        for row in asked.rows:
            print(compare(row, length, asked.rounds), flush=True)
