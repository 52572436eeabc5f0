"""Timings in `lra check`: the test says how long two builds take, the check how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lra.core.catalogue import Target
from lra.core.records import Metric, Record
from lra.engine.gate import affected, check, interleave, revision
from lra.engine.gate.affected import SourceHashes
from lra.engine.gate.baselines import Baselines, Noise, Reason
from lra.engine.gate.interleave import stores_of
from lra.engine.gate.revision import HOME, Build
from lra.engine.machine.host import machine
from lra.engine.plan.spec import CheckSpec
from lra.verdict.slowdown import MOST, PAIRS

from .conftest import Run
from .gate import timing

REGRESSION, INCONCLUSIVE, INTERRUPTED = 1, 3, 130
NAMES = ("linear", "performer", "sdpa", "bigbird", "full", "s4d")
CHECK = ("check", "--since", "main", "--device", "cpu", "--baselines", "baselines", "--quiet")
TRAIN = "train 512 heads 4 x 64"
ELSEWHERE = f"sdpa {TRAIN}"


def timed(name: str, seconds: float, replicate: int, **own: Any) -> Record:
    return replace(timing(name, replicate, times={"latency": seconds}), **own)


class Machines:
    """Times of two builds, turn by turn: `slower[n]` is how many times as long the second takes
    when it is timed for the n-th time, a number or the fields of its records."""

    def __init__(self) -> None:
        self.slower: list[Any] = [1.0]
        self.torch: dict[str, str] = {}
        self.first: Callable[[str, int], Record] = lambda name, turn: timed(name, 1.0, turn)
        self.noise = 0.01
        self.asked: list[tuple[list[str], int]] = []
        self.before = SourceHashes(("t",), ("c",), dict.fromkeys(NAMES, "old"))
        self.after = SourceHashes(("t",), ("c",), {**self.before.mechanisms, "linear": "new"})

    def change(self, **own: SourceHashes) -> None:
        vars(self).update(own)

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
    """Two builds on a machine with a baseline, `linear` changed since main."""
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


def again(name: str, turn: int) -> Record:
    """A timing of a replicate that the other build has not."""
    return timed(name, 1.2, turn + 100)


def once(name: str, turn: int) -> Record:
    return ended(name, turn, "skipped") if turn else timed(name, 2.0, turn)


def ended(name: str, turn: int, status: str) -> Record:
    return timed(name, 1.0, turn, status=status, metrics={})


def sized(size: float) -> Callable[[str, int], Record]:
    memory = {"peak_tensor_bytes": Metric(value=size, unit="B")}
    latency = timed("linear", 1.0, 0).metrics
    return lambda name, turn: timed(name, 1.0, turn, metrics=latency | memory)


@pytest.mark.parametrize(
    ("slower", "code", "comparisons", "outcomes"),
    [
        ([1.0], 0, 1, ["held"]),
        ([1.2, 1.2], REGRESSION, 2, ["regression"]),
        ([1.2, 1.0], 0, 2, ["held"]),
        ([0.8], 0, 1, ["improvement"]),
        ([1.2, again], INCONCLUSIVE, 2, ["inconclusive"]),
        ([lambda _, t: timed("sdpa", 1.0, t)], INCONCLUSIVE, 1, ["inconclusive"]),
        ([once], INCONCLUSIVE, 1, ["inconclusive"]),
        ([lambda n, t: ended(n, t, "unsupported")], REGRESSION, 1, ["regression"]),
        ([lambda n, t: ended(n, t, "oom")], REGRESSION, 2, ["regression"]),
    ],
    ids=["equal", "slower", "slow spell", "faster", "not again", "other cell", "single pair",
         "given up", "out of memory"],
)  # fmt: skip
def test_a_slowdown_fails_only_where_a_second_comparison_finds_it(
    slower: list[Any], code: int, comparisons: int, outcomes: list[str], lra: Run,
    machines: Machines,
) -> None:  # fmt: skip
    machines.slower = slower
    ran = lra(*CHECK, "--json")
    assert ran.returncode == code, ran.stdout
    assert machines.asked == [(["linear"], PAIRS)] * comparisons
    found = json.loads(ran.stdout)["figures"]
    assert [one["outcome"] for one in found if one["figure"] == "time"] == outcomes
    assert {(one["mechanism"], one["cell"]) for one in found} == {("linear", TRAIN)}


def test_a_cell_that_differs_in_its_batch_alone_is_missed_by_itself(
    lra: Run, machines: Machines
) -> None:
    def both(name: str, turn: int) -> Record:
        return timing(name, turn, times={"latency": 1.0}, batch=(1, 4)[turn % 2])

    def one(name: str, turn: int) -> Record:
        return timing(name, turn, times={"latency": 1.0}, batch=(1, 8)[turn % 2])

    machines.first, machines.slower = both, [one]
    ran = lra(*CHECK, "--json")
    outcomes = [one["outcome"] for one in json.loads(ran.stdout)["figures"]]
    assert (ran.returncode, sorted(outcomes)) == (INCONCLUSIVE, ["held", *["inconclusive"] * 2])


def test_a_slowdown_is_told_with_both_ratios(lra: Run, machines: Machines) -> None:
    machines.slower = [1.2, 1.2]
    first = lra(*CHECK).stdout.splitlines()[0]
    assert f"linear, {TRAIN}: time: 1.20" in first and ", again 1.20" in first


def test_processes_that_fail_in_turns_are_no_pass(lra: Run, machines: Machines) -> None:
    machines.first = lambda n, turn: timed(n, 1.0, turn) if turn else ended(n, turn, "oom")
    machines.slower = [lambda n, turn: timed(n, 1.0, turn) if turn != 1 else ended(n, turn, "oom")]
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert ran.stdout.count("1 of 12 OOM") >= 2


@pytest.mark.parametrize(
    ("size", "code", "outcome"), [(1.05e6, REGRESSION, "regression"), (0.9e6, 0, "improvement")]
)
def test_bytes_are_compared_in_the_same_pairs(
    size: float, code: int, outcome: str, lra: Run, machines: Machines
) -> None:
    machines.first, machines.slower = sized(1e6), [sized(size)]
    ran = lra(*CHECK, "--json")
    found = {one["figure"]: one["outcome"] for one in json.loads(ran.stdout)["figures"]}
    assert ran.returncode == code and found["bytes of tensors"] == outcome


@pytest.mark.parametrize(
    ("noise", "slower", "flags", "code"),
    [
        # With its own noise, a cell is allowed that; without, the noisiest of all.
        ({f"linear {TRAIN}": (0.02, 0.15)}, [1.3, 1.1], (), 0),
        ({ELSEWHERE: (0.05, 0.25)}, [1.2, 1.2], (), 0),
        ({ELSEWHERE: (0.05, 0.25), f"linear {TRAIN}": (0.01, 0.05)}, [1.2, 1.2], (), REGRESSION),
        # Fewer pairs than the noise was measured with reach further by chance.
        ({f"linear {TRAIN}": (0.13, 0.03)}, [1.05, 1.05], ("--quick",), 0),
        ({f"linear {TRAIN}": (0.01, 0.03)}, [1.05, 1.05], ("--quick",), REGRESSION),
    ],
)
def test_a_noisy_machine_is_allowed_more(
    noise: dict[str, tuple[float, float]], slower: list[float], flags: tuple[str, ...], code: int,
    lra: Run, machines: Machines, tmp_path: Path,
) -> None:  # fmt: skip
    place(tmp_path).write_noise({name: Noise(*own, PAIRS) for name, own in noise.items()})
    machines.slower = slower
    ran = lra(*CHECK, *flags)
    assert ran.returncode == code and "How times repeat" not in ran.stdout


def test_noise_asks_for_more_pairs_and_says_how_many(lra: Run, machines: Machines) -> None:
    machines.noise = 0.15
    ran = lra(*CHECK)
    (_, first), (names, more) = machines.asked
    assert (names, first) == (["linear"], PAIRS) and PAIRS + more <= MOST
    assert f", {PAIRS + more} pairs" in ran.stdout
    machines.asked.clear()
    lra(*CHECK, "--quick")
    assert machines.asked == [(["linear"], 5)]


NOT_TIMED = {
    "other timing code": (
        lambda m: m.change(after=SourceHashes(("u",), ("c",), m.after.mechanisms)),
        INCONCLUSIVE,
        "since main",
    ),
    "no mechanism's sources": (
        lambda m: m.change(after=SourceHashes(("t",), ("d",), m.before.mechanisms)),
        0,
        "nothing to time",
    ),
    "no sources": (lambda m: m.change(after=m.before), 0, "reach no mechanism"),
    "new mechanism": (
        lambda m: m.change(before=SourceHashes(("t",), ("c",), dict.fromkeys(NAMES[1:], "old"))),
        0,
        "not timed: linear",
    ),
    "other torch": (
        lambda m: m.torch.update(main="2.13.0+cpu"),
        INCONCLUSIVE,
        "torch 2.13.0+cpu",
    ),
}


@pytest.mark.parametrize("why", NOT_TIMED)
def test_nothing_is_timed_that_cannot_be_compared(why: str, lra: Run, machines: Machines) -> None:
    change, code, told = NOT_TIMED[why]
    change(machines)
    ran = lra(*CHECK)
    assert (ran.returncode, machines.asked) == (code, []) and told in ran.stdout
    assert why != "new mechanism" or "nothing to time" not in ran.stdout


def test_a_mechanism_that_is_gone_is_told(lra: Run, machines: Machines, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    figures = {"old_one": {}, "Mine": {}, "peer:other": {}, "linear": {}}
    place(tmp_path).write(figures, Reason("2026-11-20", "abc", (), "a test"))
    assert ": Mine and old_one; delete" in lra(*CHECK).stdout
    assert ": old_one; delete" in lra(*CHECK, "--impl", "linear,mine.py:Mine").stdout


def test_without_a_revision_it_is_the_last_commit_or_none(
    lra: Run, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = [flag for flag in CHECK if flag not in ("--since", "main")]
    monkeypatch.setattr(revision, "last_commit", lambda: "HEAD^")
    ran = lra(*bare)
    assert ran.returncode == 0 and machines.asked == [(["linear"], 12)]
    assert "HEAD^" in ran.stdout and "reach" not in ran.stdout
    monkeypatch.setattr(revision, "last_commit", lambda: None)
    ran = lra(*bare)
    assert ran.returncode == INCONCLUSIVE and "--since" in ran.stdout


def test_a_quick_check_looks_at_few_and_times_fewer(lra: Run, machines: Machines) -> None:
    machines.after = SourceHashes(("t",), ("c",), dict.fromkeys(NAMES, "new"))
    ran = lra(*CHECK, "--quick")
    assert ran.returncode == 0 and machines.asked == [(["bigbird", "linear"], 5)]
    assert "2 mechanisms not" in ran.stdout and "not timed: s4d and sdpa" in ran.stdout
    # Only changed mechanisms are timed, and only those among the ones asked for.
    machines.after = SourceHashes(("t",), ("c",), {**machines.before.mechanisms, "full": "new"})
    for flags in ((), ("--impl", "performer,full")):
        machines.asked.clear()
        lra(*CHECK, "--quick", *flags)
        assert machines.asked == [(["full"], 5)]


def test_a_revision_knows_nothing_of_other_peoples_mechanisms(
    lra: Run, machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    asked: list[str] = []

    def measure(_: CheckSpec, targets: Sequence[Target], **__: object) -> tuple[list[Record], int]:
        asked.extend(target.name for target in targets)
        return [], 0

    monkeypatch.setattr(check, "measure", measure)
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
    assert "reach linear" in (tmp_path / "out/summary.md").read_text()


def test_deterministic_times_nothing(lra: Run, machines: Machines) -> None:
    machines.slower = [1.2]
    assert lra(*CHECK, "--deterministic").returncode == 0 and machines.asked == []
