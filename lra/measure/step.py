"""A whole model's call: a forward pass, or a training step with its optimiser.

B examples, N tokens
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from lra.core.cards import GENERATED, TaskCard
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.measure.compiled import as_executed
from lra.models.model import Model
from lra.models.output import Output
from lra.models.sequence_model import SequenceModel
from lra.training.setup import Network, model_for


@dataclass(frozen=True)
class CardSizes:
    """Sizes of the model of a task, by its card; tokens have one table, whatever they consist
    of."""

    vocabulary: int
    classes: int
    inputs: int
    length: int
    parts: tuple[int, ...] = ()


def build(cell: EfficiencyCell, network: Network, task: TaskCard) -> Model | SequenceModel:
    """Return the model of a cell's task around its mechanisms, on the CPU, in the cell's dtype.

    Raises `UnsupportedError` for a task whose model has no such call.
    """
    assert cell.model is not None, "the planner gives a model to every cell of this level"
    if cell.mode == "decode" and task.asks not in GENERATED:
        raise UnsupportedError(
            f"the model of task '{cell.task}' generates nothing; choose a task of tokens or one "
            "from sequence to sequence, or level layer"
        )
    if cell.mode != "decode" and task.asks in ("sequence", "query"):
        raise UnsupportedError(
            "whole models are timed on tasks without a source; choose another task, or level layer"
        )
    # Decoding goes one position beyond its context.
    length = cell.length + (cell.mode == "decode")
    model = model_for(
        CardSizes(task.vocabulary, task.classes, task.inputs, length),
        cell.model,
        network=network,
        rules="fixed",
        seed=0,
        picture_width=task.picture_width(cell.length),
        answers_first=task.answers_first,
    )
    model.to(getattr(torch, cell.dtype)).train(cell.mode == "train")
    return model


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
