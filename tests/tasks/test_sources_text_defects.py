"""Labelled texts: every broken form is one line with file, row and remedy."""

import codecs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from review_forms import (
    ALL,
    TEST,
    as_one_parquet,
    as_packed_csv,
    as_parquet,
    write_csv,
    write_parquet,
    write_reviews,
)
from text_reader import read_labelled_text

from lra.core.errors import DataError
from tasks.sources.tables import read_rows
from tasks.text import Text, TextConfig


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
        (b"text,label\ngood,0_1\n", r"row 1: label '0_1'"),
        (b"text,label\ngood,1e0\n", r"row 1: label '1e0'"),
        (b"text,label\ngood,\xef\xbc\x91\n", r"row 1: label"),
        (b"text,label\n,1\n", r"row 1: the text is empty; remove the row"),
        (
            b"text,label\ngood,1\nd\xe9j\xe0,1\n",
            r"row 2: byte 2 is not UTF-8; save the file as UTF-8",
        ),
        (b"text,label\ngood\n", r"row 1: 1 fields, the header has 2"),
        (b'text,label\ngood,1\n"never closed,1\n', r"row 2: .*correct quotes"),
        (b"text,label\rgood,1\r", r"is not UTF-8 text with line ends LF or CRLF; save"),
        (b"text,label\ngood,1\rbad,0\r", r"row 1: .*line ends \(LF or CRLF\)"),
        ("text,label\ngood,1\n".encode("utf-16"), r"is not UTF-8 text with line ends"),
        (b"text,label,text\ngood,1,x\n", r"has 2 columns 'text'; rename all but one"),
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
        ({"text": ["a", "b"], "label": [1.0, 0.5]}, r"row 2: label '0.5'"),
        ({"text": [b"a", b"\xff\xfe"], "label": [0, 1]}, r"row 2: byte 1 is not UTF-8"),
    ],
)
def test_a_bad_parquet_is_one_line_with_file_row_and_remedy(tmp_path, columns, says):
    pq.write_table(pa.table(columns), tmp_path / "r_train.parquet")
    write_parquet(tmp_path / "r_test.parquet", TEST)
    with pytest.raises(DataError, match=says) as caught:
        read_labelled_text(str(tmp_path), ALL)
    assert "\n" not in str(caught.value)


def test_a_missing_column_is_named_in_a_short_line_whatever_stands_there(tmp_path):
    header = [f"a long\nname\x1b {i} " + "x" * 2000 for i in range(12)]
    write_csv(tmp_path / "r.csv", [], header=header)
    with pytest.raises(DataError, match=r"only a long\\nname\\x1b 0 x.*, 2 more; rename") as caught:
        read_labelled_text(str(tmp_path / "r.csv"), ALL)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 800


def test_a_doubled_column_of_a_parquet(tmp_path):
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1])]
    pq.write_table(pa.Table.from_arrays(columns, ["text", "text", "label"]), tmp_path / "r.parquet")
    with pytest.raises(DataError, match=r"r.parquet' has 2 columns 'text'; rename all but one"):
        read_labelled_text(str(tmp_path / "r.parquet"), ALL)


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.tsv", "r.parquet"])
def test_a_file_that_cannot_be_read(tmp_path, name):
    """A link to itself stands for a file without permission: root may not read it either."""
    (tmp_path / name).symlink_to(name)
    with pytest.raises(DataError, match=rf"{name}' cannot be read: Too many levels .*; check"):
        list(read_rows(tmp_path / name, ("text", "label")))


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


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_last_line_of_a_csv_needs_no_end(tmp_path, end):
    """Of a TSV whose last column is a text it does."""
    content = b"label,text\n1,good\n0,bad" + end
    (tmp_path / "r.csv").write_bytes(content)
    found = list(read_rows(tmp_path / "r.csv", ("label", "text"), open_ended=("text",)))
    assert [row for row, _ in found] == [1, 2]
    (tmp_path / "r.tsv").write_bytes(content.replace(b",", b"\t"))
    rows = read_rows(tmp_path / "r.tsv", ("label", "text"), open_ended=("text",))
    if end:
        assert list(rows) == found
    else:
        with pytest.raises(DataError, match=r"r.tsv', row 2: the line has no end"):
            list(rows)


def test_a_truncated_gzip_archive(tmp_path):
    path = as_packed_csv(tmp_path)
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(DataError, match=r"csv.gz' is cut short .*; copy or download it again"):
        read_labelled_text(str(path), ALL)


