"""`lra check`: what it measures of the cheapest mechanism, and how it ends for every kind of
finding. But for the first test the records are those of the baseline."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
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
    assert first == "check passed: nothing differs from the baseline"
    assert second.endswith(" figures of 1 mechanism, " + second.split()[0] + " held")
    assert last == "summary: out/summary.md" and ran.stderr == ""
    assert summary(tmp_path).startswith(f"## lra check\n\n**{first}**\n")
    (suite,) = suites(tmp_path)
    assert (suite.get("name"), suite.get("failures"), suite.get("skipped")) == (
        "identity",
        "0",
        "0",
    )
    assert int(suite.get("tests") or 0) == int(second.split()[0]) >= 40
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


def test_fewer_bytes_are_pointed_out_and_pass(lra: Run, tamper: Tamper) -> None:
    tamper(TRAIN, counts=lambda own: {**own, "operations": own["operations"] * 1.2})
    ran = lra(*CHECK)
    assert ran.returncode == 0
    assert ran.stdout.startswith("check passed: 1 unexpected improvement; first: identity, train")


def test_another_configuration_is_inconclusive(lra: Run, tamper: Tamper) -> None:
    tamper(TRAIN, asked=lambda _: "other", counts=lambda _: {"operations": 1.0})
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert ran.stdout.startswith(
        "check inconclusive: 1 inconclusive figure; first: identity, train"
    )


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
    assert "first: linear, laws: ending: in the baseline and not measured" in ran.stdout


def test_a_machine_without_a_baseline_is_inconclusive_and_told_how_to_take_one(
    lra: Run, taken: Taken, measured: Callable[[list[Any]], None], tmp_path: Path
) -> None:
    measured(taken.records())
    ran = lra(*CHECK)
    assert ran.returncode == INCONCLUSIVE
    assert (
        f"first: baseline: no baseline for machines of class {LAST}; take one with python -m lra "
        "baseline update --reason '...'" in ran.stdout.splitlines()[0]
    )
    assert "no baseline for machines" in summary(tmp_path)
    assert [suite.get("skipped") for suite in suites(tmp_path) if suite.get("name") == "all"] == [
        "1"
    ]


def test_json_is_all_there_is_on_the_standard_output(lra: Run, tamper: Tamper) -> None:
    tamper(TRAIN, counts=lambda own: {**own, "operations": own["operations"] / 1.2})
    ran = lra(*CHECK, "--json")
    assert ran.returncode == REGRESSION
    found = json.loads(ran.stdout)
    assert found["sentences"][0].startswith("check failed: 1 regression")
    (worse,) = (one for one in found["figures"] if one["outcome"] == "regression")
    assert (worse["mechanism"], worse["cell"], worse["figure"]) == ("identity", TRAIN, "operations")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--since", "no-such-branch"), "revision 'no-such-branch'"),
        (("--impl", "identiti"), "did you mean 'identity'?"),
        (("--baselines", "torn"), "identity.json' cannot be read"),
        (("--device", "cuda"), "no GPU is visible"),
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
    assert summary(tmp_path).startswith("## lra check\n\n**check stopped: ")
    assert told.replace("_", "\\_") in summary(tmp_path)
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


def test_what_was_found_before_an_interruption_is_told(
    lra: Run, tamper: Tamper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check.Check, "_compare_times", interrupted)
    tamper(TRAIN, counts=lambda own: {**own, "operations": own["operations"] / 1.2})
    timed = [flag for flag in CHECK if flag != "--deterministic"]
    assert lra(*timed).returncode == INTERRUPTED
    first = summary(tmp_path).splitlines()[2]
    assert first.startswith(
        "**check failed and stopped: KeyboardInterrupt; until then 1 regression"
    )


def test_what_was_found_before_a_time_limit_is_told(
    lra: Run, tamper: Tamper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared = []

    def limited(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            cleared.append("the other revision's work tree")

    monkeypatch.setattr(check.Check, "_compare_times", limited)
    tamper(TRAIN, counts=lambda own: {**own, "operations": own["operations"] / 1.2})
    ran = lra(*[flag for flag in CHECK if flag != "--deterministic"])
    assert (ran.returncode, ran.stderr) == (INTERRUPTED, "lra: stopped by SIGTERM\n")
    assert (
        summary(tmp_path)
        .splitlines()[2]
        .startswith("**check failed and stopped: stopped by SIGTERM; until then 1 regression")
    )
    assert cleared


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
    assert "**check stopped: it did not come to its end" in seen[0]


def test_a_folder_that_cannot_be_written_is_one_line(
    lra: Run, tamper: Tamper, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    ran = lra(*CHECK, "--out", "file/out")
    assert ran.returncode == USAGE
    assert (
        ran.stderr == "lra: --out 'file/out' cannot be written: not a directory; choose another\n"
    )


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
