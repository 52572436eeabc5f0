"""CIFAR-10 in every form: the same pictures, the same splits, the same order."""

import pickle

import datasets
import numpy as np
import pytest
from cifar10_forms import (
    ALL,
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
from set_reader import read_set

from lra.core.dataset import SPLITS as NAMES
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.image import Image, ImageConfig
from tasks.sources.cifar10_pixels import grey
from tasks.sources.data_hash import content_hash
from tasks.sources.holdout import content_key, held_out


def load(source, rules="fixed", rows=ALL, **config):
    return read_set(Image(ImageConfig(**config), length=1024, rules=rules), source, rows)


def examples(split):
    """The pictures and labels of a split in their order."""
    pictures = [tokens.tobytes() for tokens in split.tokens.reshape(-1, 1024)]
    return list(zip(pictures, split.labels.tolist(), strict=True))


def expected(split):
    return [
        (tokens.tobytes(), int(label))
        for tokens, label in zip(GREY[split], SPLITS[split][1], strict=True)
    ]


def fixed(split):
    """What a split must be under fixed rules, worked out one by one."""
    pool = sorted(expected("test" if split == "test" else "train"), key=lambda e: content_key(e[0]))
    if split == "test":
        return pool
    return [e for e in pool if held_out(content_key(e[0])) == (split == "validation")]


def official(folder, suffix):
    """The members of an archive, the last batch first, with what else is there."""
    made = {
        f"{name}{suffix}": records(*held) if suffix else python2(batch(*held))
        for name, held in FILES.items()
    }
    return [
        (f"{folder}/batches.meta", b"names"),
        (f"{folder}/._test_batch{suffix}", b"\0"),
        *((f"{folder}/{name}", made[name]) for name in reversed(made)),
    ]


def write(form, folder):
    """Write a form into the folder; what to name as the source."""
    if form in ("binary", "binary.gz", "binary.xz"):
        write_binary(folder, form.removeprefix("binary"))
    elif form == "named":
        for split, held in SPLITS.items():
            (folder / f"rgb_{split}_sample.bin").write_bytes(records(*held))
        return folder / "rgb_test_sample.bin"
    elif form == "pickles":
        write_pickles(folder)
    elif form.startswith("pickles of Python 3"):
        write_pickles(folder, lambda value: pickle.dumps(value, protocol=int(form[-1])))
    elif form == "binary archive":
        write_archive(folder / "cifar-10-binary.tar.gz", official("cifar-10-batches-bin", ".bin"))
    elif form == "archive":
        write_archive(folder / "mine.tar.gz", official("cifar-10-batches-py", ""))
        return folder / "mine.tar.gz"
    elif form == "tables by name":
        for split, held in SPLITS.items():
            write_table(folder / "plain_text" / f"{split}-00000-of-00001.parquet", table(*held))
    elif form == "tables by folder":
        for split, held in SPLITS.items():
            write_table(folder / split / "0000.parquet", table(*held, column="image"))
    elif form == "grey arrays":
        write_arrays(folder, colour=False, stem="cifar_", packed=".xz")
    elif form == "colour arrays":
        write_arrays(folder, colour=True, packed=".gz")
        return folder / "train_labels.npy.gz"
    else:
        write_arrays(folder, colour=False)
    return folder


FORMS = [
    "binary",
    "binary.gz",
    "binary.xz",
    "named",
    "pickles",
    "pickles of Python 3: 2",
    "pickles of Python 3: 5",
    "archive",
    "binary archive",
    "tables by name",
    "tables by folder",
    "grey arrays",
    "colour arrays",
    "arrays",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_pictures_in_the_same_splits_and_order(tmp_path, form):
    data = load(write(form, tmp_path))
    for split in NAMES:
        assert examples(data.split(split)) == fixed(split)
    assert data.train.tokens.dtype == np.uint8
    assert (data.classes, data.vocabulary, data.length) == (10, 256, 1024)
    assert len(data.train) + len(data.validation) == TRAIN and len(data.validation) > 0


@pytest.mark.parametrize(
    "form", ["binary", "archive", "binary archive", "tables by name", "arrays"]
)
def test_under_lra2021_validation_is_the_last_tenth_in_the_files_order(tmp_path, form):
    data = load(write(form, tmp_path), rules="lra2021")
    assert examples(data.train) == expected("train")[:54]
    assert examples(data.validation) == expected("train")[54:]
    assert examples(data.test) == expected("test")


def test_the_order_in_which_files_and_rows_arrived_does_not_count(tmp_path):
    for split, (colours, labels) in SPLITS.items():
        path = tmp_path / f"{split}.bin"
        path.write_bytes(records(colours[::-1], labels[::-1]))
    data = load(tmp_path)
    assert all(examples(data.split(split)) == fixed(split) for split in NAMES)


def test_equal_pictures_come_in_the_order_of_their_labels(tmp_path):
    colours = np.repeat(SPLITS["test"][0], 2, axis=0)
    labels = np.tile(np.array([7, 3], np.uint8), TEST)
    (tmp_path / "x_train.bin").write_bytes(records(*SPLITS["train"]))
    for turn in (1, -1):
        (tmp_path / "x_test.bin").write_bytes(records(colours[::turn], labels[::turn]))
        found = examples(load(tmp_path).test)
        assert [label for _, label in found] == [3, 7] * TEST
        assert [picture for picture, _ in found[::2]] == [picture for picture, _ in fixed("test")]


def test_a_validation_part_of_its_own_is_used(tmp_path):
    for split, word in (("train", "train"), ("test", "test"), ("test", "val")):
        (tmp_path / f"x_{word}.bin").write_bytes(records(*SPLITS[split]))
    for rules in ("fixed", "lra2021"):
        data = load(tmp_path, rules=rules)
        assert [len(split) for _, split in data] == [TRAIN, TEST, TEST]


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
    for split in SPLITS:
        colours, labels = SPLITS[split]
        made = table(colours, labels).to_pylist()
        for row, tokens in zip(made, GREY[split], strict=True):
            row["img"]["bytes"] = png(tokens, "L")
        write_table(tmp_path / f"{split}.parquet", table(colours, labels).from_pylist(made))
    assert examples(load(tmp_path).train) == fixed("train")


def test_through_the_hub_s_own_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for split, held in SPLITS.items():
        write_table(tmp_path / "set" / f"{split}-00000-of-00001.parquet", table(*held))
    data = load(f"hub:{tmp_path / 'set'}")
    assert all(examples(data.split(split)) == fixed(split) for split in NAMES)


def test_a_set_of_the_hub_without_test_is_refused(monkeypatch):
    held = datasets.DatasetDict(train=datasets.Dataset(table(*SPLITS["train"])))
    monkeypatch.setattr(datasets, "load_dataset", lambda name, revision=None: held)
    with pytest.raises(DataError, match="hub:a has no test split, only train; choose"):
        load("hub:a")


def hashed(source):
    return content_hash(str(source), "image", length=1024, rules="fixed", parameters={})


def test_what_identifies_a_set_is_all_of_its_files_and_no_other(tmp_path):
    write_arrays(tmp_path, colour=False, stem="cifar_")
    source = tmp_path / "cifar_train_images.npy"
    first = hashed(source)
    (tmp_path / "imdb_train.csv").write_bytes(b"of another task")
    assert hashed(source) == hashed(tmp_path) == first
    labels = tmp_path / "cifar_test_labels.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + bytes([9]))
    assert hashed(source) != first


@pytest.mark.parametrize("length", [100, 4096])
def test_another_length_is_refused_in_one_line(tmp_path, length):
    config = ImageConfig(shapes=5, smallest_percent=70)
    with pytest.raises(DataError, match=r"1024 pixels, .* at length 1024: small, compact, paper$"):
        read_set(Image(config, length=length), tmp_path, ALL)
