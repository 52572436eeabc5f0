"""The part of `lra check` that times two builds; what they take is told by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lra.cli import checking
from lra.core.catalogue import Target
from lra.core.cells import EfficiencyCell
from lra.core.protocol import Machine, Mechanism
from lra.core.records import Metric, Record
from lra.engine.gate import affected, interleave, revision
from lra.engine.gate.affected import SourceHashes
from lra.engine.gate.baselines import Baselines, Noise, Reason
from lra.engine.gate.interleave import stores_of
from lra.engine.gate.revision import HOME, Build
from lra.engine.machine.host import machine
from lra.report.words import TIMES
from lra.verdict.slowdown import MOST, PAIRS

from .conftest import Run

REGRESSION, INCONCLUSIVE, INTERRUPTED = 1, 3, 130
NAMES = ("linear", "performer", "sdpa", "bigbird", "full", "s4d")
CHECK = ("check", "--since", "main", "--device", "cpu", "--baselines", "baselines", "--quiet")
TRAIN = "train 512 heads 4 x 64"


def timed(name: str, seconds: float, replicate: int, **own: Any) -> Record:
    cell = EfficiencyCell(
        machine=Machine(processor="Example CPU", cores=2), torch="2.13.0", threads=2,
        versions={}, mechanism=Mechanism(name=name), scale="mini", length=512,
        mode="train", heads=4, head_width=64, replicate=replicate,
    )  # fmt: skip
    plain = {
        "id": cell.id, "cell": cell, "status": "ok", "started_at": "2026-11-20T10:00:00Z",
        "seconds": 1.0, "metrics": {"latency": Metric(value=seconds, unit="s")},
    }  # fmt: skip
    return Record(**{**plain, **own})


class Machines:
    """What two builds take, turn by turn: `slower[n]` is how many times as much the second takes
    when it is timed for the n-th time, a number or what the records are made with."""

    def __init__(self) -> None:
        self.slower: list[Any] = [1.0]
        self.torch: dict[str, str] = {}
        self.first: Callable[[str, int], Record] = lambda name, turn: timed(name, 1.0, turn)
        self.noise = 0.01
        self.asked: list[tuple[list[str], int]] = []
        self.before = SourceHashes(("t",), ("c",), dict.fromkeys(NAMES, "old"))
        self.after = SourceHashes(("t",), ("c",), {**self.before.mechanisms, "linear": "new"})

    def in_turns(
        self, sides: Sequence[Build], mechanisms: Sequence[str], *, turns: range, folder: Path,
        **_: object,
    ) -> None:  # fmt: skip
        now = self.slower[min(len(self.asked), len(self.slower) - 1)]
        self.asked.append((list(mechanisms), len(turns)))
        stores = stores_of(folder)
        with stores[0].locked() as first, stores[1].locked() as second:
            for turn in turns:
                for name in mechanisms:
                    noise = 1 + self.noise * (-1) ** turn
                    first.save(self.first(name, turn))
                    if callable(now):
                        second.save(now(name, turn))
                    else:
                        second.save(timed(name, now * noise if name == "linear" else noise, turn))


@pytest.fixture
def machines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: Callable[[list[Record]], None],
) -> Machines:
    """Of a machine with a baseline, and `linear` changed since main."""
    found = Machines()
    tree = tmp_path / "tree"

    @contextmanager
    def work_tree(_: str) -> Iterator[Path]:
        yield tree

    def sources(root: Path) -> SourceHashes:
        return {tree: found.before, HOME: found.after}[root]

    monkeypatch.setattr(revision, "work_tree", work_tree)
    monkeypatch.setattr(revision, "merge_base", lambda name: name)
    monkeypatch.setattr(
        interleave, "torch_version", lambda one: found.torch.get(one.name, "2.13.0")
    )
    monkeypatch.setattr(revision, "build", lambda name, tree, _: Build(name, tree, tree, "abc"))
    monkeypatch.setattr(affected, "hash_sources", sources)
    monkeypatch.setattr(interleave, "time_interleaved", found.in_turns)
    measured([])
    place(tmp_path).write({}, Reason("2026-11-20", "abc", (), "a test"))
    return found


def place(folder: Path) -> Baselines:
    return Baselines(folder / "baselines", machine("cpu").name)


def test_an_equal_build_passes_and_says_what_could_have_been_seen(
    lra: Run, machines: Machines
) -> None:
    ran = lra(*CHECK)
    assert ran.returncode == 0, ran.stdout
    assert machines.asked == [(["linear"], 12)]
    first, second, *notes, _ = ran.stdout.splitlines()
    assert first == "check passed: nothing differs from the baseline"
    assert second == "1 figure of 1 mechanism, 1 held"
    assert notes[0] == "Changes since main reach linear."
    assert notes[1].startswith("How times repeat on this class of machine is not known")
    assert notes[2].startswith("Times: the working tree against main, 12 pairs of processes a cell")


def test_a_slower_build_fails_if_it_is_slower_again(lra: Run, machines: Machines) -> None:
    machines.slower = [1.2, 1.2]
    ran = lra(*CHECK)
    assert ran.returncode == REGRESSION
    assert machines.asked == [(["linear"], 12), (["linear"], 12)]
    first = ran.stdout.splitlines()[0]
    assert first.startswith(f"check failed: 1 regression; first: linear, {TRAIN}: time: 1.20")
    assert ", again 1.20" in first


def test_a_slow_spell_does_not_fail(lra: Run, machines: Machines) -> None:
    machines.slower = [1.2, 1.0]
    ran = lra(*CHECK)
    assert ran.returncode == 0 and len(machines.asked) == 2
    assert ran.stdout.startswith("check passed: nothing differs")


def test_a_faster_build_is_pointed_out(lra: Run, machines: Machines) -> None:
    machines.slower = [0.8]
    ran = lra(*CHECK)
    assert ran.returncode == 0 and len(machines.asked) == 1
    assert ran.stdout.startswith("check passed: 1 unexpected improvement; first: linear, train")


def test_what_is_slower_and_cannot_be_timed_again_is_no_pass(lra: Run, machines: Machines) -> None:
    def other(name: str, turn: int) -> Record:
        return timed(name, 1.2, turn + 100)

    machines.slower = [1.2, other]
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert "and could not be timed again" in ran.stdout.splitlines()[0]


def test_times_of_which_none_can_be_used_are_no_pass(lra: Run, machines: Machines) -> None:
    def unlike(name: str, turn: int) -> Record:
        return timed("sdpa", 1.0, turn)

    machines.slower = [unlike]
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert f"linear, {TRAIN}: time: no usable timing from both builds" in ran.stdout.splitlines()[0]


def test_a_cell_of_which_no_pair_can_be_used_is_no_pass(lra: Run, machines: Machines) -> None:
    def partly(name: str, turn: int) -> Record:
        if turn:
            return timed(name, 1.0, turn, status="skipped", metrics={})
        return timed(name, 2.0, turn)

    machines.slower = [partly]
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert f"linear, {TRAIN}: time: 2.00 {TIMES}, of a single pair" in ran.stdout.splitlines()[0]


def test_processes_that_fail_in_turns_are_no_pass(lra: Run, machines: Machines) -> None:
    def failed(name: str, turn: int) -> Record:
        return timed(name, 1.0, turn, status="oom", metrics={})

    machines.first = lambda name, turn: timed(name, 1.0, turn) if turn else failed(name, turn)
    machines.slower = [
        lambda name, turn: timed(name, 1.0, turn) if turn != 1 else failed(name, turn)
    ]
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert "1 of 12 OOM now, 1 of 12 OOM no more" in ran.stdout.splitlines()[0]


def test_what_is_given_up_fails(lra: Run, machines: Machines) -> None:
    machines.slower = [lambda name, turn: timed(name, 1.0, turn, status="unsupported", metrics={})]
    ran = lra(*CHECK)
    assert ran.returncode == REGRESSION
    assert ran.stdout.splitlines()[0].endswith(f"linear, {TRAIN}: time: unsupported")


def test_what_is_slower_again_by_less_than_the_machine_allows_passes(
    lra: Run, machines: Machines, tmp_path: Path
) -> None:
    place(tmp_path).write_noise({f"linear {TRAIN}": Noise(0.02, 0.15, PAIRS)})
    machines.slower = [1.3, 1.1]
    ran = lra(*CHECK)
    assert ran.returncode == 0 and len(machines.asked) == 2


def test_more_bytes_in_pairs_fail_if_they_are_more_again(lra: Run, machines: Machines) -> None:
    def larger(name: str, turn: int) -> Record:
        return sized(name, turn, 1.05e6)

    machines.first = lambda name, turn: sized(name, turn, 1e6)
    machines.slower = [larger]
    ran = lra(*CHECK)
    assert ran.returncode == REGRESSION and len(machines.asked) == 2
    assert f"first: linear, {TRAIN}: bytes of tensors: " in ran.stdout.splitlines()[0]

    machines.slower = [lambda name, turn: sized(name, turn, 0.9e6)]
    ran = lra(*CHECK)
    assert ran.returncode == 0
    assert "1 unexpected improvement; first: linear" in ran.stdout.splitlines()[0]


def sized(name: str, turn: int, size: float) -> Record:
    latency, memory = Metric(value=1.0, unit="s"), Metric(value=size, unit="B")
    metrics = {"latency": latency, "peak_tensor_bytes": memory}
    return timed(name, 1.0, turn, metrics=metrics)


def test_what_ends_otherwise_fails_if_it_does_so_again(lra: Run, machines: Machines) -> None:
    def without_memory(name: str, turn: int) -> Record:
        return timed(name, 1.0, turn, status="oom", metrics={})

    machines.slower = [without_memory]
    ran = lra(*CHECK)
    assert ran.returncode == REGRESSION and len(machines.asked) == 2
    assert "time: OOM now, again OOM now" in ran.stdout.splitlines()[0]


def test_noise_asks_for_more_pairs_and_says_how_many(lra: Run, machines: Machines) -> None:
    machines.noise = 0.15
    ran = lra(*CHECK)
    (_, first), (names, more) = machines.asked
    assert (names, first) == (["linear"], PAIRS) and PAIRS + more <= MOST
    assert f", {PAIRS + more} pairs of processes a cell" in ran.stdout
    machines.asked.clear()
    lra(*CHECK, "--quick")
    assert machines.asked == [(["linear"], 5)]


def test_a_noisy_machine_is_allowed_more(lra: Run, machines: Machines, tmp_path: Path) -> None:
    machines.slower = [1.2, 1.2]
    why = Reason("2026-11-20", "abc", (), "calibrated")
    elsewhere = {"sdpa train 512 heads 4 x 64": Noise(0.05, 0.25, 12)}
    place(tmp_path).write({}, why)
    place(tmp_path).write_noise(elsewhere)
    ran = lra(*CHECK)
    assert "How times repeat" not in ran.stdout
    assert ran.returncode == 0, "the noisiest of all counts for what is not known"
    own = {f"linear {TRAIN}": Noise(0.01, 0.05, 12), **elsewhere}
    place(tmp_path).write_noise(own)
    assert lra(*CHECK).returncode == REGRESSION, "its own noise is known"


def test_fewer_pairs_than_the_noise_was_measured_with_are_allowed_more(
    lra: Run, machines: Machines, tmp_path: Path
) -> None:
    machines.slower = [1.05, 1.05]
    noise = {f"linear {TRAIN}": Noise(0.13, 0.03, 12)}
    place(tmp_path).write({}, Reason("2026-11-20", "abc", (), "calibrated"))
    place(tmp_path).write_noise(noise)
    assert lra(*CHECK, "--quick").returncode == 0
    noise = {f"linear {TRAIN}": Noise(0.01, 0.03, 12)}
    place(tmp_path).write({}, Reason("2026-11-20", "abc", (), "calibrated"))
    place(tmp_path).write_noise(noise)
    assert lra(*CHECK, "--quick").returncode == REGRESSION


def test_times_taken_by_other_code_cannot_be_compared(lra: Run, machines: Machines) -> None:
    machines.after = SourceHashes(("u",), ("c",), machines.after.mechanisms)
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE and machines.asked == []
    assert "time: the code that times was changed since main" in ran.stdout.splitlines()[0]


def test_nothing_is_timed_where_no_mechanism_changed(lra: Run, machines: Machines) -> None:
    machines.after = SourceHashes(("t",), ("d",), machines.before.mechanisms)
    ran = lra(*CHECK)
    assert ran.returncode == 0 and machines.asked == []
    assert "No mechanism's sources differ from main: nothing to time." in ran.stdout
    machines.after = machines.before
    ran = lra(*CHECK)
    assert ran.returncode == 0 and "Changes since main reach no mechanism." in ran.stdout
    assert ran.stdout.startswith("check passed: nothing to report")


def test_a_new_mechanism_has_nothing_to_be_timed_against(lra: Run, machines: Machines) -> None:
    old = {name: own for name, own in machines.before.mechanisms.items() if name != "linear"}
    machines.before = SourceHashes(("t",), ("c",), old)
    ran = lra(*CHECK)
    assert ran.returncode == 0 and machines.asked == []
    assert (
        "Not in main, so not timed: linear." in ran.stdout and "nothing to time" not in ran.stdout
    )


def test_another_build_of_torch_is_told_before_anything_is_timed(
    lra: Run, machines: Machines
) -> None:
    machines.torch = {"main": "2.13.0+cpu"}
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE and machines.asked == []
    assert "main has torch 2.13.0+cpu and the working tree torch 2.13.0" in ran.stdout


def test_a_mechanism_that_is_gone_is_told(lra: Run, machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    figures = {"old_one": {}, "Mine": {}, "peer:other": {}, "linear": {}}
    place(tmp_path).write(figures, Reason("2026-11-20", "abc", (), "a test"))
    told = "In the baseline but not a known mechanism: {}; delete the file of any that is gone."
    assert told.format("Mine and old_one") in lra(*CHECK).stdout
    assert told.format("old_one") in lra(*CHECK, "--impl", "linear,mine.py:Mine").stdout


def test_without_a_revision_it_is_the_last_commit_or_none(
    lra: Run, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = [flag for flag in CHECK if flag not in ("--since", "main")]
    monkeypatch.setattr(revision, "last_commit", lambda: "HEAD^")
    ran = lra(*bare)
    assert ran.returncode == 0 and machines.asked == [(["linear"], 12)]
    assert "the working tree against HEAD^" in ran.stdout and "reach" not in ran.stdout
    monkeypatch.setattr(revision, "last_commit", lambda: None)
    ran = lra(*bare)
    assert ran.returncode == INCONCLUSIVE
    assert "no revision to time against here; name one with --since" in ran.stdout


def test_a_quick_check_looks_at_few_and_times_fewer(lra: Run, machines: Machines) -> None:
    machines.after = SourceHashes(("t",), ("c",), dict.fromkeys(NAMES, "new"))
    ran = lra(*CHECK, "--quick")
    assert ran.returncode == 0
    ((names, pairs),) = machines.asked
    assert (names, pairs) == (["bigbird", "linear"], 5)
    assert (
        "A quick check looks at bigbird, linear, s4d and sdpa; 2 mechanisms not looked at."
        in ran.stdout
    )
    assert "A quick check times 2; not timed: s4d and sdpa." in ran.stdout


def test_a_quick_check_of_a_change_looks_at_what_changed(lra: Run, machines: Machines) -> None:
    machines.after = SourceHashes(("t",), ("c",), {**machines.before.mechanisms, "full": "new"})
    ran = lra(*CHECK, "--quick")
    assert machines.asked == [(["full"], 5)] and "Changes since main reach full." in ran.stdout
    machines.asked.clear()
    asked = [flag for flag in CHECK if flag not in ("--since", "main")]
    lra(*asked, "--quick", "--impl", "performer,full")
    assert machines.asked == [(["full"], 5)]


def test_a_revision_knows_nothing_of_other_peoples_mechanisms(
    lra: Run, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    asked: list[str] = []

    def measure(targets: Sequence[Target], *_: object, **__: object) -> tuple[list[Record], int]:
        asked.extend(target.name for target in targets)
        return [], 0

    monkeypatch.setattr(checking, "measure", measure)
    ran = lra(*CHECK, "--impl", "mine.py:Mine,linear,full")
    assert ran.returncode == 0 and asked == ["Mine", "linear"]
    assert machines.asked == [(["linear"], 12)]


def test_what_was_looked_at_is_told_when_it_is_interrupted(
    lra: Run, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interleave, "time_interleaved", interrupted)
    assert lra(*CHECK, "--out", "out").returncode == INTERRUPTED
    assert "\n\nChanges since main reach linear.\n" in (tmp_path / "out/summary.md").read_text()


def test_deterministic_times_nothing(lra: Run, machines: Machines) -> None:
    machines.slower = [1.2]
    assert lra(*CHECK, "--deterministic").returncode == 0 and machines.asked == []
