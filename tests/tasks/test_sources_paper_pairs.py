"""Pairs of papers: the release's TSV, with texts or ids alone, tables; and how each may break."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from set_reader import ALL, noted, read_set, refused, texts

from lra.core.dataset import SPLITS
from lra.core.protocol import Rows
from tasks.retrieval import Retrieval, RetrievalConfig
from tasks.sources.data_hash import hashed_files
from tasks.sources.pair_files import pair_files
from tasks.sources.tables import read_rows

WORDS = {"train": "train", "validation": "eval", "test": "test"}
PAPERS = {f"P{i}": f'Paper {i}: "déjà vu", it says' for i in range(8)}
PAIRS = {
    "train": [(1, "P0", "P1"), (0, "P1", "P2"), (1, "P2", "P3")],
    "validation": [(0, "P4", "P5"), (1, "P5", "P6")],
    "test": [(1, "P7", "P0")],
}
EXPECTED = {
    split: [(label, PAPERS[one], PAPERS[two]) for label, one, two in rows]
    for split, rows in PAIRS.items()
}


def task(length=4000, rules="fixed"):
    return Retrieval(RetrievalConfig(), length=length, rules=rules)


def read(source, rows=ALL, **settings):
    """Label and the two texts of each pair, by split."""
    found = {}
    for name, split in read_set(task(**settings), source, rows):
        held = [text.decode() for text in texts(split)]
        found[name] = list(zip(split.labels.tolist(), held[::2], held[1::2], strict=True))
    return found


def splits_of(source):
    """The defects of a source, and the number of pairs without one by split."""
    defects, examples = noted(task(), source)
    found = [example.split for example in examples]
    return defects, [found.count(split) for split in SPLITS]


def release(folder, texts=True, packed=False):
    for split, rows in PAIRS.items():
        fields = [(f"{label}.0", *ids, *(PAPERS[i] for i in ids if texts)) for label, *ids in rows]
        content = "".join("\t".join(row) + "\n" for row in fields).encode()
        name = f"new_aan_pairs.{WORDS[split]}.tsv" + (".gz" if packed else "")
        (folder / name).write_bytes(gzip.compress(content) if packed else content)


def papers(folder, form="parquet", name="aan_papers", more=()):
    rows = [*PAPERS.items(), *more]
    if form == "parquet":
        ids, held = zip(*rows, strict=True)
        content = [text if isinstance(text, bytes) else text.encode() for text in held]
        kind = pa.binary() if more else pa.string()
        table = pa.table({"id": list(ids), "text": pa.array(content, pa.binary()).cast(kind)})
        pq.write_table(table, folder / f"{name}.parquet")
    else:
        lines = "".join("\t".join(row) + "\n" for row in [("id", "text"), *rows])
        (folder / f"{name}.tsv").write_text(lines)


def pairs(folder, name="aan_pairs", **changed):
    rows = [(*row, WORDS[split]) for split, found in PAIRS.items() for row in found]
    columns = dict(zip(("label", "id1", "id2", "split"), zip(*rows, strict=True), strict=True))
    held = {name: values for name, values in {**columns, **changed}.items() if values}
    table = pa.table({name: list(values) for name, values in held.items()})
    pq.write_table(table, folder / f"{name}.parquet")


def tables(folder, **changed):
    papers(folder)
    pairs(folder, **changed)


def ids(folder, form="parquet"):
    """The release's ids alone, beside a table of papers."""
    release(folder, texts=False)
    papers(folder, form)


def change(path, change):
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("packed", [False, True])
def test_the_release_s_folder_or_one_of_its_files(tmp_path, packed):
    release(tmp_path, packed=packed)
    (tmp_path / "notes.txt").write_text("not read")
    assert read(tmp_path) == read(next(tmp_path.glob("*test*"))) == EXPECTED
    assert read(tmp_path, rules="lra2021") == EXPECTED
    assert len(hashed_files(str(tmp_path), "retrieval")) == 3


@pytest.mark.parametrize("form", ["parquet", "tsv"])
def test_the_release_s_ids_beside_a_table_of_papers(tmp_path, form):
    ids(tmp_path, form)
    assert read(tmp_path) == EXPECTED
    assert len(hashed_files(str(tmp_path), "retrieval")) == 4


