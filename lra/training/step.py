"""One optimiser step, in parts that can be timed apart.

E examples, S = E * inputs sequences, N tokens, L labels
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from attention_impls.contract import Layer
from lra.core.errors import UnsupportedError
from lra.core.protocol import TrainSpec
from lra.models.body import Body
from lra.training.batches import Batch, Indices, Order
from lra.training.forward import autocast_type, forward
from lra.training.graphs import Graphs, Work
from lra.training.ranks import ALONE, Ranks
from lra.training.schedule import learning_rate
from lra.training.setup import Training

COMPILED_MOST = 32
"""Largest number of compilations of a function of the model: padded or not, in training or not, and
for lengths on either side of a mechanism's borders. torch gives up at eight."""


class Step:
    """Updates a model, which is on the device, by AdamW on the batch of each step.

    Call it with the number of finished steps; the rate and the rows follow from that and the seed
    alone. Under several ranks each computes its share of a batch, and all make the same update.
    """

    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.spec, self.device, self.ranks = training.spec, device, ranks
        self.objective = training.objective
        self.collate = training.collator(device)
        for module in model.modules():
            if isinstance(module, Body):
                module.recompute = self.spec.recompute
        self.called = self.joined = _as_asked(
            model, self.spec, device, ranks, one_length=self.collate.has_one_length
        )
        """Modules that evaluation and training call; `join` makes the latter sum the ranks'
        gradients."""
        self.autocast = autocast_type(self.spec, device)
        self.order = Order(
            training.dataset.train,
            self.spec.batch,
            training.seed,
            by_length=training.rules == "fixed",
        )
        self.layers = [module for module in model.modules() if isinstance(module, Layer)]
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = _optimiser(self.parameters, self.spec)
        self.graphs = _graphs(self._computed, self.parameters, self.spec, device, ranks)

    def join(self) -> None:
        """Join the ranks' models; call it once all hold the same weights."""
        self.joined = self.ranks.join(self.called)

    def __call__(self, done: int, loss_sum: Tensor) -> None:
        """Make the update that follows `done` steps; adds this rank's share of the mean loss, in
        nat, to `loss_sum` (), without waiting for the device."""
        self.prepare(done)
        pieces, answers = self.rows(done)
        for index, rows in enumerate(pieces):
            batch = self.batch(rows)
            if self.graphs is not None:
                loss = self.graphs(batch, answers)
            elif index + 1 < len(pieces):
                with self.ranks.apart(self.joined):
                    loss = self.forward(batch, answers)
                    self.backward(loss)
            else:
                loss = self.forward(batch, answers)
                self.backward(loss)
            loss_sum += loss.detach()
        self.clip()
        self.update()
        self.after(done + 1)

    def prepare(self, done: int) -> None:
        """Set the learning rate and forget the last gradients."""
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.spec, done)
        if self.graphs is None:
            self.optimiser.zero_grad()

    def rows(self, done: int) -> tuple[list[Indices], int]:
        """Return this rank's rows of a step in micro-batches, none of them empty, and the number of
        labels of all ranks' rows."""
        rows = self.order.rows(done)
        answers = int(self.collate.answers_E[rows].sum())
        share = self.ranks.share(rows, self.order.longest_E[rows])
        count = self.spec.micro_batches
        pieces = [share] if count == 1 else np.array_split(share, min(count, len(share)))
        return pieces, answers

    def batch(self, rows: Indices) -> Batch:
        """Return the rows as tensors on the device."""
        return self.collate(rows).to(self.device)

    def forward(self, batch: Batch, answers: int) -> Tensor:
        """Return a micro-batch's share in the mean loss over the whole batch, ()."""
        output = forward(self.joined, batch, self.autocast)
        return self.objective.loss(output, batch) / answers

    def _computed(self, batch: Batch, answers: Tensor) -> Tensor:
        """Return a batch's mean loss, (), with its gradient added to the parameters'."""
        output = forward(self.joined, batch, self.autocast)
        loss = self.objective.loss(output, batch) / answers
        torch.autograd.backward(loss)
        return loss.detach()

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss to the parameters'."""
        # Joined, gradients are averaged; the step needs the sum of the shares.
        torch.autograd.backward(loss if self.ranks.count == 1 else loss * self.ranks.count)

    def clip(self) -> None:
        """Shorten the gradient of all parameters to the protocol's norm, where it has one."""
        if self.spec.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.spec.clip)

    def update(self) -> None:
        """Let the optimiser update the parameters."""
        self.optimiser.step()

    def after(self, done: int) -> None:
        """Tell the mechanisms that `done` steps are done."""
        for layer in self.layers:
            layer.after_step(done)


def _optimiser(parameters: Sequence[Tensor], spec: TrainSpec) -> torch.optim.AdamW:
    """Return AdamW by the protocol."""
    return torch.optim.AdamW(
        parameters,
        lr=spec.learning_rate,
        betas=spec.betas,
        eps=spec.epsilon,
        weight_decay=spec.weight_decay,
        fused=True,
    )


def _graphs(
    work: Work,
    parameters: Sequence[nn.Parameter],
    spec: TrainSpec,
    device: torch.device,
    ranks: Ranks,
) -> Graphs | None:
    """Return the computation of gradients by graphs where the protocol asks for it; raises
    `UnsupportedError` where graphs are impossible."""
    if spec.execution != "graphed":
        return None
    if device.type != "cuda":
        raise UnsupportedError(
            "execution=graphed is for a GPU, whose kernels it records; leave it out"
        )
    if spec.micro_batches > 1 or spec.recompute or ranks.count > 1:
        raise UnsupportedError(
            "execution=graphed is for whole batches on one GPU, nothing computed again; leave it, "
            "or micro_batches, recompute and --devices, out"
        )
    return Graphs(work, parameters)


def _as_asked(
    model: nn.Module, spec: TrainSpec, device: torch.device, ranks: Ranks, *, one_length: bool
) -> nn.Module:
    """Return the model for the protocol's execution: itself, or compiled when first called.

    A GPU takes the kernels of a call from a CUDA graph, one for each shape of batch, unless tensors
    are kept from one call to the next, as gradients summed over micro-batches or ranks are.
    """
    if spec.execution != "compiled":
        return model
    # Otherwise a function that is compiled too often runs eagerly from then on, without a word.
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._dynamo.config.recompile_limit = COMPILED_MOST
    # Otherwise a dropped share is traced as a symbolic number, which dropout refuses.
    torch._dynamo.config.specialize_float = True
    graphs = device.type == "cuda" and spec.micro_batches == 1 and ranks.count == 1
    if graphs:
        # torch warns at nine.
        torch._inductor.config.triton.cudagraph_dynamic_shape_warn_limit = None
    return cast(
        nn.Module,
        torch.compile(
            model,
            dynamic=None if one_length else True,
            mode="reduce-overhead" if graphs else None,
        ),
    )
