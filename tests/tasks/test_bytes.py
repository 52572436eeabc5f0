"""Bytes: windows of a text and the bytes that follow, from files of every form, and broken ones."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import noted, read_set, refused

from lra.core.dataset import SPLITS, UNASKED
from lra.core.protocol import Rows
from tasks.bytes import Bytes, BytesConfig
from tasks.sources.data_hash import hashed_files, source_content

TEXT = bytes(range(32, 127)) * 40
SHARES = {"train": TEXT, "validation": TEXT[:200], "test": TEXT[200:500]}


def task(length=16):
    return Bytes(BytesConfig(), length=length)


def joined(split):
    """The text that windows were cut from: their first byte, then every label."""
    labels = split.labels.astype(np.uint8)[split.labels != UNASKED]
    return split.tokens[:1].tobytes() + labels.tobytes()


def write(content, *names):
    """Write the same content under each name."""
    return lambda folder: [(folder / name).write_bytes(content) for name in names]


def texts(folder, name="wiki.{}.txt", pack=bytes):
    for split, share in SHARES.items():
        (folder / name.format(split)).write_bytes(pack(share))


def parquet(folder):
    for split, share in SHARES.items():
        column = [share[:100].decode(), share[101:].decode()]
        pq.write_table(pa.table({"text": column}), folder / f"books_{split}.parquet")


def shards(folder, numbers=range(3)):
    parquet(folder)
    (folder / "books_train.parquet").unlink()
    for number in numbers:
        table = pa.table({"text": [f"shard {number}"]})
        pq.write_table(table, folder / f"books_train-{number:05}-of-00003.parquet")


def test_a_file_is_cut_in_three_where_it_stands(tmp_path):
    write(TEXT, "mine.txt")(tmp_path)
    data = read_set(task(), tmp_path / "mine.txt")
    assert data.vocabulary == data.classes == 256
    train, validation, test = (joined(split) for _, split in data)
    assert train + validation + test == TEXT
    assert len(train) == int(0.9 * len(TEXT)) and len(test) == len(TEXT) - int(0.95 * len(TEXT))


@pytest.mark.parametrize("length", [7, 16, 10_000])
def test_every_byte_but_the_first_is_asked_once(tmp_path, length):
    write(TEXT, "mine.txt")(tmp_path)
    split = read_set(task(length), tmp_path / "mine.txt").train
    assert split.by_token and split.lengths.max() <= length
    for window in range(len(split)):
        inside = slice(split.starts[window], split.starts[window + 1])
        assert np.array_equal(split.tokens[inside][1:], split.labels[inside][:-1])
    assert (split.labels == UNASKED).sum() == 1 and split.labels[-1] == UNASKED


def test_a_folder_has_a_file_for_each_split(tmp_path):
    texts(tmp_path)
    data = read_set(task(), tmp_path)
    assert {name: joined(split) for name, split in data} == SHARES
    few = read_set(task(), tmp_path, Rows(train=3, validation=1, test=2))
    assert [len(split) for _, split in few] == [3, 1, 2]
    assert few.train.tokens.tobytes() == TEXT[:48]
    # Real text has no grammar.
    assert set(task().rules_of_thumb(data)) == {"xz"} and task().floor(data) is None


def test_packed_files_and_the_last_word_say_the_split_and_hidden_files_are_not_there(tmp_path):
    texts(tmp_path, "test_of_time.{}-00000-of-00001.txt.gz", gzip.compress)
    texts(tmp_path, "._test_of_time.{}.txt")
    assert {name: joined(split) for name, split in read_set(task(), tmp_path)} == SHARES


def test_documents_have_a_newline_between_them(tmp_path):
    parquet(tmp_path)
    expected = {split: share[:100] + b"\n" + share[101:] for split, share in SHARES.items()}
    assert {name: joined(split) for name, split in read_set(task(), tmp_path)} == expected


CUT = gzip.compress(TEXT)[:-20]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (write(TEXT, "a.train.txt"), "no text for validation"),
        (write(CUT, "a.txt.gz"), "a.txt.gz' is cut short"),
        (write(CUT, "A.TXT.GZ"), "A.TXT.GZ' is cut short"),
        (write(b"no archive", "a.txt.gz"), "a.txt.gz' is no whole .gz file"),
        (write(b"", "a.txt"), "a.txt' is empty"),
        (write(b"x", "a.txt"), "no rows for train"),
    ],
)
def test_faults_of_contents_are_told_with_the_file(tmp_path, make, says):
    make(tmp_path)
    (file,) = tmp_path.iterdir()
    refused(says, read_set, task(), tmp_path if "train" in file.name else file)


@pytest.mark.parametrize(
    ("make", "source", "says"),
    [
        (write(TEXT, "imdb_train.txt"), ".", r"texts \(imdb_train.txt, wiki.\w+.txt\)"),
        (write(b"", "wiki.train.txt.gz"), ".", "has wiki.train.txt under the name wiki.train.txt."),
        (write(TEXT, "wiki.dev.txt"), ".", r"several validation splits \(wiki.dev.txt, wiki.v"),
        (write(TEXT, "wiki-train.txt"), ".", r"several train splits \(wiki-train.txt, wiki.t"),
        (write(TEXT, "wiki.train.raw.txt"), ".", "has wiki.train.raw.txt under the name wiki.t"),
        (write(b"PK", "enwik8.zip"), "enwik8.zip", "enwik8.zip' is none of .txt"),
        (write(b"PK", "enwik8.xz"), "enwik8.xz", "enwik8.xz' is none of .txt"),
    ],
)
def test_files_that_are_no_text_or_not_one_split(tmp_path, make, source, says):
    texts(tmp_path)
    make(tmp_path)
    refused(says, task().parts, str(tmp_path / source))
    refused(says, hashed_files, str(tmp_path / source), "bytes")


@pytest.mark.parametrize(("there", "missing"), [([0], 1), ([1, 2], 0)])
def test_a_shard_that_is_missing(tmp_path, there, missing):
    shards(tmp_path, there)
    says = f"has {len(there)} of 3 train shards, number 0000{missing}"
    refused(says, task().parts, str(tmp_path))


def test_a_missing_document_is_named_by_its_row(tmp_path):
    file = tmp_path / "mine.parquet"
    pq.write_table(pa.table({"text": ["one", None, "three"]}), file)
    refused("row 2: the text is missing", read_set, task(), file)
    assert len(noted(task(), file)[0]) == len(SPLITS)


def test_the_grammar_pays_less_than_a_compressor():
    made = task(256).generated(Rows(train=1, validation=1, test=40))
    least = task(256).floor(made)
    assert 1.5 < least < 1.9
    assert task(256).rules_of_thumb(made)["xz"] > least + 0.3


def test_hashed_files_are_those_that_are_read(tmp_path):
    """A file that is named is read alone; in a folder, those whose names say a split."""
    shards(tmp_path)
    write(TEXT, "NOTES.md", "mine.txt", "enwik8")(tmp_path)
    (tmp_path / "books_train.parquet").mkdir()
    write(TEXT, "books_train.parquet/mine.train.txt")(tmp_path)

    def read(source):
        return list(dict.fromkeys(part.name.split(",")[0] for part in task().parts(source)))

    for name in ("mine.txt", "enwik8", "books_test.parquet", "books_train-00000-of-00003.parquet"):
        source = str(tmp_path / name)
        assert [name] == read(source) == [found for found, _ in hashed_files(source, "bytes")]
    found = read(str(tmp_path))
    train = [f"books_train-{number:05}-of-00003.parquet" for number in range(3)]
    assert found == [*train, "books_validation.parquet", "books_test.parquet"]
    assert sorted(found) == [name for name, _ in hashed_files(str(tmp_path), "bytes")]
    before = source_content(str(tmp_path), "bytes", 16, {})
    write(b"", "NOTES.md", "books_train.parquet/mine.train.txt")(tmp_path)
    assert source_content(str(tmp_path), "bytes", 16, {}) == before
    write(b"", "books_test.parquet")(tmp_path)
    assert source_content(str(tmp_path), "bytes", 16, {}) != before
