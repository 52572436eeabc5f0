"""The training loop: step, validate, keep the best, test once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import torch
from torch import nn

from lra.core.dataset import Split
from lra.core.hashing import value_hash
from lra.core.records import CurvePoint
from lra.models.draws import part_seed
from lra.training import checkpoint as checkpoints
from lra.training.checkpoint import Best, Generators, TrainingState
from lra.training.evaluation import Tally, evaluate
from lra.training.outcome import Diverged, Interrupted, Progress, Score, Trained
from lra.training.ranks import ALONE, Ranks
from lra.training.schedule import learning_rate
from lra.training.setup import Training
from lra.training.step import Step

LOOK_EVERY = 64
"""Steps between looks at the loss on a CPU, where a look does not wait for a device."""
SAVE_EVERY = 30.0
"""Largest number of seconds that a kill may cost."""
SAVE_SHARE = 0.05
"""Largest share of the time for checkpoints after validations."""
REPORT_EVERY = 0.5
"""Seconds between reports of progress without a new validation."""


def train(run: Run) -> Trained:
    """Train by AdamW on cross-entropy from a run's state on, choose by validation, test the choice
    once.

    The best by accuracy is chosen, among equals the one with the lower loss; for a loss, by
    loss alone. On a CPU, an interrupted training ends in the same numbers as an uninterrupted one
    with as many threads.

    Raises `Diverged`, `Interrupted`, and `LraError` for a batch smaller than there are ranks.
    """
    while True:
        if run.validation_is_due():
            run.validate()
            if run.is_cheap_to_save():
                run.save()
        if run.state.step == run.spec.steps:
            return run.finish()
        run.poll()
        run.train_step()


class Run:
    """The state of one training.

    An existing `checkpoint` is continued; one of a finished training is tested again. The caller
    deletes it. `stop` is called before every step and evaluation batch. Under several `ranks` each
    process has the same arguments, `device` apart; they train one model on the batches of a single
    process and reach its numbers up to rounding, but for random draws in a forward pass. All end
    with the same scores; the first one writes.

    Raises `UnsupportedError` for a precision that the device lacks, and `LraError` for a checkpoint
    of another training.
    """

    def __init__(
        self,
        model: nn.Module,
        training: Training,
        *,
        device: torch.device,
        checkpoint: Path | None = None,
        report: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model, self.training = model.to(device), training
        self.dataset, self.spec = training.dataset, training.spec
        self.device, self.ranks = device, ranks
        self.checkpoint, self.report, self.stop = checkpoint, report, stop
        self.step = Step(model, training, device=device, ranks=ranks)
        self.identity = _identity(model, training, device)
        self.state = TrainingState(torch.zeros((), dtype=torch.float64, device=device))
        # Ranks draw different noise for their different rows; the first draws as a single process
        # does.
        own = part_seed(training.seed, f"rank {ranks.index}") if ranks.index else training.seed
        torch.manual_seed(own)
        self.step.called.train()
        if checkpoint is not None:
            optimiser = self.step.optimiser
            found = checkpoints.load(checkpoint, self.identity, model, optimiser, device, ranks)
            if found is not None:
                self.state = found
        self.step.join()
        self.saved_at, self.save_seconds = perf_counter(), 0.0
        self.reported_at = self.state.seconds

    def train_step(self) -> None:
        """Make one optimiser step, with a report now and then; raises `Diverged` where the loss is
        found not to be finite."""
        state = self.state
        started = perf_counter()
        self.step(state.step, state.loss_sum)
        state.step += 1
        state.seconds += perf_counter() - started
        if self.device.type == "cpu" and state.step % LOOK_EVERY == 0:
            self._require_finite(float(self.ranks.total(state.loss_sum)))
        if state.seconds - self.reported_at > REPORT_EVERY:
            self._tell(None)

    def validation_is_due(self) -> bool:
        """Whether a validation is due: after every `evaluate_every` steps and at the end, once
        each."""
        step, curve = self.state.step, self.state.curve
        due = step % self.spec.evaluate_every == 0 or step == self.spec.steps
        return due and step > 0 and (not curve or curve[-1].step < step)

    def validate(self) -> None:
        """Add a point to the curve, and keep the weights if they are those to test."""
        self.wait()
        state = self.state
        self.ranks.align(self.model)
        loss_sum = float(self.ranks.total(state.loss_sum))
        self._require_finite(loss_sum)
        score = self._score(self.dataset.validation)
        self._require_finite(score.loss)
        last = state.curve[-1].step if state.curve else 0
        point = CurvePoint(
            step=state.step,
            seconds=state.seconds,
            train_loss=loss_sum / (state.step - last),
            validation_loss=score.loss,
            validation_accuracy=score.accuracy,
            learning_rate=learning_rate(self.spec, state.step - 1),
        )
        state.curve.append(point)
        state.loss_sum.zero_()
        if self._is_kept(score):
            weights = self.model.state_dict()
            weights = {name: value.to("cpu", copy=True) for name, value in weights.items()}
            state.best = Best(state.step, score.accuracy, score.loss, weights)
        self._tell(point)

    def is_cheap_to_save(self) -> bool:
        """Whether a checkpoint after a validation costs little, or is the last."""
        cheap = self.save_seconds <= SAVE_SHARE * (perf_counter() - self.saved_at)
        (due,) = self.ranks.agree(self.ranks.index == 0 and cheap)
        return due or self.state.step == self.spec.steps

    def finish(self) -> Trained:
        """Test the kept weights, once."""
        state, best = self.state, self.state.best
        if best is None:
            raise RuntimeError("no validation has chosen weights to test")
        self.model.load_state_dict(best.weights)
        return Trained(
            test=self._score(self.dataset.test),
            best_step=best.step,
            validation_accuracy=best.accuracy,
            curve=tuple(state.curve),
            seconds=state.seconds,
            steps_per_second=state.step / state.seconds,
        )

    def poll(self, tally: Tally | None = None) -> None:
        """Save when it is time to; also where the caller wants the training to stop, and then raise
        `Interrupted`. `tally` holds the counts of an evaluation so far."""
        late = self.state.step > 0 and perf_counter() - self.saved_at > SAVE_EVERY
        late, stop = self.ranks.agree(late, self.stop is not None and self.stop())
        if late or stop:
            self.save(tally)
        if stop:
            raise Interrupted(self.state.step, self.spec.steps)

    def _score(self, split: Split) -> Score:
        """Score a split, from where an interrupted evaluation stopped."""
        begun, self.state.tally = self.state.tally, None
        return evaluate(
            self.step.called,
            split,
            self.step.collate.over(split),
            self.training.objective,
            batch=self.spec.evaluation_batch,
            device=self.device,
            autocast=self.step.autocast,
            ranks=self.ranks,
            begun=begun,
            poll=self.poll,
        )

    def _is_kept(self, score: Score) -> bool:
        best = self.state.best
        return best is None or self.spec.tested == "last" or self._merit(score) > self._merit(best)

    def _merit(self, score: Score | Best) -> tuple[float, ...]:
        by_accuracy = self.training.metric == "accuracy"
        return (score.accuracy, -score.loss) if by_accuracy else (-score.loss,)

    def save(self, tally: Tally | None = None) -> None:
        """Write the checkpoint, where there is a path for one."""
        if self.checkpoint is None:
            return
        if tally is None:
            self.wait()
        state, total = self.state, self.ranks.total
        shared = replace(state, loss_sum=total(state.loss_sum))
        if tally is not None:
            # Reading waits for the device: only an evaluation is lost to that, no training.
            counted = total(tally.loss).cpu(), total(tally.correct).cpu()
            shared.tally = Tally(tally.batches, *counted)
        started = perf_counter()
        generators = self._generators()
        if self.ranks.index == 0:
            step = self.step
            checkpoints.save(
                self.checkpoint, self.identity, shared, self.model, step.optimiser, generators
            )
        self.saved_at = perf_counter()
        self.save_seconds = self.saved_at - started

    def _generators(self) -> Generators:
        gather = self.ranks.gather
        on_gpu = self.device.type == "cuda"
        cuda = gather(torch.cuda.get_rng_state(self.device)) if on_gpu else []
        return Generators(gather(torch.get_rng_state()), cuda)

    def wait(self) -> None:
        """Let the device finish its work; that, too, is training time."""
        if self.device.type == "cuda":
            started = perf_counter()
            torch.cuda.synchronize(self.device)
            self.state.seconds += perf_counter() - started

    def _require_finite(self, loss: float) -> None:
        if not math.isfinite(loss):
            raise Diverged(self.state.step, tuple(self.state.curve))

    def _tell(self, point: CurvePoint | None) -> None:
        self.reported_at = self.state.seconds
        if self.report is not None and self.ranks.index == 0:
            state = self.state
            self.report(Progress(state.step, self.spec.steps, state.seconds, point))


def _identity(model: nn.Module, training: Training, device: torch.device) -> str:
    """Hash that identifies a training's checkpoints."""
    one, rows = training, len(training.dataset.train)
    shapes = {name: list(value.shape) for name, value in model.state_dict().items()}
    return value_hash(
        [one.spec, one.seed, one.rules, one.metric, device.type, one.pad_to_length, rows, shapes]
    )
