"""Encoder-decoders train as other models do: in pieces, computed again, stopped, by two
processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from training.sequences import CPU, DATA, SIZE, model, trained
from training.twins import assert_same, changed, closeness, numbers

import lra
from lra.core.protocol import TrainSpec
from lra.models.sequence_model import SequenceModel
from lra.training.loop import Run
from lra.training.outcome import Interrupted
from lra.training.setup import Training
from lra.training.step import Step

SPEC = TrainSpec(
    steps=6, batch=8, learning_rate=3e-3, evaluate_every=3, evaluation_batch=7, clip=1.0
)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_computed_again_they_end_in_the_same_numbers(precision: str) -> None:
    spec = changed(SPEC, precision=precision)
    nets = [model(dropout=0.1, cross="performer") for _ in range(2)]
    plain = trained(nets[0], spec)
    assert_same(plain, trained(nets[1], changed(spec, recompute=True)), *nets)
    if precision == "bfloat16":
        assert (
            plain.curve[0].train_loss
            != trained(model(dropout=0.1, cross="performer"), SPEC).curve[0].train_loss
        )


@pytest.mark.parametrize("recompute", [False, True])
def test_of_a_block_its_input_alone_is_kept_in_both_stacks(recompute: bool) -> None:
    net = model()
    step = Step(net, Training(DATA, changed(SPEC, recompute=recompute), seed=0), device=CPU)
    step.join()
    kept: dict[str, int] = {"encoder": 0, "decoder": 0}
    inside: list[str] = []

    def count(tensor: Tensor) -> Tensor:
        if inside:
            kept[inside[-1]] += 1
        return tensor

    for name, stack in (("encoder", net.body.encoder), ("decoder", net.body.decoder)):
        for block in stack.blocks:
            block.register_forward_pre_hook(lambda *call, name=name: inside.append(name))
            block.register_forward_hook(lambda *call: inside.clear())
    batch = step.batch(step.order.rows(0))
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        step.forward(batch, 1)
    assert {name: number > 0 for name, number in kept.items()} == dict.fromkeys(kept, not recompute)


def test_in_micro_batches_they_learn_the_same() -> None:
    nets = [model().double() for _ in range(2)]
    whole, pieces = (
        trained(net, changed(SPEC, micro_batches=n)) for net, n in zip(nets, (1, 3), strict=True)
    )
    assert pieces.curve[-1].train_loss == pytest.approx(whole.curve[-1].train_loss, rel=1e-6)
    assert closeness(*nets) < 1e-9


def test_stopped_anywhere_and_continued_they_end_in_the_same_numbers(tmp_path: Path) -> None:
    nets = [model(dropout=0.1, cross="performer", decoder="linear") for _ in range(2)]
    straight = trained(nets[0], SPEC)
    reached = []
    for allowed in (2, 3, 5, 7, 50):
        polls = iter(range(allowed))
        nets[1] = model(dropout=0.1, cross="performer", decoder="linear")
        try:
            resumed = trained(
                nets[1],
                SPEC,
                checkpoint=tmp_path / "a.pt",
                stop=lambda polls=polls: next(polls, None) is None,
            )
        except Interrupted as ending:
            reached.append(ending.step)
    # Between steps, and in a validation.
    assert reached[0] == 2 and 3 in reached
    assert_same(straight, resumed, *nets)


@pytest.mark.parametrize("slot", ["encoder", "decoder", "cross"])
def test_each_slot_draws_anew_after_steps(slot: str) -> None:
    net = model(**{slot: "performer"})
    run = Run(net, Training(DATA, SPEC, seed=0), device=CPU)
    layers = [one for one in net.modules() if type(one).__name__ == "Performer"]
    assert len(layers) == SIZE.layers

    def draws() -> list[Tensor]:
        return [buffer.clone() for layer in layers for buffer in layer.buffers()]

    before = draws()
    assert len(before) >= len(layers)
    run.step.after(999)
    assert all(map(torch.equal, before, draws()))
    run.step.after(1000)
    after = draws()
    assert not any(
        torch.equal(one, other)
        for one, other in zip(before, after, strict=True)
        if one.is_floating_point()
    )


def test_two_processes_reach_what_one_does(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(lra.__file__).parents[1])}
    children = [
        subprocess.Popen(
            [sys.executable, Path(__file__).parent / "sequences.py", str(index), tmp_path],
            env=environment,
        )
        for index in range(2)
    ]
    try:
        assert [child.wait(timeout=300) for child in children] == [0, 0]
    finally:
        for child in children:
            child.kill()
    net = model().double()
    alone = trained(net, SPEC)
    first, second = (torch.load(tmp_path / str(index)) for index in range(2))
    assert first["losses"] == pytest.approx([p.train_loss for p in alone.curve], rel=1e-6)
    for name, weight in net.state_dict().items():
        assert torch.equal(first["weights"][name], second["weights"][name]), name
        torch.testing.assert_close(first["weights"][name], weight, rtol=0.0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch by torch
def test_compiled_they_learn_the_same() -> None:
    nets: list[SequenceModel] = [model() for _ in range(2)]
    spec = changed(SPEC, steps=2, evaluate_every=2, bucketed=False)
    eager = trained(nets[0], spec)
    try:
        compiled = trained(nets[1], changed(spec, execution="compiled"))
    finally:
        torch._dynamo.reset()
    (one,), (other,) = numbers(eager.curve), numbers(compiled.curve)
    assert other.train_loss == pytest.approx(one.train_loss, rel=1e-4)
    assert compiled.test.loss == pytest.approx(eager.test.loss, rel=1e-4)
    assert 0.0 < closeness(*nets) < 1e-4, "sums in another order"