def test_two_tables_among_others_in_a_folder(tmp_path):
    """macOS lays a ._name beside each file it unpacks."""
    tables(tmp_path)
    for name in ("imdb_train.csv", "._aan_pairs.parquet", "._aan_papers.parquet"):
        (tmp_path / name).write_text("text,label\na,1\n")
    names = ["aan_pairs.parquet", "aan_papers.parquet"]
    for source in ("", *names):
        assert read(tmp_path / source) == EXPECTED
        assert [path.name for path in pair_files(str(tmp_path / source)).files] == names
    assert [name for name, _ in hashed_files(str(tmp_path), "retrieval")] == names


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
    rows = [row for rows in PAIRS.values() for row in rows]
    one, two = ([int(row[place][1:]) for row in rows] for place in (1, 2))
    pairs(tmp_path, id1=list(map(str, one)), id2=two)
    assert read(tmp_path) == EXPECTED


def test_blanks_around_an_id_do_not_count(tmp_path):
    ids(tmp_path, "tsv")
    change(tmp_path / "new_aan_pairs.train.tsv", lambda held: held.replace(b"P2", b" P2 "))
    change(tmp_path / "aan_papers.tsv", lambda held: held.replace(b"P7", b" P7 "))
    assert read(tmp_path) == EXPECTED


def test_documents_are_cut_one_by_one(tmp_path):
    release(tmp_path)
    data = read_set(task(length=9), tmp_path, Rows(train=2, validation=9, test=9))
    assert [len(split) for _, split in data] == [2, 2, 1]
    assert data.train.tokens.dtype == np.uint16 and set(data.train.lengths.ravel()) == {9}
    assert data.train.sequence(1).tolist() == [byte + 1 for byte in b"Paper 1: "]


def with_release(word, edit):
    def make(folder):
        release(folder)
        change(folder / f"new_aan_pairs.{word}.tsv", edit)

    return make


def with_papers(*row):
    return lambda folder: [pairs(folder), papers(folder, more=[row])]


def both(*makers):
    return lambda folder: [make(folder) for make in makers]


def with_ids(**changed):
    return lambda folder: tables(folder, **changed)


FAULTS = [
    (with_release("train", lambda t: t.replace(b"0.0", b"2.0")), "train.tsv', row 2: label '2.0'"),
    (with_release("eval", lambda t: t + b"1.0\tP1\tP2\n"), "eval.tsv', row 3: 3 fields, not 5"),
    (with_release("eval", lambda t: b"1.0\tP1\tP2\tx\n" + t), "eval.tsv', row 1: 4 fields, not 5"),
    (
        with_release("test", lambda t: b"1.0\tP1\tP2\t\ttext\n" + t),
        "test.tsv', row 1: the text is empty",
    ),
    (
        with_release("test", lambda t: t.replace("é".encode(), b"\xe9")),
        "test.tsv', row 1: byte 12 is not UTF-8",
    ),
    (
        both(release, lambda folder: (folder / "new_aan_pairs.eval.tsv").unlink()),
        r"no validation split beside .*test.tsv, .*train.tsv; .* 'eval'",
    ),
    (with_release("test", lambda t: b""), "test.tsv' is empty"),
    (with_ids(id2=["P1", "", *["P2"] * 4]), "aan_pairs.parquet', row 2: id2 is missing"),
    (with_ids(id1=["P1", "P2", "P9", *["P2"] * 3]), "row 3: paper 'P9' has no text in 'aan_papers"),
    (with_ids(split=["train", None, *["eval"] * 4]), "aan_pairs.parquet', row 2: split missing"),
    (with_ids(split=None), "aan_pairs.parquet' has no column 'split'"),
    (with_ids(split=["train"] * 4 + ["test"] * 2), "aan_pairs.parquet' has no pair for validation"),
    (with_papers("P3", "another"), "aan_papers.parquet', row 9: paper 'P3' is there already"),
    (with_papers("P9", b"caf\xe9"), "aan_papers.parquet', row 9: byte 4 is not UTF-8"),
    (pairs, "aan_pairs.parquet' has no texts"),
    (lambda folder: None, "holds no pairs of papers"),
    (both(release, tables), r"several sets \(aan_pairs.parquet, new_aan_pairs.eval.tsv, "),
    (
        both(release, lambda folder: release(folder, packed=True)),
        "has new_aan_pairs.eval.tsv and new_aan_pairs.eval.tsv.gz",
    ),
    (
        both(release, lambda folder: pairs(folder, name="new_aan_pairs")),
        r"all pairs in one file and by split too \(",
    ),
    (
        both(tables, lambda folder: papers(folder, "tsv")),
        r"several tables of papers \(aan_papers.parquet, aan_papers.tsv\)",
    ),
]


