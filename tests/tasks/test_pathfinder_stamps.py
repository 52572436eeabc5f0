"""Integer geometry against floating point and Pillow, which the original drew with."""

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw

from tasks.generators import pathfinder_fixed as fixed
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_stamps import disc, disc_offsets, discs, paddles, shrink
from tasks.generators.pathfinder_tables import SEEDS, build

DEGREES = np.arange(-180, 180)


def tables(side, **given):
    settings = resolve(side, given)
    return settings, build(settings, settings.paddle_margins[0])


def off(pillow, small):
    return np.abs(np.array(pillow).astype(int) - small).max()


def test_sines_cosines_and_directions_to_nine_digits():
    angles = np.arange(-10 * fixed.ONE, 10 * fixed.ONE, 99_991)
    for mine, theirs in ((fixed.cos, np.cos), (fixed.sin, np.sin)):
        assert np.abs(mine(angles) / fixed.ONE - theirs(angles / fixed.ONE)).max() < 2**-27
    y, x = (part.ravel() for part in np.mgrid[-20:21, -20:21])
    somewhere = (y != 0) | (x != 0)
    found = fixed.direction(y, x)[somewhere] / fixed.ONE
    assert np.abs(found - np.arctan2(y, x)[somewhere]).max() < 2**-27


@pytest.mark.parametrize("length", [1, 2, 4, 5, 7, 10])
def test_whole_products_are_not_rounded_up(length):
    """Lengths times sines of 0, 30 and 90 degrees: floating point lands on either side."""
    exact = {0: 0, 90: length, -90: -length, 180: 0, 30: length / 2, 150: length / 2}
    for degrees, value in exact.items():
        angle = np.array(degrees * fixed.PI // 180)
        assert fixed.ceil(length * fixed.sin(angle)) == math.ceil(value)
        assert fixed.floor(length * fixed.sin(angle)) == math.floor(value)


@pytest.mark.parametrize(("length", "thickness"), [(1, 1), (2, 1), (5, 2), (5, 3), (5, 4), (9, 5)])
def test_lines_are_pillows(length, thickness):
    half, angles = length + 4, DEGREES * fixed.PI // 180
    units = np.stack([fixed.sin(angles), fixed.cos(angles)], axis=1)
    stamps, _ = paddles(units, length=length, thickness=thickness, margin=1, half=half, fine=2)
    centre = 2 * half
    for turn, stamp in zip(np.radians(DEGREES), stamps, strict=True):
        parts = (2 * length * part for part in (math.sin(turn), math.cos(turn)))
        down, across = (math.ceil(round(part, 9)) for part in parts)
        picture = Image.new("L", (2 * centre + 1, 2 * centre + 1))
        ends = [(centre, centre), (centre + across, centre + down)]
        ImageDraw.Draw(picture).line(ends, fill=255, width=thickness)
        size = (2 * half + 1, 2 * half + 1)
        assert off(picture.resize(size, Image.Resampling.LANCZOS), stamp) <= 1


def test_shrinking_is_pillows():
    noise = np.random.default_rng(0).integers(0, 2, (20, 17, 17)).astype(np.uint8) * 255
    for picture, small in zip(noise, shrink(noise, 9), strict=True):
        assert off(Image.fromarray(picture).resize((9, 9), Image.Resampling.LANCZOS), small) <= 1


@pytest.mark.parametrize("radius", [1.0, 1.5, 2.5, 3.0, 5.0])
def test_disc_is_a_circle_of_that_area(radius):
    marker = disc(radius, 2)
    assert marker.max() == 255
    assert marker[0].max() == marker[:, -1].max() == 0
    fine = sum(y * y + x * x <= (2 * radius) ** 2 for y in range(-10, 11) for x in range(-10, 11))
    assert marker.sum() / 255 == pytest.approx(fine / 4, rel=0.1)


@pytest.mark.parametrize(("side", "radius"), [(8, 1.0), (12, 1.0), (32, 1.5), (64, 2.5), (40, 5.0)])
def test_discs_are_shrunk_with_the_whole_image(side, radius):
    """As Pillow shrinks it, at every place: near an edge no cut disc looks like that."""
    marks, fine = discs(radius, 2, side), np.arange(2 * side)
    cut = 0
    for tip in np.argwhere(np.ones((side, side))):
        down, across = (fine - 2 * part for part in tip)
        whole = (down[:, None] ** 2 + across**2 <= (2 * radius) ** 2).astype(np.uint8) * 255
        shrunk = Image.fromarray(whole).resize((side, side), Image.Resampling.LANCZOS)
        (corner,), (picture,) = marks.at(tip[None])
        mine = np.zeros((side, side), np.uint8)
        mine[tuple(slice(first, first + len(picture)) for first in corner)] = picture
        assert off(shrunk, mine) <= 1
        cut += tip.min() < radius or tip.max() > side - 1 - radius
    assert cut


def test_disc_offsets():
    assert sorted(map(tuple, disc_offsets(1))) == [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)]


@pytest.mark.parametrize("side", [32, 128])
def test_weights_are_squared_cosines_of_the_turn(side):
    settings, made = tables(side)
    ahead = np.arctan2(made.candidates[:, 0], made.candidates[:, 1])
    turn = np.abs(np.concatenate([np.radians(DEGREES), ahead])[:, None] - ahead)
    turn = np.minimum(turn, 2 * np.pi - turn)
    expected = np.cos(np.minimum(settings.continuity * turn, np.pi / 2)) ** 2
    assert np.abs(made.weights / 2**16 - expected).max() < 2**-15


def test_candidates_lie_on_the_circle_of_the_original():
    found = tables(32)[1].candidates
    circle = {(math.floor(3 * math.sin(k / 3)), math.floor(3 * math.cos(k / 3))) for k in range(19)}
    assert set(map(tuple, found)) == circle and len(found) == len(circle) == 18


def test_first_seeds_keep_their_probe_amid_the_image():
    """Brute force over all pixels of a 32 x 32 image gives the same rooms as the table."""
    settings, made = tables(32)
    middle = range(settings.band, 32 - settings.band)
    places = [(y, x) for y in range(32) for x in range(32)]
    for turned in range(0, SEEDS, 7):
        probe = made.core[turned]

        def fits(y, x, probe=probe):
            return all(y + dy in middle and x + dx in middle for dy, dx in probe)

        tails = [place for place in places if fits(*place)]
        rows, columns = made.first_room[turned]
        assert len(tails) == max(rows, 0) * max(columns, 0)
        assert not tails or tails[0] == tuple(made.first_low[turned])


def test_most_directions_are_closed_to_small_seeds_as_in_the_original():
    """A sample of the original's 32 x 32 images shows it: see docs/pathfinder.md."""
    assert set(DEGREES[tables(32)[1].open]) == set(range(-150, -119))
    assert tables(32, probe="centred")[1].open.all()
