"""Several seeds of one training in the same steps: their models as one, for one launch of a kernel
where there were several.

A small model keeps a GPU waiting for its next kernel, not for its arithmetic. Parameters that are
stacked along a first axis are called once for all seeds by `torch.vmap`, and AdamW, which works
element by element, updates them as it would apart. Rows, rates and initial weights are those that
each seed has alone, and it ends in the same numbers up to rounding, but for what is drawn at random
in a forward pass, such as dropout.

K seeds, S sequences, N tokens, E examples
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from attention_impls.contract import Layer
from lra.core.dataset import PAD
from lra.training.batches import Batch
from lra.training.loop import Run, train
from lra.training.objective import cast_to
from lra.training.outcome import Diverged, Interrupted, Trained
from lra.training.schedule import learning_rate
from lra.training.step import Step, optimiser

_NO_LABEL = -100
"""Of a row that only fills a batch up; cross-entropy passes over it."""
_ALIKE = 1e-4
"""By how much of the largest answer models may answer otherwise together: what rounding may do."""
_CLIP_EPSILON = 1e-6
"""As in `torch.nn.utils.clip_grad_norm_`."""


def train_stacked(runs: Sequence[Run]) -> Trained:
    """Train the runs of several seeds in the same steps, and finish the first as `train` does.

    They differ in nothing but the seed and stand at the same step; the others end with a checkpoint
    of all their steps, from which `train` tests them. A seed that diverges leaves the others, with
    a checkpoint that diverges again. Each has an equal share of the seconds.

    Raises what `train` raises of the first, and what a mechanism raises that cannot be stacked: see
    `why_not_stacked`.
    """
    first, together = runs[0], list(runs)
    while len(together) > 1:
        stack = Stack([run.step for run in together])
        for run in together:
            run.standing.stacked = max(run.standing.stacked, len(together))
            run.beside = [other for other in together if other is not run]
        diverged = _until_divergence(stack, together)
        if not diverged:
            return first.finish()
        _settle(stack, together)
        _save(together)
        if first in diverged:
            raise diverged[first]
        together = [run for run in together if run not in diverged]
    first.beside = ()
    return train(first)


def abreast(runs: Sequence[Run]) -> list[Run]:
    """Return the runs that stand at the same step as the first, which is one of them."""
    return [run for run in runs if run.standing.step == runs[0].standing.step]


def _until_divergence(stack: Stack, runs: Sequence[Run]) -> dict[Run, Diverged]:
    """Train to the end, or until seeds diverge; return those."""
    first = runs[0]
    while True:
        diverged = _validated(stack, runs)
        if diverged or first.standing.step == first.spec.steps:
            return diverged
        _poll(stack, runs)
        diverged = _stepped(stack, runs)
        if diverged:
            return diverged


def _validated(stack: Stack, runs: Sequence[Run]) -> dict[Run, Diverged]:
    """Validate those that are due, and save all or none; return those that have diverged."""
    due = [run for run in runs if run.validation_is_due()]
    diverged: dict[Run, Diverged] = {}
    if not due:
        return diverged
    _settle(stack, runs)
    for run in due:
        try:
            run.validate()
        except Diverged as error:
            diverged[run] = error
    if not diverged and runs[0].is_cheap_to_save():
        _save(runs)
    return diverged


def _stepped(stack: Stack, runs: Sequence[Run]) -> dict[Run, Diverged]:
    """Make one step of all, and return those that have diverged."""
    started = perf_counter()
    loss_K = stack(runs[0].standing.step)
    seconds = (perf_counter() - started) / len(runs)
    diverged = {}
    for run, loss in zip(runs, loss_K, strict=True):
        run.standing.loss_sum += loss
        try:
            run.stepped(seconds)
        except Diverged as error:
            diverged[run] = error
    return diverged


def _poll(stack: Stack, runs: Sequence[Run]) -> None:
    """Save all where it is time to, or where the caller wants the training to stop; then raise."""
    first = runs[0]
    # Asked once: the answer may change from one question to the next.
    stop = first.is_asked_to_stop
    if stop or first.is_late:
        _settle(stack, runs)
        _save(runs)
    if stop:
        raise Interrupted(first.standing.step, first.spec.steps)


def _save(runs: Sequence[Run]) -> None:
    for run in runs:
        run.save()


def _settle(stack: Stack, runs: Sequence[Run]) -> None:
    """Let the device finish, at everybody's cost, and give each run what the stack has of it."""
    first = runs[0].standing
    before = first.seconds
    runs[0].wait()
    waited, first.seconds = first.seconds - before, before
    for run in runs:
        run.standing.seconds += waited / len(runs)
    stack.write_back()


