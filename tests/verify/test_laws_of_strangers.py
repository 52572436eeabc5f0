"""What is wrong at some lengths or places only is found where nobody says where to look."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lra.verify import kit
from lra.verify.subject import Subject
from verify.faults.dense import Dense
from verify.faults.strangers import stranger


class FewerQueriesOnly(Dense):
    """Attends to another sequence, unless that is shorter."""

    def attend(self, q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        if q.shape[2] > k.shape[2]:
            raise ValueError("more queries than keys")
        return super().attend(q, k, *args, **kwargs)


class GradientStoppedWhenLong(Dense):
    """The gradient of the keys is lost beyond eight positions."""

    def attend(self, q: Tensor, k: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
        return super().attend(q, k if k.shape[2] <= 8 else k.detach(), *args, **kwargs)


class LeaksAtBorders(Dense):
    """The last query of each block of 20 reads the first key of the next."""

    def permitted(self, logits: Tensor, causal: bool, mask: Tensor | None) -> Tensor:
        n, m = logits.shape[-2:]
        rows, columns = torch.arange(n)[:, None], torch.arange(m)
        leak = (rows % 20 == 19) & (columns == rows + 1)
        leaky = super().permitted(logits, causal, None) | leak
        return leaky if mask is None else leaky & mask[:, None, None, :]


@pytest.mark.parametrize(
    ("fault", "law", "words"),
    [
        (FewerQueriesOnly, "cross", "more queries than keys"),
        (GradientStoppedWhenLong, "gradcheck", "finite differences"),
        (LeaksAtBorders, "causality", "outputs up to 19 when later inputs"),
    ],
)
def test_it_is_found(fault: type[Dense], law: str, words: str) -> None:
    theirs = stranger(fault)
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "failed" and words in found.detail, found


@pytest.mark.parametrize("law", ["memory_growth", "time_growth"])
def test_what_claims_no_growth_is_reported(law: str) -> None:
    theirs = stranger(Dense)
    found = kit.try_law(kit.select([law])[0], Subject(theirs, theirs.Config()))
    assert found.verdict == "reported" and "grows as n^" in found.detail, found
