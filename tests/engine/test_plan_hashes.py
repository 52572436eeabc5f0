"""Contents of the hashes of a cell's sources, and what is not in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.core import catalogue
from lra.core.versions import Versions
from lra.engine.plan import versions
from lra.engine.plan.describe import Describer, Description

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


USES = ("call", "cost", "error", "verify", "show")


def _hashes(file: Path, tmp_path: Path) -> dict[str, str]:
    """The hash of the mechanism in a file, by use."""
    target = catalogue.find("mechanism", f"{file}:Own")
    described = Description(target, None, {}, None, _describer=Describer(tmp_path))
    return {use: versions.mechanism_hash(target, described, use) for use in USES}


def _unlike(one: dict[str, str], other: dict[str, str]) -> set[str]:
    return {use for use in USES if one[use] != other[use]}


def test_declared_operations_count_where_a_record_repeats_them(tmp_path: Path) -> None:
    before, declared, changed = (_hashes(file, tmp_path) for file in _folders(tmp_path))
    assert _unlike(before, declared) == {"cost"}
    assert _unlike(before, changed) == set(USES)


@pytest.mark.parametrize(
    ("name", "asked_by"),
    [
        *((law, {"error", "verify"}) for law in ("convergence", "predicted_error", "comes_near")),
        *((dense, {"verify", "show"}) for dense in ("reference", "support")),
        # A training asks the oracle what was attended to.
        ("oracle", {"call", "verify", "show"}),
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


def test_ours_have_declared_versions_and_other_peoples_the_hash_of_their_sources(
    tmp_path: Path,
) -> None:
    def own(reference: str, *parts: str) -> Versions:
        target = catalogue.find("mechanism", reference)
        described = Description(target, None, {}, None, _describer=Describer(tmp_path))
        return versions.mechanism_versions(target, described, *parts)

    ours = {"mechanism/linear": 1, "mechanism/linear/cost": 1, "mechanism/linear/decode": 1}
    assert own("linear", "cost", "decode") == ours
    before, declared, changed = (own(f"{f}:Own", "cost") for f in _folders(tmp_path))
    assert before.keys() == {"mechanism/Own", "mechanism/Own/cost"}
    assert before["mechanism/Own"] == declared["mechanism/Own"] != changed["mechanism/Own"]
    assert before["mechanism/Own/cost"] != declared["mechanism/Own/cost"]


def test_what_is_unavailable_has_the_version_of_its_reason(tmp_path: Path) -> None:
    target = catalogue.find("mechanism", "linear")
    found = [
        versions.mechanism_versions(
            target, Description(target, None, {}, why, _describer=Describer(tmp_path))
        )
        for why in (None, "needs numba", "needs numpy")
    ]
    assert len({str(own["mechanism/linear"]) for own in found}) == 3


def test_other_peoples_schemes_and_tasks_stand_by_their_sources(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    found = []
    for text in ("A = 1", "A = 2", "A = 2  # said"):
        file.write_text(text)
        task = catalogue.find("task", f"{file}:Own")
        found.append(
            (
                versions.position_version(str(file)),
                *(versions.data_version(task, real=r) for r in (True, False)),
            )
        )
    first, second, third = found
    assert second == third and all(a != b for a, b in zip(first, second, strict=True))
    assert versions.position_version("rope") == {"position/rope": 1}
    text = catalogue.find("task", "text")
    assert versions.data_version(text, real=True) == {"data/text/read": 1}
    assert versions.data_version(text, real=False) == {"data/text": 1}
