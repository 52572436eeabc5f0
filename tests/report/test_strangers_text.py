"""Texts of strangers in all that is written for a person: neither invisible nor computed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lra.core.protocol import Machine
from lra.core.records import Failure, Metric, Record
from lra.report import Rendered, render

from .sample import data, efficiency, mechanism, quality, with_metrics

BIDI = "\u202e\u2066\u200f\u061c\u200b\u2028\x1b[31m"
NAME, TASK, VALUE, WORDS = (f"={one}{BIDI}" for one in ("name", "task", "value", "words"))
FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1", "\n=1")
NUMBERS = ("-2", "+3.5", "-1e-05", "-.5")


def _records() -> Iterator[Record]:
    theirs = mechanism(NAME, kind=VALUE)
    machine = Machine(processor=f"{BIDI}cpu", cores=2)
    spec = data(TASK, length=64, hash="d0")
    yield quality(theirs, TASK, 0.9, data_spec=spec)
    yield quality(mechanism(NAME, kind="b"), TASK, 0.8, data_spec=spec)
    yield quality("sdpa", TASK, 0.7, data_spec=spec)
    failed = quality("linear", TASK, status="error", data_spec=spec)
    failure = Failure(type=f"Error{BIDI}", message=WORDS, phase=f"phase{BIDI}", tail=WORDS)
    yield replace(failed, failure=failure, method={"train_failed": WORDS})
    for n in (512, 1024):
        for name in ("sdpa", "identity", NAME):
            yield efficiency(name, n, "train", machine=machine)
    null = Metric(value=None, unit="s", why_null=WORDS)
    odd = efficiency("linear", 512, "train", machine=machine)
    yield replace(odd, metrics={**odd.metrics, f"latency{BIDI}": null, "latency": null})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return render([*_records()], [], tmp_path_factory.mktemp("made"), title=f"store{BIDI}")


def test_nothing_invisible_reaches_a_file_or_the_terminal(made: Rendered) -> None:
    files = [file for file in made.page.parent.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".html", ".md", ".csv", ".tex", ".svg"}
    for file in files:
        text = file.read_bytes().decode()
        found = {c for c in text if not c.isprintable()} - {"\n"}
        assert not found, (file.name, found)
        if file.suffix != ".svg":
            assert "name" in text
    told = "\n".join([*made.findings.headline, made.findings.table])
    assert "name" in told and told.replace("\n", "").isprintable()


def test_a_formula_is_a_text_in_the_csv_and_a_number_stays_one(tmp_path: Path) -> None:
    values = dict(zip(FORMULAS + NUMBERS, range(100), strict=False))
    records = [efficiency(name, 512, "train", replicate=place) for name, place in values.items()]
    render(records, [], tmp_path, title="store")
    with (tmp_path / "report.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    fields = [field for row in rows for field in row.values()]
    computed = re.compile(r"[=+\-@\t\r\n\uff1d]")
    numeric = re.compile(r"[+-]?[\d.]+(e[+-]?\d+)?")
    assert not [f for f in fields if computed.match(f) and not numeric.fullmatch(f)]
    names = {row["mechanism"] for row in rows}
    assert set(NUMBERS) < names
    assert {f"'{one}" for one in FORMULAS[:4]} < names
    assert all(float(row["value"]) > 0 for row in rows if row["metric"] == "latency")
    # Whole numbers beside missing ones stay whole.
    assert {row["batch"] for row in rows} == {"1"} and {row["seed"] for row in rows} == {"n/a"}


def test_figures_below_zero_stay_numbers(tmp_path: Path) -> None:
    record = with_metrics(efficiency("linear", 512, "train"), compile_time=-0.25)
    render([record], [], tmp_path, title="store")
    with (tmp_path / "report.csv").open(encoding="utf-8", newline="") as stream:
        (value,) = (
            row["value"] for row in csv.DictReader(stream) if row["metric"] == "compile_time"
        )
    assert float(value) == -0.25
