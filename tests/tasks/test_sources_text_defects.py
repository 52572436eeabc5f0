"""Labelled texts: every broken form is one line with file and row."""

import codecs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from review_forms import (
    TEST,
    as_one_parquet,
    as_packed_csv,
    write_csv,
    write_parquet,
    write_reviews,
)
from set_reader import noted, read_labelled_text, refused

from lra.core.errors import DataError
from tasks.sources.tables import read_rows
from tasks.text import Text, TextConfig

TASK = Text(TextConfig(), length=64)
LABEL_TEXT = ("label", "text")


def rows_of(path, **asked):
    return list(read_rows(path, LABEL_TEXT, **asked))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"review,label\ngood,1\n", r"r_train.csv' has no column 'text', only review, label"),
        (b"text,label\ngood,1\nbad,2\n", r"r_train.csv', row 2: label '2' is not one of 0 ... 1"),
        (b"text,label\ngood,positive\n", r"row 1: label 'positive'"),
        (b"text,label\ngood,0.5\n", r"row 1: label '0.5'"),
        (b"text,label\ngood,0_1\n", r"row 1: label '0_1'"),
        (b"text,label\ngood,1e0\n", r"row 1: label '1e0'"),
        (b"text,label\ngood,\xef\xbc\x91\n", r"row 1: label"),
        (b"text,label\n,1\n", r"row 1: the text is empty"),
        (b"text,label\n \t\xc2\xa0,1\n", r"row 1: the text is blank"),
        (b"text,label\ngood,1\nd\xe9j\xe0,1\n", r"row 2: byte 2 is not UTF-8"),
        (b"text,label\ngood\n", r"row 1: 1 fields, the header has 2"),
        (b'text,label\ngood,1\n"never closed,1\n', r"row 2: .*quotes"),
        (b"text,label\rgood,1\r", r"r_train.csv' is not UTF-8 text with line ends LF or CRLF"),
        (b"text,label\ngood,1\rbad,0\r", r"row 1: .*line ends \(LF or CRLF\)"),
        ("text,label\ngood,1\n".encode("utf-16"), r"is not UTF-8 text with line ends"),
        (b"text,label,text\ngood,1,x\n", r"r_train.csv' has 2 columns 'text'"),
        (b"", r"r_train.csv' is empty"),
        (b"text,label\n", r"has no rows for train"),
    ],
)
def test_a_bad_csv_is_one_line_with_file_and_row(tmp_path, content, says):
    (tmp_path / "r_train.csv").write_bytes(content)
    write_csv(tmp_path / "r_test.csv", TEST)
    refused(says, read_labelled_text, tmp_path)


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
def test_a_bad_parquet_is_one_line_with_file_and_row(tmp_path, columns, says):
    pq.write_table(pa.table(columns), tmp_path / "r_train.parquet")
    write_parquet(tmp_path / "r_test.parquet", TEST)
    refused(says, read_labelled_text, tmp_path)


def test_a_missing_column_is_named_in_a_short_line_whatever_stands_there(tmp_path):
    header = [f"a long\nname\x1b {i} " + "x" * 2000 for i in range(12)]
    write_csv(tmp_path / "r.csv", [], header=header)
    with pytest.raises(DataError, match=r"only a long\\nname\\x1b 0 x.*, 2 more; ") as caught:
        read_labelled_text(tmp_path / "r.csv")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 800


def test_a_doubled_column_of_a_parquet(tmp_path):
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array([1])]
    pq.write_table(pa.Table.from_arrays(columns, ["text", "text", "label"]), tmp_path / "r.parquet")
    refused(r"r.parquet' has 2 columns 'text'", read_labelled_text, tmp_path / "r.parquet")


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz", "r.tsv", "r.parquet"])
def test_a_file_that_cannot_be_read(tmp_path, name):
    """A link to itself stands for a file without permission: root may not read it either."""
    (tmp_path / name).symlink_to(name)
    refused(rf"{name}' cannot be read: Too many levels ", rows_of, tmp_path / name)


def cut(share):
    return lambda held: held[: int(len(held) * share)]


def blank(held):
    """The footer is whole, the pages are not."""
    return held[:100] + bytes(1900) + held[2000:]


