"""Cards: the minimum is claimed, and they say where a mechanism comes from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.catalogue import find, load, names

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
