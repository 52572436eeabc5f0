from __future__ import annotations

from itertools import count
from types import ModuleType

import msgspec
import pytest
import torch
import torch.nn.functional as F

from lra.core.errors import UnsupportedError
from lra.training.batches import Collator
from lra.training.evaluation import Tally, evaluate
from lra.training.forward import autocast_type, forward
from lra.training.objectives.labels import Labels
from lra.training.outcome import Score


@pytest.mark.parametrize("batch", [1, 7, 120, 1000])
def test_a_score_counts_every_row_once(toy: ModuleType, batch: int) -> None:
    model = toy.model(dropout=0.5)
    data = toy.dataset().validation
    everything = Collator(data, length=toy.LENGTH, rules="fixed")(torch.arange(120).numpy())
    model.eval()
    with torch.no_grad():
        logits = model(everything.tokens_SN, everything.mask_SN).logits_LC
    model.train()

    collate = Collator(data, length=None, rules="fixed")
    score = evaluate(model, data, collate, Labels(), batch=batch, device=toy.CPU)

    assert model.training
    assert score.answers == 120
    assert score.correct == int((logits.argmax(dim=-1) == everything.labels_L).sum())
    assert score.accuracy == score.correct / 120
    assert score.loss == pytest.approx(float(F.cross_entropy(logits, everything.labels_L)), 1e-5)


def test_evaluation_draws_nothing_and_keeps_no_graph(toy: ModuleType) -> None:
    model, data = toy.model(dropout=0.5), toy.dataset().validation
    before = torch.get_rng_state()
    collate = Collator(data, length=None, rules="fixed")
    evaluate(model, data, collate, Labels(), batch=50, device=toy.CPU)
    assert torch.equal(before, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters())


def test_a_poll_that_raises_gives_up_and_restores_the_mode(toy: ModuleType) -> None:
    model, data = toy.model(), toy.dataset().validation

    def poll(tally: Tally) -> None:
        raise KeyboardInterrupt

    collate = Collator(data, length=None, rules="fixed")
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, data, collate, Labels(), batch=50, device=toy.CPU, poll=poll)
    assert model.training


def test_an_evaluation_goes_on_where_it_was_given_up(toy: ModuleType) -> None:
    model, data = toy.model(), toy.dataset().validation
    collate = Collator(data, length=None, rules="fixed")

    def scored(begun: Tally | None, rounds: int) -> Score | Tally:
        """The score, or after so many rounds what has been counted so far."""
        polls = count()

        def poll(tally: Tally) -> None:
            if next(polls) >= rounds:
                raise GivenUp(Tally(tally.batches, tally.loss.clone(), tally.correct.clone()))

        try:
            return evaluate(
                model, data, collate, Labels(), batch=7, device=toy.CPU, begun=begun, poll=poll
            )
        except GivenUp as ending:
            tally: Tally = ending.args[0]
            return tally

    straight = scored(None, 1000)
    assert isinstance(straight, Score) and straight.answers == 120
    for rounds in (1, 2, 5, 17):
        found, calls = scored(None, rounds), 1
        while isinstance(found, Tally):
            assert found.batches == calls * rounds
            found, calls = scored(found, rounds), calls + 1
        assert calls == -(-18 // rounds) and found == straight


class GivenUp(Exception):  # noqa: N818
    """Carries a tally out of an evaluation."""


def test_bfloat16_multiplies_in_bfloat16_and_scores_in_float32(toy: ModuleType) -> None:
    model, data = toy.model(), toy.dataset().train
    batch = Collator(data, length=None, rules="fixed")(torch.arange(32).numpy())
    seen: list[torch.dtype] = []
    model.head[-1].register_forward_hook(lambda module, given, out: seen.append(out.dtype))
    spec = msgspec.structs.replace(toy.SPEC, precision="bfloat16")
    output = forward(model, batch, autocast_type(spec, toy.CPU))
    loss, logits = Labels().loss(output, batch), output.logits_LC
    assert seen == [torch.bfloat16]
    assert (loss.dtype, logits.dtype) == (torch.float32, torch.bfloat16)
    exact = Labels().loss(forward(model, batch, autocast_type(toy.SPEC, toy.CPU)), batch)
    assert seen == [torch.bfloat16, torch.float32]
    assert loss.item() == pytest.approx(exact.item(), rel=0.02)


def test_a_gpu_without_bfloat16_is_refused(
    toy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    spec = msgspec.structs.replace(toy.SPEC, precision="bfloat16")
    with pytest.raises(UnsupportedError, match="precision float32"):
        autocast_type(spec, torch.device("cuda"))
