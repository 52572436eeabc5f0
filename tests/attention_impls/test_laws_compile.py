"""The law of compilation: the compiler takes every mechanism whole, and the numbers stay."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from attention_impls.contract import Context

pytestmark = pytest.mark.usefixtures("small_blocks")

IN_PIECES = {"bigbird", "chunked", "lstm"}
"""Mechanisms that the compiler does not yet take whole; `lra verify --full` holds what it makes of
them to the same numbers."""


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler's own doing
def test_the_compiler_takes_it_whole(any_case, build, directions, positions, some_padding) -> None:
    """No graph break, forward or backward: bare, and padded with each kind of positions claimed.

    No code is generated.
    """
    if any_case[0] in IN_PIECES:
        pytest.skip("the compiler takes it in pieces")
    layer = build(any_case)
    x = torch.randn(2, 37, 12, dtype=torch.float64, requires_grad=True)
    mask = None if layer.card.capabilities.padding == "none" else some_padding(2, 37)
    claimed = positions(layer, "bias", "rotary")[1:] or [None]
    requests = [(None, None), *((mask, position) for position in claimed)]
    for causal, (queries, position) in product(directions(layer), requests):
        torch.compiler.reset()  # it refuses to compile one function more than eight times
        context = Context(causal, query_mask_BN=queries, position=position)
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        wanted, found = (run(x, context).y_BND for run in (layer, compiled))
        torch.testing.assert_close(found, wanted)
        upstream = torch.randn_like(wanted)
        torch.testing.assert_close(
            torch.autograd.grad(found, x, upstream), torch.autograd.grad(wanted, x, upstream)
        )
