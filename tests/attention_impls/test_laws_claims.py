"""Cards: the minimum is claimed, and they say where a mechanism comes from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.catalogue import find, load, names

PATTERN = {
    "bidirectional": True,
    "causal": "strict",
    "padding": "content",
    "bias": True,
    "decode": "exact",
}
EXACT_SOFTMAX = {**PATTERN, "cross": True, "rotary": True}
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
    "linear": KERNEL,
    "performer": KERNEL,
    "sliding_window": PATTERN,
    "block_local": PATTERN,
    "sparse_strided": PATTERN,
    "sparse_fixed": PATTERN,
    "linformer": {"bidirectional": True, "cross": True, "padding": "content"},
    "nystromformer": {"bidirectional": True, "cross": True, "padding": "length"},
    "longformer": {"bidirectional": True, "padding": "content"},
    "bigbird": {"bidirectional": True, "padding": "content"},
    "reformer": {"bidirectional": True, "causal": "values-only", "padding": "length"},
    "sinkhorn": {"bidirectional": True, "causal": "values-only", "padding": "content"},
    "synthesizer": {"bidirectional": True, "causal": "strict", "padding": "content"},
    "s4d": RECURRENT,
    "lstm": RECURRENT,
    "identity": {"bidirectional": True, "causal": "strict", "padding": "content", "bias": True},
}
"""What each mechanism was promised to do, and the floor beside them; laws prove that it does."""


ORDER = {
    "causal": ("no", "values-only", "strict"),
    "padding": ("none", "length", "content"),
    "decode": ("none", "approximate", "exact"),
}
"""Weaker claims first."""


@pytest.mark.parametrize("name", sorted(AT_LEAST))
def test_the_minimum_is_claimed(name: str) -> None:
    claimed = msgspec.structs.asdict(load(find("mechanism", name)).card.capabilities)
    for key, least in AT_LEAST[name].items():
        strength = ORDER.get(key, (False, True))
        assert strength.index(claimed[key]) >= strength.index(least), (key, claimed[key])


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
