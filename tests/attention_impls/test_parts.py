"""Parts of a softmax: short inputs without loops over heads, whatever way the cost chooses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from attention_impls.contract import Context
from attention_impls.pattern import _parts
from attention_impls.pattern._band import Band
from lra.core.scales import load_scale

PATTERNS = ("longformer", "bigbird", "sparse_fixed", "sparse_strided")

DENSE_BY_COST = [
    ("sparse_fixed", {"stride": 128, "summary": 64}),
    ("sparse_strided", {"stride": 2}),
]
"""So many pairs at any length that dense would always cost less, but for its memory."""

WAYS = {"tiles": (0, 0), "written": (2**14, 0), "dense": (2**14, 2)}
"""Costs of a tile and gains of dense, for which each way is the cheapest."""


@pytest.fixture
def ran(monkeypatch) -> list[str]:
    """The ways that were gone."""
    gone: list[str] = []

    def told(owner: Any, name: str, way: str) -> None:
        inner = getattr(owner, name)

        def outer(*args: Any) -> Any:
            gone.append(way)
            return inner(*args)

        monkeypatch.setattr(owner, name, outer)

    told(_parts._Tiled, "apply", "tiles")
    told(_parts, "_written_out", "written")
    return gone


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("n", [64, 128])
def test_mini_blocks_take_no_loop_over_heads(name: str, n: int, build, ran) -> None:
    config = load_scale("mini").mechanisms[name]
    layer = build((name, config), width=64, qkv_width=64, heads=4, max_length=n)
    layer(torch.randn(2, n, 64, dtype=torch.float64), Context())
    assert "tiles" not in ran


@pytest.mark.parametrize(
    "case",
    [*((name, {}) for name in PATTERNS), *DENSE_BY_COST],
    ids=lambda case: "-".join([case[0], *map(str, case[1].values())]),
)
def test_long_inputs_go_by_tiles(case: tuple[str, dict[str, int]], build, ran) -> None:
    layer = build(case, width=64, qkv_width=64, heads=1, max_length=4096)
    with torch.no_grad():
        layer(torch.randn(1, 4096, 64, dtype=torch.float64), Context())
    assert ran[0] == "tiles"


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("longformer", {"window": 4000}),
        ("sparse_fixed", {"stride": 2000}),
        ("sparse_strided", {"stride": 2000}),
    ],
)
def test_an_input_within_reach_is_dense_however_long(name: str, config, build, ran) -> None:
    layer = build((name, config), heads=1, max_length=1500, dtype=torch.float32)
    with torch.no_grad():
        layer(torch.randn(1, 1500, 12), Context())
    assert ran == []


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("sliding_window", {}),
        ("longformer", {}),
        ("sparse_fixed", {"stride": 128, "summary": 64}),
        ("sparse_strided", {"stride": 256}),
    ],
)
@torch.no_grad()
def test_dropout_takes_less_of_the_dense_call_that_it_unfuses(
    name: str, config: dict[str, int], build, monkeypatch
) -> None:
    """The same input goes dense in evaluation and in parts in training; a short one dense."""
    dense: list[int] = []
    inner = F.scaled_dot_product_attention
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda q, *a, **k: dense.append(0) or inner(q, *a, **k)
    )
    layer = build((name, config), heads=1, max_length=1024, dropout=0.1, dtype=torch.float32)
    for training, n in ((False, 1024), (True, 1024), (True, 128)):
        dense.clear()
        layer.train(training)(torch.randn(1, n, 12), Context())
        assert len(dense) == (not training or n == 128)


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (5, 2), (2, 9), (7, 7), (40, 40)])
def test_corners_are_where_some_query_of_a_block_sees_no_key(left, right, size) -> None:
    band = Band(n=41, m=41, left=left, right=right, size=size)
    cut = ~band.window_mask(torch.device("cpu")).all(dim=0)
    found = torch.zeros(band.width, dtype=torch.bool)
    for columns in band.corners:
        assert not bool(found[columns].any())
        found[columns] = True
    assert torch.equal(found, cut)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PATTERNS)
def test_every_way_equals_the_oracle(
    name: str, way: str, build, some_padding, check_reference, monkeypatch, ran
) -> None:
    cost, advantage = WAYS[way]
    monkeypatch.setattr(_parts, "TILE_COST", cost)
    monkeypatch.setattr(_parts, "DENSE_ADVANTAGE", advantage)
    config = load_scale("mini").mechanisms[name]
    layer = build((name, config))
    x = torch.randn(2, 45, 12, dtype=torch.float64, requires_grad=True)
    for mask in (None, some_padding(2, 45), torch.arange(45) < torch.tensor([[45], [9]])):
        check_reference(layer, x, Context(query_mask_BN=mask))
    assert set(ran) == ({way} - {"dense"})


@pytest.mark.parametrize(("share", "dense"), [(2.5, True), (2.6, False)])
def test_a_gpu_computes_more_pairs_in_one_call(share: float, dense: bool) -> None:
    """Than a CPU, where weights are written out: there twice as many."""
    asked = {"parts": 2, "autograd": True, "reached": False, "dropout": 0.1}
    pairs = int(2**20 / share) + 1
    device = torch.device("cuda")
    assert _parts.dense_is_cheaper(2**20, pairs, device=device, **asked) == dense
    assert not _parts.dense_is_cheaper(2**20, pairs, device=torch.device("cpu"), **asked)
    assert not _parts.dense_is_cheaper(2**22, 2**22, device=device, **asked)
