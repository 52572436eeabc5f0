"""Two builds timed in turns, each by a command line of its own: here scripts that copy records."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.core.cells import EfficiencyCell
from lra.core.errors import LraError
from lra.core.protocol import Machine, Mechanism
from lra.core.records import Metric, Record, encode
from lra.engine.gate import interleave
from lra.engine.gate.interleave import AT_ONCE, differences, stores_of, time_interleaved
from lra.engine.gate.revision import Build
from lra.store import Store

SWEEP = """#!/bin/sh
echo "$PYTHONPATH $*" >> {log}
echo "$PWD" >> {log}.places
while [ "$1" != --store ]; do shift; done
mkdir -p "$2"
cp {records}/*.json "$2"
touch left-by-a-report
echo "a warning" >&2
{end}
"""


def timed(name: str, seconds: float) -> Record:
    cell = EfficiencyCell(
        machine=Machine(processor="Example CPU", cores=2), torch="2.13.0", threads=2,
        versions={}, mechanism=Mechanism(name=name), scale="mini", length=512,
        mode="train", heads=4, head_width=64,
    )  # fmt: skip
    quartiles = dict.fromkeys(("minimum", "q1", "q3"), seconds)
    latency = Metric(value=seconds, unit="s", samples=(seconds,), **quartiles)
    return Record(
        id=cell.id, cell=cell, status="ok", started_at="2026-11-20T10:00:00Z", seconds=1.0,
        metrics={"latency": latency},
    )  # fmt: skip


class Turns:
    """Two stub builds, `one` and `other`, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builds = {name: self._build(name, commit) for name, commit in
                       (("one", "abc"), ("other", ""))}  # fmt: skip

    def _build(self, name: str, commit: str) -> Build:
        records = self.folder / name / "records"
        records.mkdir(parents=True)
        for record in (timed("linear", 1.0), timed("sdpa", 2.0)):
            (records / f"{record.id}.json").write_bytes(encode(record))
        self.script(name, "exit 0")
        root = self.folder / name
        return Build(f"the {name} build", root, root / "python", commit)

    def script(self, name: str, end: str) -> None:
        """Let a build's sweeps end so."""
        file = self.folder / name / "python"
        records = file.parent / "records"
        file.write_text(SWEEP.format(log=self.folder / "log", records=records, end=end))
        file.chmod(0o755)

    def run(self, *mechanisms: str, turns: range = range(4)) -> tuple[Store, Store]:
        self.told: list[str] = []
        folder = self.folder / "times"
        time_interleaved(
            (self.builds["one"], self.builds["other"]), mechanisms, suite=Path("suite.toml"),
            device="cpu", turns=turns, folder=folder, log=self.told.append,
        )  # fmt: skip
        return stores_of(folder)

    def asked(self) -> list[list[str]]:
        """Each command: what Python's path was, then the words."""
        return [line.split() for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Turns:
    monkeypatch.setenv("PYTHONPATH", "/ours")
    monkeypatch.chdir(tmp_path)
    return Turns(tmp_path)


def names(stubs: Turns) -> list[str]:
    return [Path(words[0].partition(":")[0]).name for words in stubs.asked()]


def test_each_comes_first_as_often_as_the_other(stubs: Turns) -> None:
    stubs.run("linear", "sdpa")
    a, b = "one", "other"
    assert names(stubs) == [a, b, b, a, a, b, b, a]
    assert [line.partition(":")[0] for line in (stubs.told[0], stubs.told[-1])] == [
        "pair 1 of 4", "pair 4 of 4"
    ]  # fmt: skip
    assert "linear, sdpa" in stubs.told[0]


def test_a_turn_is_a_replicate_of_its_side(stubs: Turns) -> None:
    stores = stubs.run("linear", "sdpa", turns=range(2, 5))
    for store, name in zip(stores, "AB", strict=True):
        assert store.path == stubs.folder / "times" / name
        found = store.records()
        assert all(record.id == record.cell.id for record in found)
        cells = [r.cell for r in found if isinstance(r.cell, EfficiencyCell)]
        assert sorted((c.mechanism.name, c.replicate) for c in cells) == [
            (mechanism, turn) for mechanism in ("linear", "sdpa") for turn in (2, 3, 4)
        ]
        assert {record.metrics["latency"].value for record in found} == {1.0, 2.0}


def test_a_build_is_asked_by_its_own_command_line_and_sources(stubs: Turns) -> None:
    stubs.run("linear", "sdpa", turns=range(1))
    (path, *words), (other, *_) = stubs.asked()
    assert path == str(stubs.folder / "one"), "of a commit nothing but its own sources"
    assert other == f"{stubs.folder / 'other'}:/ours"
    told = dict(zip(words[3::2], words[4::2], strict=False))
    assert words[:3] == ["-m", "lra", "sweep"] and words[-1] == "--quiet"
    assert told["--impl"] == "linear,sdpa" and told["--device"] == "cpu"
    assert told["--suite"] == str(stubs.folder / "suite.toml"), "it runs elsewhere"
    assert not (stubs.folder / "left-by-a-report").exists()
    assert not any(Path(p).exists() for p in (stubs.folder / "log.places").read_text().split())


def test_many_mechanisms_are_timed_some_at_a_time(stubs: Turns) -> None:
    many = [f"m{n}" for n in range(AT_ONCE + 1)]
    stubs.run(*many, turns=range(1))
    impls = [words[words.index("--impl") + 1] for words in stubs.asked()]
    assert impls == [",".join(many[:AT_ONCE])] * 2 + [many[AT_ONCE]] * 2


def test_more_turns_are_more_replicates(stubs: Turns) -> None:
    stubs.run("linear", turns=range(2))
    first, second = stubs.run("linear", turns=range(2, 5))
    assert len(first.records()) == len(second.records()) == 2 * 5
    assert stubs.told[0].startswith("pair 1 of 3: ")


def test_failed_cells_are_findings(stubs: Turns) -> None:
    stubs.script("other", "exit 4")
    _, second = stubs.run("linear", turns=range(1))
    assert len(second.records()) == 2


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("echo 'lra: unknown mechanism x' >&2; exit 2", "unknown mechanism x"),
        ("echo Traceback >&2; echo 'KeyError: 3' >&2; exit 1", "KeyError: 3"),
        ("kill -9 $$", "a warning"),
    ],
)
def test_a_build_that_cannot_be_timed_is_one_line_that_names_it(
    stubs: Turns, end: str, why: str
) -> None:
    stubs.script("other", end)
    with pytest.raises(LraError) as error:
        stubs.run("linear")
    told = str(error.value)
    assert told.startswith("the other build ") and why in told and "\n" not in told


def test_builds_with_another_torch_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "environments/abc"
    old = Build("v1", tmp_path, environment / "bin/python", "c0ffee")
    new = Build("the working tree", tmp_path, tmp_path / "python")
    installed = {"v1": "2.13.0", "the working tree": "2.13.0"}
    monkeypatch.setattr(interleave, "torch_version", lambda one: installed[one.name])
    assert differences((old, new)) == ""
    installed["the working tree"] = "2.13.0+cpu"
    told = differences((old, new))
    assert "v1 has torch 2.13.0 " in told and "torch 2.13.0+cpu" in told
    assert told.endswith(str(environment))
