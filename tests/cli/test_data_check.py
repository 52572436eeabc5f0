"""`lra data check`: every defect by file and row, what a set holds, and files that were changed."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from lra.cli.data_check import LISTED

from .conftest import HERE

ROWS = [f"[MAX {i} {j} ]\t{max(i, j)}" for i in range(4) for j in range(5)]


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    folder = tmp_path / "listops-1000"
    folder.mkdir()
    for word in ("train", "val", "test"):
        write(folder / f"basic_{word}.tsv", ROWS)
    return folder


def write(path: Path, rows: list[str]) -> None:
    path.write_text("\n".join(["Source\tTarget", *rows]) + "\n")


def test_a_sound_source_is_counted(lra, lists):
    ran = lra("data", "check", "listops", "--from", "listops-1000")
    assert ran.returncode == 0, ran.stderr
    first, train, validation, test = ran.stdout.splitlines()
    assert first.startswith("listops: 60 sound rows, no ")
    assert train.split()[0] == "train" and "20 examples, 4 tokens" in train
    assert train.endswith(" 5.0% 15.0% 25.0% 35.0% 20.0%")
    assert validation.split()[0] == "validation" and "20 also in train" in validation
    assert "20 also in train" in test and "20 also in validation" in test


def test_every_defect_is_a_line_and_the_rest_is_counted(lra, lists):
    wrong = ["[MAX 1 2 ]\t3", "[MAX 1 2 ]", "[MUX 1 2 ]\t2", "[MAX 1 2\t2"]
    write(lists / "basic_train.tsv", [*ROWS[:2], *wrong, *ROWS[2:]])
    (lists / "basic_val.tsv").write_text("")
    write(lists / "basic_test.tsv", [*ROWS, "[MAX 1 2 ]\tx"])
    ran = lra("data", "check", "--from", ".")
    assert ran.returncode == 1
    told = ran.stdout.splitlines()
    places = [
        *(f"basic_train.tsv', row {row}: " for row in (3, 4, 5, 6)),
        "basic_val.tsv' is empty",
        "basic_test.tsv', row 21: label 'x'",
    ]
    assert all(f"listops-1000/{place}" in line for place, line in zip(places, told, strict=False))
    assert told[6] == "listops: 40 sound rows, 6 defects"
    assert "validation no examples" in told[8]


def test_no_more_than_a_page_of_defects_is_printed(lra, lists):
    write(lists / "basic_train.tsv", [*ROWS, *["[MAX 1 2 ]\t7"] * (LISTED + 5)])
    told = lra("data", "check", "listops", "--from", "listops-1000").stdout.splitlines()
    assert len(told) == LISTED + 1 + 4
    assert " 5 " in told[LISTED] and f"60 sound rows, {LISTED + 5} defects" in told[LISTED + 1]


def test_what_is_wrong_with_the_whole_is_a_defect(lra, lists):
    (lists / "basic_val.tsv").unlink()
    ran = lra("data", "check", "listops", "--from", "listops-1000")
    assert ran.returncode == 1
    assert "'listops-1000' has no validation" in ran.stdout
    assert "listops: 0 sound rows, 1 defect" in ran.stdout


def reviews(folder: Path, word: str, rows: list[str]) -> None:
    (folder / f"r_{word}.csv").write_text("\n".join(["text,label", *rows]) + "\n")


def test_a_split_without_a_row_is_a_defect_where_no_row_has_one(lra, tmp_path):
    reviews(tmp_path, "train", [f"film {i},{i % 2}" for i in range(60)])
    reviews(tmp_path, "test", [])
    for words in (("'.' has no rows for test",), ("r_test.csv', row 1: ", "'2'", "0 ... 1")):
        ran = lra("data", "check", "text", "--from", ".")
        assert ran.returncode == 1
        defect, summary = ran.stdout.splitlines()[:2]
        assert all(one in defect for one in words)
        assert summary == "text: 60 sound rows, 1 defect"
        reviews(tmp_path, "test", ["film,2"])


def test_repeats_and_printed_bytes_are_counted_and_no_defect(lra, tmp_path):
    sound = [f"film {i},{i % 2}" for i in range(60)]
    reviews(tmp_path, "train", [*sound, "film 3,1", "b'film',0", 'b"film",0', "b'film,0"])
    reviews(tmp_path, "val", ["b'film',0"])
    reviews(tmp_path, "test", ["film a,0"])
    ran = lra("data", "check", "text", "--from", ".")
    assert ran.returncode == 0 and ran.stdout.startswith("text: 66 sound rows, no defect")
    train, validation, test = ran.stdout.splitlines()[1:]
    assert train.endswith(", 1 equal to an earlier one, 2 written as b'...'")
    assert validation.endswith(", 1 also in train, 1 written as b'...'")
    assert test.endswith("labels 100.0%")


def test_one_text_with_two_labels_is_one_defect(lra, tmp_path):
    sound = [f"film {i},{i % 2}" for i in range(60)]
    reviews(tmp_path, "train", [*sound, "a text that is longer than an error shows it,0"])
    reviews(tmp_path, "val", ["film 3,0", "film 3,0", "film 3,1"])
    reviews(tmp_path, "test", ["a text that is longer than an error shows it,1"])
    for asked in (("text", "--from", "."), ("--from", "set")):
        ran = lra("data", "check", *asked)
        assert ran.returncode == 1
        first, second, summary = ran.stdout.splitlines()[:3]
        assert "validation: " in first and " label 0, and 1 before" in first
        assert "test: " in second and " label 1, and 0 before" in second and len(second) < 250
        assert summary == "text: 65 sound rows, 2 defects"
        if asked[0] == "text":
            assert "'film 3'" in first
            assert lra("data", "prepare", "text", "--from", ".", "--out", "set").returncode == 0


def test_labels_that_are_words_are_told_once_a_file(lra, tmp_path):
    reviews(tmp_path, "train", [f"film {i},{('bad', 'good')[i % 2]}" for i in range(60)])
    reviews(tmp_path, "test", ["film,0", "a,2", "b,good", 'c," Bad"', "d,3"])
    ran = lra("data", "check", "text", "--from", ".")
    assert ran.returncode == 1
    told = ran.stdout.splitlines()
    places = ["r_train.csv', row 1: ", *(f"r_test.csv', row {row}: " for row in (2, 3, 5))]
    assert all(place in line for place, line in zip(places, told, strict=False))
    assert told[4] == "text: 1 sound row, 4 defects"
    assert [" words" in line for line in told[:4]] == [True, False, True, False]


@pytest.mark.parametrize("part", [",", ";", "|"])
def test_pairs_without_tabs_are_told_once_a_file(lra, tmp_path, part):
    for word in ("train", "eval", "test"):
        rows = [("1.0", f"P{i}", "Q", f"one {word} {i}", "two") for i in range(5)]
        by = part if word == "train" else "\t"
        text = "".join(f"{by.join(row)}\n" for row in rows)
        (tmp_path / f"new_aan_pairs.{word}.tsv").write_text(text)
    ran = lra("data", "check", "retrieval", "--from", ".")
    assert ran.returncode == 1
    first, summary = ran.stdout.splitlines()[:2]
    assert "pairs.train.tsv', row 1: " in first and "tabs" in first
    assert summary == "retrieval: 10 sound rows, 1 defect"


def test_a_paper_that_is_wrong_is_one_defect_however_many_pairs_name_it(lra, tmp_path):
    papers = "".join(f"P{i},paper {i}\n" for i in range(4))
    (tmp_path / "papers.csv").write_text(f"id,text\n{papers}P4,  \n")
    pairs = "1,P0,P1,train\n1,P4,P1,train\n0,P1,P4,test\n0,P2,P3,test\n7,P1,P3,validation\n"
    (tmp_path / "pairs.csv").write_text(f"label,id1,id2,split\n{pairs}")
    ran = lra("data", "check", "retrieval", "--from", ".")
    assert ran.returncode == 1
    paper, label, summary = ran.stdout.splitlines()[:3]
    assert "papers.csv', row 5: " in paper and "pairs.csv', row 5: label '7'" in label
    assert summary == "retrieval: 2 sound rows, 2 defects"


@pytest.fixture
def prepared(lra, lists, tmp_path: Path) -> Path:
    assert lra("data", "prepare", "listops", "--from", str(lists), "--out", "set").stdout
    return tmp_path / "set"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.index(bytes([12, 1, 1, 15]))
    content[place + 1] += 1
    path.write_bytes(content)


def test_a_prepared_set_is_compared_with_what_was_written(lra, prepared):
    ran = lra("data", "check", "--from", "set")
    assert ran.returncode == 0 and "listops: 60 sound rows" in ran.stdout
    flip(prepared / "train.arrow")
    (prepared / "test.arrow").unlink()
    file = prepared / "validation.arrow"
    file.write_bytes(file.read_bytes()[:-1])
    ran = lra("data", "check", "listops", "--from", "set")
    assert ran.returncode == 1
    train, validation, test, summary = ran.stdout.splitlines()[:4]
    assert "set': train.arrow " in train
    assert f"validation.arrow has {file.stat().st_size} of" in validation
    assert "test.arrow is missing" in test
    assert summary == "listops: 0 sound rows, 3 defects"


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda facts: facts["origin"].update(hash="0" * 64), 1, "hash of another set"),
        (lambda facts: facts.update(length=3), 1, "train.arrow has a row of 4 tokens"),
        (lambda facts: facts.update(vocabulary=15), 1, "token 15, outside 0 to 14"),
        (lambda facts: facts.update(classes=4), 1, "label 4, outside 0 to 3"),
        (lambda facts: facts["origin"]["sha256"].pop("train"), 2, "splits"),
    ],
)
def test_facts_that_are_those_of_another_set(lra, prepared, change, code, says):
    """The set has rows of 4 tokens, of which the highest is 15, and labels 0 ... 4."""
    facts = json.loads((prepared / "facts.json").read_bytes())
    change(facts)
    del facts["checksum"]
    (prepared / "facts.json").write_text(json.dumps(facts))
    ran = lra("data", "check", "listops", "--from", "set")
    assert ran.returncode == code
    assert says in (ran.stdout if code == 1 else ran.stderr) and "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["text", "--from", "set"], "set of listops, not of text"),
        (["listops", "--from", "set", "--rules", "lra2021"], "fixed, not lra2021"),
        (["text", "--from", "nowhere"], "'nowhere'"),
        (["recall", "--from", "listops-1000"], "recall"),
        (["listops", "--from", "hub"], "hub: listops"),
        (["text", "--from", "several"], "several sets"),
        (["retrieval", "--from", "several"], "several sets"),
        (["image", "--from", "several"], "several sets"),
        (["bytes", "--from", "several"], "several texts"),
        (["--from", "listops-1000"], "release"),
    ],
)
def test_what_cannot_be_checked_is_one_line(lra, prepared, arguments, says):
    several = prepared.parent / "several"
    several.mkdir()
    for form in ("{}_train.csv", "{}pairs.tsv", "{}_train.bin", "{}.train.txt"):
        for name in "ab":
            (several / form.format(name)).write_text("")
    refused(lra("data", "check", *arguments), says)


def refused(ran, says: str) -> None:
    """It is bad usage, told in one line with these words."""
    assert ran.returncode == 2 and ran.stdout == ""
    assert ran.stderr.startswith("lra: ") and says in ran.stderr and ran.stderr.count("\n") == 1


def test_a_name_with_control_characters_stays_on_its_line(lra, tmp_path):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        for name in ("next", "last"):
            archive.writestr(f"imgs/0/\x1b[31mred\n{name}.png", b"")
        archive.writestr("metadata/0.npy", "imgs/0 \x1b[31mred 0 1 1.0 14 4 2 0.5 1 1\n")
    ran = lra("data", "check", "pathfinder", "--from", "set.zip")
    assert ran.returncode == 1 and "\x1b" not in ran.stdout
    missing, unnamed, summary = ran.stdout.splitlines()[:3]
    assert missing.startswith("'set.zip/metadata/0.npy', row 1: ")
    assert "\\x1b[31mred\\nlast.png" in unnamed
    assert summary == "pathfinder: 0 sound rows, 2 defects"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["text", "--from", "hub:"], "hub:NAME@REV"),
        (["image", "--from", "hub:"], "hub:NAME@REV"),
        (["text", "--from", "hub"], "hub:stanfordnlp/imdb: "),
        (["image", "--from", "listops-1000", "--scale", "mini"], "scale with image"),
        (["pathfinder", "--from", "listops-1000", "--scale", "mini"], "scale with pathfinder"),
    ],
)
def test_what_cannot_be_had_is_no_defect(lra, lists, monkeypatch, arguments, says):
    def no_hub(*_: object, **__: object) -> None:
        raise ConnectionError("no way there")

    monkeypatch.setattr("datasets.load_dataset", no_hub)
    monkeypatch.setattr("tasks.sources.hub._answers", lambda address: False)
    refused(lra("data", "check", *arguments), says)


def test_a_set_of_a_release_that_cannot_be_checked_stops_no_other(lra, lists, tmp_path):
    release = tmp_path / "release"
    for name in ("pathfinder32", "pathfinder64"):
        (release / name).mkdir(parents=True)
    lists.rename(release / lists.name)
    tsv = release / "tsv_data"
    tsv.mkdir()
    for word in ("train", "eval", "test"):
        (tsv / f"new_aan_pairs.{word}.tsv").write_text("1.0\ta\tb\tone text\tanother\n")
    ran = lra("data", "check", "--from", "release", "--scale", "mini")
    assert ran.returncode == 2
    assert "listops: 60 sound rows" in ran.stdout and "retrieval: 3 sound rows" in ran.stdout
    small, other = [line for line in ran.stderr.splitlines() if line.startswith("lra: ")]
    assert small.startswith("lra: pathfinder: 'release/pathfinder32': ")
    assert other.startswith("lra: pathfinder64: ") and "4096 pixels" in other


def test_what_is_wrong_with_a_file_of_all_splits_is_one_defect(lra, tmp_path):
    (tmp_path / "mine.txt").write_text("")
    ran = lra("data", "check", "bytes", "--from", "mine.txt")
    assert ran.returncode == 1
    assert "mine.txt' is empty" in ran.stdout and "bytes: 0 sound rows, 1 defect" in ran.stdout


def test_it_is_said_where_the_rest_of_a_file_could_not_be_read(lra, tmp_path):
    (tmp_path / "a.csv").write_text('text,label\nfine,0\n"fi"ne,1\nfine,1\n')
    ran = lra("data", "check", "text", "--from", "a.csv")
    assert ran.returncode == 1 and "row 2: " in ran.stdout and "not read" in ran.stdout


def test_a_set_that_a_run_keeps_is_looked_after(lra, tmp_path, monkeypatch):
    """In the cache, flipped after it was made: an error of each cell that reads it, and named."""
    monkeypatch.setenv("LRA_CACHE", str(tmp_path / "cache"))
    scale = ("--scale", str(HERE / "tiny.toml"))
    assert lra("data", "prepare", "listops", *scale).returncode == 0
    (path,) = (tmp_path / "cache").glob("*/train.arrow")
    sound = lra("data", "check", "--from", str(path.parent))
    assert sound.returncode == 0 and "400 sound rows" in sound.stdout

    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(0, 0))
    for asked in (("listops",), ()):
        found = lra("data", "check", *asked, "--from", str(path.parent))
        assert found.returncode == 1 and "train.arrow" in found.stdout
    assert lra("data", "prepare", "listops", *scale).returncode == 2

    Path("one.toml").write_text('title = "one"\n[[quality]]\nscale = "tiny"\ntasks = ["listops"]\n')
    ran = lra("run", "--impl", "linear", "--suite", "one.toml", *scale, "--device", "cpu")
    assert ran.returncode == 4
    records = [json.loads(one.read_bytes()) for one in Path("results/runs/default").glob("*.json")]
    ended = [r["failure"] for r in records if r["cell"]["type"] in ("quality", "baseline")]
    assert [failure["type"] for failure in ended] == ["DataError"] * 2
    assert all("train.arrow" in failure["message"] for failure in ended)
