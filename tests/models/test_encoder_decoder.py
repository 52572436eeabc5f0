"""Encoder-decoders keep their laws in every published form, and with other mechanisms in their
slots."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
import torch
from models import sequence_laws as laws
from torch import Tensor

from attention_impls.contract import Context
from lra.core.errors import UnsupportedError, UsageError
from lra.core.forms import Preset, load_preset
from lra.models.body import Stream
from lra.models.sequence_model import SequenceModel, shifted

EVERYWHERE = [
    laws.the_memory_does_not_depend_on_the_target,
    laws.a_source_of_one_token_is_read_whatever_asks,
    laws.the_order_of_the_memory_does_not_matter,
    laws.padding_of_the_source_changes_nothing,
    laws.padding_of_the_target_changes_nothing,
    laws.a_token_is_predicted_from_all_before_it_and_no_other,
    laws.the_gradient_of_a_tied_table_is_the_sum_of_all_its_uses,
    laws.stepping_is_teacher_forcing,
    laws.chosen_states_go_on_as_their_rows,
]
Law = Callable[[SequenceModel], None]


@pytest.mark.parametrize("preset", laws.PRESETS)
@pytest.mark.parametrize("law", EVERYWHERE, ids=lambda law: law.__name__)
def test_a_preset_keeps_the_law(law: Law, preset: str) -> None:
    law(laws.built(preset))


@pytest.mark.parametrize("preset", ["t5", "pegasus"])
def test_a_source_of_padding_alone_leaves_a_decoder_alone(preset: str) -> None:
    form = msgspec.structs.replace(load_preset(preset).form, attention_biases=False)
    laws.a_source_of_padding_alone_leaves_a_decoder_alone(laws.built(preset, form=form))


@pytest.mark.parametrize(
    ("slot", "mechanism"),
    [("encoder", "bigbird"), ("encoder", "full+lstm"), ("decoder", "lstm"), ("cross", "linear"),
     ("decoder", "sliding_window+full")],
)  # fmt: skip
@pytest.mark.parametrize(
    "law",
    [
        laws.the_memory_does_not_depend_on_the_target,
        laws.padding_of_the_source_changes_nothing,
        laws.padding_of_the_target_changes_nothing,
        laws.a_token_is_predicted_from_all_before_it_and_no_other,
        laws.stepping_is_teacher_forcing,
        laws.chosen_states_go_on_as_their_rows,
    ],
    ids=lambda law: law.__name__,
)
def test_so_do_other_mechanisms_in_a_slot(law: Law, slot: str, mechanism: str) -> None:
    law(laws.built(**{slot: mechanism}))


@pytest.mark.parametrize("preset", laws.PRESETS)
def test_reading_oneself_is_attending_both_ways(preset: str) -> None:
    """Cross-attention with the weights of self-attention, to the same sequence."""
    model = laws.built(preset)
    x: Tensor = torch.randn(2, 9, 16, dtype=torch.float64)
    for block in laws.blocks(model):
        block.cross.load_state_dict(block.mechanism.state_dict())
        read = block.cross(x, model.cross_context(None, None), source_BMD=x).y_BND
        assert torch.allclose(read, block.mechanism(x, Context()).y_BND, atol=1e-12)


def test_recomputed_blocks_have_the_same_gradients() -> None:
    grads = []
    for recompute in (False, True):
        model = laws.built()
        for stack in (model.body.encoder, model.body.decoder):
            stack.recompute = recompute
        laws.answers(model, laws.tokens(7), laws.tokens(9, 1)).square().sum().backward()
        grads.append([parameter.grad for parameter in model.parameters()])
    assert all(map(torch.equal, *grads))


def test_a_shift_puts_the_start_first_and_drops_the_last() -> None:
    assert shifted(torch.tensor([[3, 1, 2], [5, 4, 0]]), 9).tolist() == [[9, 3, 1], [9, 5, 4]]


@pytest.mark.parametrize(
    ("slot", "mechanism"),
    [("cross", "sliding_window"), ("cross", "lstm"), ("decoder", "linformer")],
)
def test_a_mechanism_that_cannot_fill_its_slot_is_refused(slot: str, mechanism: str) -> None:
    with pytest.raises(UnsupportedError, match=mechanism):
        laws.built(**{slot: mechanism})


def test_a_memory_and_states_that_hold_it_are_refused_together() -> None:
    model = laws.built()
    memory = model.encode(laws.tokens(7))
    states = model.init_states(2, length=9, memory_BMD=memory)
    with pytest.raises(UsageError, match="the state holds the source"):
        model.decode(laws.tokens(3), memory, states=states)


def test_a_decoder_without_a_memory_refuses() -> None:
    with pytest.raises(UsageError, match="encoder's output"):
        laws.built().body(Stream(torch.zeros(1, 3, 16).double()), Context(causal=True))


@pytest.mark.parametrize(
    "change", [{"cross": None}, {"cross": {"mechanisms": [], "position": "rope"}}]
)
def test_a_preset_that_makes_no_model_is_refused(change: dict) -> None:
    told = msgspec.to_builtins(load_preset("t5")) | change
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, Preset)
