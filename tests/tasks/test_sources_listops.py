"""ListOps from files: the release's TSV, Parquet, CSV, one file; and the ways it may be broken."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import read_set, refused, same

from lra.core.protocol import Rows
from tasks.listops import TOKENS, ListOps, ListOpsConfig

WORDS = ("train", "val", "test")

# The release writes each argument list as nested pairs.
ROWS = [
    ("( ( ( [MAX 2 ) 9 ) ] )", 9),
    ("( ( ( ( [SM 7 ) 8 ) ( ( ( [MED 2 ) 3 ) ] ) ) ] )", 7),
    ("( ( ( [MIN 4 ) 1 ) ] )", 1),
]
TEXTS = ["[MAX 2 9 ]", "[SM 7 8 [MED 2 3 ] ]", "[MIN 4 1 ]"]


def task(length=2000):
    return ListOps(ListOpsConfig(), length=length)


def texts(split):
    rows = map(split.sequence, range(len(split)))
    return [" ".join(TOKENS[token - 1] for token in row) for row in rows]


def tsv(rows, end="\r\n", between="\t"):
    lines = [("Source", "Target"), *rows]
    return "".join(f"{source}{between}{target}{end}" for source, target in lines).encode()


def parquet(rows):
    sources, targets = zip(*rows, strict=True)
    table = pa.table({"Source": list(sources), "Target": pa.array(targets, pa.int64())})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def generated_rows(count, length=64):
    made = task(length).generate("train", count)
    return list(zip(texts(made), made.labels.tolist(), strict=True))


def write(folder, content, name="basic_{}.tsv", words=WORDS):
    folder.mkdir(exist_ok=True)
    for word in words:
        (folder / name.format(word)).write_bytes(content)
    return folder


GOOD = tsv(ROWS)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (GOOD, "basic_{}.tsv"),
        (tsv(ROWS, end="\n"), "basic_{}.tsv"),
        (parquet(ROWS), "listops_{}.parquet"),
        (tsv(ROWS, between=","), "listops_{}.csv"),
        (gzip.compress(GOOD, mtime=0), "listops_{}.tsv.gz"),
    ],
)
def test_every_form_holds_the_same_rows(tmp_path, content, name):
    for source in (write(tmp_path, content, name), tmp_path / name.format("test")):
        data = read_set(task(), source)
        for _, split in data:
            assert texts(split) == TEXTS and split.labels.tolist() == [9, 7, 1]
            assert split.tokens.dtype == np.uint8
        assert (data.classes, data.vocabulary, data.length) == (10, 17, 2000)


def test_generated_rows_read_back_the_same(tmp_path):
    made = task(300).generate("train", 40)
    write(tmp_path, tsv(generated_rows(40, 300)))
    assert same(read_set(task(300), tmp_path).train, made)


def test_long_rows_are_cut_on_the_right_and_rows_taken_from_the_start(tmp_path):
    write(tmp_path, GOOD)
    # A row that is cut is whole before.
    data = read_set(task(length=5), tmp_path, Rows(train=2, validation=1, test=9))
    assert [len(split) for _, split in data] == [2, 1, 3]
    assert texts(data.train) == ["[MAX 2 9 ]", "[SM 7 8 [MED 2"]
    assert data.train.labels.tolist() == [9, 7]


def test_a_single_file_is_split_by_content_whatever_the_order(tmp_path):
    rows = generated_rows(300)
    found = []
    for name, order in (("a.tsv", rows), ("b.tsv", rows[::-1])):
        (tmp_path / name).write_bytes(tsv(order))
        data = read_set(task(), tmp_path / name)
        found.append([set(texts(split)) for _, split in data])
    assert found[0] == found[1]
    train, validation, test = found[0]
    assert len(train | validation | test) == len(train) + len(validation) + len(test) == 300
    assert 200 < len(train) < 280 and 10 < len(validation) < 60 and 10 < len(test) < 60


@pytest.mark.parametrize(
    ("word", "content", "says"),
    [
        ("train", GOOD.replace(b"Target", b"Answer"), r"train.tsv' has no column 'Target'"),
        (
            "train",
            GOOD.replace(b"\t9", b"\t10"),
            r"train.tsv', row 1: label '10' is not .* 0 ... 9",
        ),
        ("val", GOOD.replace(b"\t7", b"\tx"), r"val.tsv', row 2: label 'x'"),
        ("val", GOOD.replace(b"\t7", b"\t"), r"val.tsv', row 2: label missing"),
        ("test", GOOD.replace(b"[MIN", b"[FIRST"), r"test.tsv', row 3: unknown token '\[FIRST'"),
        ("test", GOOD.replace(b"1 ) ]", b"1 )"), r"test.tsv', row 3: .*1 operators and 0 '\]'"),
        ("val", tsv([("] [MAX 2 9", 9)]), r"val.tsv', row 1: Source begins with '\]'"),
        ("val", tsv([("2 3 4", 0)]), r"row 1: Source is over after token 1 of 3"),
        ("val", tsv([("( [MAX 2 3 ] ) 4", 3)]), r"row 1: Source is over after token 4 of 5"),
        ("val", tsv([("[SM 1 [MAX ] ]", 1)]), r"row 1: Source has an operator without arguments"),
        ("val", tsv([("( )", 1)]), r"row 1: Source holds no token"),
        ("val", GOOD.replace(b"\t7", b"\t6"), r"row 2: Target is 6, the value of Source is 7"),
        ("val", tsv([("( ( ( [MAX 2 ) 3 ) ] ", 3)]), r"row 1: Source has 3 '\(' and 2 '\)'"),
        ("test", GOOD[:-20], r"test.tsv', row 3: 1 fields, the header has 2"),
        ("test", GOOD.replace(b"4", b"\xff"), r"test.tsv', row 3: byte \d+ is not UTF-8"),
        ("train", b"", r"train.tsv' is empty"),
        ("train", GOOD[:15], r"train.tsv' has no rows"),
        ("val", None, r"has no validation split"),
        ("train", None, r"has no train split beside basic_test.tsv, basic_val.tsv"),
    ],
)
def test_a_bad_file_is_one_line_with_file_and_row(tmp_path, word, content, says):
    write(tmp_path, GOOD, words=[other for other in WORDS if other != word])
    if content is not None:
        write(tmp_path, content, words=[word])
    refused(says, read_set, task(), tmp_path)


def test_a_fault_past_the_rows_that_are_needed_is_not_met(tmp_path):
    write(tmp_path, GOOD)
    few, more = (Rows(train=rows, validation=3, test=3) for rows in (3, 4))
    for content, says in (
        (tsv([*ROWS, ("[MAX 2 3 ]", 2)]), "row 4: Target is 2, the value of Source is 3"),
        (GOOD + b"no tab\n", "row 4: 1 fields"),
    ):
        write(tmp_path, content, words=["train"])
        assert texts(read_set(task(), tmp_path, few).train) == TEXTS
        refused(says, read_set, task(), tmp_path, more)


def test_truncated_archives(tmp_path):
    whole, packed = parquet(ROWS * 500), gzip.compress(tsv(generated_rows(400)))
    for name, content, says in (
        ("listops_{}.parquet", whole[: len(whole) // 2], "is no complete Parquet file"),
        ("basic_{}.tsv.gz", packed[: len(packed) // 2], r"is cut short .*after row \d+"),
        ("basic_{}.tsv.gz", GOOD, "is no gzip archive"),
    ):
        write(tmp_path, content, name)
        source = tmp_path / name.format("train")
        refused(f"{source.name}' {says}", read_set, task(), source)
