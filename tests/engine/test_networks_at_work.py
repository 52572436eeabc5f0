"""Cycles, published forms and encoder-decoders are trained by a worker as their cells say."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch
from engine_jobs import recalling
from msgspec.structs import replace

from attention_impls.contract import Layer
from lra.core.cells import QualityCell
from lra.core.errors import UnsupportedError
from lra.core.forms import load_preset
from lra.core.protocol import DataSpec, Mechanism, ModelSpec, Rows
from lra.engine.jobs import Job, Outcome
from lra.engine.work import quality
from lra.engine.work.mechanism import load_network
from lra.models.head import TableHead
from lra.models.sequence_model import SequenceModel
from lra.training.setup import model_for
from tasks.reverse import Reverse

DATA = DataSpec(
    task="reverse", length=6, rows=Rows(train=64, validation=16, test=16),
    parameters={"symbols": 5, "ragged": True},
)  # fmt: skip
SIZES = {"layers": 3, "width": 16, "qkv_width": 16, "heads": 2, "mlp_width": 16}
TWO_STACKS = ModelSpec(
    **SIZES, position="sinusoidal", pooling="none", causal=True, body="encoder_decoder"
)


@pytest.fixture(autouse=True)
def as_in_a_worker() -> Iterator[None]:
    """On one thread; and this process ends by SIGTERM afterwards as it did before."""
    handler, threads = signal.getsignal(signal.SIGTERM), torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    signal.signal(signal.SIGTERM, handler)


def job(cache: Path, **changes: object) -> Job:
    given = recalling("identity", cache)
    assert isinstance(given.cell, QualityCell)
    training = replace(given.cell.training, steps=2, evaluate_every=1)
    cell = replace(given.cell, data=DATA, model=TWO_STACKS, training=training)
    return replace(given, cell=replace(cell, **changes), mechanism="", task="")


def run(asked: Job) -> Outcome:
    assert isinstance(asked.cell, QualityCell)
    return quality.run(asked.cell, asked, lambda progress: None)


def names(model: torch.nn.Module) -> list[str]:
    return [layer.name for layer in model.modules() if isinstance(layer, Layer)]


def built_for(asked: Job) -> SequenceModel:
    """The model that a worker trains."""
    cell = asked.cell
    assert isinstance(cell, QualityCell)
    task = Reverse(msgspec.convert(DATA.parameters, Reverse.Config), length=DATA.length)
    model = model_for(
        task.generated(DATA.rows),
        cell.model,
        network=load_network(cell.model, cell.mechanism, ""),
        rules="fixed",
        seed=0,
        answers_first=task.card.answers_first,
    )
    assert isinstance(model, SequenceModel)
    return model


def test_slots_hold_the_mechanisms_that_a_cell_names(cache: Path) -> None:
    slots = {"encoder": Mechanism(name="full"), "decoder": Mechanism(name="lstm")}
    asked = job(cache, mechanism=Mechanism(name="linear"), model=replace(TWO_STACKS, slots=slots))
    model = built_for(asked)
    assert names(model.body.encoder) == ["full"] * 3
    assert names(model.body.decoder) == ["lstm", "linear"] * 3
    assert run(asked).status == "ok"


def test_a_cross_map_is_recorded_where_shares_are_read(cache: Path) -> None:
    found = run(job(cache, mechanism=Mechanism(name="sdpa")))
    assert found.status == "ok" and found.attended is not None
    assert [(one.targets, one.sources) for one in found.attended.crosses] == [(6, 6)] * 3
    assert "decode_agreement" not in found.metrics


def test_a_cycle_takes_turns_over_the_layers(cache: Path) -> None:
    config = {"full": {}, "sliding_window": {"left": 2, "right": 2}}
    slots = {"cross": Mechanism(name="full"), "encoder": Mechanism(name="full")}
    asked = job(
        cache,
        mechanism=Mechanism(name="full+sliding_window", config=config),
        model=replace(TWO_STACKS, slots=slots),
    )
    own = names(built_for(asked).body.decoder)[::2]
    assert own == ["full", "sliding_window", "full"]
    assert run(asked).status == "ok"


def test_who_cannot_fill_a_slot_is_refused(cache: Path) -> None:
    slots = {"encoder": Mechanism(name="full"), "decoder": Mechanism(name="full")}
    model = replace(TWO_STACKS, slots=slots)
    with pytest.raises(UnsupportedError, match="cross"):
        run(job(cache, mechanism=Mechanism(name="reformer"), model=model))


def test_a_tied_form_reads_answers_from_the_rows_of_its_tokens(cache: Path) -> None:
    model = built_for(
        job(
            cache,
            mechanism=Mechanism(name="full"),
            model=replace(TWO_STACKS, form=load_preset("bart").form),
        )
    )
    assert isinstance(model.head, TableHead) and model.head.table is model.source.tokens
    x_BND = torch.randn(1, 2, 16)
    # Label c is the token c + 1: five symbols and the end.
    expected = x_BND @ model.source.tokens.weight[1:7].T
    assert torch.equal(model.head(x_BND), expected)
