"""Labelled texts: every form gives the same rows; validation by content; every broken form."""

import csv
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.sources.labelled_text import read_labelled_text

ALL = Rows(train=10_000, validation=10_000, test=10_000)


def review(index):
    return f'Film {index}: "déjà vu", said\nthe critic, {index * 7919 % 1000} times <br />'


# Sorted by label, as the archive and the hub have them.
TRAIN = sorted(((review(i), i % 2) for i in range(400)), key=lambda row: row[1])
TEST = sorted(((review(i), i % 2) for i in range(400, 500)), key=lambda row: row[1])


def write_parquet(path, rows, **more):
    texts, labels = zip(*rows, strict=True)
    pq.write_table(pa.table({"text": list(texts), "label": list(labels), **more}), path)


def write_csv(path, rows, header=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def write_reviews(folder, train=TRAIN, test=TEST):
    for part, rows in (("train", train), ("test", test)):
        for side in ("pos", "neg"):
            (folder / part / side).mkdir(parents=True)
        for index, (text, label) in enumerate(rows):
            side = "pos" if label else "neg"
            (folder / part / side / f"{index}_7.txt").write_bytes(text.encode())
    (folder / "train" / "unsup").mkdir()
    (folder / "train" / "unsup" / "0_0.txt").write_text("no label")


def as_csv(folder):
    write_csv(folder / "imdb_train.csv", TRAIN)
    write_csv(folder / "imdb_test.csv", TEST)
    return folder / "imdb_test.csv"


def as_parquet(folder):
    write_parquet(folder / "imdb_train.parquet", TRAIN)
    write_parquet(folder / "imdb_test.parquet", TEST)
    return folder


def as_shards(folder):
    write_parquet(folder / "train-00000-of-00002.parquet", TRAIN[:150])
    write_parquet(folder / "train-00001-of-00002.parquet", TRAIN[150:])
    write_parquet(folder / "test-00000-of-00001.parquet", TEST)
    write_parquet(folder / "unsupervised-00000-of-00001.parquet", [("x", -1)])
    return folder


def as_one_parquet(folder):
    words = ["train"] * len(TRAIN) + ["test"] * len(TEST)
    write_parquet(folder / "reviews.parquet", TRAIN + TEST, split=words)
    return folder / "reviews.parquet"


def as_packed_csv(folder):
    write_csv(
        folder / "a.csv",
        [(*r, "train") for r in TRAIN] + [(*r, "test") for r in TEST],
        header=("text", "label", "split"),
    )
    (folder / "reviews.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    return folder / "reviews.csv.gz"


def as_reviews(folder):
    write_reviews(folder / "aclImdb")
    return folder / "aclImdb"


FORMS = [as_parquet, as_csv, as_shards, as_one_parquet, as_packed_csv, as_reviews]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(tmp_path, form):
    found = read_labelled_text(str(form(tmp_path)), ALL)
    labels = {text.encode(): label for text, label in TRAIN + TEST}
    for texts, given in found.values():
        assert [labels[text] for text in texts] == given.tolist()
        assert given.dtype == np.int64
    train, validation, test = (set(found[split][0]) for split in SPLITS)
    assert train | validation == {text.encode() for text, _ in TRAIN}
    assert not train & validation
    assert test == {text.encode() for text, _ in TEST}
    # Every form agrees with the first one on order too.
    (tmp_path / "reference").mkdir()
    reference = read_labelled_text(str(as_parquet(tmp_path / "reference")), ALL)
    assert all(found[split][0] == reference[split][0] for split in SPLITS)


def test_the_first_rows_are_a_fair_sample_of_a_file_sorted_by_label(tmp_path):
    found = read_labelled_text(str(as_parquet(tmp_path)), Rows(train=100, validation=20, test=40))
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
    whole, turned, part = (
        set(read_labelled_text(str(folder), ALL)["validation"][0]) for folder in folders
    )
    assert whole == turned and 20 <= len(whole) <= 60
    assert part == whole & {text.encode() for text, _ in TRAIN[:250]}
    few = read_labelled_text(str(folders[0]), Rows(train=400, validation=5, test=5))
    many = read_labelled_text(str(folders[0]), ALL)
    assert few["validation"][0] == many["validation"][0][:5]
    assert few["train"][0] == many["train"][0]


def test_identical_texts_stay_on_one_side(tmp_path):
    write_parquet(tmp_path / "r_train.parquet", TRAIN * 3)
    write_parquet(tmp_path / "r_test.parquet", TEST)
    found = read_labelled_text(str(tmp_path), ALL)
    assert not set(found["train"][0]) & set(found["validation"][0])
    assert len(found["train"][0]) + len(found["validation"][0]) == 3 * len(TRAIN)


def test_the_share_held_out_is_a_choice(tmp_path):
    source = str(as_parquet(tmp_path))
    tenth = read_labelled_text(source, ALL)["validation"][0]
    half = read_labelled_text(source, ALL, share=0.5)["validation"][0]
    assert 160 <= len(half) <= 240 and set(tenth) < set(half)


def test_lra2021_validates_on_the_test_split(tmp_path):
    found = read_labelled_text(str(as_parquet(tmp_path)), ALL, rules="lra2021")
    assert found["validation"][0] == found["test"][0]
    assert len(found["train"][0]) == len(TRAIN)


def test_a_validation_file_is_used_as_it_is(tmp_path):
    as_parquet(tmp_path)
    write_parquet(tmp_path / "imdb_valid.parquet", [("only", 1)])
    found = read_labelled_text(str(tmp_path), ALL)
    assert found["validation"][0] == [b"only"] and len(found["train"][0]) == len(TRAIN)


def test_a_csv_that_starts_with_a_byte_order_mark(tmp_path):
    path = as_csv(tmp_path)
    expected = read_labelled_text(str(path), ALL)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_labelled_text(str(path), ALL)["test"][0] == expected["test"][0]


def test_a_single_file_without_splits_is_split_by_content(tmp_path):
    write_csv(tmp_path / "mine.csv", TRAIN)
    found = read_labelled_text(str(tmp_path / "mine.csv"), ALL)
    sets = [set(found[split][0]) for split in SPLITS]
    assert sum(map(len, sets)) == len(set.union(*sets)) == len(TRAIN)
    assert all(20 <= len(part) <= 60 for part in sets[1:])


def with_train(folder, content):
    (folder / "r_train.csv").write_bytes(content)
    write_csv(folder / "r_test.csv", TEST)
    return str(folder)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"review,label\ngood,1\n",
            r"r_train.csv' has no column 'text', only review, label; rename",
        ),
        (b"text,label\ngood,1\nbad,2\n", r"r_train.csv', row 2: label '2' is not one of 0 ... 1"),
        (b"text,label\ngood,positive\n", r"row 1: label 'positive'"),
        (b"text,label\ngood,0.5\n", r"row 1: label '0.5'"),
        (b"text,label\n,1\n", r"row 1: the text is empty; remove the row"),
        (
            b"text,label\ngood,1\nd\xe9j\xe0,1\n",
            r"row 2: byte 2 is not UTF-8; save the file as UTF-8",
        ),
        (b"text,label\ngood\n", r"row 1: 1 fields, the header has 2"),
        (b'text,label\ngood,1\n"never closed,1\n', r"row 2: .*correct the quotes"),
        (b"", r"r_train.csv' is empty; copy or download it again"),
        (b"text,label\n", r"has no rows for train"),
    ],
)
def test_a_bad_csv_is_one_line_with_file_row_and_remedy(tmp_path, content, says):
    with pytest.raises(DataError, match=says) as caught:
        read_labelled_text(with_train(tmp_path, content), ALL)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"text": ["a", "b"]}, r"r_train.parquet' has no column 'label', only text"),
        ({"text": ["a", None], "label": [0, 1]}, r"row 2: the text is missing"),
        ({"text": [5, 6], "label": [0, 1]}, r"row 1: the text is '5'"),
        ({"text": ["a", "b"], "label": [0, None]}, r"row 2: label missing"),
        ({"text": ["a", "b"], "label": [-1, 0]}, r"row 1: label '-1'"),
        ({"text": [b"a", b"\xff\xfe"], "label": [0, 1]}, r"row 2: byte 1 is not UTF-8"),
    ],
)
def test_a_bad_parquet_is_one_line_with_file_row_and_remedy(tmp_path, columns, says):
    pq.write_table(pa.table(columns), tmp_path / "r_train.parquet")
    write_parquet(tmp_path / "r_test.parquet", TEST)
    with pytest.raises(DataError, match=says) as caught:
        read_labelled_text(str(tmp_path), ALL)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("keep", "says"), [(0, "is empty"), (0.6, "is no complete Parquet file")])
