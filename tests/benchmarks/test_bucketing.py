"""An epoch of real rows in batches cut to their longest row, and padded to the length.

Both train a model of their own at scale compact, of one kind and from one seed, on the same rows in
the same batches, step by step in turn, so that a machine that is disturbed disturbs both; a step is
what a training does, from rows to AdamW. A mechanism that needs the length is padded to it in both.
One thread. Without real data the generator's rows stand in.

`python tests/benchmarks/test_bucketing.py --task text --data imdb_train.parquet [--impl linear]
[--share 0.1]` prints how many times as fast an epoch is; `--share` takes batches spread evenly over
it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import torch

from attention_impls.contract import Layer, Position
from lra.core.catalogue import find
from lra.core.dataset import Dataset
from lra.core.loading import load
from lra.core.protocol import Rows
from lra.core.scales import load_scale
from lra.engine.machine.host import cache_folder
from lra.engine.plan.data import data_spec
from lra.engine.plan.describe import Describer
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.training.loop import Run
from lra.training.setup import Training
from tasks.sources.data_hash import prepared_name
from tasks.sources.opening import built, open_or_prepare


def prepared(task: str, source: str | None, rows: Rows | None = None) -> Dataset:
    """Open a task's data at scale compact, or make them."""
    scale, cache = load_scale("compact"), cache_folder()
    if rows is not None:
        own = {"rows": rows}
        scale = msgspec.structs.replace(
            scale,
            tasks=scale.tasks | {task: msgspec.structs.replace(scale.task(task), **own)},
        )
    target = find("task", task)
    spec = data_spec(target, scale, Describer(cache), source, None)
    folder = cache / prepared_name(target.file, spec)
    return open_or_prepare(built(task, spec), spec, source, folder)


def training(task: str, data: Dataset, mechanism: str, *, bucketed: bool) -> Run:
    """A training that has not begun."""
    scale = load_scale("compact")
    shape = scale.model_spec(task)
    layer = cast(type[Layer], load(find("mechanism", mechanism)))
    model = build_model(
        shape,
        layers=Layers.of(layer),
        position=cast(type[Position], load(find("position", shape.position))),
        vocabulary=data.vocabulary,
        classes=data.classes,
        inputs=data.inputs,
        length=data.length,
    )
    spec = msgspec.structs.replace(scale.train_spec(task), bucketed=bucketed)
    return Run(
        model,
        Training(data, spec, seed=0, pad_to_length=layer.card.capabilities.padding != "content"),
        device=torch.device("cpu"),
    )


def pair_seconds(data: Dataset, task: str, mechanism: str, share: float) -> np.ndarray:
    """Return seconds of each step of both, by wall and by processor, (steps, 2, 2)."""
    runs = [training(task, data, mechanism, bucketed=bucketed) for bucketed in (True, False)]
    batches = runs[0].step.order.batches
    spent: list[list[np.ndarray]] = []
    for step in np.linspace(0, batches - 1, max(2, round(share * batches))).astype(int):
        row = []
        for run in runs if len(spent) % 2 else runs[::-1]:
            started = np.array([perf_counter(), process_time()])
            run.step(int(step), run.state.loss_sum)
            row.append(np.array([perf_counter(), process_time()]) - started)
        spent.append(row if len(spent) % 2 else row[::-1])
    # The first two meet new shapes.
    return np.array(spent)[2:]


@pytest.mark.parametrize(("mechanism", "padded"), [("nystromformer", True), ("linear", False)])
def test_a_mechanism_that_needs_the_length_is_padded_to_it(mechanism: str, padded: bool) -> None:
    data = prepared("listops", None, Rows(train=2, validation=2, test=2))
    collate = training("listops", data, mechanism, bucketed=True).step.collate
    batch = collate(np.arange(1))
    assert (batch.tokens_SN.shape[1] == data.length) == padded


@pytest.mark.parametrize("bucketed", [True, False])
def test_steps(benchmark: Any, bucketed: bool) -> None:
    benchmark.group = "an epoch of ListOps, by the step"
    data = prepared("listops", None, Rows(train=640, validation=2, test=2))
    torch.set_num_threads(1)
    run = training("listops", data, "linear", bucketed=bucketed)
    steps = iter(range(10**6))
    benchmark.pedantic(
        lambda: run.step(next(steps), run.state.loss_sum), rounds=10, warmup_rounds=2
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", default="listops")
    parser.add_argument("--data")
    parser.add_argument("--impl", nargs="+", default=["sdpa", "linear", "performer"])
    parser.add_argument("--share", type=float, default=1.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    data = prepared(asked.task, None if asked.data is None else str(Path(asked.data).resolve()))
    for mechanism in asked.impl:
        spent = pair_seconds(data, asked.task, mechanism, asked.share)
        wall, processor = spent[..., 0].sum(axis=0), spent[..., 1].sum(axis=0)
        print(
            f"{asked.task}, {len(data.train)} rows, {mechanism}: {len(spent)} steps, bucketed "
            f"{wall[0]:.0f} s, padded {wall[1]:.0f} s: {wall[1] / wall[0]:.2f} times as fast by "
            f"wall clock, {processor[1] / processor[0]:.2f} by processor",
            flush=True,
        )
