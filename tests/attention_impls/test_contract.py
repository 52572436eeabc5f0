"""Refusals of the contract, before a mechanism computes: sizes and masks that do not fit."""

from __future__ import annotations

import re

import pytest
import torch

from attention_impls.contract import Attention, Context, Dims
from lra.core.errors import UsageError

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
