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


@pytest.mark.parametrize("proofs", [False, True])
def test_what_a_mechanism_declares_is_in_neither_of_its_hashes(
    tmp_path: Path, proofs: bool
) -> None:
    found = []
    for file in _folders(tmp_path):
        target = catalogue.find("mechanism", f"{file}:Own")
        described = Description(target, None, {}, None, _describer=Describer(tmp_path))
        found.append(sources.mechanism_hash(target, described, proofs=proofs))
    before, declared, changed = found
    assert declared == before != changed


@pytest.mark.parametrize(
    "name",
    ["convergence", "predicted_error", "exact_at", "oracle", "reference", "support"],
)
def test_what_only_laws_ask_for_makes_no_result_old(name: str, tmp_path: Path) -> None:
    found = []
    for said in ("1", "2"):
        file = _written(tmp_path / said)
        file.write_text(f"{file.read_text()}\n    def {name}(self):\n        return {said}\n")
        target = catalogue.find("mechanism", f"{file}:Own")
        described = Description(target, None, {}, None, _describer=Describer(tmp_path))
        found.append([sources.mechanism_hash(target, described, proofs=p) for p in (False, True)])
    (before, checked), (after, checked_after) = found
    assert before == after and checked != checked_after


def test_a_position_scheme_is_hashed_without_what_the_contract_declares(tmp_path: Path) -> None:
    before, declared, changed = (
        sources.measure_hash("quality", positions=(catalogue.find("position", f"{file}:Own"),))
        for file in _folders(tmp_path)
    )
    assert declared == before != changed
