"""How a model is compiled for a training: for one length or many, and when by CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import nn

from lra.core.dataset import Split
from lra.training.ranks import Ranks
from lra.training.setup import GPU_MULTIPLE, Training
from lra.training.step import COMPILED_MOST, Step

CUDA = torch.device("cuda")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Options that torch was asked to compile by; it gives the model back."""
    options: list[dict[str, Any]] = []
    monkeypatch.setattr(torch, "compile", lambda m, **given: options.append(given) or m)
    with (
        torch._dynamo.config.patch(
            fail_on_recompile_limit_hit=False, specialize_float=False, recompile_limit=8
        ),
        torch._inductor.config.patch({"triton.cudagraph_dynamic_shape_warn_limit": 8}),
    ):
        yield options


def step(toy: ModuleType, device: torch.device, **changes: Any):
    ranks = changes.pop("ranks", Ranks())
    data = changes.pop("data", None) or toy.dataset()
    spec = msgspec.structs.replace(toy.SPEC, **{"execution": "compiled", **changes})
    return Step(nn.Linear(2, 2), Training(data, spec, seed=0), device=device, ranks=ranks)


def test_a_model_is_compiled_for_one_length_or_for_many(toy: ModuleType, asked) -> None:
    step(toy, toy.CPU)
    step(toy, toy.CPU, bucketed=False)
    # Rows that are of one length by themselves, as pictures are.
    even = Split.of([np.ones(9, dtype=np.uint8)] * 40, np.zeros(40, dtype=bool), 1)
    step(toy, toy.CPU, data=replace(toy.dataset(), train=even))
    wanted = [True, None, None]
    assert asked == [{"dynamic": dynamic, "mode": None} for dynamic in wanted]
    assert torch._dynamo.config.fail_on_recompile_limit_hit
    assert torch._dynamo.config.specialize_float
    assert torch._dynamo.config.recompile_limit == COMPILED_MOST
    step(toy, toy.CPU, execution="eager")
    assert len(asked) == 3


def test_a_gpu_takes_graphs_where_no_gradient_is_kept_from_call_to_call(
    toy: ModuleType, asked
) -> None:
    two: Any = SimpleNamespace(count=2, index=0)
    step(toy, CUDA, bucketed=False)
    assert torch._inductor.config.triton.cudagraph_dynamic_shape_warn_limit is None
    step(toy, CUDA, micro_batches=2)
    step(toy, CUDA, ranks=two)
    assert [one["mode"] for one in asked] == ["reduce-overhead", None, None]


def test_on_a_gpu_lengths_are_rounded(toy: ModuleType) -> None:
    # No batch of the toy's is longer than one multiple, so all are as long as its longest row.
    assert step(toy, toy.CPU, execution="eager").collate.multiple == 1
    collate = step(toy, CUDA, execution="eager").collate
    assert (collate.multiple, collate.padded(5)) == (GPU_MULTIPLE, toy.LENGTH)
    assert collate.over(toy.dataset().test).multiple == GPU_MULTIPLE
