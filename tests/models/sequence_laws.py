"""Laws of encoder-decoders, each a function that fails where a model breaks it."""

from __future__ import annotations

from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_impls.contract import Context
from lra.core.catalogue import find
from lra.core.forms import BlockForm, Size, load_preset
from lra.core.loading import load
from lra.core.protocol import Mechanism
from lra.models import sequence_model
from lra.models.block import Block
from lra.models.body import Stream
from lra.models.language import Slots, build_encoder_decoder, named_layers
from lra.models.sequence_model import SequenceModel

SIZE = Size(layers=2, width=16, qkv_width=16, heads=2, mlp_width=32, vocabulary=13, length=24)
START = 12
PRESETS = ("transformer2017", "bart", "t5", "pegasus")


def built(
    preset: str = "pegasus", *, size: Size = SIZE, form: BlockForm | None = None, **slots: str
) -> SequenceModel:
    """A preset in small, in float64 and evaluation mode; slots by the names of their mechanisms,
    joined by + for a cycle."""
    known = load_preset(preset)
    layers = (
        named_layers([Mechanism(name=one) for one in slots.get(slot, "full").split("+")])
        for slot in Slots._fields
    )
    positions = (load(find("position", one.position)) for one in (known.encoder, known.decoder))
    model = build_encoder_decoder(
        size, form or known.form, slots=Slots(*layers), positions=tuple(positions), seed=1
    )
    return model.double().eval()


def tokens(length: int, seed: int = 0, rows: int = 2) -> Tensor:
    return torch.randint(0, 12, (rows, length), generator=torch.manual_seed(seed))


def answers(model: SequenceModel, source: Tensor, target: Tensor, *masks: Tensor | None) -> Tensor:
    """Logits of a target by teacher forcing."""
    return model(source, sequence_model.shifted(target, START), *masks).logits_LC


def blocks(model: SequenceModel) -> list[Block]:
    return list(model.body.decoder.blocks)


def sources_read(model: SequenceModel, *given: Tensor) -> list[Tensor]:
    """The memory as each cross layer of a call gets it."""
    seen: list[Tensor] = []
    hooks = [
        block.cross.register_forward_pre_hook(
            lambda module, given, options: seen.append(options["source_BMD"]), with_kwargs=True
        )
        for block in blocks(model)
    ]
    answers(model, *given)
    for hook in hooks:
        hook.remove()
    return seen


def the_memory_does_not_depend_on_the_target(model: SequenceModel) -> None:
    source = tokens(7)
    one, other = (sources_read(model, source, tokens(7, seed)) for seed in (1, 2))
    assert len(one) == len(blocks(model)) and all(map(torch.equal, one, other))
    assert all(torch.equal(memory, one[0]) for memory in one)
    assert not torch.equal(one[0], sources_read(model, tokens(7, 3), tokens(7, 1))[0])


def a_source_of_one_token_is_read_whatever_asks(model: SequenceModel) -> None:
    memory = torch.randn(2, 1, 16, dtype=torch.float64, generator=torch.manual_seed(0))
    x = torch.randn(2, 5, 16, dtype=torch.float64, generator=torch.manual_seed(1))
    for block in blocks(model):
        cross = block.cross
        found = cross(x, model.cross_context(None, None), source_BMD=memory).y_BND
        assert torch.allclose(found, cross.output(cross.value(memory)).expand(-1, 5, -1))


def the_order_of_the_memory_does_not_matter(model: SequenceModel) -> None:
    given, order = tokens(7, 1), torch.randperm(9, generator=torch.manual_seed(0))
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    memory = model.encode(tokens(9), mask)
    there = model.decode(given, memory, mask).logits_LC
    moved = model.decode(given, memory[:, order], mask[:, order]).logits_LC
    assert torch.allclose(there, moved, atol=1e-12)
    assert not torch.allclose(there, model.decode(given, memory.flip(-1), mask).logits_LC)


def padding_of_the_source_changes_nothing(model: SequenceModel) -> None:
    source, target = tokens(6), tokens(12, 1)
    padded = torch.cat([source, tokens(6, 2)], dim=1)
    mask = (torch.arange(12) < 6).expand(2, -1)
    bare = answers(model, source, target)
    assert torch.allclose(answers(model, padded, target, mask), bare, atol=1e-12)
    assert not torch.allclose(answers(model, padded, target), bare, atol=1e-4)