@pytest.mark.parametrize(("make", "says"), FAULTS, ids=[says for _, says in FAULTS])
def test_a_fault_is_one_line_with_file_and_row(tmp_path, make, says):
    make(tmp_path)
    refused(says, read, tmp_path)


def test_a_file_of_another_name(tmp_path):
    (tmp_path / "citations.tsv").write_text("1\ta\tb\n")
    refused("citations.tsv' is not named as pairs of papers", read, tmp_path / "citations.tsv")


WRONG = [
    ("aan_papers.parquet', row 9", "'P0'"),
    ("aan_papers.parquet', row 10", "id is missing"),
    ("new_aan_pairs.train.tsv', row 4", "2 fields"),
    ("new_aan_pairs.train.tsv', row 5", "'3.0'"),
    ("new_aan_pairs.train.tsv', row 6", "'none'"),
]


def test_every_wrong_row_is_noted_once_and_the_rest_is_read(tmp_path):
    release(tmp_path, texts=False)
    papers(tmp_path, more=[("P0", "another"), ("", "nameless")])
    more = b"1.0\tP1\n3.0\tP1\tP2\n1.0\tP1\tnone\n"
    change(tmp_path / "new_aan_pairs.train.tsv", lambda held: held + more)
    defects, counts = splits_of(tmp_path)
    assert counts == [3, 2, 1]
    for defect, (place, fault) in zip(defects, WRONG, strict=True):
        assert f"/{place}: " in defect and fault in defect


@pytest.mark.parametrize(
    ("content", "rows"), [(b"id\ttext\n1\tx\n", [b"1"]), (b"2\ty\n1\tx\n", [b"2", b"1"])]
)
def test_a_header_is_known_by_its_first_column(tmp_path, content, rows):
    (tmp_path / "a.tsv").write_bytes(content)
    found = read_rows(tmp_path / "a.tsv", ("id",), bare=(("id", "text"),))
    assert [cells[0] for _, cells in found] == rows


def test_a_broken_table_of_papers_is_told_once(tmp_path):
    ids(tmp_path)
    change(tmp_path / "aan_papers.parquet", lambda held: held[:-20])
    (defect,), counts = splits_of(tmp_path)
    assert "aan_papers.parquet' is no complete Parquet file" in defect and counts == [0, 0, 0]


@pytest.mark.parametrize("cut", [1, 9])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("make", "columns"), [(release, b"\ttext1\ttext2"), (ids, b"")])
def test_a_file_of_pairs_that_ends_within_a_line_is_told(tmp_path, make, columns, header, cut):
    """Its last field is a text, or an id: half of one is one too."""
    make(tmp_path)
    path = tmp_path / "new_aan_pairs.train.tsv"
    first = b"label\tid1\tid2" + columns + b"\n" if header else b""
    change(path, lambda held: first + held[:-cut])
    (defect,), counts = splits_of(tmp_path)
    assert counts == [2, 2, 1] and defect.startswith(f"'{path}', row 3: ")
    # The rows asked for end with the one that is cut.
    refused(r"train.tsv', row 3: ", read, tmp_path, Rows(train=3, validation=2, test=1))


def test_a_table_of_papers_that_ends_within_a_text_is_told(tmp_path):
    ids(tmp_path, "tsv")
    change(tmp_path / "aan_papers.tsv", lambda held: held[:-4])
    refused(r"papers.tsv', row 8: ", read, tmp_path)


def test_a_last_line_needs_no_end_where_half_of_its_last_field_is_none(tmp_path):
    release(tmp_path)
    for path in tmp_path.glob("*.tsv"):
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        moved = [(*r[3:], *r[1:3], r[0]) for r in rows]
        header = ("text1", "text2", "id1", "id2", "label")
        path.write_text("\n".join(map("\t".join, [header, *moved])))
    assert read(tmp_path) == EXPECTED
