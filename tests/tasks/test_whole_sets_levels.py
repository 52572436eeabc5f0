"""A prepared set of Pathfinder is of one level, whatever its source was called."""

from pathlib import Path

import numpy as np
import pytest
from pathfinder_forms import EASY, HARD, below, level_files, write_folder, write_zip

import tasks.pathfinder
from lra.core.errors import DataError
from tasks.pathfinder import Pathfinder, PathfinderConfig
from tasks.sources.data_hash import content_hash
from tasks.sources.facts import read_facts
from tasks.sources.whole_sets import prepare_whole


def hashed(folder, paddles):
    asked = {"length": 1024, "rules": "fixed", "parameters": {"contour_length": paddles}}
    return content_hash(str(folder), "pathfinder", **asked)


def test_another_level_of_pathfinder_is_refused(tmp_path):
    write_folder(tmp_path / "images", level_files(HARD))
    asked = Pathfinder(PathfinderConfig(), length=1024)
    file = Path(tasks.pathfinder.__file__)
    prepare_whole(asked, "pathfinder", file, str(tmp_path / "images"), tmp_path / "set")
    hashed(tmp_path / "set", None)
    with pytest.raises(
        DataError, match=r"set' holds paths of 14 paddles, not of 6; write parameters = { con"
    ):
        hashed(tmp_path / "set", 6)


@pytest.mark.parametrize("form", ["folder", "zip", "another name", "array"])
def test_a_level_that_is_named_itself_is_known_by_what_it_is(tmp_path, form):
    files = level_files(EASY)
    if form in ("another name", "array"):
        for name in files:
            if name.startswith("metadata/"):
                files[name] = files[name].replace(b" 14 ", b" 6 ")
        if form == "array":
            rows = [line.split() for line in files["metadata/0.npy"].decode().splitlines()]
            np.save(tmp_path / "0.npy", np.array(rows))
            files["metadata/0.npy"] = (tmp_path / "0.npy").read_bytes()
        source = write_folder(tmp_path / "images", files)
    elif form == "zip":
        source = write_zip(tmp_path / "set.zip", below(EASY, files))
    else:
        source = write_folder(tmp_path / EASY, files)
    asked = Pathfinder(PathfinderConfig(), length=1024)
    file = Path(tasks.pathfinder.__file__)
    prepare_whole(asked, "pathfinder", file, str(source), tmp_path / "set")
    assert read_facts(tmp_path / "set").origin.level == 6
    hashed(tmp_path / "set", 6)
    with pytest.raises(
        DataError, match=r"set' holds paths of 6 paddles, not of 14; write parameters = { c"
    ):
        hashed(tmp_path / "set", None)
