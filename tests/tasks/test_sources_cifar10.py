"""CIFAR-10 in every form: the same pictures, the same splits, the same order."""

import pickle

import datasets
import numpy as np
import pytest
from cifar10_forms import (
    FILES,
    GREY,
    SPLITS,
    TEST,
    TRAIN,
    batch,
    png,
    python2,
    records,
    table,
    write_archive,
    write_arrays,
    write_binary,
    write_pickles,
    write_table,
)
from set_reader import ALL, read_set, refused

from lra.core.dataset import SPLITS as NAMES
from lra.core.protocol import Rows
from tasks.image import Image, ImageConfig
from tasks.sources.cifar10_pixels import grey
from tasks.sources.data_hash import content_hash
from tasks.sources.holdout import content_key, held_out


def load(source, rules="fixed", rows=ALL, **config):
    return read_set(Image(ImageConfig(**config), length=1024, rules=rules), source, rows)


def examples(split):
    """The pictures and labels of a split in their order."""
    pictures = map(bytes, split.tokens.reshape(-1, 1024))
    return list(zip(pictures, split.labels.tolist(), strict=True))


def expected(split):
    return list(zip(map(bytes, GREY[split]), SPLITS[split][1].tolist(), strict=True))


def fixed(split):
    """The examples of a split under fixed rules, worked out one by one."""
    pool = sorted(expected("test" if split == "test" else "train"), key=lambda e: content_key(e[0]))
    if split == "test":
        return pool
    return [e for e in pool if held_out(content_key(e[0])) == (split == "validation")]


def is_fixed(data):
    return all(examples(data.split(split)) == fixed(split) for split in NAMES)


def archive(path, folder, suffix):
    """An archive, the last batch first, with what else is there."""
    dump = records if suffix else lambda *held: python2(batch(*held))
    members = [(f"{folder}/{name}{suffix}", dump(*held)) for name, held in FILES.items()]
    beside = [(f"{folder}/batches.meta", b"names"), (f"{folder}/._test_batch{suffix}", b"\0")]
    write_archive(path, [*beside, *reversed(members)])
    return path


def each_split(folder, name, write):
    for split, held in SPLITS.items():
        write(folder / name.format(split), held)
    return folder


def tables(folder, name, column="img"):
    return each_split(folder, name, lambda path, held: write_table(path, table(*held, column)))


def named(folder):
    return each_split(folder, "rgb_{}_sample.bin", lambda p, held: p.write_bytes(records(*held)))


FORMS = {
    "binary": lambda f: write_binary(f),
    "binary.gz": lambda f: write_binary(f, ".gz"),
    "binary.xz": lambda f: write_binary(f, ".xz"),
    "named": lambda f: named(f) / "rgb_test_sample.bin",
    "pickles": lambda f: write_pickles(f),
    "pickles of Python 3: 2": lambda f: write_pickles(f, lambda v: pickle.dumps(v, protocol=2)),
    "pickles of Python 3: 5": lambda f: write_pickles(f, lambda v: pickle.dumps(v, protocol=5)),
    "archive": lambda f: archive(f / "mine.tar.gz", "cifar-10-batches-py", ""),
    "binary archive": lambda f: archive(f / "cifar-10-binary.tar.gz", "c", ".bin") and f,
    "tables by name": lambda f: tables(f, "plain_text/{}-00000-of-00001.parquet"),
    "tables by folder": lambda f: tables(f, "{}/0000.parquet", "image"),
    "grey arrays": lambda f: write_arrays(f, stem="cifar_", packed=".xz"),
    "colour arrays": lambda f: (
        write_arrays(f, colour=True, packed=".gz") or f / "train_labels.npy.gz"
    ),
    "arrays": lambda f: write_arrays(f),
}
"""Writers of a form, which return what to name as the source where that is not the folder."""


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pictures_in_the_same_splits_and_order(tmp_path, form):
    data = load(FORMS[form](tmp_path) or tmp_path)
    assert is_fixed(data)
    assert data.train.tokens.dtype == np.uint8
    assert (data.classes, data.vocabulary, data.length) == (10, 256, 1024)
    assert len(data.train) + len(data.validation) == TRAIN and len(data.validation) > 0


@pytest.mark.parametrize(
    "form", ["binary", "archive", "binary archive", "tables by name", "arrays"]
)
def test_under_lra2021_validation_is_the_last_tenth_in_the_files_order(tmp_path, form):
    data = load(FORMS[form](tmp_path) or tmp_path, rules="lra2021")
    assert examples(data.train) == expected("train")[:54]
    assert examples(data.validation) == expected("train")[54:]
    assert examples(data.test) == expected("test")


