"""Pathfinder: true labels, the original's statistics, clear refusals."""

import msgspec
import numpy as np
import pytest
from every_task import pictures
from scipy import ndimage

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.generators import counter, pathfinder_images
from tasks.generators.pathfinder_drawing import Shades, marker_tips, paint, stretched
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_stamps import disc
from tasks.generators.pathfinder_tables import build
from tasks.pathfinder import Pathfinder, PathfinderConfig
from tasks.solvers.pathfinder_rule import find_markers, marker_distance


def task(side, **given):
    return Pathfinder(PathfinderConfig(**given), length=side * side)


def drawn(side, rows, **given):
    """Settings, tables, drawing, labels and images straight from the search."""
    settings = resolve(side, given)
    tables = build(settings, settings.paddle_margins[0])
    keys = counter.row_keys(counter.stream_key("drawn", side), np.arange(rows))
    labels = counter.below(keys, 0, 2)
    search = pathfinder_images.choose_search(side)
    drawing = search(tables, settings, keys, np.full(rows, 2))
    return settings, tables, drawing, labels, paint(tables, settings, drawing, labels)


def test_label_is_what_the_pixels_show():
    """Where the two paths keep apart, flooding from one disc over the gaps decides."""
    settings, _, _, labels, images = drawn(
        64, 300, contour_length=4, distractors=0, seed_distance=26, band=8
    )
    marks = find_markers(images, disc(settings.marker_radius, settings.antialias))
    clear = []
    for image, (first, second), label in zip(images, marks, labels, strict=True):
        grown = ndimage.binary_dilation(image > 60, np.ones((5, 5)))
        parts, number = ndimage.label(grown, np.ones((3, 3)))
        if number == 2:
            assert (parts[tuple(first)] == parts[tuple(second)]) == label
            clear.append(label)
    assert len(clear) > 100 and 0.3 < np.mean(clear) < 0.7


@pytest.mark.parametrize("side", [8, 12, 32, 128])
def test_label_is_what_the_paths_say(side):
    """Each path is one chain of paddles, and markers stand on its two ends or on both paths'."""
    settings, tables, drawing, labels, _ = drawn(side, 30)
    margin, length = settings.paddle_margins[0], settings.paddle_length
    ahead = np.arctan2(tables.candidates[:, 0], tables.candidates[:, 1])
    angles = np.concatenate([np.radians(np.arange(-180, 180)), ahead])
    every_tips = marker_tips(drawing, labels)
    for paths, tips, label in zip(drawing.targets, every_tips, labels, strict=True):
        bearers = set()
        for number, path in enumerate(paths):
            place, angle = path[:, :2].astype(float), angles[path[:, 2]]
            there = length * np.stack([np.sin(angle), np.cos(angle)], axis=1)
            tails = np.vstack([place[:1], place[1:] - there[1:]])
            heads = np.vstack([place[:1] + there[:1], place[1:]])
            gaps = np.hypot(*(tails[1:] - heads[:-1]).T)
            assert (gaps <= 2 * margin + 2.5).all()
            assert ((place >= settings.padding) & (place < side)).all()
            turns = np.abs(np.diff(angle))
            turns = np.minimum(turns, 2 * np.pi - turns)
            assert (settings.continuity * turns < np.pi / 2).all()
            if (path[0, :2] == tips[0]).all():
                begins = number
            if (path[-1, :2] == tips[1]).all():
                bearers.add(number)
        assert (begins in bearers) if label else (1 - begins in bearers)
        apart = np.hypot(*(paths[0, 0, :2] - paths[1, 0, :2]))
        assert apart == pytest.approx(settings.seed_distance, abs=1)


def test_a_path_does_not_cross_what_was_there():
    """The full mask of a new paddle shares no pixel with those of all but the newest two.

    Like the original, the search overlooks the newest paddle of each path.
    """
    settings, tables, drawing, _, _ = drawn(32, 40)

    def full(paddles):
        offsets = [np.argwhere(mask == 255) - tables.half for mask in tables.masks]
        return {(y + dy, x + dx) for y, x, turned in paddles for dy, dx in offsets[turned]}

    for paths in drawing.targets.astype(int):
        for step in range(2, settings.contour_length):
            before = full(paths[:, : step - 1].reshape(-1, 3))
            assert before and not before & full(paths[:, step])


def test_labels_are_balanced():
    split = task(8).generate("train", 20_000)
    assert abs(split.labels.mean() - 0.5) < 0.01


