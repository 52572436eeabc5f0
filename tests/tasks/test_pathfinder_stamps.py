"""Integer geometry against floating point and Pillow, which the original drew with."""

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tasks.generators import pathfinder_fixed as fixed
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_stamps import disc, disc_offsets, paddles, shrink
from tasks.generators.pathfinder_tables import SEEDS, build

DEGREES = np.arange(-180, 180)


def units():
    angles = DEGREES * fixed.PI // 180
    return np.stack([fixed.sin(angles), fixed.cos(angles)], axis=1)


def test_sines_and_cosines_to_nine_digits():
    angles = np.arange(-10 * fixed.ONE, 10 * fixed.ONE, 99_991)
    real = angles / fixed.ONE
    assert np.abs(fixed.cos(angles) / fixed.ONE - np.cos(real)).max() < 2**-27
    assert np.abs(fixed.sin(angles) / fixed.ONE - np.sin(real)).max() < 2**-27


def test_directions_to_nine_digits():
    y, x = (part.ravel() for part in np.mgrid[-20:21, -20:21])
    somewhere = (y != 0) | (x != 0)
    found = fixed.direction(y, x)[somewhere] / fixed.ONE
    assert np.abs(found - np.arctan2(y, x)[somewhere]).max() < 2**-27


@pytest.mark.parametrize("length", [1, 2, 4, 5, 7, 10])
def test_what_should_be_whole_is_not_rounded_up(length):
    """Lengths times sines of 0, 30 and 90 degrees: floating point lands on either side."""
    exact = {0: 0, 90: length, -90: -length, 180: 0, 30: length / 2, 150: length / 2}
    for degrees, value in exact.items():
        angle = np.array(degrees * fixed.PI // 180)
        assert fixed.ceil(length * fixed.sin(angle)) == math.ceil(value)
        assert fixed.floor(length * fixed.sin(angle)) == math.floor(value)


@pytest.mark.parametrize(("length", "thickness"), [(1, 1), (2, 1), (5, 2), (5, 3), (5, 4), (9, 5)])
def test_lines_are_pillows(length, thickness):
    half = length + 4
    stamps, _ = paddles(units(), length=length, thickness=thickness, margin=1, half=half, fine=2)
    centre = 2 * half
    for degrees, stamp in zip(DEGREES, stamps, strict=True):
        turn = math.radians(degrees)
        down, across = (
            math.ceil(round(2 * length * part, 9)) for part in (math.sin(turn), math.cos(turn))
        )
        picture = Image.new("L", (2 * centre + 1, 2 * centre + 1))
        ends = [(centre, centre), (centre + across, centre + down)]
        ImageDraw.Draw(picture).line(ends, fill=255, width=thickness)
        small = picture.resize((2 * half + 1, 2 * half + 1), Image.Resampling.LANCZOS)
        assert np.abs(np.array(small).astype(int) - stamp).max() <= 1


def test_shrinking_is_pillows():
    noise = np.random.default_rng(0).integers(0, 2, (20, 17, 17)).astype(np.uint8) * 255
    for picture, small in zip(noise, shrink(noise, 9), strict=True):
        pillow = Image.fromarray(picture).resize((9, 9), Image.Resampling.LANCZOS)
        assert np.abs(np.array(pillow).astype(int) - small).max() <= 1


@pytest.mark.parametrize("radius", [1.0, 1.5, 2.5, 3.0, 5.0])
def test_disc_is_a_circle_of_that_area(radius):
    marker = disc(radius, 2)
    assert marker.max() == 255
    assert marker[0].max() == marker[:, -1].max() == 0
    fine = sum(y * y + x * x <= (2 * radius) ** 2 for y in range(-10, 11) for x in range(-10, 11))
    assert marker.sum() / 255 == pytest.approx(fine / 4, rel=0.1)


def test_disc_offsets():
    assert sorted(map(tuple, disc_offsets(1))) == [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("side", [32, 128])
def test_weights_are_squared_cosines_of_the_turn(side):
    settings = resolve(side, {})
    tables = build(settings, settings.paddle_margins[0])
    ahead = np.arctan2(tables.candidates[:, 0], tables.candidates[:, 1])
    angles = np.concatenate([np.radians(DEGREES), ahead])
    turn = np.abs(angles[:, None] - ahead)
    turn = np.minimum(turn, 2 * np.pi - turn)
    expected = np.cos(np.minimum(settings.continuity * turn, np.pi / 2)) ** 2
    assert np.abs(tables.weights / 2**16 - expected).max() < 2**-15


def test_candidates_lie_on_the_circle_of_the_original():
    tables = build(resolve(32, {}), 1)
    circle = {(math.floor(3 * math.sin(k / 3)), math.floor(3 * math.cos(k / 3))) for k in range(19)}
    assert set(map(tuple, tables.candidates)) == circle
    assert len(tables.candidates) == len(circle) == 18


def test_first_seeds_keep_their_probe_amid_the_image():
    """Brute force over all pixels of a 32 x 32 image gives the same rooms as the table."""
    settings = resolve(32, {})
    tables = build(settings, 1)
    middle = range(settings.band, 32 - settings.band)
    for turned in range(0, SEEDS, 7):
        probe = tables.core[turned]
        tails = [
            (y, x)
            for y in range(32)
            for x in range(32)
            if all(y + dy in middle and x + dx in middle for dy, dx in probe)
        ]
        rows, columns = tables.first_room[turned]
        assert len(tails) == max(rows, 0) * max(columns, 0)
        assert not tails or tails[0] == tuple(tables.first_low[turned])


def test_most_directions_are_closed_to_small_seeds_as_in_the_original():
    """A sample of the original's 32 x 32 images shows it: see docs/pathfinder.md."""
    opened = build(resolve(32, {}), 1).open
    assert set(DEGREES[opened]) == set(range(-150, -119))
    assert build(resolve(32, {"probe": "centred"}), 1).open.all()