def padding_of_the_target_changes_nothing(model: SequenceModel) -> None:
    source, target = tokens(12), tokens(12, 1)
    real = torch.arange(12) < torch.tensor([[12], [5]])
    found = answers(model, source, target, None, real)
    for row, length in enumerate((12, 5)):
        alone = answers(model, source[row : row + 1], target[row : row + 1, :length])
        assert torch.allclose(found[row, :length], alone[0], atol=1e-12)


def a_token_is_predicted_from_all_before_it_and_no_other(model: SequenceModel) -> None:
    source, before = tokens(7), tokens(9, 1)
    one = answers(model, source, before)
    for place in (0, 4, 8):
        after = before.clone()
        after[:, place] = (after[:, place] + 1) % 12
        other = answers(model, source, after)
        assert torch.equal(one[:, : place + 1], other[:, : place + 1])
        for later in range(place + 1, 9):
            assert not torch.equal(one[:, later], other[:, later])


def the_gradient_of_a_tied_table_is_the_sum_of_all_its_uses(model: SequenceModel) -> None:
    apart = deepcopy(model)
    tables = [nn.Embedding.from_pretrained(model.source.tokens.weight.detach().clone(), False)
              for _ in range(3)]  # fmt: skip
    apart.source.tokens, apart.target.tokens, apart.head.table = tables
    for one in (model, apart):
        one.zero_grad()
        logits = answers(one, tokens(7), tokens(9, 1))
        F.cross_entropy(logits.flatten(0, 1), tokens(9, 1).flatten()).backward()
    parts = [table.weight.grad for table in tables]
    assert all(part is not None and part.abs().max() > 1e-6 for part in parts)
    assert torch.allclose(model.source.tokens.weight.grad, sum(parts), atol=1e-13)


def a_source_of_padding_alone_leaves_a_decoder_alone(model: SequenceModel) -> None:
    """For forms without norms after an addition, and attention without biases."""
    given, nothing = tokens(9, 1), torch.zeros(2, 7, dtype=torch.bool)
    found = model(tokens(7), given, nothing).logits_LC
    x_BND, _ = model.target(given, None)
    context = Context(causal=True, position=model.target.inside)
    alone = deepcopy(model.body.decoder)
    for block in alone.blocks:
        block.cross = block.cross_norm = None
    assert torch.allclose(found, model.head(alone(Stream(x_BND), context).x_BND), atol=1e-12)
    assert not torch.allclose(found, model(tokens(7), given).logits_LC, atol=1e-4)


def stepping_is_teacher_forcing(model: SequenceModel) -> None:
    """With a memory that is read at each step, and with what the states keep of it."""
    given, mask = tokens(9, 1), torch.arange(7) < torch.tensor([[7], [3]])
    memory = model.encode(tokens(7), mask)
    whole = model.decode(given, memory, mask).logits_LC
    reading = model.init_states(2, length=9), memory, mask
    keeping = model.init_states(2, length=9, memory_BMD=memory, source_mask_BM=mask), None, None
    for states, *read in (reading, keeping):
        parts = []
        for first, last in ((0, 4), *((n, n + 1) for n in range(4, 9))):
            found = model.decode(given[:, first:last], *read, states=states, first=first)
            parts.append(found.logits_LC)
            states = found.states
        assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-12)


def chosen_states_go_on_as_their_rows(model: SequenceModel) -> None:
    given, mask = tokens(9, 1), torch.arange(7) < torch.tensor([[7], [3]])
    order = torch.tensor([1, 1, 0])
    memory = model.encode(tokens(7), mask)
    states = model.init_states(2, length=9, memory_BMD=memory, source_mask_BM=mask)
    states = model.decode(given[:, :5], None, states=states).states
    chosen = model.body.select_states(states, order)
    whole = model.decode(given, memory, mask).logits_LC[:, 5:]
    for rows, own in ((order, chosen), (torch.arange(2), states)):
        found = model.decode(given[rows, 5:], None, states=own, first=5).logits_LC
        assert torch.allclose(found, whole[rows], atol=1e-12)
