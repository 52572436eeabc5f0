"""The compiled search and the one in numpy make the same drawings."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tasks.generators import counter, pathfinder_images, pathfinder_lanes
from tasks.generators.pathfinder_search import NoRoomError
from tasks.generators.pathfinder_settings import resolve
from tasks.generators.pathfinder_tables import build

pytest.importorskip("numba")
from tasks.generators import pathfinder_kernel

ROOT = Path(__file__).resolve().parents[2]
CASES = [
    (8, 200, {}),
    (12, 100, {}),
    (32, 24, {}),
    # No place is left long before the last distractor: free places are listed.
    (16, 30, {"paddle_length": 4, "paddle_margins": (2,), "seed_distance": 3, "band": 0}),
    (24, 16, {"probe": "centred", "distractors": 60, "distractor_length": 1, "padding": 0}),
    (20, 40, {"paddle_retries": 0, "distractor_retries": 0, "contour_length": 3}),
    (64, 8, {"contour_length": 6}),
    (128, 3, {"contour_length": 6}),
]


@pytest.mark.parametrize(("side", "rows", "given"), CASES)
def test_same_drawings(side, rows, given):
    settings = resolve(side, given)
    keys = counter.row_keys(counter.stream_key("twins", side), np.arange(rows))
    start = np.full(rows, 2)
    for margin in settings.paddle_margins:
        tables = build(settings, margin)
        one = pathfinder_kernel.search(tables, settings, keys, start)
        other = pathfinder_lanes.search(tables, settings, keys, start)
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert (one.counters > start).all()


@pytest.mark.parametrize(("side", "given"), [(32, {}), (20, {"contour_length": 6})])
def test_same_images(side, given):
    settings = resolve(side, given)
    for split in ("train", "test"):
        one, other = (
            pathfinder_images.make(settings, split, 5, 12, search)
            for search in (pathfinder_kernel.search, pathfinder_lanes.search)
        )
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_same_draws():
    keys = counter.row_keys(counter.stream_key("draws"), np.arange(40))
    for bound in (1, 2, 3, 360, 2**31, 2**32):
        for index in (0, 1, 977, 2**40):
            drawn = [pathfinder_kernel.draw(key, index, bound) for key in keys]
            np.testing.assert_array_equal(drawn, counter.below(keys, index, bound))


@pytest.mark.parametrize(
    ("search", "side", "paddles"),
    [(pathfinder_kernel.search, 32, 60), (pathfinder_lanes.search, 8, 14)],
)
def test_both_give_up_where_there_is_no_room(search, side, paddles):
    settings = resolve(side, {"contour_length": paddles})
    keys = counter.row_keys(1, np.arange(2))
    with pytest.raises(NoRoomError):
        search(build(settings, 1), settings, keys, np.zeros(2, np.int64))


def test_numpy_alone_is_enough_and_tiny_images_need_no_compiler(monkeypatch):
    assert pathfinder_images.choose_search(32) is pathfinder_kernel.search
    assert pathfinder_images.choose_search(8) is pathfinder_lanes.search
    monkeypatch.setattr(pathfinder_images.importlib.util, "find_spec", lambda name: None)
    assert pathfinder_images.choose_search(32) is pathfinder_lanes.search


def test_compiles_where_no_folder_can_keep_it(monkeypatch):
    def refuse(*functions, cache=False):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return ("compiled", functions[0])

    monkeypatch.setattr(pathfinder_kernel, "njit", refuse)
    assert pathfinder_kernel._compiled(len) == ("compiled", len)


def test_an_edited_constant_of_another_file_is_compiled_anew(tmp_path):
    """numba looks for edits at one file alone, and a constant of others is in its machine code."""
    for package in ("lra", "tasks"):
        ignore = shutil.ignore_patterns("__pycache__", "*.js")
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    ask = "import tasks.generators.pathfinder_kernel, numba; print(numba.config.CACHE_DIR)"
    tables = tmp_path / "tasks" / "generators" / "pathfinder_tables.py"
    found = []
    for more in ("", "\n# A comment.\n", "\nEDITED = 1\n"):
        tables.write_text(tables.read_text(encoding="utf-8") + more, encoding="utf-8")
        command = [sys.executable, "-c", ask]
        found.append(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert found[0] == found[1] != found[2]
