"""Remarks on somebody's class: which keys its causal flag means, and a causal form that it lacks.

B batch   N queries   M keys   D model width   H heads
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lra.adapters.adapt import adapt, configure
from lra.verify import kit, remarks
from lra.verify.subject import Subject


def subject(what: Any, **settings: Any) -> Subject:
    mechanism = adapt(what, "mine")
    config = mechanism.Config(**settings)
    return Subject(configure(mechanism, config), config)


def first_keys(q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def last_keys(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    permitted = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    if causal:
        permitted = permitted.tril(k.shape[-2] - q.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=permitted)


def strictly_before(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    permitted = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    if causal:
        permitted = permitted.tril(-1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=permitted).nan_to_num()


def as_many(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    if causal and q.shape != k.shape:
        raise ValueError("as many queries as keys, please")
    return v


def by_pairs(query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, is_causal=False):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)


class BuiltSo(nn.Module):
    """Its own projections, another sequence, and a direction decided when it is built."""

    def __init__(self, dim: int, causal: bool = False) -> None:
        super().__init__()
        self.project, self.causal = nn.Linear(dim, dim), causal

    def forward(self, x: Tensor, context: Any = None) -> Tensor:
        k = self.project(x if context is None else context)
        y: Tensor = first_keys(self.project(x)[:, None], k[:, None], k[:, None], self.causal)
        return y[:, 0]


@pytest.mark.parametrize(
    ("what", "ending"),
    [
        (first_keys, ": first keys"),
        (BuiltSo, ": first keys"),
        (last_keys, ": last keys"),
        (strictly_before, "each query reads: none, 0, 1"),
        (as_many, ": not tried: ValueError: as many queries as keys, please"),
        (by_pairs, ": not tried, since attn_mask says which query may read which key"),
    ],
)
def test_it_is_said_which_keys_a_causal_flag_means(what: Any, ending: str) -> None:
    said = remarks.causal_keys(subject(what))
    assert said.startswith(("causal", "is_causal")) and said.endswith(ending), said


def neither(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return v


class OwnKeysAlone(nn.Module):
    def forward(self, x: Tensor, causal: bool = False) -> Tensor:
        return x


@pytest.mark.parametrize("what", [neither, OwnKeysAlone])
def test_nothing_is_said_without_a_flag_or_keys_apart(what: Any) -> None:
    assert remarks.causal_keys(subject(what)) == ""


def test_nothing_is_said_of_keys_that_are_denied() -> None:
    assert remarks.causal_keys(subject(first_keys, cross=False)) == ""


class NeedsAWindow(BuiltSo):
    """Its causal form asks for more than its sizes."""

    def __init__(self, dim: int, causal: bool = False, window: int = 0) -> None:
        assert not causal or window, "a causal one needs a window"
        super().__init__(dim, causal)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)


def test_a_causal_form_that_cannot_be_built_costs_the_causal_half_alone() -> None:
    without, given = subject(NeedsAWindow), subject(NeedsAWindow, window=3)
    assert "a causal one needs a window" in remarks.why_not_causal(without)
    assert remarks.why_not_causal(given) == remarks.why_not_causal(subject(BuiltSo)) == ""
    laws = kit.select(["output", "causality", "gradcheck", "refusal"])
    halved = without.claiming({"causal": "no"})
    verdicts = [kit.try_law(law, halved).verdict for law in laws]
    assert verdicts == ["held", "held", "not claimed", "held"], verdicts
    assert kit.try_law(laws[0], given).verdict == "held"
