"""Pathfinder's folders and zips: the same images, labels and splits from every form."""

import numpy as np
import pytest
from pathfinder_forms import (
    ALL,
    EASY,
    HARD,
    IN_SHARD,
    MIDDLE,
    SHARDS,
    array,
    below,
    image,
    label,
    level_files,
    noted,
    png,
    set_files,
    task,
    write_folder,
    write_zip,
)
from set_reader import read_set

from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from tasks.path_x import PathX
from tasks.pathfinder64 import Pathfinder64
from tasks.sources.data_hash import source_content
from tasks.sources.holdout import assigned, content_key

CLUTTER = {
    "__MACOSX/pathfinder32/._imgs": b"\0",
    f"{HARD}/.DS_Store": b"\0",
    f"{HARD}/metadata/._0.npy": b"\0",
    f"{HARD}/imgs/0/._sample_0.png": b"\0",
}


def expected(level=HARD, side=32):
    """The examples of each split in their order, worked out one by one."""
    found = {split: [] for split in SPLITS}
    for shard in SHARDS:
        for number in range(IN_SHARD):
            pixels = image(level, shard, number, side).tobytes()
            found[assigned(content_key(pixels))].append((pixels, label(shard, number)))
    return found


def loaded(source, the_task=None):
    data = read_set(the_task or task(), source, ALL)
    assert data.train.tokens.dtype == np.uint8 and data.classes == 2
    return {
        split: [(part.sequence(i).tobytes(), int(part.labels[i])) for i in range(len(part))]
        for split, part in data
    }


def write(form, tmp_path):
    """Write a form; what to name as the source."""
    name = "pathfinder32"
    if form == "set":
        return write_folder(tmp_path / name, set_files() | CLUTTER)
    if form == "level":
        return write_folder(tmp_path / HARD, level_files(HARD))
    if form == "arrays of strings":
        return write_folder(tmp_path / name, set_files(metadata=array))
    if form == "release":
        write_folder(tmp_path / "lra_release" / name, set_files())
        other = tmp_path / "lra_release" / "pathfinder64" / HARD
        write_folder(other, level_files(HARD, 64))
        return write_folder(tmp_path / "lra_release", {"listops-1000/basic_val.tsv": b"x"})
    if form == "release in a folder":
        write_folder(tmp_path / "unpacked" / "lra_release" / name, set_files())
        return tmp_path / "unpacked"
    files = {
        "zipped set": below(name, set_files() | CLUTTER),
        "zipped levels": set_files(),
        "zipped level": below(HARD, level_files(HARD)),
        "zipped inside of a level": level_files(HARD),
        "zip alone in a folder": set_files(),
        "zipped set below a dot": below("./pathfinder32", set_files() | CLUTTER) | {"./": b""},
        "zipped level below a dot": below(f"./{HARD}", level_files(HARD)),
        "zipped inside of a level below a dot": below(".", level_files(HARD)),
    }[form]
    if form == "zip alone in a folder":
        (tmp_path / "in").mkdir()
        write_zip(tmp_path / "in" / "set.ZIP", files)
        return tmp_path / "in"
    return write_zip(tmp_path / "set.zip", files)


@pytest.mark.parametrize(
    "form",
    [
        "set",
        "level",
        "arrays of strings",
        "release",
        "release in a folder",
        "zipped set",
        "zipped levels",
        "zipped level",
        "zipped inside of a level",
        "zip alone in a folder",
        "zipped set below a dot",
        "zipped level below a dot",
        "zipped inside of a level below a dot",
    ],
)
def test_every_form_gives_the_same_images_in_the_same_splits_and_order(tmp_path, form):
    source = write(form, tmp_path)
    assert loaded(source) == expected()
    assert noted(source) == ([], len(SHARDS) * IN_SHARD)


def content(source, **parameters):
    return source_content(str(source), "pathfinder", 1024, parameters)


