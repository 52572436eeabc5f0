"""What is in the hashes of a cell's sources, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.core import catalogue
from lra.engine import sources
from lra.engine.describe import Describer, Description

BASE = """
class Base:
    def operations(self, n, *, causal=False):
        return {formula}

    def forward(self, x):
        return {result}
"""
OWN = """
from base import Base

class Own(Base):
    def operations(self, n, *, causal=False):
        from somewhere import {helper}
        return {helper}(n)

    def forward(self, x):
        return super().forward(x)
"""


def _written(folder: Path, formula: str = "n", result: str = "x", helper: str = "count") -> Path:
    folder.mkdir()
    (folder / "base.py").write_text(BASE.format(formula=formula, result=result))
    file = folder / "own.py"
    file.write_text(OWN.format(helper=helper))
    (folder / "somewhere.py").write_text(f"def {helper}(n):\n    return n\n")
    return file


def _folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A file, the same with other formulas, and the same with another result."""
    return (
        _written(tmp_path / "before"),
        _written(tmp_path / "declared", formula="2 * n", helper="other"),
        _written(tmp_path / "changed", result="2 * x"),
    )


KINDS = ("quality", "efficiency", "operations", "error", "verify", "show")


def _hashes(file: Path, tmp_path: Path) -> dict[str, str]:
    """What each kind of cell hashes of the mechanism in a file."""
    target = catalogue.find("mechanism", f"{file}:Own")
    described = Description(target, None, {}, None, _describer=Describer(tmp_path))
    return {kind: sources.mechanism_hash(target, described, kind) for kind in KINDS}


def _unlike(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {kind for kind in KINDS if one[kind] != other[kind]}


def test_declared_operations_count_where_a_record_repeats_them(tmp_path: Path) -> None:
    before, declared, changed = (_hashes(file, tmp_path) for file in _folders(tmp_path))
    assert _unlike(before, declared) == {"operations"}
    assert _unlike(before, changed) == set(KINDS)
    assert before["quality"] == before["efficiency"], "a report compares them"


@pytest.mark.parametrize(
    ("name", "asked_by"),
    [
        *((law, {"error", "verify"}) for law in ("convergence", "predicted_error", "comes_near")),
        *((dense, {"verify", "show"}) for dense in ("oracle", "reference", "support")),
    ],
)
def test_a_method_counts_for_the_cells_that_ask_for_it(
    name: str, asked_by: set[str], tmp_path: Path
) -> None:
    found = []
    for said in ("1", "2"):
        file = _written(tmp_path / said)
        file.write_text(f"{file.read_text()}\n    def {name}(self):\n        return {said}\n")
        found.append(_hashes(file, tmp_path))
    assert _unlike(*found) == asked_by


def test_a_position_scheme_is_hashed_without_what_the_contract_declares(tmp_path: Path) -> None:
    before, declared, changed = (
        sources.measure_hash("quality", outside=(file,)) for file in _folders(tmp_path)
    )
    assert declared == before != changed
