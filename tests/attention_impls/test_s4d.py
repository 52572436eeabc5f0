"""S4D's own: its step, its powers, its tables, its padding."""

from __future__ import annotations

import math

import pytest
import torch

from attention_impls.contract import Context
from attention_impls.recurrent._modes import Modes, transform_length
from lra.core.errors import UsageError


def test_one_step_is_two_of_half_the_size() -> None:
    """An input held over a step is one held over both of its halves."""
    generator = torch.Generator().manual_seed(0)
    decay, turn = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    log_step = torch.linspace(-8, 0, 5, dtype=torch.float64)
    whole, half = (Modes(log_step - shift, decay, turn, 4) for shift in (0.0, math.log(2)))
    torch.testing.assert_close(whole.one_DS, half.one_DS**2)
    torch.testing.assert_close(whole.gain_DS, half.gain_DS * (1 + half.one_DS))
    assert bool((whole.one_DS.abs() < 1).all())


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 100])
def test_powers_by_two_tables_are_powers(n) -> None:
    generator = torch.Generator().manual_seed(0)
    decay, turn = torch.randn(2, 2, 3, generator=generator, dtype=torch.float64)
    modes = Modes(torch.zeros(2, dtype=torch.float64), decay, turn, n)
    lags = torch.arange(n)
    taps = torch.complex(*torch.randn(2, 4, 2, 3, generator=generator, dtype=torch.float64))
    wanted = 2 * (taps.unsqueeze(-1) * modes.one_DS.unsqueeze(-1) ** lags).sum(-2).real
    torch.testing.assert_close(modes.kernels(taps), wanted)


def test_float32_keeps_the_angle_of_fast_modes_at_long_lags() -> None:
    """A mode of 130 radians a step; multiplied up in float32 its angle would be lost."""
    steps = (torch.full((1,), math.log(0.1)), torch.full((1, 1), -9.0), torch.full((1, 1), 1304.0))
    found = Modes(*steps, 4096).kernels(torch.ones(1, 1, 1, dtype=torch.complex64))
    turn = float(steps[0].exp()) * 1304.0
    turn = float(torch.tensor(turn, dtype=torch.float32))
    lags = torch.arange(4096, dtype=torch.float64)
    size = torch.exp(-float((steps[0].exp() * steps[1].exp()).item()) * lags)
    wanted = 2 * size * torch.cos(turn * lags)
    assert float((found[0, 0].double() - wanted).abs().max()) < 1e-4


@torch.no_grad()
def test_what_modes_begin_with(build) -> None:
    layer = build(("s4d", {"state": 6, "step_min": 0.01, "step_max": 0.02}))
    torch.testing.assert_close(layer.log_decay_DS.exp().data, torch.full((12, 3), 0.5).double())
    steps = layer.log_step_D.exp()
    assert float(steps.min()) > 0.0099 and float(steps.max()) < 0.0201


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cast_keeps_every_parameter_real(dtype, build) -> None:
    layer = build(("s4d", {}), dtype=dtype)
    assert {x.dtype for x in layer.state_dict().values()} == {dtype}
    state = layer.init_state(1, length=1, device=torch.device("cpu"), dtype=dtype)
    assert state.modes_BDS.dtype == torch.complex64


def test_lengths_of_transforms_are_fast_and_long_enough() -> None:
    for n in range(1, 3000):
        length = transform_length(n)
        while length % 2 == 0:
            length //= 2
        assert length in (1, 3, 5, 9, 15)
        assert n <= transform_length(n) <= 1.25 * n


@pytest.mark.parametrize(
    ("options", "says"),
    [({"state": 5}, r"\bstate\b.*\b5\b"), ({"step_min": 0.5}, r"step_min 0\.5\b.*step_max 0\.1\b")],
)
def test_what_makes_no_sense_is_refused(options, says, build) -> None:
    with pytest.raises(UsageError, match=says):
        build(("s4d", options))


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_padding_anywhere_is_as_if_it_were_not_there(causal, build) -> None:
    layer = build(("s4d", {"state": 6}))
    x = torch.randn(3, 20, 12, dtype=torch.float64)
    mask = torch.ones(3, 20, dtype=torch.bool)
    mask[0, 16:19], mask[1, :7], mask[2, 3:5], mask[2, 18:] = False, False, False, False
    padded = layer(x, Context(causal, query_mask_BN=mask)).y_BND
    for row in range(3):
        alone = layer(x[row : row + 1, mask[row]], Context(causal)).y_BND
        torch.testing.assert_close(padded[row, mask[row]], alone[0])


@torch.no_grad()
@pytest.mark.parametrize("piece", [1, 7])
def test_decoding_over_padding_leaves_the_state_as_it_was(piece, build) -> None:
    """Also between steps, and where a piece is nothing but padding."""
    layer = build(("s4d", {"state": 6}))
    x = torch.randn(2, 21, 12, dtype=torch.float64)
    mask = torch.rand(2, 21, generator=torch.Generator().manual_seed(0)) > 0.4
    mask[0, 7:14] = False
    state = layer.init_state(2, length=21, device=x.device, dtype=x.dtype)
    for start in range(0, 21, piece):
        part = slice(start, start + piece)
        state = layer(x[:, part], Context(True, query_mask_BN=mask[:, part]), state=state).state
    for row in range(2):
        fresh = layer.init_state(1, length=21, device=x.device, dtype=x.dtype)
        alone = layer(x[row : row + 1, mask[row]], Context(True), state=fresh).state
        torch.testing.assert_close(state.modes_BDS[row], alone.modes_BDS[0])
