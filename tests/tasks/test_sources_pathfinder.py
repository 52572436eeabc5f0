"""Pathfinder's folders and zips: the same images, labels and splits from every form."""

import numpy as np
import pytest
from pathfinder_forms import (
    EASY,
    HARD,
    IN_SHARD,
    MIDDLE,
    SHARDS,
    WHOLE,
    array,
    below,
    image,
    label,
    level_files,
    png,
    set_files,
    task,
    write_folder,
    write_zip,
)
from set_reader import noted, read_set, refused

from lra.core.dataset import SPLITS
from tasks.path_x import PathX
from tasks.pathfinder64 import Pathfinder64
from tasks.sources.data_hash import source_content
from tasks.sources.holdout import assigned, content_key

SET = "pathfinder32"
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
    data = read_set(the_task or task(), source)
    assert data.train.tokens.dtype == np.uint8 and data.classes == 2
    return {
        split: [(part.sequence(i).tobytes(), int(part.labels[i])) for i in range(len(part))]
        for split, part in data
    }


def is_whole(source, **config):
    defects, examples = noted(task(**config), source)
    return defects == [] and len(examples) == WHOLE


def folder(files, at):
    """A form that writes files into a folder of that name."""
    return lambda root: write_folder(root / at, files())


def released(root, side=64):
    """A release with the set, another one and another task's files."""
    write_folder(root / "lra_release" / SET, set_files())
    write_folder(root / f"lra_release/pathfinder{side}/{HARD}", level_files(HARD, side))
    return write_folder(root / "lra_release", {"listops-1000/basic_val.tsv": b"x"})


def nested(root):
    write_folder(root / "unpacked" / "lra_release" / SET, set_files())
    return root / "unpacked"


def zipped(files, name="set.zip"):
    def make(root):
        (root / name).parent.mkdir(exist_ok=True)
        return write_zip(root / name, files())

    return make


FORMS = {
    "set": folder(lambda: set_files() | CLUTTER, SET),
    "level": folder(lambda: level_files(HARD), HARD),
    "arrays of strings": folder(lambda: set_files(metadata=array), SET),
    "release": released,
    "release in a folder": nested,
    "zipped set": zipped(lambda: below(SET, set_files() | CLUTTER)),
    "zipped levels": zipped(set_files),
    "zipped level": zipped(lambda: below(HARD, level_files(HARD))),
    "zipped inside of a level": zipped(lambda: level_files(HARD)),
    "zip alone in a folder": lambda root: zipped(set_files, "in/set.ZIP")(root).parent,
    "zipped set below a dot": zipped(
        lambda: below(f"./{SET}", set_files() | CLUTTER) | {"./": b""}
    ),
    "zipped level below a dot": zipped(lambda: below(f"./{HARD}", level_files(HARD))),
    "zipped inside of a level below a dot": zipped(lambda: below(".", level_files(HARD))),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_images_in_the_same_splits_and_order(tmp_path, form):
    source = FORMS[form](tmp_path)
    assert loaded(source) == expected()
    assert is_whole(source)


def content(source, **parameters):
    return source_content(str(source), "pathfinder", 1024, parameters)


def test_hashed_files_are_those_that_are_read_wherever_they_lie(tmp_path):
    whole = content(released(tmp_path))
    assert len(whole) == len(SHARDS) * (1 + IN_SHARD)
    level, all_levels = FORMS["level"](tmp_path), FORMS["set"](tmp_path)
    assert content(level) == content(all_levels) == whole
    assert content(all_levels, contour_length=6) != whole
    linked = tmp_path / "linked" / HARD
    linked.mkdir(parents=True)
    for name in ("imgs", "metadata"):
        (linked / name).symlink_to(level / name)
    assert content(linked.parent) == whole
    (level / "imgs" / "2" / "sample_3.png").write_bytes(png(image(EASY, 2, 3)))
    assert content(linked.parent) != whole


def test_a_part_is_a_metadata_file_in_the_order_of_the_numbers(tmp_path):
    parts = task().parts(str(FORMS["set"](tmp_path)))
    assert [part.name for part in parts] == [f"metadata/{shard}.npy" for shard in SHARDS]
    assert all(part.split is None for part in parts)


def test_splits_go_by_content_under_both_rules(tmp_path):
    assert loaded(FORMS["set"](tmp_path), task(rules="lra2021")) == expected()
    sizes = [len(found) for found in expected().values()]
    assert sum(sizes) == WHOLE and sizes[0] > 60 and min(sizes) > 0


@pytest.mark.parametrize(("length", "level"), [(14, HARD), (9, MIDDLE), (6, EASY)])
def test_the_contour_length_chooses_the_level(tmp_path, length, level):
    write_folder(tmp_path, set_files(HARD, MIDDLE, EASY))
    assert loaded(tmp_path, task(contour_length=length)) == expected(level)


def test_a_level_that_is_named_or_zipped_alone_is_taken(tmp_path):
    write_folder(tmp_path, set_files())
    laid_beside = {f"__MACOSX/{EASY}/._imgs": b"\0"}
    alone = write_zip(tmp_path / "easy.zip", below(EASY, level_files(EASY)) | laid_beside)
    assert loaded(tmp_path / EASY) == loaded(alone) == expected(EASY)


@pytest.mark.parametrize(("side", "kind"), [(64, Pathfinder64), (128, PathX)])
def test_the_task_s_side_chooses_the_set_of_a_release(tmp_path, side, kind):
    assert loaded(released(tmp_path, side), task(side, kind)) == expected(side=side)


def test_the_image_of_the_release_that_is_known_to_be_empty_is_left_out(tmp_path):
    files = level_files(EASY)
    files["metadata/0.npy"] += b"imgs/0 sample_172.png 172 1 1.0 6 2 2 0.5 1 1\n"
    files["imgs/0/sample_172.png"] = b""
    root = write_folder(tmp_path / SET / EASY, files)
    assert is_whole(root) and is_whole(root.parent, contour_length=6)
    assert is_whole(write_zip(tmp_path / "set.zip", below(EASY, files)))
    # The same name at another level is a defect.
    elsewhere = write_folder(tmp_path / SET / HARD, files)
    (defect,), _ = noted(task(), elsewhere)
    assert defect.startswith(f"'{elsewhere}/imgs/0/sample_172.png' is empty")


@pytest.mark.parametrize(("side", "config"), [(8, {"contour_length": 3}), (48, {})])
def test_a_side_of_which_there_are_no_images_is_refused(tmp_path, side, config):
    refused(rf"32, 64, 128, 256 .*it is {side};", read_set, task(side, **config), tmp_path)