def test_a_truncated_parquet(tmp_path, keep, says):
    as_parquet(tmp_path)
    path = tmp_path / "imdb_test.parquet"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(DataError, match=rf"imdb_test.parquet' {says}.*; copy or download it again"):
        read_labelled_text(str(tmp_path), ALL)


def test_a_parquet_damaged_inside(tmp_path):
    """The footer is whole, the pages are not."""
    path = as_one_parquet(tmp_path)
    content = bytearray(path.read_bytes())
    content[100:2000] = bytes(1900)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"reviews.parquet' is no complete Parquet file; copy"):
        read_labelled_text(str(path), ALL)


def test_a_truncated_gzip_archive(tmp_path):
    path = as_packed_csv(tmp_path)
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(DataError, match=r"csv.gz' is cut short .*; copy or download it again"):
        read_labelled_text(str(path), ALL)


def test_an_unknown_split_word(tmp_path):
    write_parquet(tmp_path / "r.parquet", TEST, split=["training"] * len(TEST))
    with pytest.raises(DataError, match=r"row 1: split 'training' is none of train, validation"):
        read_labelled_text(str(tmp_path / "r.parquet"), ALL)


def test_broken_review_folders(tmp_path):
    write_reviews(tmp_path)
    (tmp_path / "test" / "neg" / "x_1.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"test/neg/x_1.txt', row 1: byte 4 is not UTF-8"):
        read_labelled_text(str(tmp_path), ALL)
    for file in (tmp_path / "test" / "neg").iterdir():
        file.unlink()
    with pytest.raises(DataError, match=r"test/neg' holds no texts; unpack the whole archive"):
        read_labelled_text(str(tmp_path), ALL)
