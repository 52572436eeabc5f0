"""Image's stand-in: drawn shapes that no pixel tells apart, and their area only in part."""

import msgspec
import numpy as np
import pytest
from every_task import pictures

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.generators.shapes import NARROWEST, SHAPES, _covers
from tasks.image import Image, ImageConfig
from tasks.solvers.shapes_rule import area, find_areas


def generated(side=16, rows=2000, split="train", **config):
    return Image(ImageConfig(**config), length=side * side).generate(split, rows)


def inside(picture):
    """The shape of a picture without noise: pixels unlike its most frequent corner."""
    corners = [picture[0, 0], picture[0, -1], picture[-1, 0], picture[-1, -1]]
    values, counts = np.unique(corners, return_counts=True)
    return picture != values[counts.argmax()]


def box_of(mask):
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def test_every_class_is_drawn_as_often_and_looks_like_its_name():
    split = generated(32, rows=3000, noise_percent=0)
    counts = np.bincount(split.labels, minlength=len(SHAPES))
    assert np.all(abs(counts / 300 - 1) < 0.25)
    for picture, label in zip(pictures(split)[:500], split.labels, strict=False):
        assert len(np.unique(picture)) == 2
        box, name = box_of(inside(picture)), SHAPES[label]
        centre = box[box.shape[0] // 2, box.shape[1] // 2]
        if name in ("ring", "frame"):
            assert not centre
        elif name in ("disc", "plus", "cross", "diamond", "triangle"):
            assert centre
        if name == "triangle":
            assert box[-1].sum() > box[0].sum()
        elif name in ("disc", "square", "plus", "cross", "ring", "frame", "diamond"):
            assert np.array_equal(box, box[:, ::-1]) and np.array_equal(box, box[::-1])
        assert name != "square" or box.all()
        assert name != "rows" or np.all(box == box[:, :1])
        assert name != "columns" or np.all(box == box[:1])


def test_either_the_shape_or_the_ground_is_brighter_and_levels_are_few():
    split = generated(noise_percent=0, levels=8)
    assert np.array_equal(np.unique(split.tokens), np.arange(8) * 255 // 7)
    brighter = [picture[inside(picture)].mean() > picture[0, 0] for picture in pictures(split)]
    assert 0.4 < np.mean(brighter) < 0.6


@pytest.mark.parametrize(("percent", "share"), [(0, 0), (20, 0.15)])
def test_noise_takes_the_share_asked_for(percent, share):
    """A noisy pixel takes one of 8 levels, so 6 in 8 show as a third colour."""

    def outliers(picture):
        _, counts = np.unique(picture, return_counts=True)
        return 1 - np.sort(counts)[-2:].sum() / picture.size

    found = np.mean([outliers(p) for p in pictures(generated(noise_percent=percent))])
    assert abs(found - share) < 0.02 and (percent or found == 0)


@pytest.mark.parametrize("percent", [50, 80])
def test_smallest_percent_bounds_the_shapes_width(percent):
    split = generated(20, rows=500, noise_percent=0, smallest_percent=percent, shapes=2)
    widths = [inside(p).any(0).sum() for p in pictures(split)]
    # A centre between pixels adds one; a square is drawn a stroke narrower.
    assert 20 * percent // 100 - 3 <= min(widths) < 20 * percent // 100 + 2
    assert 16 <= max(widths) <= 19


@pytest.mark.parametrize("shapes", [2, 5, 10])
def test_shapes_decides_the_classes(shapes):
    task = Image(ImageConfig(shapes=shapes), length=144)
    data = task.generated(Rows(train=500, validation=10, test=10))
    assert data.classes == task.classes == shapes
    assert set(data.train.labels) == set(range(shapes))


def test_no_picture_stands_in_two_splits_where_there_are_few():
    config = ImageConfig(shapes=6, levels=2, noise_percent=0, smallest_percent=86)
    data = Image(config, length=49).generated(Rows(train=500, validation=300, test=300))
    sets = [{picture.tobytes() for picture in pictures(split)} for _, split in data]
    assert all(len(found) < len(split) for found, (_, split) in zip(sets, data, strict=True))
    assert sum(map(len, sets)) == len(set.union(*sets))


@pytest.mark.parametrize(
    ("length", "percent", "shapes", "says"),
    [
        (1000, 50, 5, "use length 961 or 1024"),
        (100, 50, 5, "5 wide .* use length 144 or more or smallest_percent 60 or more"),
        (121, 54, 10, "use length 144 or more or smallest_percent 55 or more"),
        (36, 90, 2, "5 wide .* use length 49 or more$"),
        (100, 60, 7, "use length 121 or more or at most 6 shapes"),
    ],
)
def test_settings_at_which_a_picture_may_show_two_shapes_are_refused(length, percent, shapes, says):
    with pytest.raises(UsageError, match=says):
        Image(ImageConfig(smallest_percent=percent, shapes=shapes), length=length)


@pytest.mark.parametrize(
    ("length", "percent", "shapes"), [(144, 50, 10), (100, 60, 6), (121, 55, 10), (49, 86, 6)]
)
def test_settings_that_the_refusals_advise_show_one_shape_each(length, percent, shapes):
    """Two grey levels and no noise: few pictures, and each drawn many times."""
    config = ImageConfig(smallest_percent=percent, shapes=shapes, levels=2, noise_percent=0)
    split = Image(config, length=length).generate("train", 6000)
    labels = {}
    for picture, label in zip(pictures(split), split.labels, strict=True):
        assert labels.setdefault(picture.tobytes(), label) == label
    assert len(labels) < 4000


def alike(extents):
    """Pairs of shapes that look the same somewhere, at the same width or at two of these; places
    have either parity."""
    owner, found = {}, set()
    for extent in extents:
        centres = 2 * np.arange(extent + 3) + 1
        for across in (extent + 2, extent + 3):
            for down in (extent + 2, extent + 3):
                x, y = (centres - across)[None, None, :], (centres - down)[None, :, None]
                for name in SHAPES:
                    box = box_of(_covers(name, x, y, np.array([[[extent]]]))[0])
                    look = box.shape, box.tobytes()
                    if owner.setdefault(look, name) != name:
                        found.add((owner[look], name))
    return found


def test_no_two_shapes_look_the_same_at_any_width_and_place_that_is_allowed():
    assert alike(range(NARROWEST, 41)) == set()
    assert alike([NARROWEST - 1]) == {("disc", "square")}


def test_more_shapes_than_there_are_is_refused():
    with pytest.raises(msgspec.ValidationError, match="shapes"):
        msgspec.convert({"shapes": 11}, ImageConfig)


def test_areas_are_those_of_the_shapes():
    split = generated(20, rows=300, noise_percent=0)
    areas = [min(inside(p).sum(), p.size - inside(p).sum()) for p in pictures(split)]
    np.testing.assert_array_equal(find_areas(split.tokens.reshape(300, -1)), areas)
    assert find_areas(np.full((1, 9), 7, np.uint8)).tolist() == [0]


def test_area_rule_guesses_the_commonest_label_of_an_area():
    def with_bright(*numbers):
        return np.array([[9] * number + [3] * (9 - number) for number in numbers], np.uint8)

    train = with_bright(2, 2, 2, 3), np.array([1, 2, 2, 1])
    test = with_bright(2, 7, 3, 1), np.array([2, 2, 2, 0])
    # Right: both of area 2, and one never seen, which counts as label 0.
    assert area(train, test, 3) == 0.75


def test_area_is_printed_beside_the_baselines_and_far_from_all():
    """At mini's settings; the linear bag of tokens gets .23, a majority .20."""
    mini = Image(ImageConfig(shapes=5, smallest_percent=70), length=100)
    data = mini.generated(Rows(train=4000, validation=10, test=2000))
    assert mini.rules_of_thumb(data) == {"area": pytest.approx(0.48, abs=0.03)}


def test_a_picture_is_shown_in_blocks():
    tokens = np.zeros(100, dtype=np.uint8)
    tokens[11] = 255
    lines = Image(ImageConfig(shapes=5), length=144).shown(tokens).split("\n")
    assert len(lines) == 10 and lines[1] == "  ██" + 16 * " "
    large = Image(ImageConfig(), length=256**2).shown(np.zeros(256**2, dtype=np.uint8))
    assert {len(line) for line in large.split("\n")} == {128}
