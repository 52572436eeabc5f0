"""Pathfinder: true labels, the original's statistics, the same bytes always, clear refusals."""

import hashlib

import msgspec
import numpy as np
import pytest
from scipy import ndimage

from lra.core.errors import UsageError
from lra.core.protocol import Rows
from tasks.generators import counter, pathfinder_images
from tasks.generators.pathfinder_drawing import marker_tips, paint
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_stamps import disc
from tasks.generators.pathfinder_tables import build
from tasks.pathfinder import Pathfinder, PathfinderConfig
from tasks.solvers.pathfinder_rule import find_markers, marker_distance

MINI = PathfinderConfig(
    padding=0,
    seed_distance=5,
    band=1,
    contour_length=2,
    paddle_length=1,
    paddle_margins=(1,),
    distractors=0,
    marker_radius=1.0,
    levels=8,
)


def task(side, **given):
    return Pathfinder(PathfinderConfig(**given), length=side * side)


def pictures(split):
    side = int(split.lengths[0, 0] ** 0.5)
    return split.tokens.reshape(len(split), side, side)


def drawn(side, rows, **given):
    """Settings, tables, drawing, labels and images straight from the search."""
    settings = resolve(side, given)
    tables = build(settings, settings.paddle_margins[0])
    keys = counter.row_keys(counter.stream_key("drawn", side), np.arange(rows))
    labels = counter.below(keys, 0, 2)
    search = pathfinder_images.choose_search(side)
    drawing = search(tables, settings, keys, np.full(rows, 2))
    return settings, tables, drawing, labels, paint(tables, settings, drawing, labels)


# Labels -------------------------------------------------------------------------------------


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
    assert len(clear) > 100
    assert 0.3 < np.mean(clear) < 0.7


@pytest.mark.parametrize("side", [8, 12, 32, 128])
def test_label_is_what_the_paths_say(side):
    """Each path is one chain of paddles, and markers stand on its two ends or on both paths'."""
    settings, tables, drawing, labels, _ = drawn(side, 30)
    margin, length = settings.paddle_margins[0], settings.paddle_length
    ahead = np.arctan2(tables.candidates[:, 0], tables.candidates[:, 1])
    angles = np.concatenate([np.radians(np.arange(-180, 180)), ahead])
    for paths, tips, label in zip(
        drawing.targets, marker_tips(drawing, labels), labels, strict=True
    ):
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
        return {
            (y + dy, x + dx)
            for y, x, turned in paddles
            for dy, dx in np.argwhere(tables.masks[turned] == 255) - tables.half
        }

    for paths in drawing.targets.astype(int):
        for step in range(2, settings.contour_length):
            before = full(paths[:, : step - 1].reshape(-1, 3))
            assert before
            assert not before & full(paths[:, step])


# Statistics ---------------------------------------------------------------------------------


def test_labels_are_balanced():
    split = task(8).generate("train", 20_000)
    assert abs(split.labels.mean() - 0.5) < 0.01


def test_images_have_the_statistics_of_the_original():
    """Against 1,500 images made with the original generator, hard level, 32 x 32."""
    images = pictures(task(32).generate("train", 800)).astype(float)
    assert images.mean() == pytest.approx(20.19, abs=0.3)
    assert (images > 50).sum((1, 2)).mean() == pytest.approx(135.6, abs=2)
    assert (images > 100).sum((1, 2)).mean() == pytest.approx(104.6, abs=1.5)
    assert (images > 180).sum((1, 2)).mean() == pytest.approx(25.4, abs=1)
    assert (images.max((1, 2)) == 255).all()
    assert (images.min((1, 2)) == 0).all()


def test_distractors_are_brighter_than_targets_as_in_the_original():
    settings, tables, drawing, labels, _ = drawn(32, 200)
    placed = drawing.distractors[:, :, 0, 2] >= 0
    assert 0.8 < placed.sum(1).mean() < 1.6
    with_some = np.flatnonzero(placed.any(1))
    alone = drawing._replace(distractors=np.full_like(drawing.distractors, -1))
    both = paint(tables, settings, drawing, labels)[with_some].astype(float)
    without = paint(tables, settings, alone, labels)[with_some].astype(float)
    # The brightest pixel is scaled to 255: brighter distractors dim the markers.
    assert both.max() == without.max() == 255
    assert np.median(both[without > 200]) < np.median(without[without > 200])


