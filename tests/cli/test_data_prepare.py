"""`lra data prepare`: one source, a whole release, and every way it may not do what was asked."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tasks.sources.hub

from .conftest import TINY

LISTOPS = "Source\tTarget\n" + "".join(
    f"[MAX {i} {j} ]\t{max(i, j)}\n" for i in range(9) for j in range(9)
)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "lra_release"
    for name in ("listops-1000", "tsv_data"):
        (folder / name).mkdir(parents=True)
    for word in ("train", "val", "test"):
        (folder / "listops-1000" / f"basic_{word}.tsv").write_text(LISTOPS)
    for word in ("train", "eval", "test"):
        content = "1.0\ta\tb\tone text\tanother\n" * 3
        (folder / "tsv_data" / f"new_aan_pairs.{word}.tsv").write_text(content)
    return folder


def test_a_release_is_prepared_once_and_a_broken_set_stops_no_other(lra, release, tmp_path):
    broken = release / "listops-1000" / "basic_val.tsv"
    broken.write_text(LISTOPS.replace("[MAX 3 4 ]\t4", "[MAX 3 4 ]\t3"))
    first = lra("data", "prepare", "--from", "lra_release", "--out", "sets")
    assert first.returncode == 2
    (told,) = [line for line in first.stderr.splitlines() if line.startswith("lra: ")]
    assert told.startswith("lra: listops: ") and "basic_val.tsv', row 32: " in told
    place = tmp_path / "sets" / "retrieval"
    said, use = first.stdout.splitlines()
    assert "prepared, 3 train, 3 validation, 3 test" in said and "8 tokens" in said
    assert use.endswith(f" --data retrieval={place}")
    broken.write_text(LISTOPS)
    again = lra("data", "prepare", "--from", "lra_release", "--out", "sets")
    assert again.returncode == 0 and "listops: prepared, 81 train" in again.stdout
    assert "retrieval: was prepared already" in again.stdout


def test_one_task_by_default_in_the_cache_where_a_run_is_told_to_look(lra, release, cache):
    ran = lra("data", "prepare", "listops", "--from", "lra_release/listops-1000")
    assert ran.returncode == 0, ran.stderr
    told = ran.stdout.splitlines()[-1]
    assert told == f"use it with: --data listops={cache / 'prepared' / 'listops'}"
    assert "[3/3] listops: basic_test.tsv" in ran.stderr
    flags = told.removeprefix("use it with: ").split()
    shown = lra("data", "show", "--scale", "small", "--examples", "0", *flags)
    assert shown.returncode == 0, shown.stderr
    assert "listops: file, folder" in shown.stdout and "train      81 examples" in shown.stdout


def test_the_usual_set_of_the_hub(lra, tmp_path, monkeypatch):
    asked = []

    def load_hub(reference, task):
        asked.append(reference)
        rows = {"text": [f"film {i}" for i in range(60)], "label": [i % 2 for i in range(60)]}
        return {"train": pa.table(rows), "test": pa.table(rows)}

    monkeypatch.setattr(tasks.sources.hub, "load_hub", load_hub)
    ran = lra("data", "prepare", "text", "--from", "hub", "--out", "reviews")
    assert ran.returncode == 0, ran.stderr
    assert set(asked) == {"hub:stanfordnlp/imdb"}
    facts = json.loads((tmp_path / "reviews" / "facts.json").read_text())
    assert facts["origin"]["source"] == "hub" and facts["rows"]["test"] == 60
    shown = lra("data", "show", "--data", "text=hub", "--examples", "0")
    assert shown.returncode == 0, shown.stderr
    assert set(asked) == {"hub:stanfordnlp/imdb"} and "text: hub, folder" in shown.stdout
    shown = lra("data", "show", "--data", "text=reviews", "--examples", "0")
    assert "text: hub, folder" in shown.stdout


def refused(ran, says: str) -> None:
    """It is bad usage, whose last line has these words."""
    assert ran.returncode == 2 and ran.stdout == ""
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("lra: ") and says in last


def packed(folder: Path) -> None:
    (folder / "lra_release" / "lra_release.gz").write_bytes(b"")
    for name in ("listops-1000", "tsv_data"):
        (folder / "lra_release" / name).rename(folder / name)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--from", "lra_release"], "tar -xzf '"),
        (["--from", "lra_release/lra_release.gz"], "tar -xzf 'lra_release/"),
        (["--from", "listops-1000"], "(listops-1000, tsv_data, "),
        (["--from", "tsv_data/new_aan_pairs.test.tsv"], "no release"),
        (["--from", "nowhere"], "'nowhere'"),
        (["text", "--from", "nowhere"], "'nowhere'"),
        (["listops", "--from", "hub"], "hub:NAME"),
        (["txet", "--from", "hub"], "'text'?"),
        ([], "--from"),
        (["text", "--out", "there"], "--out"),
        (["text", "--from", "tsv_data", "--jobs", "2"], "--jobs"),
        (["recall", "--from", "listops-1000"], "recall"),
    ],
)
def test_what_cannot_be_prepared_is_one_line(lra, release, tmp_path, arguments, says):
    packed(tmp_path)
    refused(lra("data", "prepare", *arguments), says)


def test_an_interruption_says_how_to_go_on(lra, release, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tasks.sources.whole_sets.make_set", stop)
    ran = lra("data", "prepare", "--from", "lra_release", "--out", "sets")
    assert ran.returncode == 130 and "again" in ran.stderr.splitlines()[-1]


LISTS = ("prepare", "listops", "--from", "lra_release/listops-1000")


def test_a_generated_set_lies_where_a_run_looks_for_it(lra, monkeypatch, tmp_path):
    # Other tests' runs may have left the same set in the cache that they share.
    monkeypatch.setenv("LRA_CACHE", str(tmp_path / "own cache"))
    asked = ("data", "prepare", "listops", "--scale", TINY[3], "--jobs", "1")
    ran = lra(*asked)
    assert ran.returncode == 0, ran.stderr
    place = Path(ran.stdout.rstrip().partition("it lies in ")[2])
    assert ran.stdout.startswith("listops: generated, ") and (place / "facts.json").is_file()
    again = lra(*asked)
    assert "listops: was generated already" in again.stdout

    def generate(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr("tasks.listops.ListOps.generate", generate)
    shown = lra("data", "show", "--task", "listops", "--scale", TINY[3])
    assert shown.returncode == 0 and f"listops: generated, folder {place.name}" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "text", "--from", "~nosuch/x"], "'~nosuch/x' begins with a home that is not"),
        (["check", "--from", "~nosuch/x"], "'~nosuch/x' begins with a home that is not"),
        (["show", "--data", "text=~nosuch/x"], "'~nosuch/x'"),
        (["prepare", "text", "--from", "~nosuch/x"], "'~nosuch/x'"),
        ([*LISTS, "--out", "~nosuch/x"], "'~nosuch/x'"),
        ([*LISTS, "--out", "x" * 300], "File name too long"),
        ([*LISTS, "--out", "closed/set"], "Permission denied"),
    ],
)
def test_a_path_that_cannot_be_is_one_line(lra, release, closed, arguments, says):
    refused(lra("data", *arguments), says)
