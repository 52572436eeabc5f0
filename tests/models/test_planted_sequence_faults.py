"""Faults that people made in encoder-decoders, each caught by a law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from models import sequence_laws as laws
from torch import Tensor, nn

from attention_impls.contract import Context, Dims
from lra.core.catalogue import find
from lra.core.loading import load
from lra.models import sequence_model
from lra.models.block import Block
from lra.models.bodies.encoder_decoder import EncoderDecoder
from lra.models.body import Stream
from lra.models.head import TableHead
from lra.models.sequence_model import SequenceModel

Patch = pytest.MonkeyPatch
DIMS = Dims(16, 16, 2, max_length=24)


def targets_mask_for_the_source(patch: Patch) -> None:
    patch.setattr(
        SequenceModel, "cross_context", lambda self, mask, source: Context(False, mask, mask)
    )


def no_mask_of_the_source(patch: Patch) -> None:
    patch.setattr(SequenceModel, "cross_context", lambda self, mask, source: Context(False, mask))


def cross_context(patch: Patch, **changes: object) -> None:
    plain = SequenceModel.cross_context
    patch.setattr(
        SequenceModel, "cross_context",
        lambda self, mask, source: replace(plain(self, mask, source), **changes),
    )  # fmt: skip


def bias_in_the_cross(patch: Patch) -> None:
    cross_context(patch, position=load(find("position", "alibi"))(DIMS))


def causal_cross(patch: Patch) -> None:
    cross_context(patch, causal=True)


def shift_left_out(patch: Patch) -> None:
    patch.setattr(sequence_model, "shifted", lambda target, start: target)


def shift_by_two(patch: Patch) -> None:
    def shifted(target: Tensor, start: int) -> Tensor:
        return F.pad(target, (2, -2), value=start)

    patch.setattr(sequence_model, "shifted", shifted)


def memory_moved_by_the_target(patch: Patch) -> None:
    plain = EncoderDecoder.forward

    def forward(
        self: EncoderDecoder, stream: Stream, context: Context, *, states=None, memory
    ) -> object:
        x = stream.take()
        moved = memory._replace(x_BMD=memory.x_BMD + x.mean(dim=1, keepdim=True))
        return plain(self, Stream(x), context, states=states, memory=moved)

    patch.setattr(EncoderDecoder, "forward", forward)


def decoder_reads_itself(patch: Patch) -> None:
    plain = EncoderDecoder.forward

    def forward(
        self: EncoderDecoder, stream: Stream, context: Context, *, states=None, memory
    ) -> object:
        x = stream.take()
        own = memory._replace(x_BMD=x)
        return plain(self, Stream(x), context, states=states, memory=own)

    patch.setattr(EncoderDecoder, "forward", forward)


def output_without_gradient(patch: Patch) -> None:
    def forward(self: TableHead, x: Tensor) -> Tensor:
        return F.linear(x * self.scale, self.table.weight.detach())

    patch.setattr(TableHead, "forward", forward)


def table_copied_not_tied(patch: Patch) -> None:
    plain = sequence_model.SequenceModel.__init__

    def init(self: SequenceModel, source, target, body, head) -> None:
        copied = nn.Embedding.from_pretrained(target.tokens.weight.detach().clone(), False)
        target.tokens = copied
        plain(self, source, target, body, head)

    patch.setattr(SequenceModel, "__init__", init)


def values_of_the_target(patch: Patch) -> None:
    """Keys of the encoder, values of the decoder: the other way round of a lecture note."""
    plain = Block.step

    def step(self: Block, x, context, state, memory=None):
        if memory is not None and memory.x_BMD.shape == x.shape:
            memory = memory._replace(x_BMD=x)
        return plain(self, x, context, state, memory)

    patch.setattr(Block, "step", step)


CAUGHT: list[tuple[Callable[[Patch], None], Callable[[SequenceModel], None]]] = [
    (targets_mask_for_the_source, laws.padding_of_the_source_changes_nothing),
    (no_mask_of_the_source, laws.padding_of_the_source_changes_nothing),
    (bias_in_the_cross, laws.the_order_of_the_memory_does_not_matter),
    (causal_cross, laws.the_order_of_the_memory_does_not_matter),
    (shift_left_out, laws.a_token_is_predicted_from_all_before_it_and_no_other),
    (shift_by_two, laws.a_token_is_predicted_from_all_before_it_and_no_other),
    (memory_moved_by_the_target, laws.the_memory_does_not_depend_on_the_target),
    (decoder_reads_itself, laws.the_memory_does_not_depend_on_the_target),
    (values_of_the_target, laws.the_memory_does_not_depend_on_the_target),
    (output_without_gradient, laws.the_gradient_of_a_tied_table_is_the_sum_of_all_its_uses),
    (table_copied_not_tied, laws.the_gradient_of_a_tied_table_is_the_sum_of_all_its_uses),
]


@pytest.mark.parametrize(("fault", "law"), CAUGHT, ids=lambda one: one.__name__)
def test_a_planted_fault_breaks_its_law(
    monkeypatch: Patch, fault: Callable[[Patch], None], law: Callable[[SequenceModel], None]
) -> None:
    law(laws.built())
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        law(laws.built())


def test_the_faults_leave_a_model_that_runs() -> None:
    for fault, _ in CAUGHT:
        with pytest.MonkeyPatch.context() as patch:
            fault(patch)
            found = laws.answers(laws.built(), laws.tokens(9), laws.tokens(9, 1))
        assert found.shape == (2, 9, 13) and torch.isfinite(found).all()
