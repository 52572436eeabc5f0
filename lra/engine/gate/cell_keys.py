"""Keys of cells in the files of a baseline, made from what a cell asks for.

Committed files are looked up by them, so their form stays as it is; words for people are made
elsewhere. A field of a usual value, that of the check's suites, is left out: a key with a new field
names another cell, and keys in files keep their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lra.core.cells import EfficiencyCell, QualityCell, VerifyCell

_USUAL: dict[str, Any] = {
    "scale": "mini",
    "level": "layer",
    "task": "",
    "batch": 1,
    "heads": 4,
    "head_width": 64,
    "direction": "bidirectional",
    "dtype": "float32",
    "execution": "eager",
}
_SETTING = ("scale", "level", "task", "batch")
_ARITHMETIC = ("dtype", "execution")


def cell_key(cell: EfficiencyCell | QualityCell | VerifyCell) -> str:
    """Return the key of a cell among those of its mechanism, the same for all seeds.

    Conditions are left out: configuration, machine, versions, and the training that a scale stands
    for. Figures under other conditions are of the same cell, and not to be compared.
    """
    if isinstance(cell, EfficiencyCell):
        sizes = _unusual(cell, (*_SETTING, "heads", "head_width", *_ARITHMETIC))
        return " ".join([cell.mode, str(cell.length), cell.direction, *sizes])
    if isinstance(cell, QualityCell):
        parts = [cell.data.task, f"scale {cell.scale}"]
        parts += [cell.data.rules] if cell.data.rules != "fixed" else []
        parts += [cell.data.order] if cell.data.order != "given" else []
        parts += [f"rate {cell.training.learning_rate}"] if cell.track == "tuned" else []
        return ", ".join(parts)
    form = [cell.form] if cell.form != "short" else []
    case = [str(cell.case)] if cell.case is not None else []
    return " ".join(["laws", *form, *cell.laws, *case])


def time_key(row: Any) -> str:
    """Return the key of a time among those of all mechanisms; `row` is that of a measurement."""
    shape = f"heads {row.heads:.0f} x {row.head_width:.0f}"
    other = _unusual(row, (*_SETTING, "direction", *_ARITHMETIC))
    return " ".join([row.mechanism, row.mode, f"{row.length}", shape, *other])


def _unusual(asked: Any, names: tuple[str, ...]) -> Iterator[str]:
    """`name=value` of the fields that are not as usual. A row has None where one does not apply,
    and sizes as floats."""
    for name in names:
        value = getattr(asked, name)
        if value is not None and value != _USUAL[name]:
            yield f"{name}={value:.0f}" if isinstance(value, float) else f"{name}={value}"
