"""`lra check`: what it measures of the cheapest mechanism, and how it ends for every kind of
finding. But for the first test the records are those of the baseline."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from lra.core.errors import LraError
from lra.engine.gate import check, revision
from lra.engine.gate.baselines import Baselines
from lra.engine.machine import host
from lra.store import Store
from lra.verdict.baseline import Figures

from .conftest import Run
from .gate import FLAGS, PLACES, Taken, here

REGRESSION, USAGE, INCONCLUSIVE, INTERRUPTED = 1, 2, 3, 130
CHECK = ("check", *FLAGS, *PLACES, "--out", "out", "--quiet")
LAST = host.machine("cpu").name
TRAIN = "train 1024 bidirectional"

Tamper = Callable[..., None]


def summary(folder: Path) -> str:
    return (folder / "out/summary.md").read_text(encoding="utf-8")


def suites(folder: Path) -> list[ElementTree.Element]:
    return list(ElementTree.parse(folder / "out/junit.xml").getroot())


def test_a_check_right_after_a_baseline_passes(lra: Run, taken: Taken, tmp_path: Path) -> None:
    here(taken, tmp_path)
    ran = lra(*CHECK)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    first, second, last = ran.stdout.splitlines()
    assert first.startswith("check passed: ") and "out/summary.md" in last and ran.stderr == ""
    assert f"**{first}**\n" in summary(tmp_path)
    (suite,) = suites(tmp_path)
    found = [suite.get(key) for key in ("name", "failures", "skipped")]
    assert found == ["identity", "0", "0"]
    number = suite.get("tests") or "0"
    assert second.split()[0] == number and f"{number} held" in second and int(number) >= 40
    assert len(Store(tmp_path / "store").records()) == 6


@pytest.fixture
def tamper(taken: Taken, tmp_path: Path, measured: Callable[[list[Any]], None]) -> Tamper:
    """Edit one cell of the baseline; what is measured is as it was."""
    here(taken, tmp_path)
    measured(taken.records())

    def edit(cell: str, **own: Callable[[Any], Any]) -> None:
        place = Baselines(tmp_path / "baselines", LAST)
        before = place.figures("identity")[cell]
        changed = {name: change(getattr(before, name)) for name, change in own.items()}
        after: Figures = msgspec.structs.replace(before, **changed)
        place.write({"identity": {cell: after}}, place.journal()[0])

    return edit


@pytest.mark.parametrize(
    ("cell", "change", "named"),
    [
        (
            TRAIN,
            {"counts": lambda own: {**own, "peak_tensor_bytes": own["peak_tensor_bytes"] / 1.05}},
            f"identity, {TRAIN}: peak_tensor_bytes: ",
        ),
        (
            "laws",
            {"laws": lambda own: {**own, next(k for k in own if own[k] == "not claimed"): "held"}},
            ": held before, not claimed now",
        ),
        (
            "image, scale check",
            {"losses": lambda own: [*own[:-1], own[-1] * 1.001]},
            "identity, image, scale check: losses: differ by up to -0.10 %",
        ),
    ],
    ids=["bytes", "law", "losses"],
)
def test_a_regression_is_named_first_and_exits_1(
    lra: Run, tamper: Tamper, tmp_path: Path, cell: str, change: dict[str, Any], named: str
) -> None:
    tamper(cell, **change)
    ran = lra(*CHECK)
    assert ran.returncode == REGRESSION, ran.stdout
    first, *rest = ran.stdout.splitlines()
    assert first.startswith("check failed: 1 regression; first: identity, ") and named in first
    assert any(line.startswith("  regression: identity, ") and named in line for line in rest)
    assert "### Regressions (1)" in summary(tmp_path)
    (suite,) = suites(tmp_path)
    assert suite.get("failures") == "1" and len(list(suite.iter("failure"))) == 1


def operations(factor: float) -> dict[str, Callable[[Any], Any]]:
    """A change of the baseline's count of operations."""
    return {"counts": lambda own: {**own, "operations": own["operations"] * factor}}


