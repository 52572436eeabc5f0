"""The oracles of the recurrent mixers against scipy's discretisation and torch's own LSTM.

S4D (Gu et al. 2022, sections 2 and 3): x' = A x + B u with a diagonal complex A, B = 1, zero-order
hold, y = 2 Re(C x) + D u for conjugate pairs. Also read beside state-spaces/s4,
models/s4/s4d.py: the same kernel, the same skip, GELU, and a position-wise linear map with a GLU.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from plain import dot, drawn, same
from scipy.signal import cont2discrete
from torch import nn

from attention_impls.contract import Context


@torch.no_grad()
def scan(layer, channel: int, u: list[float], direction: int) -> list[float]:
    """Run one channel step by step: each mode a real system of two states, discretised by scipy.

    (a + i b)(p + i q) = (a p - b q) + i (b p + a q), driven in its real part; the read is
    2 Re((c + i d)(p + i q)) = 2 (c p - d q).
    """
    total = [0.0] * len(u)
    step = math.exp(float(layer.log_step_D[channel]))
    for mode in range(layer.frequency_DS.shape[1]):
        a = -math.exp(float(layer.log_decay_DS[channel, mode]))
        b = float(layer.frequency_DS[channel, mode])
        c, d = layer.read_2DS2[direction, channel, mode].tolist()
        system = (
            np.array([[a, -b], [b, a]]),
            np.array([[1.0], [0.0]]),
            np.eye(2),
            np.zeros((2, 1)),
        )
        turn, drive, *_ = cont2discrete(system, step, method="zoh")
        state = np.zeros(2)
        for t, value in enumerate(u):
            state = turn @ state + drive[:, 0] * value
            total[t] += 2 * (c * state[0] - d * state[1])
    return total


def gelu(x: float) -> float:
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


@torch.no_grad()
@pytest.mark.parametrize("init", ["lin", "inv"])
@pytest.mark.parametrize("causal", [False, True])
def test_s4d(causal, init, build) -> None:
    """From the end, the second kernel reads what comes after a position: none counts twice."""
    layer = build(("s4d", {"state": 4, "init": init}), width=3, qkv_width=4)
    layer.log_step_D += 1.5  # longer steps, over which scipy's and other formulas part
    x = drawn(1, 5, 3)
    channels = []
    for channel in range(3):
        u = x[0, :, channel].tolist()
        y = scan(layer, channel, u, 0)
        if not causal:
            later = scan(layer, channel, u[::-1], 1)[::-1]
            y = [now + after for now, after in zip(y, [*later[1:], 0.0], strict=True)]
        skip = float(layer.skip_D[channel])
        channels.append([gelu(now + skip * value) for now, value in zip(y, u, strict=True)])
    weight, bias = layer.output.weight.tolist(), layer.output.bias.tolist()
    wanted = []
    for row in zip(*channels, strict=True):
        z = [dot(ws, row) + b for ws, b in zip(weight, bias, strict=True)]
        wanted.append([z[c] / (1 + math.exp(-z[3 + c])) for c in range(3)])
    torch.testing.assert_close(
        layer.oracle(x, Context(causal))[0].detach(),
        torch.tensor(wanted, dtype=torch.float64),
        rtol=1e-9,
        atol=1e-9,
    )


def test_s4ds_frequencies_by_hand(build) -> None:
    """S4D-Lin: pi s. S4D-Inv: (N / pi) (N / (2 s + 1) - 1), here 8 / pi times 7, 5/3, 3/5, 1/7."""
    lin, inv = (
        build(("s4d", {"state": 8, "init": init})).frequency_DS[0] for init in ("lin", "inv")
    )
    close = {"rtol": 1e-6, "atol": 1e-6}
    torch.testing.assert_close(lin.detach(), torch.arange(4).double() * math.pi, **close)
    wanted = torch.tensor([7, 5 / 3, 3 / 5, 1 / 7], dtype=torch.float64) * 8 / math.pi
    torch.testing.assert_close(inv.detach(), wanted, **close)


def bidirectional(layer) -> nn.LSTM:
    """Return torch's LSTM of both directions with the layer's weights."""
    width = layer.dims.width
    lstm = nn.LSTM(width, width // 2, batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for ours, theirs in zip((layer.first, layer.second), lstm.all_weights, strict=True):
            for source, target in zip(ours.all_weights[0], theirs, strict=True):
                target.copy_(source)
    return lstm


def test_lstm_against_torch(build) -> None:
    layer = build(("lstm", {}))
    x = drawn(2, 7, 12)
    same(layer.oracle(x, Context()), bidirectional(layer)(x)[0])
    halves = [half(x)[0] for half in (layer.first, layer.second)]
    same(layer.oracle(x, Context(causal=True)), torch.cat(halves, dim=-1))


def test_lstm_skips_padding_as_torchs_packed_sequences(build) -> None:
    layer = build(("lstm", {}))
    x, lengths = drawn(2, 7, 12), torch.tensor([7, 4])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    wanted, _ = nn.utils.rnn.pad_packed_sequence(
        bidirectional(layer)(packed)[0], batch_first=True, total_length=7
    )
    mask = torch.arange(7) < lengths[:, None]
    same(layer.reference(x, Context(query_mask_BN=mask)), wanted)


@torch.no_grad()
def test_one_step_of_the_lstm_by_hand(build) -> None:
    """Hochreiter and Schmidhuber with Gers's forget gate, from rest: c = i g, h = o tanh(c)."""
    layer = build(("lstm", {}), width=2)
    w, _, b_x, b_h = (part.double() for part in layer.first.all_weights[0])
    x = [0.5, -2.0]
    z = [
        float(w[row, 0]) * x[0] + float(w[row, 1]) * x[1] + float(b_x[row]) + float(b_h[row])
        for row in range(4)
    ]
    i, _, o = (1 / (1 + math.exp(-z[row])) for row in (0, 1, 3))
    found = layer.oracle(torch.tensor([[x]], dtype=torch.float64), Context())
    assert float(found[0, 0, 0]) == pytest.approx(o * math.tanh(i * math.tanh(z[2])), rel=1e-12)
