"""A training that stops, or is killed, and goes on from its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from training.twins import assert_near, assert_same, changed

import lra
from lra.core.errors import LraError
from lra.training.evaluation import Tally
from lra.training.loop import Run
from lra.training.outcome import Interrupted
from lra.training.setup import Training

HERE = Path(__file__).parent


@pytest.mark.parametrize("place", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_stopped_anywhere_and_continued_it_ends_in_the_same_numbers(
    toy: ModuleType, tmp_path: Path, place: str
) -> None:
    device, data = torch.device(place), toy.dataset()
    dtype, same = (torch.float32, assert_same) if place == "cpu" else (torch.float64, assert_near)
    straight_model = toy.model(dropout=0.1).to(dtype)
    # Polls: one a step, 15 in each validation, 17 in the test.
    spec = changed(toy.SPEC, evaluation_batch=8)
    straight = toy.trained(straight_model, spec, data=data, seed=3, device=device)

    reached: list[int] = []
    for allowed in range(4, 30):
        polls = iter(range(allowed))
        model = toy.model(dropout=0.1).to(dtype)
        try:
            resumed = toy.trained(
                model,
                spec,
                data=data,
                seed=3,
                device=device,
                checkpoint=tmp_path / "a.pt",
                stop=lambda polls=polls: next(polls, None) is None,
            )
            break
        except Interrupted as ending:
            reached.append(ending.step)
    assert reached == sorted(reached)
    assert reached[0] == 4
    # In the first validation, between steps, in the last validation or the test.
    assert {20, 60} < set(reached)
    same(straight, resumed, straight_model, model)


def test_stopped_before_the_first_step(toy: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match="step 0 of 60"):
        toy.trained(toy.model(), checkpoint=tmp_path / "a.pt", stop=lambda: True)


def test_killed_and_continued_it_ends_in_the_same_numbers(toy: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    root = Path(lra.__file__).parents[1]
    child = subprocess.Popen(
        [sys.executable, HERE / "slow_child.py", path],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        # Polls: one a step, and three in each of two validations; 55 is between steps 40 and 60.
        for line in child.stdout:
            if line.strip() == "55":
                break
        os.kill(child.pid, signal.SIGKILL)
    assert child.wait(timeout=30) == -signal.SIGKILL

    data, models = toy.dataset(), [toy.model(dropout=0.1) for _ in range(2)]
    resumed_at: list[int] = []
    resumed = toy.trained(
        models[1],
        data=data,
        seed=3,
        checkpoint=path,
        report=lambda progress: resumed_at.append(progress.step),
    )
    # The checkpoint of step 20 was there at the least.
    assert 20 not in resumed_at
    assert resumed_at[-1] == 60
    straight = toy.trained(models[0], data=data, seed=3)
    assert_same(straight, resumed, models[0], models[1])


def test_a_finished_checkpoint_is_only_tested_again(toy: ModuleType, tmp_path: Path) -> None:
    data, path = toy.dataset(), tmp_path / "a.pt"
    models = [toy.model() for _ in range(2)]
    first = toy.trained(models[0], data=data, checkpoint=path)
    again = toy.trained(models[1], data=data, checkpoint=path)
    assert_same(first, again, models[0], models[1])
    assert first.seconds == again.seconds


@pytest.mark.parametrize("counted", [None, 1])
def test_only_a_save_between_steps_counts_what_the_device_has_yet_to_do(
    toy: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: int | None
) -> None:
    run = Run(
        toy.model(),
        Training(toy.dataset(), toy.SPEC, seed=0),
        device=toy.CPU,
        checkpoint=tmp_path / "a.pt",
    )
    waited: list[bool] = []
    monkeypatch.setattr(run, "wait", lambda: waited.append(True))
    # Amid an evaluation there is something counted so far.
    run.save(None if counted is None else Tally(counted, torch.zeros(()), torch.zeros(())))
    assert waited == ([True] if counted is None else [])


@pytest.mark.parametrize("change", ["seed", "spec", "rules", "metric", "padding", "model"])
def test_a_checkpoint_of_another_training_is_refused(
    toy: ModuleType, tmp_path: Path, change: str
) -> None:
    data, path = toy.dataset(), tmp_path / "a.pt"
    spec = changed(toy.SPEC, steps=2, evaluate_every=1)
    toy.trained(toy.model(), spec, data=data, checkpoint=path)
    model = toy.model(inputs=2) if change == "model" else toy.model()
    with pytest.raises(LraError, match="another training"):
        toy.trained(
            model,
            changed(spec, learning_rate=1.0) if change == "spec" else spec,
            data=toy.dataset(inputs=2) if change == "model" else data,
            seed=1 if change == "seed" else 0,
            training={
                "rules": "lra2021" if change == "rules" else "fixed",
                "metric": "bits_per_byte" if change == "metric" else "accuracy",
                "pad_to_length": change == "padding",
            },
            checkpoint=path,
        )
