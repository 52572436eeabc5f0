"""The tidy frame: a row a figure, ids that types tell apart, and reasons as columns."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from lra.core.records import Record
from lra.report.load.frame import CELL_COLUMNS, FIGURE_COLUMNS, frame
from lra.report.load.measurement import variant_id
from lra.report.load.select import join
from lra.report.load.settings import CostSetting, QualitySetting
from lra.report.write.csv import csv_text

from .sample import baseline, efficiency, error, mechanism, quality, store


def figures(*records: Record) -> pd.DataFrame:
    return join(records, []).figures


def test_columns_and_types_are_the_same_whatever_the_records() -> None:
    names = [*CELL_COLUMNS, *FIGURE_COLUMNS]
    whole, empty = figures(*store()[0]), frame([])
    assert [*whole.columns] == names == [*empty.columns]
    assert whole.dtypes.equals(empty.dtypes)


def test_each_metric_is_a_row_with_the_ids_of_its_cell() -> None:
    made = quality("linear", "text", 0.75, seed=3)
    own = figures(made).set_index("metric")
    assert {*own.index} == {*made.metrics}
    row = own.loc["test_accuracy"]
    assert (row["value"], row["seed"], row["record"]) == (0.75, 3, made.id)
    assert (row["mechanism"], row["task"], row["origin"]) == ("linear", "text", "run")


@pytest.mark.parametrize("status", ["oom", "timeout", "crash", "diverged", "error", "skipped"])
def test_a_cell_that_is_not_ok_has_its_headline_figures_without_a_value(status: str) -> None:
    own = figures(efficiency("linear", 512, status=status)).set_index("metric")  # type: ignore[arg-type]
    assert {"latency", "peak_resident_bytes"} == {*own.index}
    assert own["value"].isna().all() and {*own["status"]} == {status}
    assert all(own["reason"]) and {*own["failure"]} != {""}


def test_a_figure_that_a_record_lacks_has_its_reason() -> None:
    own = figures(efficiency("linear", 512, seconds=None), error("linear", 64, None))
    by_metric = own.set_index("metric")["reason"]
    assert by_metric["latency"] == "not in the record"
    assert by_metric["output_error"] == "it is nan"


def test_a_time_of_nothing_is_no_figure() -> None:
    own = figures(efficiency("linear", 512, seconds=0.0)).set_index("metric")
    assert math.isnan(own["value"]["latency"]) and own["reason"]["latency"]


def test_settings_that_only_their_types_tell_apart_are_two_variants() -> None:
    configs = [{"norm": True}, {"norm": "yes"}, {"norm": 1}, {"norm": 1.0}, {"norm": "none"}, {}]
    ids = {variant_id("m", config) for config in configs}
    assert len(ids) == len(configs)
    # One that is none is one that an earlier version lacked.
    assert variant_id("m", {"norm": None}) == variant_id("m", {})


def test_variants_of_two_types_have_rows_and_labels_of_their_own() -> None:
    run = [
        quality(mechanism("m", norm=True), "text", 0.7),
        quality(mechanism("m", norm="yes"), "text", 0.5, seed=1),
    ]
    own = figures(*run)
    assert own["variant"].nunique() == own["label"].nunique() == 2


def test_what_figures_of_one_table_share_is_typed() -> None:
    evidence = join([quality("linear", "text"), efficiency("linear", 512, "train")], [])
    by_type = {type(setting): setting for setting in evidence.settings.values()}
    trained, timed = by_type[QualitySetting], by_type[CostSetting]
    assert isinstance(trained, QualitySetting) and trained.scale == "mini"
    assert isinstance(timed, CostSetting) and (timed.heads, timed.threads) == (4, 2)
    assert {*evidence.figures["setting"]} == {*evidence.settings}


def test_timings_of_two_versions_of_the_measuring_code_are_two_settings() -> None:
    old, new = efficiency("linear", 512), efficiency("sdpa", 512, measure=2)
    assert figures(old, new)["setting"].nunique() == 2
    # A feature that one of them does not use tells nothing apart.
    assert figures(old, efficiency("linear", 512, "train"))["setting"].nunique() == 1


def test_the_csv_says_why_a_value_is_missing_and_computes_nothing() -> None:
    hostile = mechanism("=1+2", x="@sum")
    text = csv_text(figures(efficiency(hostile, 512, status="oom"), baseline("text")))
    lines = text.splitlines()
    assert len(lines) == 1 + 2 + 2
    assert "'=1+2" in text and ",=1+2" not in text
    assert "asked for 4.3 GB" in text and "n/a" in text


def test_whole_numbers_of_the_csv_stay_whole() -> None:
    import csv
    import io

    text = csv_text(figures(quality("linear", "text", seed=2), baseline("text")))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["seed"] for row in rows} == {"2", "n/a"}
    assert {row["length"] for row in rows} == {"160"}
