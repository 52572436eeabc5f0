"""Generation as it is timed: from the states of all layers, one token more."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from cells import toy_cell

from attention_impls.contract import Context, Layer
from attention_impls.dense.full import Full
from attention_impls.dense.grouped_query import GroupedQuery
from attention_impls.kernel.linear import Linear
from attention_impls.learned.synthesizer import Synthesizer
from attention_impls.lowrank.nystromformer import Nystromformer
from attention_impls.positions.sinusoidal import Sinusoidal
from lra.core.cells import EfficiencyCell
from lra.core.errors import UnsupportedError
from lra.core.protocol import ModelSpec
from lra.measure.efficiency import ModelContext, measure_efficiency
from lra.measure.generation import GenerationCalls, prepare_generation
from lra.measure.step import build
from lra.models.language import Slots
from lra.models.layers import Layers
from lra.models.model import Model
from lra.models.sequence_model import SequenceModel
from lra.training.setup import Network
from tasks.bytes import Bytes
from tasks.reverse import Reverse

CPU = torch.device("cpu")
ONE = ModelSpec(layers=2, width=8, qkv_width=8, heads=2, mlp_width=16).by_token()
TWO = ModelSpec(
    layers=2, width=8, qkv_width=8, heads=2, mlp_width=16, pooling="none", causal=True,
    body="encoder_decoder",
)  # fmt: skip
BATCH, LAYERS, WIDTH, SIZE = 3, 2, 8, 4
COUNTER = 8
"""Bytes of a state for each row beside its numbers: how many positions it has seen."""


def cell(**changes: Any) -> EfficiencyCell:
    return toy_cell(
        **{
            "mode": "decode", "direction": "causal", "level": "model", "task": "reverse",
            "model": TWO, "batch": BATCH, **changes,
        }
    )  # fmt: skip


def network(**slots: type[Layer]) -> Network:
    """Exact attention where no other mechanism is named."""
    kinds = [slots.get(slot, Full) for slot in Slots._fields]
    return Network(Slots(*map(Layers.of, kinds)), (Sinusoidal, Sinusoidal))


def generating(wanted: EfficiencyCell, **slots: type[Layer]) -> GenerationCalls:
    task = Reverse.card if wanted.model is TWO else Bytes.card
    return prepare_generation(wanted, build(wanted, network(**slots), task), task, CPU)


@pytest.mark.parametrize("model", [ONE, TWO])
def test_a_step_is_the_token_behind_the_target_however_often_it_is_taken(model: ModelSpec) -> None:
    found = generating(cell(model=model))
    first, second = found.step(), found.step()
    assert tuple(first.shape) == (BATCH,) and torch.equal(first, second)
    assert found.error < 1e-5


@pytest.mark.parametrize("slot", ["decoder", "cross"])
def test_the_error_is_that_of_the_step(slot: str) -> None:
    class Forgetful(Full):
        def forward(self, x_BND, context: Context, **rest: Any) -> Any:  # type: ignore[no-untyped-def]
            if rest.get("state") is not None and x_BND.shape[1] == 1:
                x_BND = x_BND.flip(-1)
            return super().forward(x_BND, context, **rest)

    assert generating(cell(), **{slot: Forgetful}).error > 1e-3


def test_a_source_is_encoded_with_the_prompt_and_never_again() -> None:
    wanted = cell()
    model = build(wanted, network(), Reverse.card)
    assert isinstance(model, SequenceModel)
    found = prepare_generation(wanted, model, Reverse.card, CPU)
    encoded: list[int] = []
    model.body.encoder.register_forward_hook(lambda *call: encoded.append(1))
    found.step()
    assert not encoded
    found.prefill()
    assert encoded == [1]


@pytest.mark.parametrize("length", [24, 48])
@pytest.mark.parametrize(("kind", "groups"), [(Full, 2), (GroupedQuery, 1)])
def test_exact_attention_keeps_keys_and_values_of_both_sequences(
    kind: type[Layer], groups: int, length: int
) -> None:
    wanted = cell(length=length)
    own = 2 * (length + 1) * groups * (WIDTH // 2) * SIZE
    read = 2 * length * groups * (WIDTH // 2) * SIZE
    # A cache of the target also has a mask, and a flag for each row.
    kept = own + (length + 1) + 1 + COUNTER
    # By layer and row; the other slot holds exact attention of two groups.
    assert generating(wanted, decoder=kind).own_bytes == LAYERS * BATCH * kept
    assert generating(wanted, cross=kind).cross_bytes == LAYERS * BATCH * (read + COUNTER)


def test_sums_do_not_grow_with_what_they_are_of() -> None:
    short, long = cell(length=24), cell(length=48)
    one, other = (generating(wanted, cross=Linear) for wanted in (short, long))
    assert one.cross_bytes == other.cross_bytes and one.own_bytes < other.own_bytes
    one, other = (generating(wanted, decoder=Linear) for wanted in (short, long))
    assert one.own_bytes == other.own_bytes
    assert one.cross_bytes is not None and other.cross_bytes is not None
    assert one.cross_bytes < other.cross_bytes


def test_a_record_has_both_states_of_an_encoder_decoder_and_one_of_a_decoder() -> None:
    found = measure_efficiency(
        cell(), Linear, Linear.Config(), ModelContext(network(cross=Linear), Reverse.card)
    ).metrics
    for name in ("prefill", "latency", "operations", "peak_tensor_bytes", "decode_error"):
        assert found[name].value is not None, name
    whole, own, read = (
        found[name].value for name in ("state_bytes", "self_state_bytes", "cross_state_bytes")
    )
    assert whole is not None and own is not None and read is not None
    assert whole == own + read and own > 0 and read > 0
    wanted = cell(model=ONE, task="bytes")
    alone = measure_efficiency(
        wanted, Linear, Linear.Config(), ModelContext(network(decoder=Linear), Bytes.card)
    )
    assert alone.metrics["state_bytes"].value
    assert not {"self_state_bytes", "cross_state_bytes"} & alone.metrics.keys()
    assert isinstance(build(wanted, network(), Bytes.card), Model)


@pytest.mark.parametrize(
    ("model", "slots"),
    [
        (ONE, {"decoder": Synthesizer}),
        (TWO, {"decoder": Synthesizer}),
        # It attends to another sequence, and would read it anew for each token.
        (TWO, {"cross": Nystromformer}),
    ],
)
def test_who_does_not_decode_is_refused(model: ModelSpec, slots: dict[str, type[Layer]]) -> None:
    with pytest.raises(UnsupportedError, match="choose another mechanism"):
        generating(cell(model=model), **slots)


def test_who_is_not_causal_may_read_the_source() -> None:
    kind = Nystromformer
    assert kind.card.capabilities.causal == "no"
    around = ModelContext(network(encoder=kind), Reverse.card)
    assert measure_efficiency(cell(), kind, kind.Config(), around).metrics["latency"].value