class Stack:
    """The models and optimisers of several seeds as one; call it to make a step of all.

    The models themselves stay as they were until `write_back`.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        first = steps[0]
        self.spec, self.device, self.model = first.spec, first.device, first.called
        self.parameters, self.buffers = stack_module_state([step.called for step in steps])
        self.trained = [p for p in self.parameters.values() if p.requires_grad]
        self.optimiser = _stacked_optimiser(steps, self.trained)

    def __call__(self, done: int) -> Tensor:
        """Make the update that follows `done` steps; returns the mean losses, (K,), in nat, without
        waiting for the device."""
        loss_K = self.backward(done)
        if self.spec.clip is not None:
            self._clip(self.spec.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(self.spec, done)
        self.optimiser.step()
        self.optimiser.zero_grad()
        return loss_K

    def backward(self, done: int) -> Tensor:
        """Leave the gradients of that step at the parameters; returns the losses, (K,)."""
        batch = self.batch(done)
        with cast_to(self.steps[0].autocast, self.device):
            loss_K = self._called(self._loss, batch.tokens_SN, batch.mask_SN, batch.labels_L)
        torch.autograd.backward(loss_K.sum())
        return loss_K.detach()

    def batch(self, done: int) -> Batch:
        """Return what all seeds compute in that step, with a first axis for these."""
        return _stacked([_batch(step, done) for step in self.steps])

    def logits(self, batch: Batch) -> Tensor:
        """Return what the models answer together, (K, E, C)."""
        return self._called(self._logits, batch.tokens_SN, batch.mask_SN)

    def write_back(self) -> None:
        """Give each model and optimiser what the stack has of it."""
        for k, step in enumerate(self.steps):
            own = dict(step.called.named_parameters()) | dict(step.called.named_buffers())
            with torch.no_grad():
                for name, stacked in (self.parameters | self.buffers).items():
                    own[name].copy_(stacked[k])
            trained = [own[n] for n, p in self.parameters.items() if p.requires_grad]
            for parameter, stacked in zip(trained, self.trained, strict=True):
                state = self.optimiser.state[stacked]
                step.optimiser.state[parameter] = {
                    name: value.clone() if name == "step" else value[k].clone()
                    for name, value in state.items()
                }

    def _called(self, model: Callable[..., Tensor], *parts: Tensor | None) -> Tensor:
        """Call a function of a seed's parameters, buffers and parts of a batch for all seeds."""
        dims = (0, 0, *(None if part is None else 0 for part in parts))
        call = vmap(model, in_dims=dims, randomness="different")
        found: Tensor = call(self.parameters, self.buffers, *parts)
        return found

    def _logits(self, parameters: Any, buffers: Any, tokens: Tensor, mask: Tensor | None) -> Tensor:
        logits: Tensor = functional_call(self.model, (parameters, buffers), (tokens, mask))
        return logits.float()

    def _loss(
        self, parameters: Any, buffers: Any, tokens: Tensor, mask: Tensor | None, labels: Tensor
    ) -> Tensor:
        logits = self._logits(parameters, buffers, tokens, mask)
        # The mean is over labels that there are.
        return F.cross_entropy(logits, labels, ignore_index=_NO_LABEL)

    def _clip(self, most: float) -> None:
        """Shorten each seed's gradient to the norm, by itself."""
        gradients = [p.grad for p in self.trained if p.grad is not None]
        squares = [gradient.flatten(1).square().sum(1) for gradient in gradients]
        norm_K = torch.stack(squares).sum(0).sqrt()
        scale_K = (most / (norm_K + _CLIP_EPSILON)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale_K.view(-1, *[1] * (gradient.dim() - 1)))