def test_an_unknown_split_word(tmp_path):
    write_parquet(tmp_path / "r.parquet", TEST, split=["training"] * len(TEST))
    with pytest.raises(DataError, match=r"row 1: split 'training' is none of train, validation"):
        read_labelled_text(str(tmp_path / "r.parquet"), ALL)


@pytest.mark.parametrize("last", [None, "test"])
def test_an_empty_cell_of_the_split_column(tmp_path, last):
    """It is not as if the column were not there; whether all cells are empty or one."""
    words = [None] * len(TEST) if last is None else ["train"] * 6 + [None] + [last] * 93
    write_parquet(tmp_path / "r.parquet", TEST, split=pa.array(words, pa.string()))
    row = words.index(None) + 1
    with pytest.raises(DataError, match=rf"r.parquet', row {row}: split missing is none of train"):
        read_labelled_text(str(tmp_path / "r.parquet"), ALL)
    write_csv(tmp_path / "r.csv", [("a", 1, "train"), ("b", 0, "")], ("text", "label", "split"))
    with pytest.raises(DataError, match=r"r.csv', row 2: split missing is none .*; correct it"):
        read_labelled_text(str(tmp_path / "r.csv"), ALL)


def test_a_gzip_archive_with_bytes_after_its_end(tmp_path):
    path = as_packed_csv(tmp_path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(DataError, match=r"csv.gz' has bytes after the end of its gzip .*; copy"):
        read_labelled_text(str(path), ALL)


def test_a_packed_parquet_is_no_known_form(tmp_path):
    as_one_parquet(tmp_path).rename(tmp_path / "r.parquet.gz")
    with pytest.raises(DataError, match=r"r.parquet.gz' is none of .parquet, .csv, .tsv, .csv.gz"):
        read_labelled_text(str(tmp_path / "r.parquet.gz"), ALL)


def test_broken_review_folders(tmp_path):
    write_reviews(tmp_path)
    (tmp_path / "test" / "neg" / "x_1.txt").write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"test/neg/x_1.txt', row 1: byte 4 is not UTF-8"):
        read_labelled_text(str(tmp_path), ALL)
    for file in (tmp_path / "test" / "neg").iterdir():
        file.unlink()
    with pytest.raises(DataError, match=r"test/neg' holds no texts; unpack the whole archive"):
        read_labelled_text(str(tmp_path), ALL)


def test_a_file_that_is_damaged_hides_none_of_the_others(tmp_path):
    for shard in range(3):
        content = "text,label\n" if shard == 1 else f"text,label\nfilm {shard},1\n"
        (tmp_path / f"r_train-0000{shard}-of-00003.csv").write_text(content)
    (tmp_path / "r_train-00000-of-00003.csv").write_bytes(b"")
    (tmp_path / "r_test.csv").write_bytes(b"")
    found = []
    rows = [
        example
        for part in Text(TextConfig(), length=10).parts(str(tmp_path))
        for example in part.examples(found.append)
    ]
    assert len(rows) == 1
    assert [str(defect).partition("'")[2].rpartition("/")[2][:27] for defect in found] == [
        "r_train-00000-of-00003.csv'",
        "r_test.csv' is empty; copy ",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "1.0\tone\n".encode("utf-16-le"),
        "1.0\tone\n".encode("utf-16-be"),
        "1.0\tone\n".encode("utf-16"),
        codecs.BOM_UTF16_BE + "1.0\tone\n".encode("utf-16-be"),
        "1.0\tone\n".encode("utf-32"),
        b"1.0\tone\r1.0\ttwo\r",
        b"text,label\r",
    ],
)
def test_a_file_of_another_encoding_or_line_ends_is_refused(tmp_path, content):
    path = tmp_path / "a.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a.tsv' is not UTF-8 text with line ends LF or CRLF; sav"):
        list(read_rows(path, ("label", "text"), bare=(("label", "text"),)))


def test_a_tsv_that_ends_within_a_text_is_told_and_one_that_ends_with_a_label_is_whole(tmp_path):
    path = tmp_path / "r_train.tsv"
    (tmp_path / "r_test.tsv").write_text("text\tlabel\nfine\t1")
    task = Text(TextConfig(), length=64)
    for content, says in (
        ("label\ttext\n1\tgood\n0\tba", [f"'{path}', row 2: the line has no end; copy the file"]),
        ("text\tlabel\ngood\t1\nbad\t0", []),
    ):
        path.write_text(content)
        noted = []
        found = [row for part in task.parts(str(path)) for row in part.examples(noted.append)]
        assert [str(told).partition(" again")[0] for told in noted] == says
        assert len(found) == 3 - len(says)
