"""Graphs that a compiler makes of mechanisms: one, whatever the length, or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from attention_impls.contract import Context

pytestmark = [  # of torch by torch
    pytest.mark.filterwarnings("ignore:The .grad attribute"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
]

LENGTHS = (150, 192, 320, 448)
GRAPHS = [
    ("linear", {}, 1),
    ("performer", {}, 1),
    ("reformer", {}, 1),
    # In one call, and in parts.
    ("longformer", {"window": 64}, 2),
    # In parts with padding behind the last row of its grid, and without.
    ("sparse_strided", {"stride": 32}, 2),
]
QUICK = {("performer", False), ("performer", True), ("reformer", True), ("sparse_strided", True)}
"""One of each kind of graphs, and whether padded; the compiler takes seconds for each."""


def _graphs() -> Iterator[Any]:
    for padded, (name, config, graphs) in product([False, True], GRAPHS):
        marks = () if (name, padded) in QUICK else pytest.mark.slow
        label = f"{name}-{'padded' if padded else 'whole'}"
        yield pytest.param(name, config, graphs, padded, id=label, marks=marks)


@pytest.fixture(autouse=True)
def as_a_training_compiles() -> Iterator[None]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(specialize_float=True):
        yield


@pytest.mark.parametrize(("name", "config", "graphs", "padded"), list(_graphs()))
def test_rows_of_many_lengths_share_a_graph(
    name: str, config: dict[str, int], graphs: int, padded: bool, build
) -> None:
    layer = build((name, config), max_length=512, dropout=0.1, dtype=torch.float32).train()
    counter = CompileCounter()
    compiled = torch.compile(layer, dynamic=True, backend=counter, fullgraph=True)
    for n in LENGTHS:
        mask = torch.arange(n).expand(2, -1) < torch.tensor([[n], [n // 2]])
        compiled(torch.randn(2, n, 12), Context(key_mask_BM=mask if padded else None))
    assert counter.frame_count <= graphs


def test_the_width_of_a_strided_band_is_no_minimum_of_lengths(build) -> None:
    """Inductor fails on shapes with one."""
    layer = build(("sparse_strided", {"stride": 32}), max_length=512)
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    def pairs(x_N: torch.Tensor) -> torch.Tensor:
        return x_N.new_zeros(layer.pairs(len(x_N), len(x_N), causal=False))

    torch.compile(pairs, dynamic=True, backend=keep, fullgraph=True)(torch.ones(320))
    (made,) = (node for node in graphs[0].graph.nodes if node.target == "new_zeros")
    (count,) = made.meta["example_value"].shape
    assert isinstance(count, torch.SymInt) and "Min" not in str(count)


BATCHES = ((2, 100), (3, 128), (4, 200), (5, 232), (2, 248))
"""Rows, and the length of each."""


def ragged(batch: int, n: int) -> torch.Tensor:
    """A mask of rows that end one after the other."""
    return torch.arange(n).expand(batch, -1) < n - 9 * torch.arange(batch).unsqueeze(-1)


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_bigbirds_tables_are_no_part_of_a_graph(padded: bool, build) -> None:
    """They hold what was drawn, for as many lengths and batches as come."""
    layer = build(("bigbird", {"block": 8, "random": 1}), max_length=256, dtype=torch.float32)
    counter, counts = CompileCounter(), []

    def read(x_BND: torch.Tensor, mask_BN: torch.Tensor | None) -> torch.Tensor:
        table_XHUA, _ = layer._graph.tables(mask_BN, x_BND.shape[1], x_BND.device)
        return table_XHUA + x_BND.shape[0]

    compiled = torch.compile(read, dynamic=True, backend=counter)
    for batch, n in BATCHES:
        given = torch.randn(batch, n, 12), ragged(batch, n) if padded else None
        assert torch.equal(compiled(*given), read(*given))
        counts.append(counter.frame_count)
    assert counts[-1] == counts[1]


@pytest.mark.slow
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_bigbirds_graphs_serve_all_lengths(padded: bool, build) -> None:
    layer = build(("bigbird", {"block": 8, "random": 1}), max_length=256, dtype=torch.float32)
    counter, counts = CompileCounter(), []
    compiled = torch.compile(layer, dynamic=True, backend=counter)
    for batch, n in BATCHES:
        context = Context(key_mask_BM=ragged(batch, n) if padded else None)
        x = torch.randn(batch, n, 12)
        torch.testing.assert_close(compiled(x, context).y_BND, layer(x, context).y_BND)
        counts.append(counter.frame_count)
    assert counts[-1] == counts[1]