def test_images_have_the_statistics_of_the_original():
    """Against 1,500 images made with the original generator, hard level, 32 x 32."""
    images = pictures(task(32).generate("train", 800)).astype(float)
    assert images.mean() == pytest.approx(20.19, abs=0.3)
    for above, pixels, off in ((50, 135.6, 2), (100, 104.6, 1.5), (180, 25.4, 1)):
        assert (images > above).sum((1, 2)).mean() == pytest.approx(pixels, abs=off)
    assert (images.max((1, 2)) == 255).all() and (images.min((1, 2)) == 0).all()


# Pixels of a level in an image, over 1,500 images made with the original generator. One of each two
# levels is where a brightness between them goes, by how it is rounded before.
LEVELS = {
    **{139: 4.41, 140: 0.00, 144: 2.92, 145: 0.01, 157: 2.47, 158: 0.00, 160: 2.09, 161: 0.94},
    **{166: 2.15, 167: 0.70, 169: 1.11, 170: 0.49, 181: 0.82, 182: 0.33, 202: 0.08, 203: 1.60},
    **{93: 1.16, 94: 1.80, 199: 0.12, 200: 0.57, 220: 0.56, 221: 2.34, 76: 0.96, 77: 0.00},
}


def test_exact_levels_are_as_frequent_as_in_the_original():
    """Five standard errors at most, which pass no pair of levels in the wrong order."""
    images = pictures(task(32).generate("train", 800))
    for level, frequency in LEVELS.items():
        counts = (images == level).sum((1, 2))
        error = counts.std() * (1 / 800 + 1 / 1500) ** 0.5
        assert abs(counts.mean() - frequency) < 5 * max(error, 0.01), level


@pytest.mark.parametrize(
    ("kind", "value", "level"),
    [
        ("target", 93, 139),
        ("target", 135, 203),
        ("target", 147, 221),
        ("target", 105, 157),
        ("distractor", 70, 140),
        ("marker", 139, 139),
    ],
)
def test_a_brightness_between_two_levels_goes_where_the_original_s_does(kind, value, level):
    """Beside a full marker: a target's value times 1.5, a distractor's times 2."""
    shades = Shades.of(resolve(32, {}))
    ranks = [0, getattr(shades, kind)[value], shades.marker[255]]
    image = np.array(ranks, np.int16).reshape(1, 1, 3)
    assert stretched(image, shades.brightness).ravel().tolist() == [0, level, 255]


def test_an_image_of_one_brightness_is_black():
    shades = Shades.of(resolve(32, {}))
    for rank in (0, shades.marker[255]):
        assert not stretched(np.full((1, 4, 4), rank, np.int16), shades.brightness).any()


def test_distractors_are_brighter_than_targets_as_in_the_original():
    settings, tables, drawing, labels, _ = drawn(32, 200)
    placed = drawing.distractors[:, :, 0, 2] >= 0
    assert 0.8 < placed.sum(1).mean() < 1.6
    alone = drawing._replace(distractors=np.full_like(drawing.distractors, -1))
    both, without = (
        paint(tables, settings, made, labels)[placed.any(1)].astype(float)
        for made in (drawing, alone)
    )
    # The brightest pixel is scaled to 255: brighter distractors dim the markers.
    assert both.max() == without.max() == 255
    assert np.median(both[without > 200]) < np.median(without[without > 200])


