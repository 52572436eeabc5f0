"""Cards: the minimum is claimed, and they say where a mechanism comes from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lra.core.catalogue import find, names
from lra.core.errors import UsageError
from lra.core.loading import load

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
    "mean": KERNEL,
}
"""Claims promised of each mechanism, and of the controls beside them; laws prove them."""


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


DEFAULTS: dict[str, dict[str, Any]] = {
    "sliding_window": {"left": 256, "right": 256},
    "block_local": {"block": 64, "parity": "none"},
    "sparse_strided": {"stride": 128},
    "sparse_fixed": {"stride": 128, "summary": 32, "parity": "none"},
    "longformer": {"window": 512, "leading": 1, "parity": "none"},
    "bigbird": {"block": 64, "random": 3, "parity": "none"},
    "nystromformer": {"landmarks": 64, "iterations": 6, "convolution": 35},
    "reformer": {"chunk": 64, "rounds": 4, "parity": "none"},
    "sinkhorn": {
        "block": 64,
        "iterations": 7,
        "temperature": 0.75,
        "noise": True,
        "parity": "none",
    },
    "synthesizer": {"logits": "factorised", "rank": 32, "dot_product": False},
}
"""The papers' hyper-parameters."""


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_papers_hyper_parameters_are_the_default(name: str) -> None:
    kind = load(find("mechanism", name)).Config
    assert kind() == kind(**DEFAULTS[name])


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("sliding_window", "left", -1),
        ("block_local", "block", 0),
        ("sparse_strided", "stride", 0),
        ("sparse_fixed", "summary", 0),
        ("nystromformer", "landmarks", 0),
        ("nystromformer", "convolution", 4),
        ("linformer", "rank", 0),
        ("linformer", "sharing", "none"),
        ("performer", "features", 0),
        ("performer", "kernel", "cosine"),
        ("performer", "norms", "unit"),
        ("performer", "redraw_every", -1),
        ("reformer", "chunk", 0),
        ("reformer", "rounds", 0),
        ("sinkhorn", "block", 0),
        ("sinkhorn", "temperature", 0.0),
        ("sinkhorn", "iterations", -1),
        ("synthesizer", "rank", 0),
        ("synthesizer", "logits", "learned"),
    ],
)
def test_a_wrong_hyper_parameter_is_refused(name: str, field: str, wrong: object) -> None:
    with pytest.raises((msgspec.ValidationError, UsageError), match=rf"\b{field}\b"):
        msgspec.convert({field: wrong}, load(find("mechanism", name)).Config)
