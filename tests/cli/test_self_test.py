"""`lra doctor --timing`: it says of a machine what the machine can do, and touches no store."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from verdict.simulated import CELLS, NOISY, QUIET, SHARED, Machine, sweeps

from lra.core.records import Failure, Record
from lra.core.scales import load_suite
from lra.engine.gate import self_test

from .gate import timing

PLACES = list(product(("identity", "sdpa", "linear"), (1024, 2048), ("forward", "train")))


def record(place: tuple[str, int, str], replicate: int, times: tuple[float, ...]) -> Record:
    name, length, mode = place
    names = ("latency", "control_before", "control_after")
    own = dict(zip(names, times, strict=True))
    return timing(name, replicate, times=own, length=length, mode=mode)


def records(machine: Machine, replicates: int, slower: float = 1.0) -> list[Record]:
    """Records as the self-test measures them, round after round: A, B, B, A, ..."""
    assert len(PLACES) == CELLS
    found = sweeps(np.random.default_rng(3), machine, replicates, slower)
    rounds = []
    for turn in range(2 * replicates):
        for place, both in zip(PLACES, found, strict=True):
            one = both["ABBA"[turn % 4] == "B"][turn // 2]
            rounds.append(record(place, turn, (one.cost, one.before, one.after)))
    return rounds


@pytest.fixture
def on(lra, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    """Run the self-test on a simulated machine; return its exit code and its lines."""

    def run(machine: Machine, replicates: int, slower: float = 1.0) -> tuple[int, list[str]]:
        def measure(device: str, rounds: int, watch: object) -> list[Record]:
            assert (device, rounds) == ("cpu", 2 * replicates)
            return records(machine, replicates, slower)

        monkeypatch.setattr(self_test, "measure", measure)
        ran = lra("doctor", "--timing", "--replicates", str(replicates), "--device", "cpu")
        lines = ran.stdout.splitlines()
        return ran.returncode, lines[lines.index("all well") + 1 :]

    return run


def test_a_quiet_machine_resolves_ten_percent(on) -> None:
    code, lines = on(QUIET, 5)
    assert code == 0
    assert "12 cells, 5 processes each" in lines[0] and "on 12 of 12 cells" in lines[1]
    assert "median width 3." in lines[2] and "1024 and more" in lines[2]
    assert "0 of 120 timings" in lines[4]
    assert "yes (smallest 4." in lines[-1] and "95 % of cells by 5 pairs" in lines[-1]


@pytest.mark.parametrize(
    ("machine", "replicates", "advice"),
    [
        (NOISY, 5, ", or use --replicates 12"),
        (SHARED, 5, "12 alone would leave 2"),
        (SHARED, 12, ""),
    ],
)
def test_one_that_does_not_says_what_is_noise_there_and_what_to_do(
    on, machine: Machine, replicates: int, advice: str
) -> None:
    code, lines = on(machine, replicates)
    assert code == 3
    noise, remedy = lines[-1].split("; ")
    assert noise.startswith("resolves 10 %: no: ") and float(noise.split()[6]) > 10
    assert advice in remedy and ("--replicates" in remedy) is (replicates < 12)


def test_sweeps_that_do_not_agree_are_no_ground_to_say_yes(on) -> None:
    code, lines = on(QUIET, 5, slower=1.3)
    assert code == 3
    assert "on 0 of 12 cells" in lines[1] and "no: " in lines[-1] and "0 of 12" in lines[-1]


def test_rounds_are_dealt_to_the_sweeps_as_abba() -> None:
    place = ("sdpa", 1024, "forward")
    # A machine that slows down steadily: each sweep comes first in half of the pairs.
    costs = [float(1 + turn) for turn in range(8)]
    told = self_test.judge([record(place, turn, (c, 1.0, 1.0)) for turn, c in enumerate(costs)])
    (pair,) = told.pairs
    assert pair.repeat.first.value == pytest.approx((1 * 4 * 5 * 8) ** 0.25)
    assert pair.repeat.second.value == pytest.approx((2 * 3 * 6 * 7) ** 0.25)
    assert (told.replicates, told.timings, pair.repeat.between.pairs) == (4, 8, 4)


def test_busy_timings_are_counted() -> None:
    found = records(QUIET, 3)
    slow = record(PLACES[0], 0, (1.0, 1.0, 9.0))
    assert self_test.judge(found).busy == 0
    told = self_test.judge([slow, *found[1:]])
    assert told.busy == 1 and "1 of 72 timings" in "\n".join(self_test.lines(told))


def test_json_has_the_answer_and_every_cell(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        self_test, "measure", lambda device, rounds, watch: records(NOISY, rounds // 2)
    )
    ran = lra("doctor", "--timing", "--json", "--device", "cpu")
    assert ran.returncode == 3
    told = json.loads(ran.stdout)
    assert told["resolves_10_percent"] is False and told["agree"] is True
    assert told["replicates"] == 5
    assert told["found"]["smallest"] > 0.1
    assert len(told["cells"]) == 12
    assert {cell["mechanism"] for cell in told["cells"]} == {"identity", "sdpa", "linear"}
    assert told["cells"][0]["first"]["low"] < told["cells"][0]["first"]["value"]


def test_without_all_cells_there_is_no_self_test(lra, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = records(QUIET, 3)
    failure = Failure(type="MemoryError", message="no room")
    gone = replace(whole[0], status="oom", metrics={}, failure=failure)
    monkeypatch.setattr(self_test, "measure", lambda device, rounds, watch: [gone, *whole[1:]])
    ran = lra("doctor", "--timing", "--device", "cpu")
    assert ran.returncode == 4
    assert "1 cell failed" in ran.stderr and "resolves" not in ran.stdout


def test_it_really_measures_and_leaves_no_store(
    lra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test, "SUITE", str(Path(__file__).parent / "tiny_timing.toml"))
    ran = lra("doctor", "--timing", "--replicates", "3", "--device", "cpu")
    assert ran.returncode in (0, 3), ran.stderr
    assert f"resolves 10 %: {'no' if ran.returncode else 'yes'}" in ran.stdout
    assert "1 cell, 3 processes each" in ran.stdout and "not measured" in ran.stdout
    assert "[6/6] identity forward 16" in ran.stderr and list(tmp_path.iterdir()) == []


def test_the_shipped_cells_reach_the_lengths_that_are_spoken_of() -> None:
    (block,) = load_suite(self_test.SUITE).efficiency
    cells = len(block.beside) * len(block.lengths) * len(block.modes)
    assert cells == CELLS
    assert min(block.lengths) >= 1024
