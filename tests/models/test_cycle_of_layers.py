"""A cycle of mechanisms over the layers of a stack."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attention_impls.contract import Attention, Dims, MechanismConfig
from lra.core.cards import Capabilities, meet
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError, UsageError
from lra.core.loading import load
from lra.core.protocol import ModelSpec
from lra.models.build import build_model
from lra.models.layers import Layers, Member

MOST = Capabilities(
    bidirectional=True, causal="strict", cross=True, padding="content", decode="exact",
    cross_decode="exact", bias=True, rotary=True, arbitrary_mask=True, positions_by_index=True,
)  # fmt: skip
WEAKER = {
    "bidirectional": [False], "causal": ["values-only", "no"], "cross": [False],
    "padding": ["length", "none"], "decode": ["approximate", "none"],
    "cross_decode": ["none"], "bias": [False], "rotary": [False], "arbitrary_mask": [False],
    "positions_by_index": [False], "fixed_length": [True], "stochastic": [True],
}  # fmt: skip
"""Each field's values, from the next best down."""
DIMS = Dims(width=8, qkv_width=12, heads=3, max_length=6, layers=5)


def weaker(name: str, value: object) -> Capabilities:
    return Capabilities(**{f: getattr(MOST, f) for f in MOST.__struct_fields__} | {name: value})


@pytest.mark.parametrize("name", Capabilities.__struct_fields__)
def test_a_stack_can_what_its_weakest_member_can(name: str) -> None:
    falling = [MOST, *(weaker(name, value) for value in WEAKER[name])]
    for strong in range(len(falling)):
        for weak in range(strong, len(falling)):
            pair = [falling[strong], falling[weak]]
            assert meet(pair) == meet(pair[::-1]) == falling[weak]


def members(mechanisms: dict[str, type[Attention]]) -> tuple[Member, Member]:
    plain, drawing = mechanisms["mean"], mechanisms["drawing"]
    return Member(plain, plain.Config()), Member(drawing, drawing.Config())


def test_a_cycle_repeats_over_the_layers(mechanisms: dict[str, type[Attention]]) -> None:
    plain, drawing = members(mechanisms)
    built = Layers((plain, drawing, drawing)).build(DIMS, seed=0)
    layers = list(built.layers)
    kinds = [type(layer) for layer in layers]
    assert kinds == [one.mechanism for one in (plain, drawing, drawing, plain, drawing)]
    assert [layer.layer_index for layer in layers] == list(range(5))


def test_each_different_member_has_shared_parts_of_its_own_once(
    mechanisms: dict[str, type[Attention]],
) -> None:
    class Sized(MechanismConfig, frozen=True):
        size: int = 5

    class Sharing(mechanisms["drawing"]):
        Config = Sized

        @classmethod
        def build_shared(cls, dims: Dims, config: Sized) -> nn.Module:
            return nn.Linear(config.size, 2)

    plain, _ = members(mechanisms)
    five, six = Member(Sharing, Sized()), Member(Sharing, Sized(6))
    built = Layers((five, plain, six, five)).build(DIMS, seed=0)
    first, _, third, fourth, fifth = built.layers
    assert first.table is fourth.table is fifth.table and first.table is not third.table
    assert [part.in_features for part in built.shared] == [5, 6]
    # Two layers have no place for the third member, and keep nothing of it.
    short = Layers((five, plain, six)).build(Dims(8, 12, 3, max_length=6, layers=2), seed=0)
    assert [part.in_features for part in short.shared] == [5]


def test_a_member_draws_in_a_cycle_as_alone(mechanisms: dict[str, type[Attention]]) -> None:
    plain, drawing = members(mechanisms)
    alone = list(Layers((drawing,)).build(DIMS, seed=3).layers)
    mixed = list(Layers((drawing, plain)).build(DIMS, seed=3).layers)
    for index in (0, 2, 4):
        ours, theirs = mixed[index].state_dict(), alone[index].state_dict()
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_stacks_of_one_model_draw_apart(mechanisms: dict[str, type[Attention]]) -> None:
    one, other = (
        Layers.of(mechanisms["drawing"]).build(DIMS, seed=3, stack=stack) for stack in ("", "cross")
    )
    for ours, theirs in zip(one.layers, other.layers, strict=True):
        assert not torch.equal(ours.query.weight, theirs.query.weight)
        assert not torch.equal(ours.draw, theirs.draw)
    assert not torch.equal(one.shared[0].weight, other.shared[0].weight)


def test_an_empty_cycle_is_refused() -> None:
    with pytest.raises(UsageError):
        Layers(())


def model(names: str, **fields: object):
    spec = ModelSpec(
        layers=3, width=8, qkv_width=8, heads=2, mlp_width=16, pooling="none", causal=True, **fields
    )
    found = [load(find("mechanism", name)) for name in names.split("+")]
    return build_model(
        spec,
        layers=Layers(tuple(Member(one, one.Config()) for one in found)),
        position=load(find("position", "learned")),
        vocabulary=7,
        classes=5,
        length=12,
    ).eval()


def test_a_cycle_of_the_same_is_the_plain_model_and_order_matters() -> None:
    tokens = torch.randint(0, 7, (2, 12), generator=torch.manual_seed(0))
    logits = {
        names: model(names)(tokens).logits_LC
        for names in ("full", "full+full", "full+lstm", "lstm+full")
    }
    assert torch.equal(logits["full"], logits["full+full"])
    assert not torch.allclose(logits["full+lstm"], logits["lstm+full"], atol=1e-3)


def test_a_mixed_stack_steps_to_the_same_logits() -> None:
    tokens = torch.randint(0, 7, (2, 12), generator=torch.manual_seed(0))
    net = model("full+lstm+linear").double()
    states, parts = net.init_states(2, length=12), []
    for first, last in ((0, 5), (5, 6), (6, 12)):
        found = net(tokens[:, first:last], states=states, first=first)
        parts.append(found.logits_LC)
        states = found.states
    assert torch.allclose(torch.cat(parts, dim=1), net(tokens).logits_LC, atol=1e-12)


def test_one_member_that_is_not_strictly_causal_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="linformer"):
        model("full+linformer")
