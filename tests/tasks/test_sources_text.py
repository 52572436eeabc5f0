"""Labelled texts: every form gives the same rows; validation by content."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from review_forms import FORMS, TEST, TRAIN, as_csv, as_parquet, write_csv, write_parquet
from set_reader import read_labelled_text as read

from lra.core.dataset import SPLITS
from lra.core.protocol import Rows
from tasks.sources.tables import read_label, read_rows


def contents(rows):
    return {text.encode() for text, _ in rows}


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Reviews as they are read from one form."""
    return read(as_parquet(tmp_path_factory.mktemp("reference")))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(tmp_path, form, reference):
    found = read(form(tmp_path))
    labels = {text.encode(): label for text, label in TRAIN + TEST}
    for texts, given in found.values():
        assert [labels[text] for text in texts] == given.tolist()
        assert given.dtype == np.int64
    train, validation, test = (set(found[split][0]) for split in SPLITS)
    assert train | validation == contents(TRAIN) and not train & validation
    assert test == contents(TEST)
    assert all(found[split][0] == reference[split][0] for split in SPLITS)


def test_the_first_rows_are_a_fair_sample_of_a_file_sorted_by_label(tmp_path):
    found = read(as_parquet(tmp_path), Rows(train=100, validation=20, test=40))
    assert [len(found[split][1]) for split in SPLITS] == [100, 20, 40]
    assert 30 <= found["train"][1].sum() <= 70
    assert 10 <= found["test"][1].sum() <= 30


def test_validation_depends_on_content_alone(tmp_path):
    """Neither order, nor how many rows are asked for or come later, moves a text."""
    folders = [tmp_path / name for name in "abc"]
    for folder, rows in zip(folders, (TRAIN, TRAIN[::-1], TRAIN[:250]), strict=True):
        folder.mkdir()
        write_parquet(folder / "r_train.parquet", rows)
        write_parquet(folder / "r_test.parquet", TEST)
    whole, turned, part = (set(read(folder)["validation"][0]) for folder in folders)
    assert whole == turned and 20 <= len(whole) <= 60
    assert part == whole & contents(TRAIN[:250])
    few, many = read(folders[0], Rows(train=400, validation=5, test=5)), read(folders[0])
    assert few["validation"][0] == many["validation"][0][:5]
    assert few["train"][0] == many["train"][0]


def test_identical_texts_stay_on_one_side(tmp_path):
    write_parquet(tmp_path / "r_train.parquet", TRAIN * 3)
    write_parquet(tmp_path / "r_test.parquet", TEST)
    found = read(tmp_path)
    assert not set(found["train"][0]) & set(found["validation"][0])
    assert len(found["train"][0]) + len(found["validation"][0]) == 3 * len(TRAIN)


def test_lra2021_validates_on_the_test_split(tmp_path):
    found = read(as_parquet(tmp_path), rules="lra2021")
    assert found["validation"][0] == found["test"][0]
    assert len(found["train"][0]) == len(TRAIN)


def test_a_validation_file_is_used_as_it_is(tmp_path):
    as_parquet(tmp_path)
    write_parquet(tmp_path / "imdb_valid.parquet", [("only", 1)])
    found = read(tmp_path)
    assert found["validation"][0] == [b"only"] and len(found["train"][0]) == len(TRAIN)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_csv_that_starts_with_a_byte_order_mark(tmp_path, quoting, reference):
    path = as_csv(tmp_path)
    with path.open("w", newline="", encoding="utf-8-sig") as stream:
        csv.writer(stream, quoting=quoting).writerows([("text", "label"), *TEST])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert read(path)["test"][0] == reference["test"][0]


def test_a_text_may_be_longer_than_the_csv_module_s_limit(tmp_path):
    as_csv(tmp_path)
    text = "very " * 40_000
    write_csv(tmp_path / "imdb_test.csv", [*TEST, (text, 1)])
    assert text.encode() in read(tmp_path)["test"][0]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.large_string()])
def test_every_arrow_type_of_text_is_read(tmp_path, kind, reference):
    path = as_parquet(tmp_path) / "imdb_test.parquet"
    texts, labels = zip(*TEST, strict=True)
    content = [text.encode() for text in texts] if kind == pa.binary_view() else list(texts)
    pq.write_table(pa.table({"text": pa.array(content, kind), "label": list(labels)}), path)
    assert pq.read_schema(path).field("text").type == kind
    assert read(tmp_path)["test"][0] == reference["test"][0]


@pytest.mark.parametrize("label", [b"1", b" 1", b"1.", b"1.0", b"1.00", 1, 1.0, True])
def test_a_label_may_be_written_as_a_decimal(tmp_path, label):
    assert read_label(tmp_path, 1, label, classes=2) == 1


def test_a_single_file_without_splits_is_split_by_content(tmp_path):
    """All is train and test where validation is test."""
    write_csv(tmp_path / "mine.csv", TRAIN)
    found = read(tmp_path / "mine.csv")
    sets = [set(found[split][0]) for split in SPLITS]
    assert sum(map(len, sets)) == len(set.union(*sets)) == len(TRAIN)
    assert all(20 <= len(part) <= 60 for part in sets[1:])
    found = read(tmp_path / "mine.csv", rules="lra2021")
    assert found["validation"][0] == found["test"][0]
    assert sorted([*found["train"][0], *found["test"][0]]) == sorted(contents(TRAIN))


def test_names_in_capitals_are_read(tmp_path, reference):
    as_parquet(tmp_path)
    (tmp_path / "imdb_train.parquet").rename(tmp_path / "IMDB_Train.PARQUET")
    assert read(tmp_path / "imdb_test.parquet")["train"][0] == reference["train"][0]


@pytest.mark.parametrize("character", ["\r", "\0"])
@pytest.mark.parametrize("row", [0, 1])
def test_a_character_that_papers_hold_is_read_in_every_row(tmp_path, character, row):
    """As texts from PDFs have them: a TSV without a header has such a text in its first line."""
    texts = ["one", "two"]
    texts[row] = f"a{character}b"
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"1.0\t{text}\n" for text in texts), encoding="utf-8", newline="")
    found = read_rows(path, ("label", "text"), bare=(("label", "text"),))
    assert [cells[1] for _, cells in found] == [text.encode() for text in texts]
