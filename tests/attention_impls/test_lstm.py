"""The LSTM's own: its widths, its first bias, and the passes its kernel is told of."""

from __future__ import annotations

import math

import pytest
import torch

from attention_impls.contract import Context
from lra.core.errors import UsageError


@pytest.mark.parametrize("causal", [False, True])
def test_every_parameter_is_trained_in_either_direction(causal, build) -> None:
    layer = build(("lstm", {}), width=7)
    x = torch.randn(2, 5, 7, dtype=torch.float64)
    layer(x, Context(causal)).y_BND.square().sum().backward()
    assert all(bool(parameter.grad.any()) for parameter in layer.parameters())


def test_it_begins_by_remembering(build) -> None:
    for bias in (1.0, 2.5):
        half = build(("lstm", {"forget_bias": bias})).first
        total = (half.bias_ih_l0 + half.bias_hh_l0).detach()
        width = half.hidden_size
        assert bool((total[width : 2 * width] == bias).all())
        assert float(total[:width].abs().max()) <= 2 / math.sqrt(width)


def test_a_width_of_one_is_refused_in_one_line(build) -> None:
    with pytest.raises(UsageError, match=r"lstm.*\bwidth\b.*\b1\b.*\b2\b"):
        build(("lstm", {}), width=1)


def test_the_kernel_is_told_of_a_backward_pass_whatever_the_mode(
    build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU's keeps nothing for one else, and refuses it."""

    def lstm(*given: object) -> object:
        told.append(given[6])
        return real(*given)

    told: list[object] = []
    real = torch.lstm
    monkeypatch.setattr(torch, "lstm", lstm)
    layer = build(("lstm", {})).eval()
    x = torch.randn(1, 4, 12, dtype=torch.float64)
    layer(x, Context())
    with torch.no_grad():
        layer(x, Context())
    assert told == [True, True, False, False], "of two directions each"
