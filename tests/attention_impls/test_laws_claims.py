"""Laws of cards: what is not claimed is refused in one line, and the minimum is claimed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import torch

from attention_impls.contract import Context
from lra.core.cards import Capabilities
from lra.core.catalogue import find, load, names
from lra.core.errors import UnsupportedError

EXACT_SOFTMAX = {
    "bidirectional": True,
    "causal": "strict",
    "cross": True,
    "padding": "content",
    "bias": True,
    "rotary": True,
    "decode": "exact",
}
KERNEL = {
    "bidirectional": True,
    "causal": "strict",
    "cross": True,
    "padding": "content",
    "decode": "exact",
}
RECURRENT = {"bidirectional": True, "causal": "strict", "padding": "content", "decode": "exact"}
AT_LEAST: dict[str, dict[str, Any]] = {
    "full": EXACT_SOFTMAX,
    "sdpa": EXACT_SOFTMAX,
    "chunked": EXACT_SOFTMAX,
    "grouped_query": EXACT_SOFTMAX,
    "multi_query": EXACT_SOFTMAX,
    "lstm": RECURRENT,
    "s4d": RECURRENT,
    "identity": {"bidirectional": True, "causal": "strict", "padding": "content", "bias": True},
    "linear": KERNEL,
    "performer": KERNEL,
    "linformer": {"bidirectional": True, "cross": True, "padding": "content"},
    "sliding_window": {
        "bidirectional": True,
        "causal": "strict",
        "padding": "content",
        "bias": True,
        "decode": "exact",
    },
}
"""What each mechanism was promised to do; the other laws prove that it does."""


@pytest.mark.parametrize("name", sorted(AT_LEAST.keys() & set(names("mechanism"))))
def test_the_minimum_is_claimed(name: str) -> None:
    capabilities = load(find("mechanism", name)).card.capabilities
    claimed = msgspec.structs.asdict(capabilities)
    assert {key: claimed[key] for key in AT_LEAST[name]} == AT_LEAST[name]


def unclaimed(can: Capabilities) -> list[str]:
    """Name the requests that a card leaves out."""
    claims = {
        "bidirectional": can.bidirectional,
        "causal": can.causal != "no",
        "cross": can.cross,
        "padding": can.padding != "none",
        "decode": can.decode != "none",
        "bias": can.bias,
        "rotary": can.rotary,
        "longer": not can.fixed_length,
    }
    return [request for request, claimed in claims.items() if not claimed]


@pytest.mark.parametrize("name", names("mechanism"))
def test_what_is_not_claimed_is_refused_in_one_line(name: str, build) -> None:
    layer = build((name, {}))
    can = layer.card.capabilities
    causal = not can.bidirectional
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    mask = torch.ones(2, 7, dtype=torch.bool)

    def position(scheme: str) -> Context:
        return Context(causal, position=load(find("position", scheme))(layer.dims))

    requests = {
        "bidirectional": lambda: layer(x, Context(causal=False)),
        "causal": lambda: layer(x, Context(causal=True)),
        "cross": lambda: layer(x, Context(causal), source_BMD=x),
        "padding": lambda: layer(x, Context(causal, query_mask_BN=mask)),
        "decode": lambda: layer.init_state(2, length=7, device=x.device, dtype=x.dtype),
        "bias": lambda: layer(x, position("alibi")),
        "rotary": lambda: layer(x, position("rope")),
        "longer": lambda: layer(x.repeat(1, 7, 1), Context(causal)),
    }
    for request in unclaimed(can):
        with pytest.raises(UnsupportedError) as refusal:
            requests[request]()
        text = str(refusal.value)
        assert name in text and "\n" not in text and ";" in text, request


def test_claimed_requests_are_not_refused(any_case, build) -> None:
    """The other side of the same coin, so that refusing everything is no way out."""
    layer = build(any_case)
    can = layer.card.capabilities
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    mask = torch.ones(2, 7, dtype=torch.bool)
    causal = not can.bidirectional
    layer(x, Context(causal))
    if not can.fixed_length:
        layer(x.repeat(1, 7, 1), Context(causal))
    if can.causal != "no":
        layer(x, Context(causal=True))
    if can.cross:
        layer(x, Context(causal), source_BMD=x)
    if can.padding != "none":
        layer(x, Context(causal, query_mask_BN=mask))
    if can.decode != "none":
        state = layer.init_state(2, length=7, device=x.device, dtype=x.dtype)
        layer(x, Context(causal=True), state=state)
        with pytest.raises(UnsupportedError, match="needs causal"):
            layer(x, Context(causal=False), state=state)
    for claimed, scheme in ((can.bias, "alibi"), (can.rotary, "rope")):
        if claimed:
            layer(x, Context(causal, position=load(find("position", scheme))(layer.dims)))


@pytest.mark.parametrize("name", names("mechanism"))
def test_cards_say_where_a_mechanism_comes_from(name: str) -> None:
    card = load(find("mechanism", name)).card
    assert card.title and card.paper and 1990 < card.year < 2100
    assert card.time.startswith("O(") and card.memory.startswith("O(")
    can = card.capabilities
    assert can.bidirectional or can.causal != "no"
    assert can.decode == "none" or can.causal == "strict"


@pytest.mark.parametrize("name", names("mechanism"))
def test_an_unknown_hyper_parameter_is_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="no_such_key"):
        msgspec.convert({"no_such_key": 1}, load(find("mechanism", name)).Config)