@pytest.mark.parametrize(
    ("form", "damage", "says"),
    [
        (as_one_parquet, cut(0), "reviews.parquet' is empty"),
        (as_one_parquet, cut(0.6), "reviews.parquet' is no complete Parquet file"),
        (as_one_parquet, blank, "reviews.parquet' is no complete Parquet file"),
        (as_packed_csv, lambda held: held[:-400], "csv.gz' is cut short"),
        (as_packed_csv, lambda held: held + b"more", "csv.gz' has bytes after the end of its gzip"),
    ],
)
def test_a_truncated_or_damaged_file(tmp_path, form, damage, says):
    path = form(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    refused(says, read_labelled_text, path)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("name", "content", "may_be_cut"),
    [
        ("r.csv", "label,text\n1,good\n0,bad", False),
        ("r.tsv", "text\tlabel\ngood\t1\nbad\t0", False),
        ("r.tsv", "label\ttext\n1\tgood\n0\tbad", True),
    ],
)
def test_the_last_line_of_a_tsv_that_ends_with_a_text_needs_an_end(
    tmp_path, name, content, may_be_cut, end
):
    (tmp_path / name).write_text(content + end)
    defects, examples = noted(TASK, tmp_path / name)
    assert len(examples) == (1 if may_be_cut and not end else 2)
    if may_be_cut and not end:
        assert f"{name}', row 2: the line has no end" in defects[0]
        refused(f"{name}', row 2: ", lambda: rows_of(tmp_path / name, open_ended=("text",)))
    else:
        assert defects == [] and [row for row, _ in rows_of(tmp_path / name)] == [1, 2]


@pytest.mark.parametrize(
    ("words", "row", "says"),
    [
        (["training"] * len(TEST), 1, "split 'training' is none of train"),
        # An empty cell is not as if the column were not there.
        ([None] * len(TEST), 1, "split missing"),
        (["train"] * 6 + [None] + ["test"] * 93, 7, "split missing"),
    ],
)
def test_an_unknown_split_word_and_an_empty_cell(tmp_path, words, row, says):
    write_parquet(tmp_path / "r.parquet", TEST, split=pa.array(words, pa.string()))
    refused(rf"r.parquet', row {row}: {says}", read_labelled_text, tmp_path / "r.parquet")
    rows = [(*cells, word or "") for cells, word in zip(TEST, words, strict=True)]
    write_csv(tmp_path / "r.csv", rows, ("text", "label", "split"))
    refused(rf"r.csv', row {row}: {says}", read_labelled_text, tmp_path / "r.csv")


def test_a_packed_parquet_is_no_known_form(tmp_path):
    path = as_one_parquet(tmp_path).rename(tmp_path / "r.parquet.gz")
    refused(r"r.parquet.gz' is none of .parquet, .csv, .tsv", read_labelled_text, path)


def test_broken_review_folders(tmp_path):
    write_reviews(tmp_path)
    (tmp_path / "test" / "neg" / "x_1.txt").write_bytes(b"caf\xe9")
    refused(r"test/neg/x_1.txt', row 1: byte 4 is not UTF-8", read_labelled_text, tmp_path)
    for file in (tmp_path / "test" / "neg").iterdir():
        file.unlink()
    refused(r"test/neg' holds no texts", read_labelled_text, tmp_path)


def test_a_file_that_is_damaged_hides_none_of_the_others(tmp_path):
    for name, content in (
        ("r_train-00000-of-00003", ""),
        ("r_train-00001-of-00003", "text,label\n"),
        ("r_train-00002-of-00003", "text,label\nfilm,1\n"),
        ("r_test", ""),
    ):
        (tmp_path / f"{name}.csv").write_text(content)
    defects, examples = noted(TASK, tmp_path)
    assert len(examples) == 1
    first, second = defects
    assert "r_train-00000-of-00003.csv' is empty" in first and "r_test.csv' is empty" in second


@pytest.mark.parametrize(
    "content",
    [
        *("1.0\tone\n".encode(code) for code in ("utf-16-le", "utf-16-be", "utf-16", "utf-32")),
        codecs.BOM_UTF16_BE + "1.0\tone\n".encode("utf-16-be"),
        b"1.0\tone\r1.0\ttwo\r",
        b"text,label\r",
    ],
)
def test_a_file_of_another_encoding_or_line_ends_is_refused(tmp_path, content):
    (tmp_path / "a.tsv").write_bytes(content)
    refused(r"a.tsv' is not UTF-8", lambda: rows_of(tmp_path / "a.tsv", bare=(LABEL_TEXT,)))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("r.csv", "text;label\ngood;1\n", "has semicolons between its fields; .* commas"),
        ("r.csv", '"text";"label"\n"go,od";1\n', "has semicolons between its fields; .* commas"),
        ("r.csv", "id|label|text\n7|1|good\n", "has vertical bars between its fields; .* commas"),
        ("r.csv", "label\ttext\n1\tgood\n", "has tabs between its fields; .* commas"),
        ("r.tsv", "text,label\ngood,1\n", "has commas between its fields; .* tabs"),
    ],
)
def test_a_table_with_other_characters_between_its_fields_is_told_which(
    tmp_path, name, content, says
):
    (tmp_path / name).write_text(content)
    refused(rf"{name}' {says}", rows_of, tmp_path / name)
    refused(rf"{name}' {says}", read_labelled_text, tmp_path / name)


def test_a_column_of_a_name_with_a_semicolon_is_a_column(tmp_path):
    (tmp_path / "r.csv").write_text("label,a;b,text\n1,x;y,good\n")
    assert rows_of(tmp_path / "r.csv") == [(1, (b"1", b"good"))]
