from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from attention_impls.contract import Attention, Dims, Layer
from lra.core.catalogue import find
from lra.core.errors import UsageError
from lra.core.loading import load
from lra.core.scales import load_scale
from lra.models.build import build_model, parameter_count
from lra.models.draws import part_seed
from lra.models.layers import Layers
from lra.models.model import Model

Build = Callable[..., Model]
Mechanisms = dict[str, type[Attention]]


@pytest.mark.parametrize(
    ("task", "vocabulary", "classes", "inputs", "parameters"),
    [
        ("listops", 17, 10, 1, 8_948_746),
        ("text", 257, 2, 1, 3_486_722),
        ("retrieval", 257, 2, 2, 1_087_618),
        ("image", 256, 10, 1, 248_458),
        ("pathfinder", 256, 2, 1, 26_530),
        ("pathfinder64", 256, 2, 1, 153_186),
        ("path_x", 256, 2, 1, 537_954),
        ("pathfinder256", 256, 2, 1, 2_119_266),
    ],
)
def test_released_configurations_have_the_published_parameter_counts(
    task: str, vocabulary: int, classes: int, inputs: int, parameters: int
) -> None:
    scale = load_scale("paper")
    spec = scale.model_spec(task)
    with torch.device("meta"):
        model = build_model(
            spec,
            layers=Layers.of(load(find("mechanism", "full"))),
            position=load(find("position", spec.position)),
            vocabulary=vocabulary,
            classes=classes,
            inputs=inputs,
            length=scale.task(task).length,
            rules=scale.rules,
        )
    assert scale.rules == "lra2021"
    assert parameter_count(model) == parameters


