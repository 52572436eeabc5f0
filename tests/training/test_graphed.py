"""A step from CUDA graphs is the eager step: by a stand-in for graphs here, by graphs on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import msgspec
import pytest
import torch
from torch import Tensor

from lra.core.errors import UnsupportedError
from lra.training import graphs, step
from lra.training.graphs import Graphs
from lra.training.ranks import Ranks
from lra.training.setup import Training
from lra.training.step import Step

STEPS = 12


class Recorder:
    """Stands in for CUDA graphs: a replay calls again, on what lies where it lay then."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, call: Callable[[], Tensor]) -> tuple[Callable[[], object], Tensor]:
        self.recorded += 1
        loss = call().clone()

        def replay() -> None:
            self.replayed += 1
            loss.copy_(call())

        return replay, loss


def trained(
    toy: ModuleType, execution: str, device: torch.device, **changes: object
) -> tuple[list[Tensor], float, Step]:
    """Weights and summed loss after some steps."""
    spec = msgspec.structs.replace(toy.SPEC, execution=execution, **changes)
    model = toy.model().to(device).train()
    stepping = Step(model, Training(toy.dataset(), spec, seed=3), device=device)
    loss_sum = torch.zeros((), dtype=torch.float64, device=device)
    for done in range(STEPS):
        stepping(done, loss_sum)
    weights = [value.detach().cpu().clone() for value in model.parameters()]
    return weights, float(loss_sum), stepping


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setattr(
        step, "_graphs", lambda work, parameters, *_: Graphs(work, parameters, found)
    )
    return found


@pytest.mark.parametrize("most", [graphs.MOST, 2])
def test_it_makes_the_eager_steps_to_the_bit(
    toy: ModuleType, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(graphs, "MOST", most)
    changes = {"batch": 7, "clip": 0.5, "weight_decay": 0.1}
    weights, loss, _ = trained(toy, "graphed", toy.CPU, **changes)
    monkeypatch.undo()
    wanted, wanted_loss, _ = trained(toy, "eager", toy.CPU, **changes)
    assert loss == wanted_loss
    for one, other in zip(weights, wanted, strict=True):
        assert torch.equal(one, other)
    # Rows of several lengths, some shape among them twice.
    assert 1 < recorder.recorded <= most
    if most == graphs.MOST:
        assert recorder.replayed == STEPS > recorder.recorded
    else:
        assert recorder.replayed < STEPS


@pytest.mark.parametrize(
    "changes", [{}, {"micro_batches": 2}, {"recompute": True}], ids=lambda c: "".join(c) or "cpu"
)
def test_where_there_are_no_graphs_it_is_refused(toy: ModuleType, changes: dict[str, object]):
    device = torch.device("cuda") if changes else toy.CPU
    spec = msgspec.structs.replace(toy.SPEC, execution="graphed", **changes)
    with pytest.raises(UnsupportedError, match="execution=graphed"):
        step._graphs(lambda batch, answers: answers, [], spec, device, Ranks())


@pytest.mark.gpu
def test_graphs_make_the_steps_of_single_kernels(toy: ModuleType) -> None:
    device = torch.device("cuda")
    weights, loss, stepping = trained(toy, "graphed", device, batch=7)
    wanted, wanted_loss, _ = trained(toy, "eager", device, batch=7)
    assert stepping.graphs is not None
    assert loss == pytest.approx(wanted_loss, rel=1e-5)
    for one, other in zip(weights, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
