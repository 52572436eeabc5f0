"""CIFAR-10 batches that are broken: the fault, and the file and row where it is, in one line."""

import gzip
import lzma
import os
import pickle
import tarfile

import numpy as np
import pytest
from cifar10_forms import (
    FILES,
    IMAGE,
    SPLITS,
    batch,
    python2,
    records,
    write_archive,
    write_arrays,
    write_binary,
    write_pickles,
)
from set_reader import noted, read_set
from set_reader import refused as refused_by


def refused(source, says):
    refused_by(says, read_set, IMAGE, source)


def test_wrong_labels_are_named_with_file_and_row_and_left_out(tmp_path):
    write_binary(tmp_path)
    colours, labels = FILES["data_batch_2"]
    wrong = np.where(np.isin(np.arange(12), [3, 11]), 10, labels).astype(np.uint8)
    (tmp_path / "data_batch_2.bin").write_bytes(records(colours, wrong))
    defects, examples = noted(IMAGE, tmp_path)
    for defect, row in zip(defects, (4, 12), strict=True):
        assert defect.startswith(f"'{tmp_path}/data_batch_2.bin', row {row}: label 10")
    assert len(examples) == 78
    refused(tmp_path, r"data_batch_2.bin', row 4: label 10")


@pytest.mark.parametrize("size", [0, 1, 3072, 12 * 3073 - 1])
def test_no_whole_number_of_records(tmp_path, size):
    write_binary(tmp_path)
    path = tmp_path / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:size])
    refused(tmp_path, rf"test_batch.bin' has {size} bytes, .* records of 3073")


@pytest.mark.parametrize("packed", [".gz", ".xz"])
def test_packed_files_cut_short_or_not_packed(tmp_path, packed):
    write_binary(tmp_path, packed)
    path = tmp_path / f"data_batch_3.bin{packed}"
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    refused(tmp_path, rf"data_batch_3.bin{packed}' is cut short")
    path.write_bytes(b"no archive at all" + whole)
    refused(tmp_path, rf"data_batch_3.bin{packed}' is no whole {packed} file")


def test_files_and_splits_that_are_missing_or_there_twice(tmp_path):
    write_binary(tmp_path)
    (tmp_path / "data_batch_4.bin").rename(tmp_path / "aside")
    refused(tmp_path, r"lacks the data_batch_4 of train beside data_batch_1.bin, ")
    (tmp_path / "aside").rename(tmp_path / "data_batch_4.bin")
    again = gzip.compress((tmp_path / "test_batch.bin").read_bytes())
    (tmp_path / "test_batch.bin.gz").write_bytes(again)
    refused(tmp_path, r"has test_batch.bin under the name test_batch.bin.gz too")
    held = records(*SPLITS["train"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "x_train.bin").write_bytes(held)
    refused(other, "lacks the records of test beside x_train.bin")
    (other / "x_test.bin").write_bytes(held)
    (other / "x-train.bin.xz").write_bytes(lzma.compress(held))
    refused(other, r"has x-train.bin.xz under the name x_train.bin too")


def test_no_set_several_sets_and_no_such_file(tmp_path):
    refused(tmp_path, r"holds no set of pictures")
    refused(tmp_path / "nothing", "no file or folder .*nothing")
    (tmp_path / "notes.txt").write_text("none")
    refused(tmp_path / "notes.txt", r"notes.txt' is no file of a set of pictures")
    write_binary(tmp_path)
    write_arrays(tmp_path)
    refused(tmp_path, r"several sets \(data_batch_1.bin, test_images.npy\)")


class Runs:
    """A call that a pickle can make to whoever loads it."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_names_anything_else_is_refused_and_runs_nothing(tmp_path, protocol):
    write_pickles(tmp_path)
    marker = tmp_path / "marker"
    content = pickle.dumps(batch(*FILES["data_batch_1"], extra=Runs(str(marker))), protocol)
    (tmp_path / "data_batch_1").write_bytes(content)
    refused(tmp_path, r"data_batch_1' is a pickle that names 'posix.mkdir'")
    assert not marker.exists()
    pickle.loads(content)
    assert marker.exists()


@pytest.mark.parametrize(
    "planted",
    [
        np.array([Runs("never")], dtype=object),
        np.array([1, b"names nothing"], dtype=object),
        b"".join,
        np.load,
        pickle.loads,
        eval,
    ],
)
def test_other_names_and_arrays_of_objects_are_refused(tmp_path, planted):
    write_pickles(tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"data": planted}, 4))
    refused(tmp_path, r"test_batch' is a pickle that names ")


def other_batch(**changes):
    return python2(batch(*FILES["data_batch_1"], **changes))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "' is no whole pickle"),
        (other_batch()[:-3000], "' is no whole pickle"),
        (python2([1, 2]), "' is a pickle without 'data' and 'labels'"),
        (other_batch(labels=None), r"' has no 'data' of uint8 \(N, 3072\) with a list"),
        (other_batch(labels=[0.5] * 12), r"' has no 'data' of uint8 \(N, 3072\) with a list"),
        (other_batch(data=np.zeros((12, 3000), np.uint8)), r"' has no 'data' of uint8 \(N, 3072\)"),
        (other_batch(labels=[1] * 11), "' has 12 pictures and 11 labels"),
        (other_batch(labels=[*range(11), 3]), "', row 11: label 10 is not one of 0 ... 9"),
    ],
)
def test_a_pickle_that_is_no_batch(tmp_path, content, says):
    write_pickles(tmp_path)
    (tmp_path / "data_batch_1").write_bytes(content)
    refused(tmp_path, f"data_batch_1{says}")


def test_an_archive_cut_short_anywhere_or_without_a_batch(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    members = [(f"cifar/{name}.bin", records(*held)) for name, held in FILES.items()]
    write_archive(path, members)
    whole = path.read_bytes()
    for kept in (0, 5, 1000, len(whole) // 2, len(whole) - 3000):
        path.write_bytes(whole[:kept])
        refused(path, r"binary.tar.gz' is cut short or damaged")
    write_archive(path, [member for member in members if "batch_5" not in member[0]])
    refused(path, r"binary.tar.gz' holds no data_batch_5")
    write_archive(path, [*members, members[0]])
    refused(path, r"binary.tar.gz/cifar/data_batch_1.bin' is there twice")
    write_archive(path, [(members[0][0], members[0][1][:-1]), *members[1:]])
    refused(path, r"binary.tar.gz/cifar/data_batch_1.bin' has 36875 bytes")


def test_a_link_in_an_archive_is_no_batch(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("cifar/data_batch_1.bin")
        link.type, link.linkname = tarfile.SYMTYPE, link.name
        archive.addfile(link)
    refused(path, r"binary.tar.gz' holds no data_batch_1")


def test_each_batch_that_is_wrong_is_told_and_the_others_are_read(tmp_path):
    members = []
    for name, held in FILES.items():
        content = records(*held)[: -1 if name[-1] in "24" else None]
        (tmp_path / f"{name}.bin").write_bytes(content)
        members.append((f"cifar/{name}.bin", content))
    path = tmp_path / "elsewhere" / "cifar-10-binary.tar.gz"
    path.parent.mkdir()
    write_archive(path, [*members, members[0]])
    left = sum(len(held[1]) for name, held in FILES.items() if name[-1] not in "24")
    says = ["data_batch_2.bin' has", "data_batch_4.bin' has"]
    for source, more in ((tmp_path / "data_batch_1.bin", []), (path, ["batch_1.bin' is there"])):
        defects, examples = noted(IMAGE, source)
        assert len(examples) == left
        assert all(w in d for w, d in zip([*says, *more], defects, strict=True))
