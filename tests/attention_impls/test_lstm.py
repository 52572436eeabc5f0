"""What is particular to the LSTM: gates by hand, two directions, padding that is skipped."""

from __future__ import annotations

import math

import pytest
import torch

from attention_impls.contract import Context
from lra.core.errors import UsageError


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_gates_by_hand_at_three_positions(build) -> None:
    """One channel each way; all weights of a gate are 1, 2, 3 or 4 tenths, in PyTorch's order."""
    layer = build(("lstm", {}), width=2)
    with torch.no_grad():
        for half in (layer.first, layer.second):
            for weight in half.all_weights[0]:
                tenths = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
                weight.copy_(tenths.view(4, *[1] * (weight.dim() - 1)).expand_as(weight))
    x = torch.tensor([[[1.0, 2.0], [-1.0, 0.5], [0.25, 0.0]]], dtype=torch.float64)
    y = layer(x, Context()).y_BND[0].detach()
    for channel, order in enumerate(((0, 1, 2), (2, 1, 0))):
        h = c = 0.0
        for place in order:
            total = float(x[0, place].sum()) + h + 2  # and two biases
            i, f, g, o = (tenth * total / 10 for tenth in (1, 2, 3, 4))
            c = sigmoid(f) * c + sigmoid(i) * math.tanh(g)
            h = sigmoid(o) * math.tanh(c)
            assert float(y[place, channel]) == pytest.approx(h, rel=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_is_skipped_wherever_it_stands(causal, build) -> None:
    """In front, within and behind: real positions come out as if they stood alone."""
    layer = build(("lstm", {}))
    x = torch.randn(1, 9, 12, dtype=torch.float64)
    mask = torch.tensor([[False, True, False, False, True, True, False, True, False]])
    found = layer(x, Context(causal, mask)).y_BND
    alone = layer(x[mask].unsqueeze(0), Context(causal)).y_BND
    torch.testing.assert_close(found[mask], alone[0])


@torch.no_grad()
def test_a_state_after_padding_is_that_of_the_last_real_position(build) -> None:
    layer = build(("lstm", {}))
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    mask = torch.tensor([[True, False, True, False, False], [False] * 5])
    state = layer.init_state(2, length=5, device=x.device, dtype=x.dtype)
    state = layer(x, Context(True, mask), state=state).state
    alone = layer.init_state(1, length=5, device=x.device, dtype=x.dtype)
    alone = layer(x[:1, mask[0]], Context(True), state=alone).state
    torch.testing.assert_close(state.hidden_BD[:1], alone.hidden_BD)
    torch.testing.assert_close(state.cell_BD[:1], alone.cell_BD)
    assert not bool(state.hidden_BD[1].any()) and state.seen_B.tolist() == [5, 5]


@torch.no_grad()
def test_one_padded_position_leaves_the_state(build) -> None:
    layer = build(("lstm", {}))
    x = torch.randn(2, 3, 12, dtype=torch.float64)
    state = layer.init_state(2, length=5, device=x.device, dtype=x.dtype)
    before = layer(x[:, :2], Context(True), state=state).state
    mask = torch.tensor([[True], [False]])
    y, after = layer(x[:, 2:], Context(True, mask), state=before)
    bare = layer(x[:, 2:], Context(True), state=before)
    assert torch.equal(y[0], bare.y_BND[0]) and not bool(y[1].any())
    for found, new, old in zip(after[:2], bare.state, before, strict=False):
        assert torch.equal(found, torch.stack([new[0], old[1]]))


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