@pytest.mark.parametrize(("side", "levels"), [(8, 8), (8, 2), (32, 16), (32, 256)])
def test_levels(side, levels):
    grey = set(np.unique(task(side, levels=levels).generate("train", 30).tokens).tolist())
    assert {0, 255} <= grey <= {level * 255 // (levels - 1) for level in range(levels)}


def test_the_settings_at_8_are_those_that_are_written_down():
    written = {"paddle_length": 1, "paddle_margins": (1,), "marker_radius": 1.0, "levels": 8}
    paths = {"contour_length": 2, "distractors": 0, "seed_distance": 5, "band": 1, "padding": 0}
    assert task(8, **written, **paths).settings == task(8).settings


@pytest.mark.parametrize(("side", "given"), [(32, {}), (128, {"contour_length": 6})])
def test_more_rows_keep_the_earlier_ones(side, given):
    few, many = (task(side, **given).generate("train", rows) for rows in (7, 20))
    np.testing.assert_array_equal(few.tokens, many.tokens[: len(few.tokens)])
    np.testing.assert_array_equal(few.labels, many.labels[:7])


def test_rows_differ_and_follow_the_seed():
    rows = [pictures(task(32, data_seed=seed).generate("train", 30)) for seed in (0, 1)]
    assert len(np.unique(np.concatenate(rows).reshape(60, -1), axis=0)) == 60


FAINT = {"levels": 2, "snake_contrast": 0.1, "distractors": 0}
"""Two grey levels that show the markers alone."""


@pytest.mark.parametrize(
    ("side", "given", "rows", "distinct"),
    [
        # Few images of two grey levels exist: streams repeat themselves, splits never.
        (8, {"levels": 2}, 3000, False),
        (24, {"contour_length": 6, "band": 11, **FAINT}, 150, False),
        (32, FAINT, 150, False),
        (32, {}, 60, True),
    ],
)
def test_no_image_stands_in_two_splits(side, given, rows, distinct):
    data = task(side, **given).generated(Rows(train=rows, validation=rows, test=rows))
    seen = [{row.tobytes() for row in pictures(split)} for _, split in data]
    assert (sum(map(len, seen)) == 3 * rows) == distinct
    assert sum(map(len, seen)) == len(set.union(*seen))


@pytest.mark.parametrize(("side", "given"), [(16, {}), (24, {}), (32, FAINT)])
def test_images_stand_in_the_split_that_their_bytes_name(side, given):
    """Wherever the same image may come twice: here of paths of 6 paddles."""
    made = task(side, contour_length=6, **given)
    for name in ("train", "validation", "test"):
        assert {pathfinder_images.home(row) for row in pictures(made.generate(name, 8))} == {name}


@pytest.mark.parametrize(("side", "share"), [(8, 0.9), (12, 0.9), (32, 0.99), (128, 0.99)])
def test_markers_are_found(side, share):
    settings, _, drawing, labels, images = drawn(side, 150)
    found = find_markers(images, disc(settings.marker_radius, settings.antialias))
    truth = marker_tips(drawing, labels)
    either = [(found == order).all(axis=(1, 2)) for order in (truth, truth[:, ::-1])]
    assert np.logical_or(*either).mean() >= share


def test_marker_distance_rule_learns_a_distance():
    """Labels made from the distance itself are learned; labels at random are not."""
    settings, _, _, _, images = drawn(32, 1000)
    marker = disc(settings.marker_radius, settings.antialias)
    places = find_markers(images, marker)
    apart = np.hypot(*(places[:, 0] - places[:, 1]).T)
    telling = (apart > np.median(apart)).astype(np.int64)
    for labels, low, high in ((telling, 0.97, 1.0), (np.arange(1000) % 2, 0.4, 0.6)):
        train, test = (images[:600], labels[:600]), (images[600:], labels[600:])
        assert low <= marker_distance(train, test, marker) <= high


def test_marker_distance_is_printed_beside_the_baselines():
    mini = task(8)
    data = mini.generated(Rows(train=4000, validation=10, test=2000))
    assert mini.rules_of_thumb(data) == {"marker distance": pytest.approx(0.71, abs=0.03)}


@pytest.mark.parametrize(
    ("length", "given", "says"),
    [
        (1000, {}, "use 961 or 1024"),
        (49, {}, "use length 64 or more"),
        (1024, {"paddle_thickness": 0.7}, "no whole number of fine pixels"),
        (1024, {"band": 16}, "set a smaller band"),
        (1024, {"padding": 20}, "set a smaller band"),
        (1024, {"contour_length": 1}, "contour_length"),
        (1024, {"levels": 300}, "levels"),
        (1024, {"paddle_margins": ()}, "paddle_margins"),
        (1024, {"continuity": 0.0}, "continuity"),
        (1024, {"distractor_length": 0}, "distractor_length"),
        (1024, {"paddle_length": 12}, "does not fit"),
        (64, {"contour_length": 14}, "no two paths of 14 paddles"),
        (1024, {"contour_length": 60}, "no two paths of 60 paddles"),
    ],
)
def test_bad_parameters_and_impossible_paths_are_one_line(length, given, says):
    with pytest.raises(UsageError, match=says) as caught:
        Pathfinder(PathfinderConfig(**given), length=length).generate("train", 5)
    assert "\n" not in str(caught.value)


def test_unknown_parameter():
    with pytest.raises(msgspec.ValidationError, match="window"):
        msgspec.convert({"window": 3}, PathfinderConfig)


@pytest.mark.parametrize(
    ("side", "distractors", "band", "margins"),
    [(32, 5, 14, (1,)), (64, 5, 24, (1,)), (128, 8, 40, (2, 3)), (256, 7, 54, (3,))],
)
def test_presets_are_the_long_range_arenas(side, distractors, band, margins):
    settings = resolve(side, {})
    found = settings.distractors, settings.band, settings.paddle_margins
    assert found == (distractors, band, margins)
    assert (settings.distractor_length, settings.contour_length) == (4, 14)


@pytest.mark.parametrize("side", [10, 20, 48, 100])
def test_any_resolution(side):
    split = task(side, contour_length=3).generate("train", 4)
    assert split.lengths.tolist() == [[side * side]] * 4
