"""The class that the page on claims shows is right in every type.

B batch   N queries   D model width
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from attention_impls.contract import Context, Dims
from lra.adapters.adapt import adapt
from lra.verify import kit
from lra.verify.subject import Subject

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"


@pytest.fixture(scope="module")
def shown() -> Any:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (source,) = [block for block in blocks if "class Mine" in block]
    where: dict[str, Any] = {"__name__": __name__}
    exec(source, where)
    return adapt(where["Mine"], "mine")


@pytest.mark.parametrize(
    ("dtype", "most"),
    [
        (torch.float64, 1e-12),
        (torch.float32, 1e-5),
        (torch.bfloat16, 4e-2),
        (torch.float16, 5e-3),
    ],
)
@pytest.mark.parametrize("causal", [False, True])
def test_it_is_right_in_every_type(shown: Any, causal: bool, dtype: torch.dtype, most: float):
    keep_BN = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 0], [0, 0, 0, 0, 0]]).bool()
    found = answers(shown, keep_BN, causal, dtype)
    wanted = answers(shown, keep_BN, causal, torch.float64)
    for one, exact in zip(found, wanted, strict=True):
        assert one.dtype == dtype and one.isfinite().all()
        gap = (one.double() - exact).norm() / exact.norm()
        assert gap <= most, gap


def answers(shown: Any, keep_BN: Tensor, causal: bool, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    layer = shown(Dims(width=16, qkv_width=16, heads=2, max_length=8)).to(torch.bfloat16).to(dtype)
    x_BND = torch.randn(3, 5, 16).to(torch.bfloat16).to(dtype).requires_grad_()
    y_BND = layer(x_BND, Context(causal=causal, query_mask_BN=keep_BN)).y_BND
    return y_BND.detach(), torch.autograd.grad(y_BND.square().sum(), x_BND)[0]


def test_its_precision_is_reported_for_every_type(shown: Any) -> None:
    found = kit.try_law(kit.select(["precision"])[0], Subject(shown, shown.Config()))
    assert found.verdict == "reported"
    parts = dict(re.findall(r"(\w+): output off by (\S+),", found.detail))
    assert set(parts) == {"bfloat16", "float16", "autocast"}, found
    assert all(float(gap) < 3e-2 for gap in parts.values())


def overflows(q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
    """A number that float16 does not have."""
    logits = q @ k.mT
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None, :], -1e9)
    return logits.softmax(-1) @ v


def test_a_number_that_float16_lacks_is_reported() -> None:
    mechanism = adapt(overflows, "mine")
    found = kit.try_law(kit.select(["precision"])[0], Subject(mechanism, mechanism.Config()))
    (words,) = [part for part in found.detail.split("; ") if part.startswith("float16: ")]
    assert "overflow" in words and "mask=scattered" in words, found
    assert "bfloat16: output off by" in found.detail


def underflows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Values through numbers so small that float16 keeps few of their digits."""
    small = (v.detach() * 1e-6) * 1e3 * 1e3
    return (q @ k.mT).softmax(-1) @ (v + small - v.detach())


@pytest.mark.parametrize(("own", "is_named"), [(underflows, True), (overflows, False)])
def test_a_range_that_float16_lacks_is_named(own: Any, is_named: bool) -> None:
    mechanism = adapt(own, "mine")
    found = kit.try_law(kit.select(["precision"])[0], Subject(mechanism, mechanism.Config()))
    assert ("range" in found.detail) == is_named, found
