"""Sources read some rows at a time: the same whole set, and the same row numbers past a border."""

import datasets
import numpy as np
import pyarrow as pa
import pytest
from cifar10_forms import IMAGE, drawn, records, table, write_table
from set_reader import read_set

import tasks.sources.hub
from tasks.contract import Example
from tasks.sources.checking import check_source, tallies
from tasks.sources.cifar10_pixels import grey
from tasks.sources.preparing import gathered
from tasks.text import Text, TextConfig

PICTURES = {"train": drawn(37, 5), "test": drawn(11, 6)}
NUMBERS = [
    "preparing._TOKENS_AT_ONCE",
    "cifar10_pixels._PICTURES_AT_ONCE",
    "cifar10_tables._PICTURES_AT_ONCE",
]
ROWS_AT_ONCE = 1024
"""Rows of a Parquet file, or of a table of the hub."""
TEXT = Text(TextConfig(), length=100)


def as_records(folder, monkeypatch, made):
    for split, held in made.items():
        (folder / f"x_{split}.bin").write_bytes(records(*held))
    return str(folder)


def as_tables(folder, monkeypatch, made):
    return in_files(folder, monkeypatch, {split: table(*made[split]) for split in made})


def as_hub(folder, monkeypatch, made):
    return on_hub(folder, monkeypatch, {split: table(*made[split]) for split in made})


def in_files(folder, monkeypatch, made):
    for split, rows in made.items():
        write_table(folder / f"x_{split}.parquet", rows)
    return str(folder)


def on_hub(folder, monkeypatch, made):
    held = datasets.DatasetDict({split: datasets.Dataset(made[split]) for split in made})
    monkeypatch.setattr(datasets, "load_dataset", lambda name, revision=None: held)
    monkeypatch.setattr(tasks.sources.hub, "_answers", lambda address: True)
    return "hub:a"


def wrong(labels, row):
    """Labels, of which that of a row (from 1) is none."""
    return np.where(np.arange(len(labels)) == row - 1, 10, labels).astype(np.uint8)


def pairs(*splits):
    """Pictures with their labels, in an order of their own."""
    rows = ((split, row) for split in splits for row in range(len(split)))
    return sorted((split.sequence(row).tobytes(), int(split.labels[row])) for split, row in rows)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", [as_records, as_tables, as_hub])
def test_a_set_is_the_same_however_little_is_held_at_once(tmp_path, monkeypatch, form, number):
    source = form(tmp_path, monkeypatch, PICTURES)
    expected = {
        split: sorted(zip(map(bytes, grey(colours)), labels.tolist(), strict=True))
        for split, (colours, labels) in PICTURES.items()
    }
    monkeypatch.setattr(f"tasks.sources.{number}", 2)
    data = read_set(IMAGE, source)
    assert pairs(data.test) == expected["test"]
    assert pairs(data.train, data.validation) == expected["train"]
    counted = check_source(IMAGE, source, pytest.fail)
    for split, tally in tallies(data).items():
        assert counted[split].tokens == tally.tokens
        assert counted[split].labels.tolist() == tally.labels.tolist()


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", [as_records, as_tables, as_hub])
def test_a_wrong_picture_past_a_border_is_left_out_by_its_row(tmp_path, monkeypatch, form, number):
    colours, labels = PICTURES["train"]
    source = form(tmp_path, monkeypatch, {**PICTURES, "train": (colours, wrong(labels, 7))})
    monkeypatch.setattr(f"tasks.sources.{number}", 2)
    defects = []
    found = check_source(IMAGE, source, defects.append)
    assert len(defects) == 1 and ", row 7: label " in str(defects[0])
    assert found["train"].rows + found["validation"].rows == len(labels) - 1


@pytest.mark.parametrize("place", [in_files, on_hub])
def test_a_wrong_row_past_a_batch_of_a_table_is_named_by_its_row(tmp_path, monkeypatch, place):
    row = 2 * ROWS_AT_ONCE + 3
    made = {
        split: pa.table({"text": [f"film {i}" for i in range(rows)], "label": labels})
        for split, rows, labels in (
            ("train", row + 2, wrong(np.zeros(row + 2), row)),
            ("test", 5, [0] * 5),
        )
    }
    defects = []
    found = check_source(TEXT, place(tmp_path, monkeypatch, made), defects.append)
    assert len(defects) == 1 and f", row {row}: label '10'" in str(defects[0])
    assert found["train"].rows + found["validation"].rows == row + 1


def test_examples_are_given_on_as_soon_as_they_have_so_many_tokens(monkeypatch):
    monkeypatch.setattr("tasks.sources.preparing._TOKENS_AT_ONCE", 10)
    lengths = {"train": [4, 4, 4, 9, 1, 3], "test": [10, 2]}
    rows = [(split, length) for split in lengths for length in lengths[split]]
    examples = [Example(split, (np.zeros(length, np.uint8),), 0) for split, length in rows]
    found = [(split, held.lengths.ravel().tolist()) for split, held in gathered(TEXT, examples)]
    ahead = [("train", [4, 4, 4]), ("train", [9, 1]), ("test", [10])]
    assert found == [*ahead, ("train", [3]), ("test", [2])]
