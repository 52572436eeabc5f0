"""BigBird's own: its graph, where it is complete, and the tables of it that are kept."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from attention_impls.contract import Context
from attention_impls.pattern import _bigbird_graph
from attention_impls.pattern._drawn import random_blocks


def test_random_blocks_come_from_everywhere() -> None:
    """Not from the first thousand positions, and evenly: each block about as often as another."""
    drawn = random_blocks(tuple(range(50)), 102, 3, 101)
    counts = torch.bincount(drawn.flatten(), minlength=102)[1:101]
    assert counts.sum() == 50 * 100 * 3 and counts.min() > 90 and counts.max() < 220
    assert bool((drawn.sort(-1).values.diff() > 0).all()), "a row reads none of them twice"


def test_the_graph_is_per_head_layer_and_seed_and_frozen(build) -> None:
    case = ("bigbird", {"block": 1, "random": 2})
    layer, same, other = build(case), build(case), build(case)
    other.load_state_dict(type(layer)(layer.dims, layer.config, layer_index=1).state_dict())
    graph = layer.support(30, 30, Context())
    assert torch.equal(graph, same.support(30, 30, Context()))
    assert not torch.equal(graph[0, 0], graph[0, 1])
    assert not torch.equal(graph, other.support(30, 30, Context()))
    assert torch.equal(graph, layer.train().support(30, 30, Context()))


@pytest.mark.parametrize("n", [1, 2, 4, 13, 14])
def test_few_blocks_are_full_attention_and_one_more_is_not(n: int, build, draw) -> None:
    layer = build(("bigbird", {"block": 2, "random": 3}))
    qkv = draw(1, n)
    torch.testing.assert_close(
        layer.attend(*qkv, Context())[0], F.scaled_dot_product_attention(*qkv)
    )
    assert not bool(layer.support(15, 15, Context()).all())
    assert bool(layer.support(14, 14, Context()).all())


def test_the_arenas_random_blocks_are_among_the_first_1024_positions(build) -> None:
    """Its code draws row i of blocks of 64 from 1 ... 15; rows U - 3 and U - 2 from 1 ... 11 and
    1 ... 12; and from all blocks up to a length of 1024."""
    layer = build(("bigbird", {"parity": "lra2021"}))
    drawn = layer._graph.drawn(40)
    assert int(drawn.min()) >= 1 and int(drawn[:, :-2].max()) == 15
    assert int(drawn[:, -2].max()) <= 11 and int(drawn[:, -1].max()) <= 12
    # Row 13 reads block 15 but not 12, 13, 14 as random ones; row 18 all from 1 to 15.
    rows = random_blocks(tuple(range(200)), 40, 3, 15)
    assert set(rows[:, 12].unique().tolist()) == {*range(1, 12), 15}
    assert set(rows[:, 17].unique().tolist()) == set(range(1, 16))
    assert set(rows[:, -2].unique().tolist()) == set(range(1, 12))
    assert set(rows[:, -1].unique().tolist()) == set(range(1, 13))
    paper = build(("bigbird", {}))
    assert torch.equal(layer._graph.drawn(16), paper._graph.drawn(16))
    assert int(paper._graph.drawn(40).max()) > 15


@pytest.mark.parametrize("n", [6, 30])
def test_the_arena_drops_no_weights(n: int, build, draw) -> None:
    """Where the graph is complete, and where it is not; the paper's form drops some in both."""
    for parity in ("none", "lra2021"):
        case = ("bigbird", {"block": 2, "random": 1, "parity": parity})
        layer = build(case, dropout=0.5).train()
        qkv = draw(1, n)
        kept, _ = layer.attend(*qkv, Context())
        same = torch.allclose(kept, layer.eval().attend(*qkv, Context())[0])
        assert same == (parity == "lra2021")


SEVERAL = [
    {"block": 1, "random": 3},
    {"block": 2, "random": 0},
    {"block": 128, "random": 2, "parity": "lra2021"},
    {"block": 600, "random": 2, "parity": "lra2021"},
]
"""The last but one draws from the first 8 blocks; the last is too coarse to be told from all."""