def why_not_stacked(runs: Sequence[Run]) -> str:
    """Return why runs cannot be trained in the same steps, in a line; empty where they can.

    It tries a step's gradients, and compares what the models answer together and apart: a seed may
    be in what is neither parameter nor buffer. Models, optimisers and draws are left as they were.
    """
    spec, ranks, model = runs[0].spec, runs[0].ranks, runs[0].step.called
    if spec.micro_batches > 1 or spec.recompute or spec.execution != "eager" or ranks.count > 1:
        return "micro-batches, recomputed blocks, compiled models and several devices go one by one"
    if runs[0].dataset.train.by_token:
        return "rows ask for different numbers of tokens"
    if any(type(layer).after_step is not Layer.after_step for layer in runs[0].step.layers):
        return "the mechanism may change between two steps"
    if len(list(model.named_parameters(remove_duplicate=False))) > len(list(model.parameters())):
        return "layers share parameters"
    devices = [runs[0].device] if runs[0].device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        try:
            stack = Stack([run.step for run in runs])
            stack.backward(runs[0].standing.step)
            apart = _apart(stack, stack.batch(runs[0].standing.step))
        except Exception as error:
            if "autograd.Function" in str(error):
                return "it has an autograd function of its own, which torch.vmap cannot stack"
            first_line = str(error).partition("\n")[0] or type(error).__name__
            return f"torch.vmap refuses it: {first_line}"
    return f"its answers differ from those apart, by {apart:.1g} of them" if apart > _ALIKE else ""


@torch.no_grad()
def _apart(stack: Stack, batch: Batch) -> float:
    """How far answers of models together are from those of each by itself, without dropout, over
    the largest answer."""
    models = [step.called for step in stack.steps]
    masks = [None] * len(models) if batch.mask_SN is None else batch.mask_SN
    for model in models:
        model.eval()
    try:
        together_KEC = stack.logits(batch)
        own = zip(models, batch.tokens_SN, masks, strict=True)
        apart_KEC = torch.stack([model(tokens, mask).float() for model, tokens, mask in own])
    finally:
        for model in models:
            model.train()
    return float((together_KEC - apart_KEC).abs().max() / apart_KEC.abs().max())


def _batch(step: Step, done: int) -> Batch:
    """The batch of one seed's step."""
    (rows,), _ = step.rows(done)
    return step.batch(rows)


def _stacked(batches: Sequence[Batch]) -> Batch:
    """Batches as one with a first axis for the seeds, (K, S, N), padded to the longest row of any
    and filled up to the most rows by copies that have no label."""
    sequences = max(len(batch.tokens_SN) for batch in batches)
    length = max(batch.tokens_SN.shape[1] for batch in batches)
    examples = max(len(batch.labels_L) for batch in batches)
    tokens, masks, labels = [], [], []
    is_padded = any(b.mask_SN is not None or b.tokens_SN.shape[1] < length for b in batches)
    for batch in batches:
        mask_SN = torch.ones_like(batch.tokens_SN, dtype=torch.bool)
        if batch.mask_SN is not None:
            mask_SN = batch.mask_SN
        beyond = length - batch.tokens_SN.shape[1]
        rows = torch.arange(sequences, device=mask_SN.device) % len(mask_SN)
        tokens.append(F.pad(batch.tokens_SN, (0, beyond), value=PAD)[rows])
        masks.append(F.pad(mask_SN, (0, beyond), value=False)[rows])
        missing = examples - len(batch.labels_L)
        labels.append(F.pad(batch.labels_L, (0, missing), value=_NO_LABEL))
    return Batch(
        torch.stack(tokens), torch.stack(masks) if is_padded else None, torch.stack(labels)
    )


def _stacked_optimiser(steps: Sequence[Step], trained: Sequence[Tensor]) -> torch.optim.AdamW:
    """An optimiser of the stacked parameters that goes on from where those of the seeds stand."""
    stacked_optimiser = optimiser(trained, steps[0].spec)
    for place, stacked in enumerate(trained):
        states = [step.optimiser.state.get(step.parameters[place], {}) for step in steps]
        for name in states[0]:
            values = [state[name] for state in states]
            value = values[0].clone() if name == "step" else torch.stack(values)
            stacked_optimiser.state[stacked][name] = value
    return stacked_optimiser