@pytest.mark.parametrize(("side", "levels"), [(8, 8), (8, 2), (32, 16), (32, 256)])
def test_levels(side, levels):
    grey = np.unique(task(side, levels=levels).generate("train", 30).tokens)
    assert len(grey) <= levels
    assert {0, 255} <= set(grey.tolist())
    assert set(grey.tolist()) <= {level * 255 // (levels - 1) for level in range(levels)}


# Bytes ---------------------------------------------------------------------------------------

PINNED = {
    (8, "train", 400): "4150c0eb7135bb2f",
    (8, "test", 100): "23cd371bfd9497dd",
    (12, "train", 100): "3291a8c9adef6e2f",
    (32, "train", 40): "25e8d3a14e1340ca",
    (32, "validation", 10): "0c086a703c1f5934",
    (128, "train", 3): "403ab660c57b2475",
}


@pytest.mark.parametrize(("side", "split", "rows"), PINNED)
def test_bytes_are_frozen(side, split, rows):
    made = task(side).generate(split, rows)
    digest = hashlib.sha256(made.tokens.tobytes() + made.labels.astype("<i8").tobytes())
    assert made.tokens.dtype == np.uint8
    assert digest.hexdigest()[:16] == PINNED[side, split, rows]


def test_mini_is_the_preset_at_8():
    one, other = Pathfinder(MINI, length=64), task(8)
    assert one.settings == other.settings
    np.testing.assert_array_equal(
        one.generate("test", 50).tokens, other.generate("test", 50).tokens
    )


@pytest.mark.parametrize(("side", "given"), [(32, {}), (128, {"contour_length": 6})])
def test_more_rows_keep_the_earlier_ones(side, given):
    few, many = (task(side, **given).generate("train", rows) for rows in (7, 20))
    np.testing.assert_array_equal(few.tokens, many.tokens[: len(few.tokens)])
    np.testing.assert_array_equal(few.labels, many.labels[:7])


def test_rows_differ_and_follow_the_seed():
    base, other = task(32).generate("train", 30), task(32, data_seed=1).generate("train", 30)
    together = np.concatenate([pictures(base), pictures(other)]).reshape(60, -1)
    assert len(np.unique(together, axis=0)) == 60


def test_no_image_stands_in_two_splits():
    """With two grey levels few 8 x 8 images exist: streams repeat themselves, splits never."""
    data = task(8, levels=2).generated(Rows(train=6000, validation=3000, test=3000))
    seen = [{row.tobytes() for row in pictures(split)} for _, split in data]
    assert [len(found) < len(split) for found, (_, split) in zip(seen, data, strict=True)] == [
        True,
        True,
        True,
    ]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]


FAINT = {"levels": 2, "snake_contrast": 0.1, "distractors": 0}
"""Two grey levels that show the markers alone."""


@pytest.mark.parametrize(
    ("side", "given"), [(24, {"contour_length": 6, "band": 11, **FAINT}), (32, FAINT)]
)
def test_no_image_of_long_paths_stands_in_two_splits(side, given):
    data = task(side, **given).generated(Rows(train=150, validation=150, test=150))
    seen = [{row.tobytes() for row in pictures(split)} for _, split in data]
    assert sum(map(len, seen)) < 450
    assert sum(map(len, seen)) == len(set.union(*seen))


@pytest.mark.parametrize(("side", "given"), [(16, {}), (24, {}), (32, FAINT)])
def test_images_stand_in_the_split_that_their_bytes_name(side, given):
    """Wherever the same image may come twice: here of paths of 6 paddles."""
    made = task(side, contour_length=6, **given)
    for name in ("train", "validation", "test"):
        assert {pathfinder_images.home(row) for row in pictures(made.generate(name, 8))} == {name}


def test_splits_of_long_paths_differ():
    data = task(32).generated(Rows(train=60, validation=60, test=60))
    assert len({row.tobytes() for _, split in data for row in pictures(split)}) == 180


# The marker-distance rule --------------------------------------------------------------------


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
    chance = np.arange(1000) % 2
    for labels, low, high in ((telling, 0.97, 1.0), (chance, 0.4, 0.6)):
        train, test = (images[:600], labels[:600]), (images[600:], labels[600:])
        assert low <= marker_distance(train, test, marker) <= high


def test_marker_distance_is_printed_beside_the_baselines():
    mini = task(8)
    data = mini.generated(Rows(train=4000, validation=10, test=2000))
    assert mini.rules_of_thumb(data) == {"marker distance": pytest.approx(0.71, abs=0.03)}


# Refusals ------------------------------------------------------------------------------------

BAD = [
    (1000, {}, "no square of pixels; use 961 or 1024"),
    (49, {}, "too small; use length 64 or more"),
    (1024, {"paddle_thickness": 0.7}, "no whole number of fine pixels"),
    (1024, {"band": 16}, "set a smaller band"),
    (1024, {"padding": 20}, "set a smaller band"),
    (1024, {"contour_length": 1}, "contour_length"),
    (1024, {"levels": 300}, "levels"),
    (1024, {"paddle_margins": ()}, "paddle_margins"),
    (1024, {"continuity": 0.0}, "continuity"),
    (1024, {"distractor_length": 0}, "distractor_length"),
]


@pytest.mark.parametrize(("length", "given", "words"), BAD)
def test_bad_parameters_are_one_line(length, given, words):
    with pytest.raises(UsageError, match=words) as caught:
        Pathfinder(PathfinderConfig(**given), length=length)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("side", "given", "words"),
    [
        (32, {"paddle_length": 12}, "does not fit between the bands"),
        (8, {"contour_length": 14}, "no two paths of 14 paddles"),
        (32, {"contour_length": 60}, "no two paths of 60 paddles"),
    ],
)
def test_impossible_paths_end_in_one_line(side, given, words):
    with pytest.raises(UsageError, match=words) as caught:
        task(side, **given).generate("train", 5)
    assert "\n" not in str(caught.value)


def test_unknown_parameter():
    with pytest.raises(msgspec.ValidationError, match="window"):
        msgspec.convert({"window": 3}, PathfinderConfig)


# Presets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "distractors", "length", "band", "margins"),
    [
        (32, 5, 4, 14, (1,)),
        (64, 5, 4, 24, (1,)),
        (128, 8, 4, 40, (2, 3)),
        (256, 7, 4, 54, (3,)),
    ],
)
def test_presets_are_the_long_range_arenas(side, distractors, length, band, margins):
    settings = resolve(side, {})
    assert settings.distractors == distractors
    assert settings.distractor_length == length
    assert settings.band == band
    assert settings.paddle_margins == margins
    assert settings.contour_length == 14


@pytest.mark.parametrize("side", [10, 20, 48, 100])
def test_any_resolution(side):
    split = task(side, contour_length=3).generate("train", 4)
    assert split.lengths.tolist() == [[side * side]] * 4