OTHER = {"asked": lambda _: "other", "counts": lambda _: {"operations": 1.0}}


@pytest.mark.parametrize(
    ("change", "code", "verdict", "outcome"),
    [
        (operations(1 / 1.2), REGRESSION, "failed", "regression"),
        (operations(1.2), 0, "passed", "improvement"),
        (OTHER, INCONCLUSIVE, "inconclusive", "inconclusive"),
    ],
    ids=["more operations", "fewer operations", "another configuration"],
)
def test_each_finding_has_its_exit_code_and_json_is_all_of_the_standard_output(
    lra: Run, tamper: Tamper, change: dict[str, Any], code: int, verdict: str, outcome: str
) -> None:
    tamper(TRAIN, **change)
    ran = lra(*CHECK, "--json")
    assert ran.returncode == code
    told = json.loads(ran.stdout)
    assert told["sentences"][0].startswith(f"check {verdict}: 1 ")
    (found,) = (one for one in told["figures"] if one["outcome"] != "held")
    assert (found["mechanism"], found["cell"], found["outcome"]) == ("identity", TRAIN, outcome)
    assert found["figure"] == "operations" or code == INCONCLUSIVE


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ((), INCONCLUSIVE),
        (("--impl", "identity"), 0),
        (("--since", "HEAD"), 0),
        (("--quick",), 0),
        (("--deterministic",), 0),
    ],
)
def test_a_cell_that_only_the_baseline_has_is_missed_unless_flags_narrow_the_check(
    lra: Run,
    tamper: Tamper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(check.Check, "_compare_times", lambda *_: None)
    monkeypatch.setattr(check.Check, "_affected", lambda _, targets, __: targets)
    tamper(TRAIN)
    place = Baselines(tmp_path / "baselines", LAST)
    place.write({"identity": {"train 2048 bidirectional": Figures("a")}}, place.journal()[0])
    ran = lra("check", "--device", "cpu", *PLACES, "--out", "out", *flags, "--json")
    assert ran.returncode == code, ran.stdout
    missed = [one for one in json.loads(ran.stdout)["figures"] if one["outcome"] == "inconclusive"]
    named = [("identity", "train 2048 bidirectional")] if code else []
    assert [(one["mechanism"], one["cell"]) for one in missed] == named


def test_a_mechanism_that_gives_nothing_any_more_is_missed(
    lra: Run, tamper: Tamper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check.Check, "_compare_times", lambda *_: None)
    tamper(TRAIN)
    place = Baselines(tmp_path / "baselines", LAST)
    place.write({"linear": {"laws": Figures("a")}}, place.journal()[0])
    ran = lra("check", "--device", "cpu", *PLACES, "--out", "out")
    assert ran.returncode == INCONCLUSIVE
    assert "first: linear, laws: ending: " in ran.stdout


def test_a_machine_without_a_baseline_is_inconclusive_and_told_how_to_take_one(
    lra: Run, taken: Taken, measured: Callable[[list[Any]], None], tmp_path: Path
) -> None:
    measured(taken.records())
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    first = ran.stdout.splitlines()[0]
    assert LAST in first and "baseline update --reason" in first
    assert LAST in summary(tmp_path)
    skipped = [suite.get("skipped") for suite in suites(tmp_path) if suite.get("name") == "all"]
    assert skipped == ["1"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--since", "no-such-branch"), "'no-such-branch'"),
        (("--impl", "identiti"), "'identity'?"),
        (("--baselines", "torn"), "identity.json'"),
        (("--device", "cuda"), "no GPU"),
    ],
)
def test_a_check_that_stops_is_exit_2_and_still_has_a_summary(
    lra: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, str],
    told: str,
) -> None:
    monkeypatch.setattr(host, "gpus", list)
    (tmp_path / "torn" / LAST).mkdir(parents=True)
    (tmp_path / "torn" / LAST / "identity.json").write_text("{")
    ran = lra(*CHECK, *flags)
    assert ran.returncode == USAGE and told in ran.stderr and ran.stderr.count("\n") == 1
    assert ran.stdout == ""
    assert "**check stopped: " in summary(tmp_path) and told in summary(tmp_path)
    last = suites(tmp_path)[-1]
    assert last.get("errors") == "1" and told in (last[0][0].get("message") or "")