def test_the_order_in_which_files_and_rows_arrived_does_not_count(tmp_path):
    each_split(tmp_path, "{}.bin", lambda path, held: path.write_bytes(
        records(held[0][::-1], held[1][::-1])
    ))  # fmt: skip
    assert is_fixed(load(tmp_path))


def test_equal_pictures_come_in_the_order_of_their_labels(tmp_path):
    colours = np.repeat(SPLITS["test"][0], 2, axis=0)
    labels = np.tile(np.array([7, 3], np.uint8), TEST)
    (tmp_path / "x_train.bin").write_bytes(records(*SPLITS["train"]))
    for turn in (1, -1):
        (tmp_path / "x_test.bin").write_bytes(records(colours[::turn], labels[::turn]))
        found = examples(load(tmp_path).test)
        assert [label for _, label in found] == [3, 7] * TEST
        assert [picture for picture, _ in found[::2]] == [picture for picture, _ in fixed("test")]


@pytest.mark.parametrize("rules", ["fixed", "lra2021"])
def test_a_validation_part_of_its_own_is_used(tmp_path, rules):
    for split, word in (("train", "train"), ("test", "test"), ("test", "val")):
        (tmp_path / f"x_{word}.bin").write_bytes(records(*SPLITS[split]))
    assert [len(split) for _, split in load(tmp_path, rules)] == [TRAIN, TEST, TEST]


def test_few_rows_are_the_first(tmp_path):
    write_binary(tmp_path)
    data = load(tmp_path, rows=Rows(train=5, validation=1, test=3))
    assert examples(data.train) == fixed("train")[:5]
    assert examples(data.test) == fixed("test")[:3]


def test_a_real_set_has_ten_classes_whatever_is_drawn_and_no_shape_s_area(tmp_path):
    write_binary(tmp_path)
    data = load(tmp_path, shapes=5)
    task = Image(ImageConfig(shapes=5), length=1024)
    assert data.classes == 10 and task.classes == 5
    assert task.rules_of_thumb(data) == {}


def test_grey_is_the_original_s():
    """White, black, the pure colours, and one that a quotient by 255 would make 127."""
    colours = [[255] * 3, [0] * 3, [255, 0, 0], [0, 255, 0], [0, 0, 255], [5, 171, 227]]
    planes = np.repeat(np.array(colours, np.uint8)[:, :, None], 1024, axis=2)
    assert grey(planes)[:, 0].tolist() == [255, 0, 76, 149, 29, 128]
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)[:, :, None]
    levels = grey(np.broadcast_to(every, (256, 3, 1024)))
    assert (levels == np.arange(256)[:, None]).all()


def test_a_grey_png_keeps_its_values(tmp_path):
    for split, held in SPLITS.items():
        made = table(*held)
        rows = made.to_pylist()
        for row, tokens in zip(rows, GREY[split], strict=True):
            row["img"]["bytes"] = png(tokens, "L")
        write_table(tmp_path / f"{split}.parquet", made.from_pylist(rows))
    assert is_fixed(load(tmp_path))


def test_through_the_hub_s_own_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    source = tables(tmp_path / "set", "{}-00000-of-00001.parquet")
    assert is_fixed(load(f"hub:{source}"))


def test_a_set_of_the_hub_without_test_is_refused(monkeypatch):
    held = datasets.DatasetDict(train=datasets.Dataset(table(*SPLITS["train"])))
    monkeypatch.setattr(datasets, "load_dataset", lambda name, revision=None: held)
    refused("hub:a has no test split, only train", load, "hub:a")


def test_the_hash_of_a_set_is_of_all_its_files_and_no_other(tmp_path):
    def hashed(source):
        return content_hash(str(source), "image", length=1024, rules="fixed", parameters={})

    write_arrays(tmp_path, stem="cifar_")
    source = tmp_path / "cifar_train_images.npy"
    first = hashed(source)
    (tmp_path / "imdb_train.csv").write_bytes(b"of another task")
    assert hashed(source) == hashed(tmp_path) == first
    labels = tmp_path / "cifar_test_labels.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + bytes([9]))
    assert hashed(source) != first


@pytest.mark.parametrize("length", [100, 4096])
def test_another_length_is_refused_in_one_line(tmp_path, length):
    task = Image(ImageConfig(shapes=5, smallest_percent=70), length=length)
    refused(r"1024 pixels, .* at length 1024", read_set, task, tmp_path)
