"""`lra compare` and `report --compare`, on stores written here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lra.core.records import Record
from lra.engine.gate import affected, interleave, revision
from lra.engine.gate.affected import SourceHashes
from lra.engine.gate.interleave import stores_of
from lra.engine.gate.revision import Build
from lra.store import Store

from .gate import timing

INCONCLUSIVE, REGRESSION, USAGE = 3, 1, 2


def timed(name: str, *seconds: float) -> list[Record]:
    """A training step of a layer, a process each."""
    return [timing(name, n, times={"latency": value}) for n, value in enumerate(seconds)]


@pytest.fixture
def stores(tmp_path: Path) -> None:
    for name, factor in (("old", 1.0), ("new", 1.5)):
        with Store(tmp_path / name).locked() as place:
            for record in (*timed("linear", factor, factor), *timed("sdpa", 1.0, 1.0)):
                place.save(record)
    (tmp_path / "empty").mkdir()


def test_two_stores(lra, stores: None) -> None:
    ran = lra("compare", "old", "new")
    assert ran.returncode == 0, ran.stderr
    first, *lines = ran.stdout.splitlines()
    assert first.startswith("new against old: ") and "linear train 512" in first and "1.5" in first
    (row,) = (line for line in lines if line.startswith("linear train"))
    assert "1.00 s" in row and "1.50 s" in row and row.endswith("slower")
    told = json.loads(lra("compare", "old", "new", "--json").stdout)
    assert [one["verdict"] for one in told["figures"]] == ["worse", "same"]
    worse = told["figures"][0]
    assert worse["mechanism"] == "linear" and worse["pairs"] == 2
    assert worse["ratio"] == pytest.approx(1.5) and told["sentences"][0] == first


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("old", "new", REGRESSION),
        ("new", "old", 0),
        ("new", "new", 0),
        ("old", "noisy", 0),
        ("old", "failing", REGRESSION),
        ("old", "empty", INCONCLUSIVE),
    ],
)
def test_only_what_is_worse_fails(
    before: str, after: str, code: int, lra, stores: None, tmp_path: Path
) -> None:
    with Store(tmp_path / "noisy").locked() as place:
        # Slower by the mean, and as its two processes differ nobody can tell.
        for record in timed("linear", 0.9, 1.6):
            place.save(record)
    with Store(tmp_path / "failing").locked() as place:
        for record in timed("sdpa", 1.0, 1.0):
            failed = msgspec.structs.replace(record, status="oom", metrics={})
            place.save(failed)
    told = lra("compare", before, after, "--json").stdout
    assert lra("compare", before, after).returncode == (code if code == INCONCLUSIVE else 0)
    ran = lra("compare", before, after, "--fail", "--json")
    assert (ran.returncode, ran.stdout) == (code, told)
    worse = [one for one in json.loads(told)["figures"] if one["verdict"] == "worse"]
    assert bool(worse) == (code == REGRESSION)


def test_two_mechanisms_of_one_store(lra, stores: None) -> None:
    ran = lra("compare", "sdpa", "linear", "--store", "new")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("linear against sdpa: ") and "slower in 1 of 1" in ran.stdout


def test_what_another_code_measured_is_inconclusive_and_says_why(
    lra, stores: None, tmp_path: Path
) -> None:
    with Store(tmp_path / "other").locked() as place:
        for record in timed("linear", 1.0, 1.0):
            cell = msgspec.structs.replace(record.cell, versions={"time": 2})
            place.save(msgspec.structs.replace(record, id=cell.id, cell=cell))
    ran = lra("compare", "old", "other")
    assert ran.returncode == INCONCLUSIVE
    assert "version of the code: time" in ran.stdout and "1 cell of old alone" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("old", "nowhere"), "'nowhere'"),
        (("nowhere", "new"), "'nowhere'"),
        (("old", "file"), "'file'"),
        (("", "new"), "A ''"),
        (("old", ""), "B ''"),
        (("old", "new", "--store", "new"), "mechanism 'old'"),
        (("lstm", "new", "--store", "new"), "'lstm'"),
        (("sdpa", "linaer", "--store", "new"), "'linear'?"),
        (("sdpa", "linear", "--store", "nowhere"), "'nowhere'"),
        (("of", "nothing", "--store", "empty"), "'of'"),
        (("runs/old", "runs/new"), "'runs/old'"),
        (("old",), "'B'"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    arguments: tuple[str, ...], told: str, lra, stores: None, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ran = lra("compare", *arguments)
    assert ran.returncode == USAGE and told in ran.stderr
    assert ran.stderr.count("\n") == 1 and ran.stdout == ""


def test_a_report_since_another_store_begins_with_what_changed(
    lra, stores: None, tmp_path: Path
) -> None:
    ran = lra("report", "--store", "new", "--compare", "old", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("new against old: ") and ran.stdout.count("new against old") == 1
    page = (tmp_path / "out/report.md").read_text()
    heading = page.index("## Changes since old\n\nnew against old: ")
    assert page.count("\n## ", 0, heading) == 0, "before any other section"
    assert (tmp_path / "out/compare.md").read_text().startswith("## new against old\n")
    # Without a comparison there is none left from before.
    assert lra("report", "--store", "new", "--out", "out").returncode == 0
    assert not (tmp_path / "out/compare.md").exists()
    assert "Changes since" not in (tmp_path / "out/report.md").read_text()
    ran = lra("report", "--store", "new", "--compare", "nowhere")
    assert ran.returncode == USAGE and "'nowhere'" in ran.stderr


def test_folders_that_hide_mechanisms_say_so_and_a_store_names_the_mechanisms(
    lra, stores: None, tmp_path: Path
) -> None:
    for name, other in (("linear", "old"), ("sdpa", "new")):
        (tmp_path / name).symlink_to(tmp_path / other)
    ran = lra("compare", "linear", "sdpa")
    assert ran.stdout.startswith("new against old: ") and ran.stderr.count("\n") == 1
    assert "'linear' and 'sdpa'" in ran.stderr and "--store" in ran.stderr
    quiet = lra("compare", "./linear", "./sdpa")
    assert (quiet.stdout, quiet.stderr) == (ran.stdout, "")
    ran = lra("compare", "linear", "sdpa", "--store", "new")
    assert ran.stdout.startswith("sdpa against linear: ") and ran.stderr == ""


def test_a_mechanism_whose_name_has_a_line_break_is_told_on_one_line(lra, tmp_path: Path) -> None:
    with Store(tmp_path / "odd").locked() as place:
        for record in (*timed("two\nlines", 1.0, 1.0), *timed("sdpa", 2.0, 2.0)):
            place.save(record)
    ran = lra("compare", "two\nlines", "sdpa", "--store", "odd")
    assert ran.stdout.startswith("sdpa against two\\nlines: ")
    ran = lra("compare", "two", "sdpa", "--store", "odd")
    assert ran.returncode == USAGE and ran.stderr.count("\n") == 1


def test_what_is_meant_as_a_revision_and_is_none_is_named(lra, stores: None) -> None:
    for flags in (("--impl", "linear"), ("--pairs", "3")):
        ran = lra("compare", "HEAD", "no-such-branch", *flags)
        assert ran.returncode == USAGE and "no-such-branch" in ran.stderr
        assert ran.stderr.startswith(("lra: no revision", "lra: revision"))
    for sides in (("sdpa", "linear"), ("old", "new")):
        ran = lra("compare", *sides, "--pairs", "3")
        assert ran.returncode == USAGE and "--pairs" in ran.stderr


@pytest.fixture
def revisions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, ...]]:
    """`slow` takes 1.5 times as much as `fast`, has another `linear`, and `performer` besides;
    what is timed is noted here, after both sides."""
    asked: list[tuple[str, ...]] = []
    own = {"fast": {"linear": "1", "sdpa": "1"},
           "slow": {"linear": "2", "sdpa": "1", "performer": "1"}}  # fmt: skip
    seconds = {"fast": 1.0, "slow": 1.5}

    @contextmanager
    def work_tree(name: str) -> Iterator[Path]:
        yield tmp_path / "trees" / name

    def in_turns(
        sides: Sequence[Build],
        mechanisms: Sequence[str],
        *,
        turns: range,
        folder: Path,
        **_: object,
    ) -> None:
        asked.append((*(side.name for side in sides), *mechanisms))
        for side, store in zip(sides, stores_of(folder), strict=True):
            assert side.root.name == side.name
            with store.locked():
                for name in mechanisms:
                    for record in timed(name, *[seconds[side.name]] * len(turns)):
                        store.save(record)

    monkeypatch.setattr(revision, "commit_of", lambda name: f"commit of {name}")
    monkeypatch.setattr(revision, "work_tree", work_tree)
    monkeypatch.setattr(revision, "build", lambda name, tree, _: Build(name, tree, tree, "abc"))
    monkeypatch.setattr(
        affected, "hash_sources", lambda tree: SourceHashes(("t",), ("c",), own[tree.name])
    )
    monkeypatch.setattr(interleave, "time_interleaved", in_turns)
    return asked


def test_the_second_of_two_revisions_is_told_against_the_first(
    lra, revisions: list[tuple[str, ...]], tmp_path: Path
) -> None:
    ran = lra("compare", "fast", "slow", "--pairs", "3")
    assert ran.returncode == 0, ran.stderr
    assert revisions == [("fast", "slow", "linear")], "what the first has not cannot be timed"
    assert ran.stdout.startswith("slow against fast: ") and "slower in 1 of 1" in ran.stdout
    assert all(f"results/runs/fast..slow/{side}" in ran.stderr for side in "AB")
    kept = [store.records() for store in stores_of(tmp_path / "results/runs/fast..slow")]
    assert [{r.metrics["latency"].value for r in side} for side in kept] == [{1.0}, {1.5}]
    assert [len(side) for side in kept] == [3, 3]
    ran = lra("compare", "slow", "fast", "--pairs", "3")
    assert revisions[1:] == [("slow", "fast", "linear")]
    assert ran.stdout.startswith("fast against slow: ") and "faster in 1 of 1" in ran.stdout


def test_own_mechanisms_that_are_noisy_are_timed_on_by_where_they_lie(
    lra, revisions: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_turns(
        _: object, mechanisms: Sequence[str], *, turns: range, folder: Path, **__: object
    ) -> None:
        asked.append((list(mechanisms), len(turns)))
        for store, sign in zip(stores_of(folder), (1, -1), strict=True):
            with store.locked():
                for turn in turns:
                    store.save(
                        timing("Mine", turn, times={"latency": 1.0 + 0.1 * sign * (-1) ** turn})
                    )

    asked: list[tuple[list[str], int]] = []
    monkeypatch.setattr(interleave, "time_interleaved", in_turns)
    mine = tmp_path / "mine.py"
    mine.write_text("class Mine: ...\n")
    ran = lra("compare", "fast", "slow", "--impl", f"{mine}:Mine")
    assert ran.returncode == 0, ran.stderr
    assert [names for names, _ in asked] == [[f"{mine}:Mine"]] * 2, "first, and once more"
