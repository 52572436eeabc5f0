"""Kernel and low-rank attention against fused softmax attention: one training pass of the layer.

Forward and backward with the query, key, value and output projections; float32, batch 1, width 256,
4 heads of 64, length 4096, 2 threads. `pytest tests/benchmarks --benchmark-only` times each;
`python tests/benchmarks/test_kernel_attention.py [rounds]` prints ratios to fused attention from
interleaved rounds, each round in another order. A round whose floor (no mixing) takes more than
1.3 times its lower quartile is disturbed: it is left out and counted.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from statistics import quantiles
from time import perf_counter
from typing import Any, cast

import pytest
import torch

from attention_impls.contract import Context, Dims, Layer
from lra.core.catalogue import find, load

LENGTH, WIDTH, HEADS, THREADS = 4096, 256, 4, 2

LAYERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "fused": ("sdpa", {}, False),
    "floor": ("identity", {}, False),
    "linear": ("linear", {}, False),
    "linear, causal": ("linear", {}, True),
    "performer, softmax": ("performer", {}, False),
    "performer, relu": ("performer", {"kernel": "relu"}, False),
    "performer, softmax, causal": ("performer", {}, True),
    "linformer": ("linformer", {}, False),
    "linformer, key-value": ("linformer", {"sharing": "key-value"}, False),
}
"""Name to mechanism, configuration and whether it is causal; 256 features, rank 256."""


def training_pass(name: str, length: int = LENGTH) -> Callable[[], None]:
    """Return a function that runs one forward and backward pass of the layer."""
    mechanism_name, config, causal = LAYERS[name]
    mechanism = cast(type[Layer], load(find("mechanism", mechanism_name)))
    torch.manual_seed(0)
    layer = mechanism(Dims(WIDTH, WIDTH, HEADS, max_length=length), mechanism.Config(**config))
    x = torch.randn(1, length, WIDTH, requires_grad=True)
    upstream, context = torch.randn(1, length, WIDTH), Context(causal=causal)

    def step() -> None:
        layer(x, context).y_BND.backward(upstream)
        x.grad = None
        layer.zero_grad(set_to_none=True)

    return step


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(threads)


@pytest.mark.benchmark(group="attention layer, forward and backward, 4096")
@pytest.mark.parametrize("name", LAYERS)
def test_training_pass(name: str, benchmark: Any, two_threads: None) -> None:
    benchmark.pedantic(training_pass(name), rounds=10, warmup_rounds=2)


def interleaved(rounds: int, length: int) -> dict[str, list[float]]:
    """Return the seconds of each layer in each round."""
    passes = {name: training_pass(name, length) for name in LAYERS}
    for step in passes.values():
        step()
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(passes), len(passes)):
            start = perf_counter()
            passes[name]()
            seconds[name].append(perf_counter() - start)
    return seconds


def main(rounds: int = 20, length: int = LENGTH) -> None:
    """Print each layer's ratio to fused attention: median and quartiles over undisturbed rounds."""
    torch.set_num_threads(THREADS)
    seconds = interleaved(rounds, length)
    quiet = quantiles(seconds["floor"], n=4)[0]
    kept = [i for i, floor in enumerate(seconds["floor"]) if floor <= 1.3 * quiet]
    print(f"{len(kept)} of {rounds} rounds kept; length {length}, {THREADS} threads")
    for name, values in seconds.items():
        first, median, third = quantiles([values[i] / seconds["fused"][i] for i in kept], n=4)
        milliseconds = 1e3 * quantiles([values[i] for i in kept], n=4)[1]
        print(f"{name:28s} {milliseconds:8.1f} ms  {median:.3f} [{first:.3f}, {third:.3f}]")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
