"""ListOps from files: the release's TSV, Parquet, CSV, one file; and every way it may be broken."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import read_set

from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.listops import TOKENS, ListOps, ListOpsConfig

ALL = Rows(train=1000, validation=1000, test=1000)
WORDS = {"train": "train", "validation": "val", "test": "test"}

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
    return [
        " ".join(TOKENS[token - 1] for token in split.sequence(row)) for row in range(len(split))
    ]


def tsv(rows, end="\r\n"):
    lines = ["Source\tTarget", *(f"{source}\t{target}" for source, target in rows)]
    return "".join(line + end for line in lines).encode()


def parquet(path, rows):
    sources, targets = zip(*rows, strict=True)
    table = pa.table({"Source": list(sources), "Target": pa.array(targets, pa.int64())})
    pq.write_table(table, path)


def generated_rows(count):
    made = ListOps(ListOpsConfig(), length=64).generate("train", count)
    return list(zip(texts(made), made.labels.tolist(), strict=True))


def write_release(folder, rows=ROWS, end="\r\n"):
    for word in WORDS.values():
        (folder / f"basic_{word}.tsv").write_bytes(tsv(rows, end))


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_the_release_s_folder(tmp_path, end):
    write_release(tmp_path, end=end)
    data = read_set(task(), tmp_path, ALL)
    for _, split in data:
        assert texts(split) == TEXTS
        assert split.labels.tolist() == [9, 7, 1]
        assert split.tokens.dtype == np.uint8
    assert (data.classes, data.vocabulary, data.length) == (10, 17, 2000)


def test_parquet_csv_and_gzip_hold_the_same_rows(tmp_path):
    write_release(tmp_path)
    expected = read_set(task(), tmp_path, ALL)
    for form in ("parquet", "csv", "tsv.gz"):
        folder = tmp_path / form
        folder.mkdir()
        for word in WORDS.values():
            path = folder / f"listops_{word}.{form}"
            if form == "parquet":
                parquet(path, ROWS)
            elif form == "csv":
                path.write_bytes(tsv(ROWS).replace(b"\t", b","))
            else:
                path.write_bytes(gzip.compress(tsv(ROWS)))
        for source in (folder, folder / f"listops_test.{form}"):
            found = read_set(task(), source, ALL)
            for name in SPLITS:
                assert np.array_equal(found.split(name).tokens, expected.split(name).tokens)
                assert np.array_equal(found.split(name).labels, expected.split(name).labels)


def test_what_we_generate_reads_back_the_same(tmp_path):
    made = ListOps(ListOpsConfig(), length=300).generate("train", 40)
    rows = list(zip(texts(made), made.labels.tolist(), strict=True))
    write_release(tmp_path, rows)
    found = read_set(task(300), tmp_path, ALL).train
    assert np.array_equal(found.tokens, made.tokens)
    assert np.array_equal(found.labels, made.labels)


def test_long_rows_are_cut_on_the_right_and_rows_taken_from_the_start(tmp_path):
    write_release(tmp_path)
    # What is cut is whole before.
    data = read_set(task(length=5), tmp_path, Rows(train=2, validation=1, test=9))
    assert [len(split) for _, split in data] == [2, 1, 3]
    assert texts(data.train) == ["[MAX 2 9 ]", "[SM 7 8 [MED 2"]
    assert data.train.labels.tolist() == [9, 7]


def test_a_single_file_is_split_by_content_whatever_the_order(tmp_path):
    rows = generated_rows(300)
    found = []
    for name, order in (("a.tsv", rows), ("b.tsv", rows[::-1])):
        (tmp_path / name).write_bytes(tsv(order))
        data = read_set(task(), tmp_path / name, ALL)
        found.append([set(texts(split)) for _, split in data])
    assert found[0] == found[1]
    train, validation, test = found[0]
    assert len(train | validation | test) == len(train) + len(validation) + len(test) == 300
    assert 200 < len(train) < 280 and 10 < len(validation) < 60 and 10 < len(test) < 60


def broken(folder, **files):
    write_release(folder)
    for word, content in files.items():
        path = folder / f"basic_{word}.tsv"
        path.unlink() if content is None else path.write_bytes(content)
    return str(folder)


GOOD = tsv(ROWS)


@pytest.mark.parametrize(
    ("word", "content", "says"),
    [
        ("train", GOOD.replace(b"Target", b"Answer"), r"train.tsv' has no column 'Target'.*rename"),
        (
            "train",
            GOOD.replace(b"\t9", b"\t10"),
            r"train.tsv', row 1: label '10' is not .* 0 ... 9",
        ),
        ("val", GOOD.replace(b"\t7", b"\tx"), r"val.tsv', row 2: label 'x'"),
        ("val", GOOD.replace(b"\t7", b"\t"), r"val.tsv', row 2: label missing"),
        ("test", GOOD.replace(b"[MIN", b"[FIRST"), r"test.tsv', row 3: unknown token '\[FIRST'"),
        ("test", GOOD.replace(b"1 ) ]", b"1 )"), r"test.tsv', row 3: .*1 operators and 0 '\]'"),
        (
            "val",
            tsv([("] [MAX 2 9", 9)]),
            r"val.tsv', row 1: Source begins with '\]'; copy",
        ),
        ("val", tsv([("2 3 4", 0)]), r"row 1: Source is over after token 1 of 3; copy"),
        ("val", tsv([("( [MAX 2 3 ] ) 4", 3)]), r"row 1: Source is over after token 4 of 5; copy"),
        ("val", tsv([("[SM 1 [MAX ] ]", 1)]), r"row 1: Source has an operator without arguments"),
        ("val", tsv([("( )", 1)]), r"row 1: Source holds no token; copy"),
        (
            "val",
            GOOD.replace(b"\t7", b"\t6"),
            r"row 2: Target is 6, the value of Source is 7; correct",
        ),
        ("val", tsv([("( ( ( [MAX 2 ) 3 ) ] ", 3)]), r"row 1: Source has 3 '\(' and 2 '\)'; copy"),
        ("test", GOOD[:-20], r"test.tsv', row 3: 1 fields, the header has 2"),
        ("test", GOOD.replace(b"4", b"\xff"), r"test.tsv', row 3: byte \d+ is not UTF-8"),
        ("train", b"", r"train.tsv' is empty; copy or download it again"),
        ("train", GOOD[:15], r"train.tsv' has no rows"),
        ("val", None, r"has no validation split; add the file whose name says 'val'"),
        ("train", None, r"has no train split beside basic_test.tsv, basic_val.tsv; add"),
    ],
)
def test_a_bad_file_is_one_line_with_file_row_and_remedy(tmp_path, word, content, says):
    source = broken(tmp_path, **{word: content})
    with pytest.raises(DataError, match=says) as caught:
        read_set(task(), source, ALL)
    assert "\n" not in str(caught.value)


def test_a_fault_past_the_rows_that_are_needed_is_not_met(tmp_path):
    source = broken(tmp_path, train=tsv([*ROWS, ("[MAX 2 3 ]", 2)]) + b"no tab\n")
    few = Rows(train=3, validation=3, test=3)
    assert texts(read_set(task(), source, few).train) == TEXTS
    with pytest.raises(DataError, match="row 4: Target is 2, the value of Source is 3"):
        read_set(task(), source, Rows(train=4, validation=3, test=3))
    broken(tmp_path, train=tsv(ROWS) + b"no tab\n")
    assert texts(read_set(task(), source, few).train) == TEXTS
    with pytest.raises(DataError, match="row 4: 1 fields"):
        read_set(task(), source, ALL)


def test_truncated_archives(tmp_path):
    rows = ROWS * 500
    parquet(tmp_path / "listops_train.parquet", rows)
    whole = (tmp_path / "listops_train.parquet").read_bytes()
    for word in WORDS.values():
        (tmp_path / f"listops_{word}.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        DataError, match=r"listops_train.parquet' is no complete Parquet file; copy"
    ):
        read_set(task(), tmp_path, ALL)

    packed = gzip.compress(tsv(generated_rows(400)))
    for word in WORDS.values():
        (tmp_path / f"basic_{word}.tsv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"train.tsv.gz' is cut short .*after row \d+.*again"):
        read_set(task(), tmp_path / "basic_train.tsv.gz", ALL)
    (tmp_path / "basic_train.tsv.gz").write_bytes(GOOD)
    with pytest.raises(DataError, match=r"train.tsv.gz' is no gzip archive .*; copy"):
        read_set(task(), tmp_path / "basic_train.tsv.gz", ALL)