def test_nights_that_are_nowhere_still_have_a_summary(lra: Run, tmp_path: Path) -> None:
    ran = lra("check", "--history", "nowhere", "--out", "out")
    assert ran.returncode == USAGE and "nowhere" in ran.stderr
    assert "nowhere" in summary(tmp_path)


@pytest.mark.parametrize(
    ("flags", "quality", "timed"),
    [
        ((), True, True),
        (("--quick",), False, True),
        (("--deterministic",), False, False),
        (("--quick", "--deterministic"), False, False),
    ],
)
def test_all_of_it_is_the_default_and_flags_leave_out_accuracies_and_times(
    lra: Run,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    quality: bool,
    timed: bool,
) -> None:
    asked: list[Any] = []

    def measure(*_: object, quality: bool, **__: object) -> tuple[list[Any], int]:
        asked.append(quality)
        return [], 0

    monkeypatch.setattr(check, "measure", measure)
    monkeypatch.setattr(revision, "last_commit", lambda: "HEAD^")
    monkeypatch.setattr(
        check.Check,
        "_compare_times",
        lambda _, baseline, names, since: asked.append((names, since)),
    )
    everything = [flag for flag in CHECK if flag != "--deterministic"]
    lra(*everything, *flags)
    assert asked == [quality, *([(["identity"], "HEAD^")] if timed else [])]


@pytest.fixture
def heeds_interrupts() -> Iterator[None]:
    """Python's own answer to SIGINT: a shell lets jobs in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.parametrize(
    ("number", "named"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "SIGTERM")]
)
def test_findings_before_a_signal_are_in_the_summary(
    lra: Run, tamper: Tamper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int,
    named: str,
) -> None:  # fmt: skip
    cleared = []

    def ended(*_: object) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            cleared.append("the other revision's work tree")

    monkeypatch.setattr(check.Check, "_compare_times", ended)
    tamper(TRAIN, **operations(1 / 1.2))
    ran = lra(*[flag for flag in CHECK if flag != "--deterministic"])
    assert ran.returncode == INTERRUPTED and len(ran.stderr.split("\n")) <= 3 and cleared
    first = summary(tmp_path).splitlines()[2]
    assert "failed and stopped" in first and named in first and "1 regression" in first


def test_a_check_that_is_killed_leaves_a_summary_that_is_no_pass(
    lra: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    run = check.Check.run

    def looked(*told: Any, **how: Any) -> None:
        seen.append(summary(tmp_path))
        run(*told, **how)

    monkeypatch.setattr(check.Check, "run", looked)
    lra(*CHECK, "--impl", "no_such")
    assert "**check stopped: " in seen[0]


def test_a_folder_that_cannot_be_written_is_one_line(
    lra: Run, tamper: Tamper, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ran = lra(*CHECK, "--out", "file/out")
    assert ran.returncode == USAGE and ran.stderr.count("\n") == 1
    assert "--out 'file/out'" in ran.stderr


def test_other_peoples_mechanisms_are_found_by_what_they_were_asked_as(
    lra: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    asked: list[str] = []

    def plan(references: list[str], *_: object, **__: object) -> None:
        asked.extend(references)
        raise LraError("enough")

    monkeypatch.setattr("lra.engine.plan.check.plan_check", plan)
    lra(*CHECK[:1], "--impl", "mine.py:Mine,identity", *CHECK[3:])
    assert asked == [f"{tmp_path / 'mine.py'}:Mine", "identity"]
