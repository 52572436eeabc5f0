"""The training loop: step, validate, keep the best, test once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import nn

from attention_impls.contract import Layer
from lra.core.cards import TaskMetric
from lra.core.dataset import Dataset, Split
from lra.core.hashing import value_hash
from lra.core.protocol import Rules, TrainSpec
from lra.core.records import CurvePoint
from lra.models.encoder import Encoder
from lra.training import checkpoint as checkpoints
from lra.training.batches import Collator, Indices, Order
from lra.training.checkpoint import Best, Standing
from lra.training.objective import autocast_type, evaluate, forward
from lra.training.outcome import Diverged, Interrupted, Progress, Score, Trained
from lra.training.schedule import learning_rate

LOOK_EVERY = 64
"""Steps between looks at the loss on a CPU, where looking does not wait for a device."""
SAVE_EVERY = 30.0
"""Most seconds of training that a kill may cost."""
SAVE_SHARE = 0.05
"""Most of the training time that writing checkpoints at validations may take."""
REPORT_EVERY = 0.5
"""Seconds between reports of progress that carry no new validation."""


def train(
    model: nn.Module,
    dataset: Dataset,
    spec: TrainSpec,
    *,
    seed: int,
    rules: Rules = "fixed",
    metric: TaskMetric = "accuracy",
    device: torch.device,
    pad_to_length: bool = False,
    checkpoint: Path | None = None,
    report: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Trained:
    """Train by AdamW on cross-entropy, choose by validation, test the choice once.

    The best by accuracy is chosen, of equals the one with the lower loss; where bits are counted,
    by loss alone. `pad_to_length` is for mechanisms whose padding is `length`; `lra2021` rules
    always pad to the length and shuffle without regard to it, as the original did. A `checkpoint`
    that exists is continued; one that this training wrote to the end is tested again. The caller
    deletes it.
    `stop` is asked before every step and evaluation batch. On a CPU, an interrupted training ends
    in the same numbers as an uninterrupted one with as many threads.

    Raises `Diverged`, `Interrupted`, `UnsupportedError` for a precision that the device lacks.
    """
    run = _Run(
        model.to(device),
        dataset,
        spec,
        seed=seed,
        rules=rules,
        metric=metric,
        device=device,
        pad_to_length=pad_to_length,
        checkpoint=checkpoint,
        report=report,
        stop=stop,
    )
    while True:
        if run.validation_is_due():
            run.validate()
        if run.standing.step == spec.steps:
            return run.finish()
        run.poll()
        run.train_step()


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self,
        model: nn.Module,
        dataset: Dataset,
        spec: TrainSpec,
        *,
        seed: int,
        rules: Rules,
        metric: TaskMetric,
        device: torch.device,
        pad_to_length: bool,
        checkpoint: Path | None,
        report: Callable[[Progress], None] | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.model, self.dataset, self.spec = model, dataset, spec
        self.rules, self.metric, self.device = rules, metric, device
        self.checkpoint, self.report, self.stop = checkpoint, report, stop
        self.autocast = autocast_type(spec, device)
        # The original's mean runs over padding, so its rules never cut it away.
        cut = spec.bucketed and not pad_to_length and rules == "fixed"
        self.length = None if cut else dataset.length
        self.order = Order(dataset.train, spec.batch, seed, by_length=rules == "fixed")
        self.collate = self._collator(dataset.train)
        self.layers = [module for module in model.modules() if isinstance(module, Layer)]
        for module in model.modules():
            if isinstance(module, Encoder):
                module.recompute = spec.recompute
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            self.parameters,
            lr=spec.learning_rate,
            betas=spec.betas,
            eps=spec.epsilon,
            weight_decay=spec.weight_decay,
            fused=True,
        )
        shapes = {name: list(value.shape) for name, value in model.state_dict().items()}
        self.identity = value_hash(
            [spec, seed, rules, metric, device.type, pad_to_length, len(dataset.train), shapes]
        )
        self.standing = Standing(torch.zeros((), dtype=torch.float64, device=device))
        self.saved_at = self.reported_at = self.save_seconds = 0.0
        torch.manual_seed(seed)
        model.train()
        if checkpoint is not None:
            found = checkpoints.load(checkpoint, self.identity, model, self.optimiser, device)
            if found is not None:
                self.standing = found
                self.saved_at = self.reported_at = found.seconds

    def train_step(self) -> None:
        """One optimiser step, then whatever is due by the clock."""
        started = perf_counter()
        standing, spec = self.standing, self.spec
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate(spec, standing.step)
        self.optimiser.zero_grad()
        rows = self.order.rows(standing.step)
        answers = int(self.collate.answers_E[rows].sum())
        for piece in _pieces(rows, spec.micro_batches):
            batch = self.collate(piece).to(self.device)
            # A micro-batch's share in the mean over the whole batch.
            loss = forward(self.model, batch, self.autocast)[0] / answers
            torch.autograd.backward(loss)
            standing.loss_sum += loss.detach()
        if spec.clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, spec.clip)
        self.optimiser.step()
        standing.step += 1
        for layer in self.layers:
            layer.after_step(standing.step)
        standing.seconds += perf_counter() - started
        if self.device.type == "cpu" and standing.step % LOOK_EVERY == 0:
            self._require_finite(float(standing.loss_sum))
        if standing.seconds - self.saved_at > SAVE_EVERY:
            self._save()
        if standing.seconds - self.reported_at > REPORT_EVERY:
            self._tell(None)

    def validation_is_due(self) -> bool:
        """After every `evaluate_every` steps and at the end, once each."""
        step, curve = self.standing.step, self.standing.curve
        due = step % self.spec.evaluate_every == 0 or step == self.spec.steps
        return due and step > 0 and (not curve or curve[-1].step < step)

    def validate(self) -> None:
        """Add a point to the curve, keep the weights if they are those to test, save."""
        self._wait()
        standing = self.standing
        loss_sum = float(standing.loss_sum)
        self._require_finite(loss_sum)
        score = self._score(self.dataset.validation)
        self._require_finite(score.loss)
        last = standing.curve[-1].step if standing.curve else 0
        point = CurvePoint(
            step=standing.step,
            seconds=standing.seconds,
            train_loss=loss_sum / (standing.step - last),
            validation_loss=score.loss,
            validation_accuracy=score.accuracy,
            learning_rate=learning_rate(self.spec, standing.step - 1),
        )
        standing.curve.append(point)
        standing.loss_sum.zero_()
        if self._is_kept(score):
            state = self.model.state_dict()
            weights = {name: value.to("cpu", copy=True) for name, value in state.items()}
            standing.best = Best(standing.step, score.accuracy, score.loss, weights)
        cheap = self.save_seconds <= SAVE_SHARE * (standing.seconds - self.saved_at)
        if cheap or standing.step == self.spec.steps:
            self._save()
        self._tell(point)

    def finish(self) -> Trained:
        """Test the weights that were kept, once."""
        standing, best = self.standing, self.standing.best
        if best is None:
            raise RuntimeError("no validation has chosen weights to test")
        self.model.load_state_dict(best.weights)
        return Trained(
            test=self._score(self.dataset.test),
            best_step=best.step,
            validation_accuracy=best.accuracy,
            curve=tuple(standing.curve),
            seconds=standing.seconds,
            steps_per_second=standing.step / standing.seconds,
        )

    def poll(self) -> None:
        """Save and raise `Interrupted` where the caller wants the training to stop."""
        if self.stop is not None and self.stop():
            self._save()
            raise Interrupted(self.standing.step, self.spec.steps)

    def _score(self, split: Split) -> Score:
        return evaluate(
            self.model,
            split,
            self._collator(split),
            batch=self.spec.evaluation_batch,
            device=self.device,
            autocast=self.autocast,
            poll=self.poll,
        )

    def _is_kept(self, score: Score) -> bool:
        best = self.standing.best
        return best is None or self.spec.tested == "last" or self._merit(score) > self._merit(best)

    def _merit(self, score: Score | Best) -> tuple[float, ...]:
        return (score.accuracy, -score.loss) if self.metric == "accuracy" else (-score.loss,)

    def _collator(self, split: Split) -> Collator:
        return Collator(split, length=self.length, rules=self.rules)

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        self._wait()
        started = perf_counter()
        checkpoints.save(self.checkpoint, self.identity, self.standing, self.model, self.optimiser)
        self.save_seconds = perf_counter() - started
        self.saved_at = self.standing.seconds

    def _wait(self) -> None:
        """Let the device finish what it was given; that, too, is training time."""
        if self.device.type == "cuda":
            started = perf_counter()
            torch.cuda.synchronize(self.device)
            self.standing.seconds += perf_counter() - started

    def _require_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise Diverged(self.standing.step, tuple(self.standing.curve))

    def _tell(self, point: CurvePoint | None) -> None:
        self.reported_at = self.standing.seconds
        if self.report is not None:
            standing = self.standing
            self.report(Progress(standing.step, self.spec.steps, standing.seconds, point))


def _pieces(rows: Indices, count: int) -> list[Indices]:
    """Cut a batch into micro-batches, none of them empty."""
    return [rows] if count == 1 else np.array_split(rows, min(count, len(rows)))
