"""CIFAR-10 in tables and arrays that are broken: the fault, and the file and row where it is."""

import lzma

import numpy as np
import pyarrow as pa
import pytest
from cifar10_forms import IMAGE, SPLITS, png, table, write_arrays, write_binary, write_table
from set_reader import noted, read_set
from set_reader import refused as refused_by

from tasks.sources.cifar10_tables import picture_tables


def refused(source, says):
    refused_by(says, read_set, IMAGE, source)


def is_whole(source):
    defects, examples = noted(IMAGE, source)
    return defects == [] and len(examples) == 80


def test_pictures_that_are_no_png_of_that_size_and_labels(tmp_path):
    colours = SPLITS["train"][0]
    good, small = png(colours[0]), np.zeros((3, 64), np.uint8)
    faults = [
        ((10, good), "label '10' is not one of 0 ... 9"),
        ((None, good), "label missing is not one of 0 ... 9"),
        ((1, None), "the picture is missing"),
        ((1, b""), "the picture is empty"),
        ((1, b"\x89PNG and no more"), "the picture is no whole PNG"),
        ((1, good[:-700]), "the picture is no whole PNG"),
        ((1, good[:60] + bytes([good[60] ^ 1]) + good[61:]), "the picture is no whole PNG"),
        ((1, png(small, side=8)), "the picture has 8 x 8 pixels, not 32 x 32"),
        ((1, png(colours[0], "P")), "the picture has pixels of mode P, not L or RGB"),
    ]
    made = table(*SPLITS["train"]).to_pylist()
    for row, ((label, content), _) in enumerate(faults):
        made[row] = {"img": {"bytes": content, "path": "x.png"}, "label": label}
    write_table(tmp_path / "train.parquet", pa.Table.from_pylist(made))
    write_table(tmp_path / "test.parquet", table(*SPLITS["test"]))
    defects, examples = noted(IMAGE, tmp_path)
    assert [defect.partition(";")[0] for defect in defects] == [
        f"'{tmp_path}/train.parquet', row {row}: {says}" for row, (_, says) in enumerate(faults, 1)
    ]
    assert len(examples) == 80 - len(faults)
    refused(tmp_path, "row 1: label '10'")


def test_tables_without_a_column_a_split_or_a_shard(tmp_path):
    held = table(*SPLITS["test"])
    for split in ("train", "test"):
        write_table(tmp_path / f"{split}.parquet", held.rename_columns(["picture", "label"]))
    refused(tmp_path, "holds no set of pictures")
    refused(tmp_path / "test.parquet", r"t.*.parquet' has no column 'img' or 'image'")
    write_table(tmp_path / "a" / "train" / "0.parquet", held)
    refused(tmp_path / "a", "has no Parquet files in a folder 'test'")
    write_table(tmp_path / "b" / "pictures.parquet", held)
    refused(tmp_path / "b", r"pictures.parquet' says no split")
    write_table(tmp_path / "c" / "train-00000-of-00002.parquet", held)
    write_table(tmp_path / "c" / "test-00000-of-00001.parquet", held)
    refused(tmp_path / "c", "has 1 of 2 train shards, number 00001 is missing")
    path = tmp_path / "c" / "train-00001-of-00002.parquet"
    write_table(path, held)
    path.write_bytes(path.read_bytes()[:-20])
    refused(tmp_path / "c", r"train-00001-of-00002.parquet' is no complete Parquet file")


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("images", np.zeros((60, 32, 32), np.float32), r"holds float32 of \(60, 32, 32\)"),
        ("images", np.zeros((60, 28, 28), np.uint8), r"holds uint8 of \(60, 28, 28\)"),
        ("images", np.zeros((60, 1024), np.uint8), r"holds uint8 of \(60, 1024\)"),
        ("images", np.zeros((59, 32, 32), np.uint8), r"59 pictures, 'train_labels.npy' 60 labels"),
        ("labels", np.zeros((60, 1), np.uint8), r"holds uint8 of \(60, 1\)"),
        ("labels", np.zeros(60, np.float64), r"holds float64 of \(60,\)"),
        ("labels", np.arange(60) - 1, r"train_labels.npy', row 1: label -1 is not one of 0 ... 9"),
        ("labels", np.array([None] * 60), r"train_labels.npy' is no whole .npy file"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, name, array, says):
    write_arrays(tmp_path)
    np.save(tmp_path / f"train_{name}.npy", array)
    refused(tmp_path, says)


