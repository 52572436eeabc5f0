"""A whole model's call: a forward pass, or a training step with its optimiser.

B examples, N tokens
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from attention_impls.contract import Layer, MechanismConfig, Position
from lra.core.cards import TaskCard
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.measure.compiled import as_executed
from lra.models.build import build_model
from lra.models.layers import Layers
from lra.models.output import Output


def build(
    cell: EfficiencyCell,
    mechanism: type[Layer],
    config: MechanismConfig,
    position: type[Position],
    task: TaskCard,
) -> nn.Module:
    """Return the model of a cell's task around a mechanism, on the CPU, in the cell's dtype."""
    assert cell.model is not None, "the planner gives a model to every cell of this level"
    if cell.mode == "decode":
        raise UnsupportedError("decoding is measured at level layer; leave the other levels out")
    if task.asks in ("sequence", "query"):
        raise UnsupportedError(
            "whole models are timed on tasks without a source; choose another task, or level layer"
        )
    model = build_model(
        cell.model,
        layers=Layers.of(mechanism, config),
        position=position,
        vocabulary=task.vocabulary,
        classes=task.classes,
        inputs=task.inputs,
        length=cell.length,
        picture_width=task.picture_width(cell.length),
    )
    return model.to(getattr(torch, cell.dtype)).train(cell.mode == "train")


def prepare_step(
    cell: EfficiencyCell, model: nn.Module, task: TaskCard, device: torch.device
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a forward pass, or a training step (loss, gradients and AdamW), and the function to
    run between two of them.

    Tokens are random, all real and of the cell's length, since training pads shorter sequences to
    it.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (cell.batch * task.inputs, cell.length)
    tokens_SN = torch.randint(1, task.vocabulary, shape, generator=generator).to(device)
    # One label for each example, or one for each token.
    labelled = shape if task.asks == "token" else (cell.batch,)
    labels = torch.randint(task.classes, labelled, generator=generator).flatten().to(device)
    answer: Callable[..., Output] = as_executed(cell, model)
    if cell.mode == "forward":

        def infer() -> Output:
            with torch.no_grad():
                return answer(tokens_SN, None)

        return infer, lambda: None

    parameters = [p for p in model.parameters() if p.requires_grad]
    # A rate so small that the weights, and with them the work, hardly change.
    optimiser = torch.optim.AdamW(parameters, lr=1e-8, fused=True)

    def step() -> None:
        logits = answer(tokens_SN, None).logits_LC
        loss = F.cross_entropy(logits.float().flatten(0, -2), labels)
        torch.autograd.backward(loss)
        optimiser.step()

    return step, optimiser.zero_grad
