"""The law of compilation: the compiler takes every mechanism whole, and the numbers stay."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import nn

from attention_impls.contract import Context

pytestmark = pytest.mark.usefixtures("small_blocks")

IN_PIECES = {"bigbird", "chunked"}
"""Mechanisms that the compiler does not yet take whole, as it never takes torch's recurrences;
`lra verify --full` holds what it makes of them to the same numbers."""


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler's own doing
def test_the_compiler_takes_it_whole(few_case, build, directions, positions, some_padding) -> None:
    """No graph break, forward or backward: bare, and padded with each kind of positions claimed.

    No code is generated.
    """
    layer, name = build(few_case), few_case[0]
    recurrent = any(isinstance(part, nn.RNNBase) for part in layer.modules())
    if recurrent or name in IN_PIECES:
        pytest.skip("the compiler takes it in pieces")
    x = torch.randn(2, 37, 12, dtype=torch.float64, requires_grad=True)
    mask = None if layer.card.capabilities.padding == "none" else some_padding(2, 37)
    claimed = positions(layer, "bias", "rotary")[1:] or [None]
    requests = [(None, None), *((mask, position) for position in claimed)]
    for causal, (queries, position) in product(directions(layer), requests):
        torch.compiler.reset()  # it refuses to compile one function more than eight times
        context = Context(causal, query_mask_BN=queries, position=position)
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        wanted = layer(x, context).y_BND
        try:
            found = compiled(x, context).y_BND
        except torch._dynamo.exc.TorchDynamoException as error:
            pytest.fail(
                f"the compiler does not take {name} whole: rewrite what it names below, or, if "
                f"that has to stay, add {name!r} to IN_PIECES of "
                f"tests/attention_impls/test_laws_compile.py\n{error}"
            )
        torch.testing.assert_close(found, wanted)
        upstream = torch.randn_like(wanted)
        torch.testing.assert_close(
            torch.autograd.grad(found, x, upstream), torch.autograd.grad(wanted, x, upstream)
        )