def test_arrays_cut_short_missing_or_there_twice(tmp_path):
    write_arrays(tmp_path, stem="c10_")
    path = tmp_path / "c10_test_images.npy"
    whole = path.read_bytes()
    for kept in (0, 3, 60, len(whole) - 1):
        path.write_bytes(whole[:kept])
        refused(tmp_path, r"c10_test_images.npy' is no whole .npy file")
    path.unlink()
    refused(tmp_path, r"lacks the images of test beside c10_test_labels.npy, ")
    (tmp_path / "c10_test_images.npy.xz").write_bytes(lzma.compress(whole)[:-40])
    refused(tmp_path, r"c10_test_images.npy.xz' is cut short")
    path.write_bytes(whole)
    refused(tmp_path, r"has c10_test_images.npy under the name c10_test_images.npy.xz too")


def in_folders(root, **names):
    """Tables in a folder of each split, by the names of their files."""
    for split, files in names.items():
        for name in files:
            write_table(root / split / f"{name}.parquet", table(*SPLITS["test"]))


@pytest.mark.parametrize(
    ("train", "says"),
    [
        (["train-00000-of-00002"], "1 of 2 train shards, number 00001 is missing"),
        (["0000", "0002"], "2 of 3 train shards, number 00001 is missing"),
        (["0001"], "1 of 2 train shards, number 00000 is missing"),
        (["0000", "0000 (1)"], r"several train splits \(0000 \(1\).parquet, 0000.parquet\)"),
        (["a", "b"], r"several train splits \(a.parquet, b.parquet\)"),
        (["train", "train-00000-of-00001"], "several train splits"),
    ],
)
def test_files_in_the_folder_of_a_split_that_are_not_one_split(tmp_path, train, says):
    in_folders(tmp_path / "a", train=train, test=["test-00000-of-00001"])
    refused(tmp_path / "a", rf"a' has {says}")


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (["0000", "0001", "0002"], ["0000"]),
        ([f"train-{number:05}-of-00003" for number in range(3)], ["test-00000-of-00001"]),
        ([f"{number:05}-of-00003" for number in range(3)], ["00000-of-00001"]),
        (["part-00000", "part-00001", "part-00002"], ["pictures"]),
    ],
)
def test_shards_in_the_folder_of_a_split(tmp_path, train, test):
    in_folders(tmp_path / "a", train=train, test=test)
    assert is_whole(tmp_path / "a")


def test_a_line_break_in_the_name_of_a_copy(tmp_path):
    in_folders(tmp_path, train=["0000", "00\n00"], test=["0000"])
    with pytest.raises(Exception, match="has several train splits"):
        picture_tables(tmp_path)


def test_folders_named_after_one_split(tmp_path):
    for split in ("train", "test"):
        write_table(tmp_path / "both" / "test" / f"{split}.parquet", table(*SPLITS[split]))
    assert is_whole(tmp_path / "both") and is_whole(tmp_path / "both" / "test")
    in_folders(tmp_path / "each", train=["0000"], test=["0000"])
    refused(tmp_path / "each" / "train", r"0000.parquet' says no split")


def test_a_broken_table_that_is_of_no_split_is_not_there(tmp_path):
    write_binary(tmp_path)
    (tmp_path / "papers.parquet").write_bytes(b"PAR1")
    assert is_whole(tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "0000.parquet").write_bytes(b"PAR1")
    refused(tmp_path, "has no Parquet files in a folder 'test'")
