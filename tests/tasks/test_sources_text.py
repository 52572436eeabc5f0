"""Labelled texts: every form gives the same rows; validation by content; every broken form."""

import codecs
import csv
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from text_reader import read_labelled_text

from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.sources.tables import read_label, read_rows
from tasks.text import Text, TextConfig

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


def test_lra2021_validates_on_the_test_split(tmp_path):
    found = read_labelled_text(str(as_parquet(tmp_path)), ALL, rules="lra2021")
    assert found["validation"][0] == found["test"][0]
    assert len(found["train"][0]) == len(TRAIN)


def test_a_validation_file_is_used_as_it_is(tmp_path):
    as_parquet(tmp_path)
    write_parquet(tmp_path / "imdb_valid.parquet", [("only", 1)])
    found = read_labelled_text(str(tmp_path), ALL)
    assert found["validation"][0] == [b"only"] and len(found["train"][0]) == len(TRAIN)


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_csv_that_starts_with_a_byte_order_mark(tmp_path, quoting):
    path = as_csv(tmp_path)
    expected = read_labelled_text(str(path), ALL)
    with path.open("w", newline="", encoding="utf-8-sig") as stream:
        csv.writer(stream, quoting=quoting).writerows([("text", "label"), *TEST])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert read_labelled_text(str(path), ALL)["test"][0] == expected["test"][0]


def test_a_text_may_be_longer_than_the_csv_module_s_limit(tmp_path):
    as_csv(tmp_path)
    text = "very " * 40_000
    write_csv(tmp_path / "imdb_test.csv", [*TEST, (text, 1)])
    assert text.encode() in read_labelled_text(str(tmp_path), ALL)["test"][0]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.large_string()])
def test_every_arrow_type_of_text_is_read(tmp_path, kind):
    expected = read_labelled_text(str(as_parquet(tmp_path)), ALL)
    texts, labels = zip(*TEST, strict=True)
    content = [text.encode() for text in texts] if kind == pa.binary_view() else list(texts)
    table = pa.table({"text": pa.array(content, kind), "label": list(labels)})
    pq.write_table(table, tmp_path / "imdb_test.parquet")
    assert pq.read_schema(tmp_path / "imdb_test.parquet").field("text").type == kind
    assert read_labelled_text(str(tmp_path), ALL)["test"][0] == expected["test"][0]


@pytest.mark.parametrize("label", [b"1", b" 1", b"1.", b"1.0", b"1.00", 1, 1.0, True])
def test_a_label_may_be_written_as_a_decimal(tmp_path, label):
    assert read_label(tmp_path, 1, label, classes=2) == 1


def test_a_single_file_without_splits_is_split_by_content(tmp_path):
    write_csv(tmp_path / "mine.csv", TRAIN)
    found = read_labelled_text(str(tmp_path / "mine.csv"), ALL)
    sets = [set(found[split][0]) for split in SPLITS]
    assert sum(map(len, sets)) == len(set.union(*sets)) == len(TRAIN)
    assert all(20 <= len(part) <= 60 for part in sets[1:])


def test_a_single_file_is_all_train_and_test_where_validation_is_test(tmp_path):
    write_csv(tmp_path / "mine.csv", TRAIN)
    found = read_labelled_text(str(tmp_path / "mine.csv"), ALL, rules="lra2021")
    assert found["validation"][0] == found["test"][0]
    kept = [*found["train"][0], *found["test"][0]]
    assert sorted(kept) == sorted(text.encode() for text, _ in TRAIN)


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


def test_names_in_capitals_are_read(tmp_path):
    expected = read_labelled_text(str(as_parquet(tmp_path)), ALL)
    (tmp_path / "imdb_train.parquet").rename(tmp_path / "IMDB_Train.PARQUET")
    found = read_labelled_text(str(tmp_path / "imdb_test.parquet"), ALL)
    assert found["train"][0] == expected["train"][0]


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


@pytest.mark.parametrize("character", ["\r", "\0"])
@pytest.mark.parametrize("row", [1, 2])
def test_a_character_that_papers_hold_is_read_in_every_row(tmp_path, character, row):
    """As texts from PDFs have them: a TSV without a header has such a text in its first line."""
    texts = ["one", "two"]
    texts[row - 1] = f"a{character}b"
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"1.0\t{text}\n" for text in texts), encoding="utf-8", newline="")
    found = read_rows(path, ("label", "text"), bare=(("label", "text"),))
    assert [cells[1] for _, cells in found] == [text.encode() for text in texts]


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
