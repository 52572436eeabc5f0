"""Bytes: windows of a text and the bytes that follow, from files of every form, and what is wrong
with them."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import read_set

from lra.core.dataset import SPLITS, UNASKED
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.bytes import Bytes, BytesConfig
from tasks.sources.data_hash import source_content
from tasks.sources.hashed_files import hashed_files

ALL = Rows(train=10_000, validation=10_000, test=10_000)
TEXT = bytes(range(32, 127)) * 40


def task(length=16):
    return Bytes(BytesConfig(), length=length)


def joined(split):
    """The text that windows were cut from: their first byte, then every label."""
    labels = split.labels.astype(np.uint8)[split.labels != UNASKED]
    return split.tokens[:1].tobytes() + labels.tobytes()


def test_a_file_is_cut_in_three_where_it_stands(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_bytes(TEXT)
    data = read_set(task(), file, ALL)
    assert data.vocabulary == data.classes == 256
    train, validation, test = (joined(split) for _, split in data)
    assert train + validation + test == TEXT
    assert len(train) == int(0.9 * len(TEXT)) and len(test) == len(TEXT) - int(0.95 * len(TEXT))


def test_every_byte_but_the_first_is_asked_once(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_bytes(TEXT)
    for length in (7, 16, 10_000):
        split = read_set(task(length), file, ALL).train
        assert split.by_token and split.lengths.max() <= length
        for window in range(len(split)):
            inside = slice(split.starts[window], split.starts[window + 1])
            tokens, labels = split.tokens[inside], split.labels[inside]
            assert np.array_equal(tokens[1:], labels[:-1])
        assert (split.labels == UNASKED).sum() == 1 and split.labels[-1] == UNASKED


def as_texts(folder):
    for word, share in (("train", TEXT), ("valid", TEXT[:200]), ("test", TEXT[200:500])):
        (folder / f"wiki.{word}.txt").write_bytes(share)


def as_gzip(folder):
    for word, share in (("train", TEXT), ("val", TEXT[:200]), ("test", TEXT[200:500])):
        (folder / f"{word}.txt.gz").write_bytes(gzip.compress(share))


def as_parquet(folder):
    for word, share in (("train", TEXT), ("validation", TEXT[:200]), ("test", TEXT[200:500])):
        column = [share[:100].decode(), share[101:].decode()]
        pq.write_table(pa.table({"text": column}), folder / f"books_{word}.parquet")


@pytest.mark.parametrize("form", [as_texts, as_gzip, as_parquet])
def test_a_folder_has_a_file_for_each_split(tmp_path, form):
    form(tmp_path)
    data = read_set(task(), tmp_path, ALL)
    wanted = [TEXT, TEXT[:200], TEXT[200:500]]
    if form is as_parquet:
        # Between two documents stands a newline.
        wanted = [share[:100] + b"\n" + share[101:] for share in wanted]
    assert [joined(split) for _, split in data] == wanted


def test_the_last_word_says_the_split_and_hidden_files_are_not_there(tmp_path):
    for word, share in (("train", TEXT), ("valid", TEXT[:200]), ("test", TEXT[200:500])):
        (tmp_path / f"test_of_time.{word}-00000-of-00001.txt").write_bytes(share)
        (tmp_path / f"._test_of_time.{word}.txt").write_bytes(b"no text")
    assert joined(read_set(task(), tmp_path, ALL).train) == TEXT


def test_fewer_rows_are_the_first(tmp_path):
    as_texts(tmp_path)
    data = read_set(task(), tmp_path, Rows(train=3, validation=1, test=2))
    assert [len(split) for _, split in data] == [3, 1, 2]
    assert data.train.tokens.tobytes() == TEXT[:48]


def two_texts(folder):
    as_texts(folder)
    (folder / "imdb_train.txt").write_bytes(TEXT)


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (write("a.train.txt", TEXT), ".", "no text for validation"),
        (two_texts, ".", r"holds several texts \(imdb_train.txt, wiki.\w+.txt\); give each a"),
        (write("a.txt.gz", gzip.compress(TEXT)[:-20]), "a.txt.gz", "cut short"),
        (write("a.txt.gz", b"no archive"), "a.txt.gz", "no whole gzip archive"),
        (write("a.txt", b""), "a.txt", "is empty; copy or download it again"),
        (write("A.TXT.GZ", gzip.compress(TEXT)[:-20]), "A.TXT.GZ", "cut short"),
        (write("a.txt", b"x"), "a.txt", "no rows for train"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path, make, name, message):
    make(tmp_path)
    with pytest.raises(DataError, match=message):
        read_set(task(), tmp_path / name, ALL)


def test_a_missing_document_is_named_by_its_row(tmp_path):
    file = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"text": ["one", None, "three"]}), file)
    with pytest.raises(DataError, match="row 2: the text is missing"):
        read_set(task(), file, ALL)
    found = []
    for part in task().parts(str(file)):
        list(part.examples(found.append))
    assert len(found) == len(SPLITS)


def test_the_grammar_pays_less_than_a_compressor():
    made = task(256).generated(Rows(train=1, validation=1, test=40))
    costs = task(256).rules_of_thumb(made)
    assert 1.5 < costs["its grammar"] < 1.9
    assert costs["xz"] > costs["its grammar"] + 0.3


def test_real_text_has_no_grammar(tmp_path):
    as_texts(tmp_path)
    assert set(task().rules_of_thumb(read_set(task(), tmp_path, ALL))) == {"xz"}


def shards(folder, numbers=range(3), of=3):
    as_parquet(folder)
    (folder / "books_train.parquet").unlink()
    for number in numbers:
        table = pa.table({"text": [f"shard {number}"]})
        pq.write_table(table, folder / f"books_train-{number:05}-of-{of:05}.parquet")


def doubled(name, content):
    def make(folder):
        as_texts(folder)
        (folder / name).write_bytes(content)

    return make


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (
            doubled("wiki.train.txt.gz", gzip.compress(TEXT)),
            ".",
            r"has wiki.train.txt under the name wiki.train.txt.gz too; keep one",
        ),
        (doubled("wiki.dev.txt", TEXT), ".", r"several validation splits \(wiki.dev.txt, wiki.v"),
        (doubled("wiki-train.txt", TEXT), ".", r"several train splits \(wiki-train.txt, wiki.t"),
        (doubled("wiki.train.raw.txt", TEXT), ".", "has wiki.train.raw.txt under the name wiki.t"),
        (lambda f: shards(f, [0]), ".", "has 1 of 3 train shards, number 00001 is missing; copy"),
        (lambda f: shards(f, [1, 2]), ".", "has 2 of 3 train shards, number 00000 is missing"),
        (write("enwik8.zip", b"PK"), "enwik8.zip", r"is none of .txt, .txt.gz, .parquet; unpack"),
        (write("enwik8.xz", b"PK"), "enwik8.xz", r"is none of .txt, .txt.gz, .parquet; unpack"),
    ],
)
def test_files_that_are_no_text_or_not_one_split(tmp_path, make, name, message):
    make(tmp_path)
    for ask in (task().parts, lambda source: hashed_files(source, "bytes")):
        with pytest.raises(DataError, match=message) as caught:
            ask(str(tmp_path / name))
        assert "\n" not in str(caught.value)


def test_what_is_hashed_is_what_is_read(tmp_path):
    """A file that is named is read alone; in a folder, those whose names say a split."""
    shards(tmp_path)
    (tmp_path / "NOTES.md").write_text("not read")
    (tmp_path / "mine.txt").write_bytes(TEXT)
    (tmp_path / "enwik8").write_bytes(TEXT)
    (tmp_path / "books_train.parquet").mkdir()
    (tmp_path / "books_train.parquet" / "mine.train.txt").write_bytes(TEXT)

    def read(source):
        return list(dict.fromkeys(part.name.split(",")[0] for part in task().parts(source)))

    for name in ("mine.txt", "enwik8", "books_test.parquet", "books_train-00000-of-00003.parquet"):
        source = str(tmp_path / name)
        assert [name] == read(source) == [found for found, _ in hashed_files(source, "bytes")]
    found = read(str(tmp_path))
    assert found == [
        *(f"books_train-{number:05}-of-00003.parquet" for number in range(3)),
        "books_validation.parquet",
        "books_test.parquet",
    ]
    assert sorted(found) == [name for name, _ in hashed_files(str(tmp_path), "bytes")]


def test_a_folder_of_which_something_else_changed_is_the_same_source(tmp_path):
    as_texts(tmp_path)
    before = source_content(str(tmp_path), "bytes", 16, {})
    (tmp_path / "NOTES.md").write_text("not read")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "wiki.train.txt").write_text("not read")
    assert source_content(str(tmp_path), "bytes", 16, {}) == before
    (tmp_path / "wiki.test.txt").write_bytes(TEXT[200:501])
    assert source_content(str(tmp_path), "bytes", 16, {}) != before
