"""What the contract refuses before a mechanism computes: sizes and masks that do not fit."""

from __future__ import annotations

import pytest
import torch

from attention_impls.contract import Context, Dims
from lra.core.errors import UsageError

SIZES = {"width": 12, "qkv_width": 16, "heads": 2, "max_length": 20}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"heads": 0}, "heads is 0; choose 1 or more"),
        ({"heads": -2}, "heads is -2; choose 1 or more"),
        ({"max_length": 0}, "max_length is 0; choose 1 or more"),
        ({"dropout": 1.0}, "dropout is 1; choose 0 or more, and less than 1"),
        ({"dropout": 1.5}, "dropout is 1.5; choose 0 or more, and less than 1"),
        ({"dropout": float("nan")}, "dropout is nan; choose 0 or more, and less than 1"),
        ({"heads": 3}, "3 heads do not divide the qkv width 16; choose a multiple"),
    ],
)
def test_sizes_that_do_not_fit(changes: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        Dims(**{**SIZES, **changes})
    assert str(raised.value) == says


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
    given = f"{name}: {field} is {mask.dtype} of shape {tuple(mask.shape)}; "
    assert str(raised.value) == given + (
        "give torch.bool of shape (2, 5), True where a position is real"
    )


def test_the_mask_of_a_source_has_the_sources_length(build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    source = torch.randn(2, 7, 12, dtype=torch.float64)
    layer(x, Context(key_mask_BM=torch.ones(2, 7, dtype=torch.bool)), source_BMD=source)
    with pytest.raises(UsageError, match=r"give torch.bool of shape \(2, 7\)"):
        layer(x, Context(key_mask_BM=WRONG["short"]), source_BMD=source)


def test_checking_masks_breaks_no_graph(build) -> None:
    layer, x = build(("full", {})), torch.randn(2, 5, 12, dtype=torch.float64)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    context = Context(query_mask_BN=torch.ones(2, 5, dtype=torch.bool))
    torch.testing.assert_close(compiled(x, context).y_BND, layer(x, context).y_BND)


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