@pytest.mark.parametrize("config", SEVERAL, ids=lambda config: "-".join(map(str, config.values())))
def test_all_tables_at_once_are_those_made_one_by_one(config, build) -> None:
    layer = build(("bigbird", config))
    for count in (layer.config.random + 5, 21):
        used = torch.arange(1, count + 1)
        one_by_one = [layer._graph._table(number, count) for number in used.tolist()]
        assert torch.equal(layer._graph._tables_of(used, count), torch.stack(one_by_one))


def test_off_a_cpu_no_kept_table_makes_room(build, monkeypatch) -> None:
    """Graphs of a GPU go on reading it where it lies; beyond those kept they are made anew."""
    monkeypatch.setattr(_bigbird_graph, "REMEMBERED", 3)
    layer, device = build(("bigbird", {"block": 2, "random": 1})), torch.device("meta")
    first = [layer._graph.tables(None, 2 * count, device)[0] for count in range(6, 12)]
    again = [layer._graph.tables(None, 2 * count, device)[0] for count in range(6, 12)]
    kept = [one is other for one, other in zip(first, again, strict=True)]
    assert kept == [True] * 3 + [False] * 3
    assert [table.shape for table in again] == [(1, 2, count, 6) for count in range(6, 12)]
    # Ranks are kept for 8 blocks and for 16, with a mask and without.
    mask = torch.empty(4, 20, dtype=torch.bool, device=device)
    assert layer._graph.tables(mask, 20, device)[0].shape == (4, 2, 10, 6)
    assert [room for room, _ in layer._graph._ranks] == [8, 16]


def test_tables_are_kept_and_go_with_the_seeds(build, monkeypatch) -> None:
    """Made once, whoever asks first; loaded seeds bring a graph of their own."""
    layer, other = (build(("bigbird", {"block": 2, "random": 1}), seed=seed) for seed in (0, 1))
    x = torch.randn(2, 31, 12, dtype=torch.float64)
    with torch.inference_mode():
        before = layer(x, Context()).y_BND.clone()
    monkeypatch.setattr(layer._graph, "_table", None)
    layer(x, Context()).y_BND.sum().backward()
    monkeypatch.undo()
    seeds = {"seeds_H": other.seeds_H}
    layer.load_state_dict({**layer.state_dict(), **seeds})
    assert layer._graph.seeds == other._graph.seeds
    assert not torch.allclose(layer(x, Context()).y_BND, before)
    torch.testing.assert_close(layer(x, Context()).y_BND, layer.reference(x, Context()))


@torch.no_grad()
@pytest.mark.parametrize("n", [0, 1, 8, 14])
def test_a_complete_graph_asks_for_no_length(n: int, build) -> None:
    """Tensors without values raise when asked for one, as a GPU waits."""
    layer = build(("bigbird", {"block": 2, "random": 3}))
    with FakeTensorMode(allow_non_fake_inputs=True):
        x, mask = torch.ones(2, n, 12, dtype=torch.float64), torch.ones(2, n, dtype=torch.bool)
        assert layer(x, Context(query_mask_BN=mask)).y_BND.shape == x.shape


@pytest.mark.parametrize(("n", "dense"), [(1024, True), (4096, False)])
def test_a_gpu_takes_one_call_where_one_mask_serves_all(n: int, dense: bool, build) -> None:
    """Where rows are padded each has a mask of all pairs of its own: blocks, as for long inputs."""
    layer = build(("bigbird", {}), max_length=n)
    gpu, cpu = torch.empty(1, device="meta"), torch.empty(1)
    assert layer._is_dense(n, masked=False, dropout=0.1, like=gpu) == dense
    assert not layer._is_dense(n, masked=True, dropout=0.1, like=gpu)
    assert not layer._is_dense(n, masked=False, dropout=0.0, like=cpu)


def test_a_padded_batch_has_a_mask_of_all_pairs_for_each_example(build, draw, monkeypatch) -> None:
    """So the choice is told of padding also where all rows end in the same block."""
    layer, told = build(("bigbird", {"block": 2, "random": 1})), []
    inner = layer._is_dense
    monkeypatch.setattr(
        layer, "_is_dense", lambda n, **given: told.append(given["masked"]) or inner(n, **given)
    )
    mask = torch.arange(16) < torch.tensor([[16], [15]])
    layer.attend(*draw(2, 16), Context(key_mask_BM=mask))
    layer.attend(*draw(2, 16), Context())
    assert told == [True, False]
