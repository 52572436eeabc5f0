"""Refusals of the contract, before a mechanism computes: sizes and masks that do not fit."""

from __future__ import annotations

import re

import pytest
import torch

from attention_impls.contract import Attention, Context, Dims
from lra.core.catalogue import find
from lra.core.errors import UnsupportedError, UsageError
from lra.core.loading import load

SIZES = {"width": 12, "qkv_width": 16, "heads": 2, "max_length": 20}


@pytest.mark.parametrize(
    "changes",
    [
        {"heads": 0},
        {"heads": -2},
        {"heads": 3},
        {"max_length": 0},
        {"picture_width": 0},
        {"dropout": 1.0},
        {"dropout": 1.5},
        {"dropout": float("nan")},
    ],
)
def test_sizes_that_do_not_fit(changes: dict[str, float]) -> None:
    """One line names the size and its value."""
    with pytest.raises(UsageError) as raised:
        Dims(**{**SIZES, **changes})
    ((name, value),) = changes.items()
    assert {name, f"{value:g}"} <= words(raised.value)


def words(error: Exception) -> set[str]:
    """The words of a message of one line."""
    (line,) = str(error).splitlines()
    return set(re.findall(r"-?[\w.]*\w", line))


WRONG = {
    "short": torch.ones(2, 4, dtype=torch.bool),
    "one row for all": torch.ones(1, 5, dtype=torch.bool),
    "of numbers": torch.ones(2, 5),
    "per pair": torch.ones(2, 5, 5, dtype=torch.bool),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("field", ["query_mask_BN", "key_mask_BM"])
@pytest.mark.parametrize("name", ["full", "block_local", "lstm"])
def test_a_mask_that_does_not_fit_is_refused_in_one_line(name, field, wrong, build) -> None:
    mask, x = WRONG[wrong], torch.randn(2, 5, 12, dtype=torch.float64)
    with pytest.raises(UsageError) as raised:
        build((name, {}))(x, Context(**{field: mask}))
    assert {name, field, str(mask.dtype), "torch.bool"} <= words(raised.value)
    assert f"{tuple(mask.shape)}" in str(raised.value) and "(2, 5)" in str(raised.value)


def test_the_mask_of_a_source_has_the_sources_length(build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    source = torch.randn(2, 7, 12, dtype=torch.float64)
    layer(x, Context(key_mask_BM=torch.ones(2, 7, dtype=torch.bool)), source_BMD=source)
    with pytest.raises(UsageError, match=r"key_mask_BM.*\(2, 7\)"):
        layer(x, Context(key_mask_BM=WRONG["short"]), source_BMD=source)


PAIRS = {
    "of numbers": torch.ones(2, 5, 7),
    "transposed": torch.ones(2, 7, 5, dtype=torch.bool),
    "for one example": torch.ones(1, 5, 7, dtype=torch.bool),
    "with heads": torch.ones(2, 2, 5, 7, dtype=torch.bool),
    "without examples": torch.ones(5, 7, dtype=torch.bool),
}


@pytest.mark.parametrize("wrong", PAIRS)
def test_a_mask_of_pairs_that_does_not_fit_is_refused_in_one_line(wrong, build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    source = torch.randn(2, 7, 12, dtype=torch.float64)
    layer(x, Context(mask_BNM=torch.ones(2, 5, 7, dtype=torch.bool)), source_BMD=source)
    with pytest.raises(UsageError) as raised:
        layer(x, Context(mask_BNM=PAIRS[wrong]), source_BMD=source)
    assert {"full", "mask_BNM", str(PAIRS[wrong].dtype), "torch.bool"} <= words(raised.value)
    assert f"{tuple(PAIRS[wrong].shape)}" in str(raised.value) and "(2, 5, 7)" in str(raised.value)


PLACES = {
    "of floats": torch.ones(2, 5),
    "of int32": torch.ones(2, 5, dtype=torch.int32),
    "for all examples": torch.arange(5),
    "too many": torch.zeros(2, 6, dtype=torch.int64),
}


@pytest.mark.parametrize("wrong", PLACES)
@pytest.mark.parametrize("field", ["positions_BN", "source_positions_BM"])
def test_places_that_do_not_fit_are_refused_in_one_line(field, wrong, build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    layer(x, Context(**{field: torch.zeros(2, 5, dtype=torch.int64)}), source_BMD=x)
    with pytest.raises(UsageError) as raised:
        layer(x, Context(**{field: PLACES[wrong]}), source_BMD=x)
    assert {"full", field, str(PLACES[wrong].dtype), "torch.int64"} <= words(raised.value)
    assert "(2, 5)" in str(raised.value)


def test_places_of_a_source_are_refused_without_one(build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    places = torch.zeros(2, 5, dtype=torch.int64)
    with pytest.raises(UsageError, match="source_positions_BM"):
        layer(x, Context(positions_BN=places, source_positions_BM=places))


@pytest.mark.parametrize(
    ("name", "request_of"),
    [
        ("lstm", {"mask_BNM": torch.ones(2, 5, 5, dtype=torch.bool)}),
        ("block_local", {"mask_BNM": torch.ones(2, 5, 5, dtype=torch.bool)}),
        ("linear", {"mask_BNM": torch.ones(2, 5, 5, dtype=torch.bool)}),
        ("lstm", {"positions_BN": torch.arange(5).expand(2, 5)}),
        ("block_local", {"positions_BN": torch.arange(5).expand(2, 5)}),
        ("linformer", {"positions_BN": torch.arange(5).expand(2, 5)}),
    ],
)
def test_what_a_card_does_not_claim_of_pairs_and_places_is_refused(name, request_of, build) -> None:
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    with pytest.raises(UnsupportedError) as raised:
        build((name, {}))(x, Context(**request_of))
    assert name in words(raised.value)


@torch.no_grad()
def test_a_state_takes_no_mask_of_pairs_and_no_places_of_a_bias(build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    places = torch.arange(5).expand(2, 5)
    alibi, rope = (load(find("position", name))(layer.dims) for name in ("alibi", "rope"))

    def ask(**fields) -> None:
        state = layer.init_state(2, length=5, device=x.device, dtype=x.dtype)
        layer(x, Context(causal=True, **fields), state=state)

    for fields in ({}, {"positions_BN": places, "position": rope}, {"positions_BN": places}):
        ask(**fields)
    for fields in (
        {"mask_BNM": torch.ones(2, 5, 5, dtype=torch.bool)},
        {"positions_BN": places, "position": alibi},
    ):
        with pytest.raises(UnsupportedError) as raised:
            ask(**fields)
        assert {"full", "state"} <= words(raised.value)


def test_what_a_mask_of_keys_alone_hides_is_not_read(any_case, build, directions) -> None:
    layer = build(any_case)
    if layer.mixes_queries:
        pytest.skip("other queries are read too, whatever keys are masked")
    if layer.card.capabilities.padding == "none":
        pytest.skip("takes no mask")
    x = torch.randn(2, 20, 12, dtype=torch.float64)
    mask = torch.ones(2, 20, dtype=torch.bool)
    mask[:, 5:8] = False
    for causal in directions(layer):
        context = Context(causal, key_mask_BM=mask)
        found, wanted = (layer(y, context).y_BND for y in (x * (10 - 9 * mask[..., None]), x))
        torch.testing.assert_close(found[mask], wanted[mask])


def test_an_oracle_computes_in_float64(any_case, build, directions) -> None:
    layer, x = build(any_case, dtype=torch.float32), torch.randn(2, 9, 12)
    for causal in directions(layer):
        context = Context(causal)
        if isinstance(layer, Attention):
            *heads, extra = layer.project(x, context, None, None)
            out, _ = layer.oracle(*heads, context, **extra)
        else:
            out = layer.oracle(x, context)
        assert out.dtype == torch.float64
