"""A pattern keeps what it was given to within a byte a value, and a broken one is refused."""

import math

import msgspec
import numpy as np
import pytest

from lra.core.errors import UsageError
from lra.core.pattern import DECADES, MOST_SQUARES, Pattern, check_size, pack

N = 12
NUMBERS = np.random.default_rng(0)
BAND = np.tri(N, k=2, dtype=bool)[None] & ~np.tri(N, k=-3, dtype=bool)


def weights(support, values):
    return pack(support, values, "weights", measured=False)


def test_the_support_comes_back_bit_by_bit_and_heads_alike_are_kept_once():
    values = NUMBERS.random((3, N, N))
    other = BAND.copy()
    other[0, 5, 0] = True
    for support in (BAND, np.concatenate([BAND, other, BAND])):
        found = weights(support, values)
        assert (found.support_SNN() == support).all() and found.supports == len(support)
        assert found.share == pytest.approx(support.mean())
    assert weights(np.repeat(BAND, 3, axis=0), values).supports == 1


@pytest.mark.parametrize(
    ("scale", "steps", "values"),
    [
        ("even", 255, 0.3 * NUMBERS.random((2, N, N)) * BAND),
        ("signed", 127, NUMBERS.normal(size=(2, N, N)) * BAND),
    ],
)
def test_weights_come_back_to_half_a_step_and_zero_is_zero(scale, steps, values):
    found = weights(BAND, values)
    assert (found.scale, found.top) == (scale, np.abs(values).max())
    assert np.abs(found.values_HNN() - values).max() <= found.top / steps / 2 * 1.001
    assert (found.values_HNN()[values == 0] == 0).all()


def test_dependence_keeps_its_ratios_over_decades():
    values = 7.0 * 10.0 ** -NUMBERS.uniform(0, DECADES, size=(1, N, N))
    values[0, 0, :2] = 7.0, 0.0
    again = pack(values > 0, values, "dependence", measured=True).values_HNN()
    assert again[0, 0, 1] == 0
    ratios = np.log10(again[values > 0] / values[values > 0])
    assert np.abs(ratios).max() <= DECADES / 254 / 2 * 1.001
    assert again.max() == pytest.approx(7.0)


@pytest.mark.parametrize("kind", ["weights", "dependence"])
def test_nothing_at_all_is_zero_on_every_scale(kind):
    nothing = np.zeros((1, N, N))
    found = pack(nothing > 0, nothing, kind, measured=True)
    assert (found.values_HNN() == 0).all() and found.share == 0


def test_the_largest_pattern_is_below_100_kb_of_json():
    n = math.isqrt(MOST_SQUARES // 4)
    found = weights(NUMBERS.random((4, n, n)) > 0.5, NUMBERS.random((4, n, n)))
    data = msgspec.json.encode(found)
    assert len(data) < 100_000
    assert msgspec.json.decode(data, type=Pattern) == found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"length": N + 1}, "should be"),
        ({"heads": 1}, "should be"),
        ({"supports": 2}, "should be"),
        ({"levels": "AAAA"}, "cannot be unpacked"),
        ({"support": ""}, "should be"),
        ({"heads": 10**9}, "more than"),
        ({"kind": "colours"}, "kind"),
    ],
)
def test_a_broken_pattern_is_a_validation_error(change, says):
    whole = weights(BAND, NUMBERS.random((2, N, N)))
    plain = msgspec.json.decode(msgspec.json.encode(whole))
    with pytest.raises(msgspec.ValidationError, match=says):
        msgspec.json.decode(msgspec.json.encode(plain | change), type=Pattern)


@pytest.mark.parametrize(("length", "heads"), [(1, 1), (128, 4), (256, 1)])
def test_sizes_that_can_be_drawn(length, heads):
    check_size(length, heads)


@pytest.mark.parametrize(
    ("length", "heads", "says"),
    [
        (0, 4, "no position to draw"),
        (-3, 1, "no position"),
        (129, 4, "draw 128 positions at most, or fewer --heads$"),
        (1, 99_999, "; draw fewer --heads$"),
    ],
)
def test_sizes_that_cannot(length, heads, says):
    with pytest.raises(UsageError, match=says):
        check_size(length, heads)