@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("pooling", ["cls", "mean", "first"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_tokens_to_logits(build: Build, inputs: int, pooling: str, dtype: torch.dtype) -> None:
    model = build(inputs=inputs, pooling=pooling, classifier_widths=(5, 4))
    tokens = torch.randint(0, 11, (4 * inputs, 6)).to(dtype)
    logits = model(tokens).logits_LC
    assert logits.shape == (4, 3)
    assert logits.dtype == torch.float32
    everywhere = model(tokens, torch.ones(4 * inputs, 6, dtype=torch.bool)).logits_LC
    assert torch.allclose(logits, everywhere, atol=1e-6)
    logits.sum().backward()
    unused = {n for n, p in model.named_parameters() if p.grad is None}
    # This mechanism looks at neither queries nor keys.
    assert all(".query." in name or ".key." in name for name in unused)


def test_two_mechanisms_start_from_the_same_everything_else(
    build: Build, mechanisms: Mechanisms
) -> None:
    plain = build(mechanism=mechanisms["mean"], seed=3).state_dict()
    drawing = build(mechanism=mechanisms["drawing"], seed=3).state_dict()
    assert set(drawing) > set(plain)
    for name, value in plain.items():
        assert torch.equal(value, drawing[name]), name


def test_seed_and_layer_decide_every_draw(build: Build, mechanisms: Mechanisms) -> None:
    one, same, other = (
        build(mechanism=mechanisms["drawing"], seed=seed).state_dict() for seed in (3, 3, 4)
    )
    constant = {n for n in one if torch.equal(one[n], other[n])}
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert all("norm" in name or name.endswith("bias") for name in constant)
    for part in ("mechanism.own", "mechanism.draw", "mechanism.query.weight", "mlp.widen.weight"):
        first, second = (one[f"body.blocks.{layer}.{part}"] for layer in (0, 1))
        assert not torch.equal(first, second), part


def test_building_leaves_the_default_generator_alone(build: Build) -> None:
    before = torch.get_rng_state()
    build()
    assert torch.equal(before, torch.get_rng_state())


def test_part_seeds_differ_and_stay() -> None:
    # Pinned: another value would change every model that a seed stands for.
    assert part_seed(0, "embedding") == 129_773_484_388_967
    assert len({part_seed(s, p) for s in range(20) for p in ("a", "b", "c")}) == 60
    assert all(0 <= part_seed(s, "a") < 2**48 for s in range(20))


def test_shared_parameters_are_counted_once(build: Build, mechanisms: Mechanisms) -> None:
    plain, drawing = (build(mechanism=mechanisms[name]) for name in ("mean", "drawing"))
    assert parameter_count(drawing) == parameter_count(plain) + 2 * 7 + (5 * 2 + 2)
    assert drawing.body.blocks[0].mechanism.table is drawing.body.blocks[1].mechanism.table


def test_frozen_parameters_are_not_counted(build: Build) -> None:
    model = build()
    every = parameter_count(model)
    model.embedding.tokens.weight.requires_grad_(False)
    assert parameter_count(model) == every - 11 * 8


def test_tied_start_copies_and_doubles(build: Build) -> None:
    free, tied = build(), build(query_key_start="tied")
    for ours, theirs in zip(tied.body.blocks, free.body.blocks, strict=True):
        assert torch.equal(ours.mechanism.query.weight, 2 * theirs.mechanism.query.weight)
        assert torch.equal(ours.mechanism.key.weight, ours.mechanism.query.weight)
        assert ours.mechanism.key.weight is not ours.mechanism.query.weight
        assert torch.equal(ours.mechanism.value.weight, theirs.mechanism.value.weight)


def test_tied_start_passes_over_layers_without_queries(
    build: Build, mechanisms: Mechanisms
) -> None:
    class NoQuery(mechanisms["mean"]):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)
            self.query = None

        def mix(self, x, context, source, state):
            return self.value(x).unflatten(-1, (3, 4)).transpose(1, 2), state

    model = build(mechanism=NoQuery, query_key_start="tied")
    assert model(torch.ones(2, 6, dtype=torch.uint8)).logits_LC.shape == (2, 3)


def test_tied_start_ties_the_first_head_of_a_group(build: Build, mechanisms: Mechanisms) -> None:
    class OneKey(mechanisms["mean"]):
        kv_heads = 1

        def mix(self, x, context, source, state):
            return self.query(x).unflatten(-1, (3, 4)).transpose(1, 2), state

    tied = build(mechanism=OneKey, query_key_start="tied").body.blocks[0].mechanism
    assert torch.equal(tied.key.weight, tied.query.weight[:4])


def test_tied_start_ties_global_projections_too(build: Build) -> None:
    """They started as copies of the local ones, and do so still."""
    model = build(mechanism=load(find("mechanism", "longformer")), query_key_start="tied")
    for block in model.body.blocks:
        layer = block.mechanism
        assert torch.equal(layer.global_query.weight, layer.query.weight)
        assert torch.equal(layer.global_key.weight, layer.query.weight)
        assert torch.equal(layer.global_value.weight, layer.value.weight)


def test_the_mechanism_gets_its_sizes(build: Build, mechanisms: Mechanisms) -> None:
    asked: list[tuple] = []

    class Spy(mechanisms["mean"]):
        def __init__(self, dims: Dims, config: object, **options: object) -> None:
            asked.append((dims, config, options["layer_index"]))
            super().__init__(dims, config, **options)

    config = Spy.Config()
    build(mechanism=Spy, config=config, pooling="cls", attention_dropout=0.25,
          projection_biases=False, picture_width=3)  # fmt: skip
    dims = Dims(
        8, 12, 3, max_length=7, layers=2, dropout=0.25, projection_biases=False, picture_width=3
    )
    assert asked == [(dims, config, 0), (dims, config, 1)]
    build(mechanism=Spy)
    assert asked[2][0].max_length == 6
    assert isinstance(asked[2][1], Layer.Config)


@pytest.mark.parametrize("options", [{"inputs": 3}, {"inputs": 2, "pooling": "none"}], ids=str)
def test_sequences_that_no_head_takes_are_refused(build: Build, options: dict) -> None:
    with pytest.raises(UsageError, match="sequence"):
        build(**options, causal=True)
