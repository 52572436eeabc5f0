"""The sweep: every combination of the axes is a cell, and flags take the place of the suite's."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lra.cli import flags
from lra.core.cells import EfficiencyCell, ErrorCell
from lra.core.errors import UsageError
from lra.core.protocol import MOST
from lra.core.records import Failure
from lra.engine.process import pool
from lra.store import Store

from .conftest import SHORT

SMALL = ("--heads", "2", "--head-width", "8", "--store", "store")
USAGE = 2


def test_every_combination_of_the_axes_is_a_cell_beside_floor_and_exact(
    lra, tmp_path: Path
) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    asked = ("sweep", "--impl", "linear", "--suite", "short.toml", *SMALL)
    ran = lra(*asked, "--length", "16..32", "--mode", "forward,train", "--batch", "2")
    assert ran.returncode == 0, ran.stderr
    records = Store(tmp_path / "store").records()
    assert {record.status for record in records} == {"ok"}
    cells = [record.cell for record in records if isinstance(record.cell, EfficiencyCell)]
    assert sorted((c.mechanism.name, c.length, c.mode) for c in cells) == sorted(
        (name, length, mode)
        for name in ("identity", "linear", "sdpa")
        for length in (16, 32)
        for mode in ("forward", "train")
    )
    assert {(c.batch, c.heads, c.head_width, c.seconds) for c in cells} == {(2, 2, 8, 0.02)}
    assert "| linear" in (tmp_path / "reports/store/report.md").read_text(encoding="utf-8")


def test_errors_are_measured_where_a_suite_asks_for_them(lra, tmp_path: Path) -> None:
    (tmp_path / "near.toml").write_text(
        'title = "near"\n[[error]]\nscale = "mini"\nlengths = [16]\nheads = [1]\n'
        "head_widths = [4]\ninput_scales = [0.5, 1.0]\n"
        "budgets.performer = [{features = 4}, {features = 64}]\n"
    )
    ran = lra(
        "sweep", "--impl", "performer,linear", "--suite", "near.toml", "--length", "16,32",
        "--store", "store",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    records = Store(tmp_path / "store").records()
    assert {record.status for record in records} == {"ok"}
    cells = [record.cell for record in records if isinstance(record.cell, ErrorCell)]
    assert len(cells) == len(records) == 2 * 2 * 2
    assert {(c.length, c.input_scale, c.mechanism.config["features"]) for c in cells} == {
        (length, scale, features)
        for length in (16, 32)
        for scale in (0.5, 1.0)
        for features in (4, 64)
    }
    assert {c.mechanism.name for c in cells} == {"performer"}
    assert all(0 < (record.metrics["output_error"].value or 0) < 2 for record in records)
    assert {record.method["predicted_rate"] for record in records} == {0.5}
    for features in (4, 64):
        assert f"error performer 16 scale 0.5 seed 0 features={features}: " in ran.stderr


def test_what_is_read_by_round_is_measured_with_its_round(lra, tmp_path: Path) -> None:
    """Last year's floor is no floor of a pair that is measured now."""
    body = '[[efficiency]]\nscale = "mini"\nlengths = [16]\nmodes = ["train"]\nheads = [2]\n'
    body += "head_widths = [8]\nseconds = 0.01\n"
    for name, first in (("apart", ""), ("together", "together = true\n")):
        (tmp_path / f"{name}.toml").write_text(f'title = "t"\n{first}{body}')

    def due(suite: str, impl: str) -> list[str]:
        asked = ("sweep", "--suite", f"{suite}.toml", "--impl", impl, "--store", "store")
        lines = lra(*asked, "--dry-run").stdout.splitlines()
        cells = (line.split(maxsplit=2) for line in lines)
        return [label for _, state, label in cells if state == "due"]

    ran = lra("sweep", "--suite", "together.toml", "--impl", "linear", "--store", "store")
    assert ran.returncode == 0, ran.stderr
    store = Store(tmp_path / "store")
    with store.locked():
        for record in store.records():
            store.save(replace(record, started_at="2020-01-01T11:00:00+00:00"))
    assert due("apart", "linear,performer") == ["performer train 16"]
    names = ("identity", "sdpa", "linear", "performer")
    assert due("together", "linear,performer") == [f"{name} train 16" for name in names]
    assert due("together", "linear") == [], "what is complete stays"


