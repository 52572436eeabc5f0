"""Pairs of papers: the release's TSV, with texts or ids alone, tables; and how each may break."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import read_set

from lra.core.dataset import SPLITS
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.retrieval import Retrieval, RetrievalConfig
from tasks.sources.hashed_files import hashed_files
from tasks.sources.pair_files import pair_files
from tasks.sources.tables import read_rows

ALL = Rows(train=1000, validation=1000, test=1000)
WORDS = {"train": "train", "validation": "eval", "test": "test"}
PAPERS = {f"P{i}": f'Paper {i}: "déjà vu", it says' for i in range(8)}
PAIRS = {
    "train": [(1, "P0", "P1"), (0, "P1", "P2"), (1, "P2", "P3")],
    "validation": [(0, "P4", "P5"), (1, "P5", "P6")],
    "test": [(1, "P7", "P0")],
}


def task(length=4000, rules="fixed"):
    return Retrieval(RetrievalConfig(), length=length, rules=rules)


def read(source, **settings):
    """Label and the two texts of each pair, by split."""
    data = read_set(task(**settings), source, ALL)
    found = {}
    for name, split in data:
        texts = [
            (split.sequence(i) - 1).astype(np.uint8).tobytes().decode("utf-8", "replace")
            for i in range(2 * len(split))
        ]
        found[name] = list(zip(split.labels.tolist(), texts[::2], texts[1::2], strict=True))
    return found


EXPECTED = {
    split: [(label, PAPERS[one], PAPERS[two]) for label, one, two in rows]
    for split, rows in PAIRS.items()
}


def lines(rows, texts):
    return "".join(
        "\t".join([f"{label}.0", one, two, *([PAPERS[one], PAPERS[two]] if texts else [])]) + "\n"
        for label, one, two in rows
    ).encode()


def release(folder, texts=True, packed=False):
    for split, rows in PAIRS.items():
        content = lines(rows, texts)
        name = f"new_aan_pairs.{WORDS[split]}.tsv" + (".gz" if packed else "")
        (folder / name).write_bytes(gzip.compress(content) if packed else content)


def papers(folder, form="parquet", name="aan_papers"):
    table = {"id": list(PAPERS), "text": list(PAPERS.values())}
    if form == "parquet":
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    else:
        rows = [("id", "text"), *PAPERS.items()]
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))


def pairs(folder, splits=PAIRS, **more):
    rows = [(*row, WORDS[split]) for split, found in splits.items() for row in found]
    columns = dict(zip(("label", "id1", "id2", "split"), zip(*rows, strict=True), strict=True))
    table = pa.table({name: list(values) for name, values in {**columns, **more}.items()})
    pq.write_table(table, folder / "aan_pairs.parquet")


@pytest.mark.parametrize("packed", [False, True])
def test_the_release_s_folder_or_one_of_its_files(tmp_path, packed):
    release(tmp_path, packed=packed)
    (tmp_path / "notes.txt").write_text("not read")
    assert read(tmp_path) == EXPECTED
    name = "new_aan_pairs.test.tsv" + (".gz" if packed else "")
    assert read(tmp_path / name) == EXPECTED
    assert len(hashed_files(str(tmp_path), "retrieval")) == 3


@pytest.mark.parametrize("form", ["parquet", "tsv"])
def test_the_release_s_ids_beside_a_table_of_papers(tmp_path, form):
    release(tmp_path, texts=False)
    papers(tmp_path, form)
    assert read(tmp_path) == EXPECTED
    assert len(hashed_files(str(tmp_path), "retrieval")) == 4


def test_two_tables_among_others_in_a_folder(tmp_path):
    papers(tmp_path)
    pairs(tmp_path)
    (tmp_path / "imdb_train.csv").write_text("text,label\na,1\n")
    for name in ("", "aan_pairs.parquet", "aan_papers.parquet"):
        assert read(tmp_path / name) == EXPECTED
    names = [name for name, _ in hashed_files(str(tmp_path), "retrieval")]
    assert names == ["aan_pairs.parquet", "aan_papers.parquet"]


def test_the_case_of_names_does_not_count(tmp_path):
    release(tmp_path, texts=False)
    (tmp_path / "new_aan_pairs.eval.tsv").rename(tmp_path / "New_AAN_Pairs.Eval.TSV")
    papers(tmp_path, name="NEW_AAN_papers")
    papers(tmp_path, name="other_papers", form="tsv")
    assert read(tmp_path) == read(tmp_path / "New_AAN_Pairs.Eval.TSV") == EXPECTED
    assert len(hashed_files(str(tmp_path), "retrieval")) == 4


def test_a_table_of_pairs_for_each_split_with_a_header(tmp_path):
    papers(tmp_path, name="papers")
    for split, rows in PAIRS.items():
        content = "id2,label,id1\n" + "".join(f"{b},{label},{a}\n" for label, a, b in rows)
        (tmp_path / f"pairs_{split}.csv").write_text(content)
    assert read(tmp_path) == EXPECTED


def test_ids_may_be_numbers_in_one_table_and_text_in_the_other(tmp_path):
    table = pa.table({"id": list(range(8)), "text": list(PAPERS.values())})
    pq.write_table(table, tmp_path / "aan_papers.parquet")
    ids = [[int(row[place][1:]) for rows in PAIRS.values() for row in rows] for place in (1, 2)]
    pairs(tmp_path, id1=[str(i) for i in ids[0]], id2=ids[1])
    assert read(tmp_path) == EXPECTED


def test_blanks_around_an_id_do_not_count(tmp_path):
    release(tmp_path, texts=False)
    papers(tmp_path, "tsv")
    for name, paper in (("new_aan_pairs.train", b"P2"), ("aan_papers", b"P7")):
        path = tmp_path / f"{name}.tsv"
        path.write_bytes(path.read_bytes().replace(paper, b" " + paper + b" "))
    assert read(tmp_path) == EXPECTED


def test_documents_are_cut_one_by_one_and_the_rules_change_nothing(tmp_path):
    release(tmp_path)
    data = read_set(task(length=9), tmp_path, Rows(train=2, validation=9, test=9))
    assert [len(split) for _, split in data] == [2, 2, 1]
    assert data.train.tokens.dtype == np.uint16 and set(data.train.lengths.ravel()) == {9}
    assert data.train.sequence(1).tolist() == [byte + 1 for byte in b"Paper 1: "]
    assert read(tmp_path, rules="lra2021") == EXPECTED


def tables(folder, **pairs_changed):
    papers(folder)
    pairs(folder, **pairs_changed)


def without_splits(folder):
    tables(folder)
    path = folder / "aan_pairs.parquet"
    pq.write_table(pq.read_table(path).drop_columns("split"), path)


def with_release(word, change):
    def make(folder):
        release(folder)
        path = folder / f"new_aan_pairs.{word}.tsv"
        content = change(path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)

    return make


def with_papers(*rows):
    def make(folder):
        pairs(folder)
        found = [*PAPERS.items(), *rows]
        ids, texts = zip(*found, strict=True)
        kind = pa.binary() if any(isinstance(text, bytes) for text in texts) else pa.string()
        values = [t.encode() if isinstance(t, str) and kind == pa.binary() else t for t in texts]
        table = pa.table({"id": list(ids), "text": pa.array(values, kind)})
        pq.write_table(table, folder / "aan_papers.parquet")

    return make


FAULTS = {
    "label": (
        with_release("train", lambda text: text.replace(b"0.0", b"2.0")),
        r"pairs.train.tsv', row 2: label '2.0' is not one of 0 ... 1; correct the row",
    ),
    "fields": (
        with_release("eval", lambda text: text + b"1.0\tP1\tP2\n"),
        r"pairs.eval.tsv', row 3: 3 fields, not 5; correct it",
    ),
    "first fields": (
        with_release("eval", lambda text: b"1.0\tP1\tP2\tx\n" + text),
        r"pairs.eval.tsv', row 1: 4 fields, not 5; correct it",
    ),
    "empty text": (
        with_release("test", lambda text: b"1.0\tP1\tP2\t\ttext\n" + text),
        r"pairs.test.tsv', row 1: the text is empty; remove the row",
    ),
    "encoding": (
        with_release("test", lambda text: text.replace("é".encode(), b"\xe9")),
        r"pairs.test.tsv', row 1: byte 12 is not UTF-8; save the file as UTF-8",
    ),
    "no validation": (
        with_release("eval", lambda text: None),
        r"no validation split beside .*test.tsv, .*train.tsv; add the file whose name says 'eval'",
    ),
    "empty file": (with_release("test", lambda text: b""), r"test.tsv' is empty; copy or download"),
    "no id": (
        lambda folder: tables(folder, id2=["P1", "", "P2", "P3", "P4", "P5"]),
        r"aan_pairs.parquet', row 2: id2 is missing; write the paper's id",
    ),
    "unknown id": (
        lambda folder: tables(folder, id1=["P1", "P2", "P9", "P3", "P4", "P5"]),
        r"aan_pairs.parquet', row 3: paper 'P9' has no text in 'aan_papers.parquet'; add it, or",
    ),
    "split": (
        lambda folder: tables(folder, split=["train", None, "eval", "eval", "test", "test"]),
        r"aan_pairs.parquet', row 2: split missing is none of train, validation, test; correct",
    ),
    "no split": (
        without_splits,
        r"aan_pairs.parquet' has no column 'split'; add one with train, validation or test, or",
    ),
    "no pair for validation": (
        lambda folder: tables(folder, split=["train"] * 4 + ["test"] * 2),
        r"aan_pairs.parquet' has no pair for validation; write 'validation' in the column 'split'",
    ),
    "two texts": (
        with_papers(("P3", "another")),
        r"aan_papers.parquet', row 9: paper 'P3' is there already with another text; keep one",
    ),
    "bad paper": (
        with_papers(("P9", b"caf\xe9")),
        r"aan_papers.parquet', row 9: byte 4 is not UTF-8; save the file as UTF-8",
    ),
    "no papers": (
        lambda folder: pairs(folder),
        r"aan_pairs.parquet' has no texts; add a table of papers beside it, papers.parquet",
    ),
    "nothing": (lambda folder: None, r"holds no pairs of papers, such as .*; name their folder"),
    "another name": (
        lambda folder: (folder / "citations.tsv").write_text("1\ta\tb\n"),
        r"citations.tsv' is not named as pairs of papers are, such as .*; rename it",
    ),
    "two sets": (
        lambda folder: [release(folder), tables(folder)],
        r"holds several sets \(aan_pairs.parquet, new_aan_pairs.eval.tsv, .*\); name one",
    ),
    "one split twice": (
        lambda folder: [release(folder), release(folder, packed=True)],
        r"has new_aan_pairs.eval.tsv and new_aan_pairs.eval.tsv.gz; keep one of them",
    ),
    "both forms": (
        lambda folder: [release(folder), pairs_of_the_release(folder)],
        r"has all pairs in one file and by split too \(.*\); keep one form",
    ),
    "two tables of papers": (
        lambda folder: [tables(folder), papers(folder, "tsv")],
        r"has several tables of papers \(aan_papers.parquet, aan_papers.tsv\); keep one",
    ),
}


def pairs_of_the_release(folder):
    pairs(folder)
    (folder / "aan_pairs.parquet").rename(folder / "new_aan_pairs.parquet")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_line_with_file_row_and_remedy(tmp_path, fault):
    make, says = FAULTS[fault]
    make(tmp_path)
    source = tmp_path / "citations.tsv" if fault == "another name" else tmp_path
    with pytest.raises(DataError, match=says) as caught:
        read(source)
    assert "\n" not in str(caught.value)


def test_every_wrong_row_is_noted_once_and_the_rest_is_read(tmp_path):
    release(tmp_path, texts=False)
    with_papers(("P0", "another"), ("", "nameless"))(tmp_path)
    (tmp_path / "aan_pairs.parquet").unlink()
    path = tmp_path / "new_aan_pairs.train.tsv"
    path.write_bytes(path.read_bytes() + b"1.0\tP1\n3.0\tP1\tP2\n1.0\tP1\tnone\n")
    noted, found = [], []
    for part in task().parts(str(tmp_path)):
        found += [example.split for example in part.examples(noted.append)]
    assert [found.count(split) for split in SPLITS] == [3, 2, 1]
    told = [str(defect).rpartition("/")[2].partition(";")[0] for defect in noted]
    assert told == [
        "aan_papers.parquet', row 9: paper 'P0' is there already with another text",
        "aan_papers.parquet', row 10: id is missing",
        "new_aan_pairs.train.tsv', row 4: 2 fields, not 3",
        "new_aan_pairs.train.tsv', row 5: label '3.0' is not one of 0 ... 1",
        "new_aan_pairs.train.tsv', row 6: paper 'none' has no text in 'aan_papers.parquet'",
    ]


def test_a_header_is_known_by_its_first_column(tmp_path):
    path = tmp_path / "a.tsv"
    for content, rows in ((b"id\ttext\n1\tx\n", [b"1"]), (b"2\ty\n1\tx\n", [b"2", b"1"])):
        path.write_bytes(content)
        found = read_rows(path, ("id",), bare=(("id", "text"),))
        assert [cells[0] for _, cells in found] == rows


def test_names_that_begin_with_a_dot_do_not_count(tmp_path):
    """macOS lays a ._name beside each file it unpacks."""
    for name in ("aan_pairs.parquet", "aan_papers.parquet"):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / f"._{name}").write_bytes(b"")
    for source in (tmp_path, tmp_path / "aan_pairs.parquet"):
        found = pair_files(str(source))
        assert [path.name for path in found.files] == ["aan_pairs.parquet", "aan_papers.parquet"]


def test_a_broken_table_of_papers_is_told_once(tmp_path):
    release(tmp_path, texts=False)
    path = tmp_path / "aan_papers.parquet"
    papers(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    noted = []
    for part in task().parts(str(tmp_path)):
        assert not list(part.examples(noted.append))
    (told,) = map(str, noted)
    assert told == f"'{path}' is no complete Parquet file; copy or download it again"


HEADERS = {True: b"label\tid1\tid2\ttext1\ttext2\n", False: b"label\tid1\tid2\n"}


@pytest.mark.parametrize("cut", [1, 9])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("texts", [True, False])
def test_a_file_of_pairs_that_ends_within_a_line_is_told(tmp_path, texts, header, cut):
    """Its last field is a text, or an id: half of one is one too."""
    release(tmp_path, texts=texts)
    if not texts:
        papers(tmp_path)
    path = tmp_path / "new_aan_pairs.train.tsv"
    path.write_bytes(HEADERS[texts] * header + path.read_bytes()[:-cut])
    noted, found = [], []
    for part in task().parts(str(tmp_path)):
        found += [example.split for example in part.examples(noted.append)]
    assert [found.count(split) for split in SPLITS] == [2, 2, 1]
    (told,) = map(str, noted)
    assert told == (
        f"'{path}', row 3: the line has no end; copy the file again, or add one if it is whole"
    )
    with pytest.raises(DataError, match=r"train.tsv', row 3: the line has no end"):
        # The rows asked for end with the one that is cut.
        read_set(task(), tmp_path, Rows(train=3, validation=2, test=1))


def test_a_table_of_papers_that_ends_within_a_text_is_told(tmp_path):
    release(tmp_path, texts=False)
    papers(tmp_path, "tsv")
    path = tmp_path / "aan_papers.tsv"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"papers.tsv', row 8: the line has no end; copy the file"):
        read(tmp_path)


def test_a_last_line_needs_no_end_where_half_of_its_last_field_is_none(tmp_path):
    release(tmp_path)
    for path in tmp_path.glob("*.tsv"):
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        moved = [
            ["text1", "text2", "id1", "id2", "label"],
            *([*r[3:], *r[1:3], r[0]] for r in rows),
        ]
        path.write_text("\n".join(map("\t".join, moved)))
    assert read(tmp_path) == EXPECTED