def test_what_is_hashed_is_what_is_read_wherever_it_lies(tmp_path):
    whole = content(write("release", tmp_path))
    assert len(whole) == len(SHARDS) * (1 + IN_SHARD)
    assert content(write("set", tmp_path)) == content(write("level", tmp_path)) == whole
    assert content(write("set", tmp_path), contour_length=6) != whole
    linked = tmp_path / "linked" / HARD
    linked.mkdir(parents=True)
    for name in ("imgs", "metadata"):
        (linked / name).symlink_to(tmp_path / HARD / name)
    assert content(linked.parent) == whole
    (tmp_path / HARD / "imgs" / "2" / "sample_3.png").write_bytes(png(image(EASY, 2, 3)))
    assert content(linked.parent) != whole


def test_a_part_is_a_metadata_file_in_the_order_of_the_numbers(tmp_path):
    parts = task().parts(str(write("set", tmp_path)))
    assert [part.name for part in parts] == [f"metadata/{shard}.npy" for shard in SHARDS]
    assert all(part.split is None for part in parts)


def test_splits_go_by_content_under_both_rules(tmp_path):
    source = write("set", tmp_path)
    original = type(task())(task().config, length=1024, rules="lra2021")
    assert loaded(source, original) == expected()
    sizes = [len(found) for found in expected().values()]
    assert sum(sizes) == len(SHARDS) * IN_SHARD and sizes[0] > 60 and min(sizes) > 0


@pytest.mark.parametrize(("length", "level"), [(14, HARD), (9, MIDDLE), (6, EASY)])
def test_the_contour_length_chooses_the_level(tmp_path, length, level):
    write_folder(tmp_path, set_files(levels=(HARD, MIDDLE, EASY)))
    assert loaded(tmp_path, task(contour_length=length)) == expected(level)


def test_a_level_that_is_named_or_zipped_alone_is_taken(tmp_path):
    write_folder(tmp_path, set_files())
    assert loaded(tmp_path / EASY) == expected(EASY)
    laid_beside = {f"__MACOSX/{EASY}/._imgs": b"\0"}
    alone = write_zip(tmp_path / "easy.zip", below(EASY, level_files(EASY)) | laid_beside)
    assert loaded(alone) == expected(EASY)


@pytest.mark.parametrize(("side", "kind"), [(64, Pathfinder64), (128, PathX)])
def test_the_task_s_side_chooses_the_set_of_a_release(tmp_path, side, kind):
    write("release", tmp_path)
    root = write_folder(tmp_path / "lra_release" / f"pathfinder{side}" / HARD, {})
    write_folder(root, level_files(HARD, side))
    found = loaded(tmp_path / "lra_release", task(side, kind))
    assert found == expected(side=side)


def test_the_image_of_the_release_that_is_known_to_be_empty_is_left_out(tmp_path):
    files = level_files(EASY)
    files["metadata/0.npy"] += b"imgs/0 sample_172.png 172 1 1.0 6 2 2 0.5 1 1\n"
    files["imgs/0/sample_172.png"] = b""
    root = write_folder(tmp_path / "pathfinder32" / EASY, files)
    assert noted(root) == noted(root.parent, contour_length=6) == ([], len(SHARDS) * IN_SHARD)
    packed = write_zip(tmp_path / "set.zip", below(EASY, files))
    assert noted(packed) == ([], len(SHARDS) * IN_SHARD)
    # The same name at another level is a defect.
    elsewhere = write_folder(tmp_path / "pathfinder32" / HARD, files)
    assert noted(elsewhere)[0] == [
        f"'{elsewhere}/imgs/0/sample_172.png' is empty; copy or unpack it again"
    ]


@pytest.mark.parametrize(("side", "config"), [(8, {"contour_length": 3}), (48, {})])
def test_a_side_of_which_there_are_no_images_is_refused(tmp_path, side, config):
    with pytest.raises(DataError, match=rf"32, 64, 128, 256 .*it is {side}; use .* length 1024"):
        read_set(task(side, **config), tmp_path, ALL)