def test_dry_run_prints_cells_and_about_how_long_they_take(lra, tmp_path: Path) -> None:
    ran = lra("sweep", "--impl", "linear", "--length", "1024,999", "--mode", "train", "--dry-run")
    assert ran.returncode == 0, ran.stderr
    labels = [line.split(maxsplit=2)[2] for line in ran.stdout.splitlines()]
    names = ("identity", "sdpa", "linear")
    assert labels.pop(0) == "ceilings float32"
    assert labels == [f"{name} train {length}" for length in (999, 1024) for name in names]
    assert ran.stderr.startswith("7 cells due, about ")
    half = lra(
        "sweep", "--impl", "linear", "--length", "64", "--dtype", "float16,float32", "--dry-run"
    )
    lines = [line for line in half.stdout.splitlines() if "ceilings" in line]
    assert [line.split(maxsplit=2)[2] for line in lines] == ["ceilings float32"]
    assert not (tmp_path / "results").exists()


def test_replicates_come_in_rounds(lra) -> None:
    ran = lra(
        "sweep", "--impl", "identity", "--length", "16,32", "--mode", "train", "--dry-run",
        "--replicates", "2", "--level", "layer",
    )  # fmt: skip
    labels = [line.split(maxsplit=3)[3] for line in ran.stdout.splitlines()[1:]]
    assert labels[::2] == ["train 16", "train 32", "train 16 replicate 1", "train 32 replicate 1"]


def test_numbers_are_read_once_each_and_ranges_double() -> None:
    read = flags.parse_numbers(["256..2048", "1000,512"], "--length")
    assert read == (256, 512, 1024, 2048, 1000)
    assert flags.parse_numbers(["3..13"], "--length") == (3, 6, 12)
    assert flags.parse_words(["*"], "--mode", ("forward", "train")) == ("forward", "train")
    with pytest.raises(UsageError, match="smaller first"):
        flags.parse_numbers([f"1..{MOST + 1}"], "--length")


@pytest.mark.parametrize(("flags", "told"), [((), "1800 s"), (("--timeout", "2h"), "7200 s")])
def test_no_cell_of_a_sweep_goes_on_for_ever(
    flags: tuple[str, ...], told: str, lra, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, timeout: float, **__: object) -> None:
        raise UsageError(f"at most {timeout:g} s")

    monkeypatch.setattr(pool, "Pool", refuse)
    ran = lra("sweep", "--impl", "identity", *SMALL, *flags)
    assert f"lra: at most {told}\n" in ran.stderr
    assert "[default: 30m]" in lra("sweep", "--help").stdout


def test_what_was_left_out_is_due_without_pruning(lra, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    asked = ("sweep", "--impl", "identity", "--suite", "short.toml", "--mode", "train", *SMALL)
    assert lra(*asked, "--dry-run").returncode == 0
    assert lra(*asked).returncode == 0
    store = Store(tmp_path / "store")
    timed = next(r for r in store.records() if isinstance(r.cell, EfficiencyCell))
    failure = Failure(type="Pruned", message="not tried: oom already at length 8")
    shorter = replace(timed.cell, length=8)

    def state(*flags: str) -> str:
        lines = lra(*asked, *flags, "--dry-run").stdout.splitlines()
        return dict(line.split()[:2] for line in lines)[timed.id]

    with store.locked():
        store.save(replace(timed, status="skipped", failure=failure))
        store.save(replace(timed, id=shorter.id, cell=shorter, status="oom", metrics={}))
    assert state() == "done"
    assert state("--no-prune") == state("--rerun", "failed") == "due"
