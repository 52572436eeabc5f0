"""`lra.load`: a store as a data frame."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lra
from lra.core.errors import LraError
from lra.store import Store, StoreWarning

from .sample import quality, store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with Store(tmp_path / "store").locked() as place:
        for record in store()[0]:
            place.save(record)
    return place.path


def test_a_store_is_one_metric_a_row_with_numbers_as_numbers(saved: Path) -> None:
    table = lra.load(str(saved))
    accuracy = table[table.metric == "test_accuracy"]
    assert accuracy.pivot_table("value", "mechanism", "task").loc["performer", "text"] > 0.5
    latency = table[(table.metric == "latency") & table.value.notna()]
    assert latency.groupby("mechanism").value.median()["performer"] > 0
    assert table.value.dtype.kind == table.seed.dtype.kind == "f" and table.length.dtype.kind == "i"
    failed = table[table.status == "oom"]
    assert len(failed) and failed.value.isna().all() and (failed.failure == "MemoryError").all()


def test_texts_are_of_one_kind_and_missing_in_one_way(saved: Path) -> None:
    table = lra.load(saved)
    texts = table.drop(columns=table.select_dtypes(["number", "bool"]).columns)
    assert {"device", "machine", "task", "reason"} <= set(texts.columns)
    assert set(texts.dtypes) == {table.task.dtype}
    missing = texts.to_numpy()[texts.isna().to_numpy()]
    assert len(missing) and all(value is None for value in missing)


def test_numbers_are_numbers_in_a_store_without_any(tmp_path: Path) -> None:
    with Store(tmp_path / "store").locked() as place:
        place.save(quality("linear", "text", status="oom"))
    table = lra.load(place.path)
    assert table.value.isna().all() and table.value.dtype == table.replicate.dtype == "float64"
    assert table.length.dtype == "int64" and list(table.mechanism) == ["linear"]


def test_the_newest_record_of_a_question_counts(tmp_path: Path) -> None:
    with Store(tmp_path / "store").locked() as place:
        place.save(quality("linear", "text", 0.5, measure=1))
        place.save(quality("linear", "text", 0.7, measure=2, started="2026-11-21T10:00:00Z"))
    table = lra.load(place.path)
    assert list(table[table.metric == "test_accuracy"].value) == [0.7]


def test_what_is_no_store_is_an_error_and_an_empty_one_an_empty_frame(tmp_path: Path) -> None:
    with pytest.raises(LraError, match=r"no store at '.*nowhere'"):
        lra.load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    table = lra.load(tmp_path / "empty")
    assert table.empty and {"metric", "value", "unit"} <= set(table.columns)


def test_a_damaged_record_is_a_warning(saved: Path) -> None:
    whole = len(lra.load(saved))
    next(saved.glob("*.json")).write_text("{")
    with pytest.warns(StoreWarning, match="cut off"):
        assert len(lra.load(saved)) < whole


def test_importing_the_package_imports_no_library_and_loading_no_torch(saved: Path) -> None:
    code = (
        "import sys, lra; before = {'pandas', 'torch', 'msgspec'} & set(sys.modules); "
        "lra.load(sys.argv[1]); print(sorted(before), 'torch' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(saved)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.stdout.split("\n")[0] == "[] False", ran.stderr
