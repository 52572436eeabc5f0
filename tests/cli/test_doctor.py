"""The doctor names what is to be mended, and does not call a broken installation well."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_a_whole_installation(lra) -> None:
    ran = lra("doctor")
    assert ran.returncode == 0
    assert "all well" in ran.stdout


def test_without_a_gpu_it_says_what_will_be_empty(lra, environment) -> None:
    # Hidden where there is one.
    environment["CUDA_VISIBLE_DEVICES"] = ""
    assert "gpu        none: GPU figures will be empty" in lra("doctor").stdout


@pytest.mark.parametrize("store", ["taken", "taken/below"])
def test_a_store_that_is_a_file_or_lies_below_one(store: str, lra_here, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    ran = lra_here("doctor", "--store", store)
    assert ran.returncode == 2
    assert f"problem: the store '{store}' is or lies below a file, 'taken'" in ran.stdout
    assert "1 to mend" in ran.stdout
