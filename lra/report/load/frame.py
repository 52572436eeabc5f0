"""One tidy frame of all measurements: one row for each figure, with its question as columns.

Sections group and pivot it by ids: `origin` with `record`, `variant` (a mechanism with a
configuration), `setting` (the conditions that figures of one table share) and `protocol` (a column
of accuracies). Labels are for people and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import pandas as pd

from lra.core.cells import BaselineCell, EfficiencyCell, ErrorCell, QualityCell
from lra.core.escape import escape_controls
from lra.core.records import Metric, Record
from lra.report.load.measurement import Measurement, protocol_hash
from lra.report.load.settings import settings_of
from lra.report.load.versions import data_hash, measuring, mechanism, text

ERRORS = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")
PEAK_MEMORY = {"cpu": "peak_resident_bytes", "cuda": "peak_allocated_bytes"}
"""Metric of a call's memory, by device."""
TIMES_OF_CALLS = ("latency", "prefill")
"""Metrics of time, none of which can truly be zero."""

_Row = TypeVar("_Row", bound=msgspec.Struct)
_KINDS: dict[type[Any], str] = {
    QualityCell: "quality",
    BaselineCell: "baseline",
    EfficiencyCell: "efficiency",
    ErrorCell: "error",
}
CELL_COLUMNS: dict[str, str] = {
    "origin": "str",
    "record": "str",
    "kind": "str",
    "mechanism": "str",
    "variant": "str",
    "label": "str",
    "config": "str",
    "setting": "str",
    "scale": "str",
    "rules": "str",
    "track": "str",
    "task": "str",
    "source": "str",
    "order": "str",
    "data_hash": "str",
    "protocol": "str",
    "length": "int",
    "test_rows": "float",
    "mode": "str",
    "level": "str",
    "direction": "str",
    "batch": "float",
    "heads": "float",
    "head_width": "float",
    "dtype": "str",
    "execution": "str",
    "model": "str",
    "input_scale": "float",
    "device": "str",
    "devices": "float",
    "seed": "float",
    "learning_rate": "float",
    "rates_tried": "str",
    "replicate": "float",
    "machine": "str",
    "threads": "int",
    "torch": "str",
    "mechanism_version": "str",
    "measured_by": "str",
    "started_at": "str",
    "disturbed": "bool",
    "parameters": "float",
    "best_step": "float",
    "status": "str",
    "failure": "str",
}
"""Columns that all figures of a cell share, and their types; "" or NaN where one does not apply."""
FIGURE_COLUMNS: dict[str, str] = {
    "metric": "str",
    "value": "float",
    "unit": "str",
    "better": "str",
    "samples": "int",
    "q1": "float",
    "q3": "float",
    "minimum": "float",
    "reason": "str",
    "declared": "str",
}
"""Columns of a figure's own. `reason` says why there is no value, where the status does not."""
_TYPES = {"str": "object", "int": "int64", "float": "float64", "bool": "bool"}


def typed(table: pd.DataFrame, kind: type[_Row]) -> list[_Row]:
    """Return the rows of a frame as structs of a kind whose fields are columns."""
    columns = [table[name].tolist() for name in kind.__struct_fields__]
    return [kind(*row) for row in zip(*columns, strict=True)]


def public(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame for users: without the report's ids, and None where a text does not apply."""
    shown = table.drop(columns=["variant", "setting"])
    texts = shown.select_dtypes("object").columns
    return shown.assign(**{name: shown[name].where(shown[name] != "", None) for name in texts})


def frame(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """Return a row for each figure, and for each figure that a cell of its kind lacks.

    A cell that is not ok has no headline figure, whatever its record holds.
    """
    cells: list[list[Any]] = []
    own: list[list[Any]] = []
    for place, (one, setting) in enumerate(
        zip(measurements, settings_of(measurements), strict=True)
    ):
        shared = _cell(one, setting.id)
        cells.append([shared[name] for name in CELL_COLUMNS])
        own += [[place, *row] for row in _figures(one)]
    figures = _typed(pd.DataFrame(own, columns=["cell", *FIGURE_COLUMNS]), FIGURE_COLUMNS)
    whole = _typed(pd.DataFrame(cells, columns=list(CELL_COLUMNS)), CELL_COLUMNS)
    joined = whole.loc[figures["cell"]].reset_index(drop=True)
    return pd.concat([joined, figures.drop(columns="cell")], axis=1)


def _typed(table: pd.DataFrame, types: Mapping[str, str]) -> pd.DataFrame:
    return table.astype({name: _TYPES[kind] for name, kind in types.items()})


def _figures(measurement: Measurement) -> Iterable[list[Any]]:
    """Metrics of a record by name, in the order of `FIGURE_COLUMNS`."""
    record = measurement.record
    # A task's baselines are known only from its records.
    known = isinstance(measurement.cell, BaselineCell) and record.status == "ok"
    expected = {} if known else _expected(measurement)
    for name in sorted({*expected, *record.metrics}):
        metric = record.metrics.get(name)
        if metric is None or (record.status != "ok" and name in expected):
            metric = msgspec.structs.replace(expected[name], why_null=_reason(record))
        value, reason = metric.value, metric.why_null or ""
        if value is None:
            reason = reason or "no reason given"
        elif name in TIMES_OF_CALLS and value <= 0:
            value, reason = None, f"{value:g} s by a clock that is too coarse"
        yield [
            name, value, metric.unit, metric.better, len(metric.samples), metric.q1, metric.q3,
            metric.minimum, escape_controls(reason) if value is None else "",
            _declared(record, name),
        ]  # fmt: skip


def _reason(record: Record) -> str:
    if record.status == "ok":
        return "not in the record"
    return record.failure.message if record.failure else record.status


def _expected(measurement: Measurement) -> dict[str, Metric]:
    """Headline metrics of a kind of cell, as for a cell without a measurement."""
    cell = measurement.cell
    if isinstance(cell, QualityCell):
        if cell.metric == "bits_per_byte":
            return {"bits_per_byte": Metric(value=None, unit="bit")}
        if cell.metric == "nat":
            return {"nat": Metric(value=None, unit="nat")}
        return {"test_accuracy": Metric(value=None, unit="share", better="higher")}
    if isinstance(cell, BaselineCell):
        share = Metric(value=None, unit="share", better="higher")
        return {"majority": share, "bag_of_tokens": share}
    if isinstance(cell, ErrorCell):
        return dict.fromkeys(ERRORS, Metric(value=None, unit="ratio"))
    seconds, size = Metric(value=None, unit="s"), Metric(value=None, unit="B")
    of_decoding = {"prefill": seconds, "state_bytes": size} if cell.mode == "decode" else {}
    return {"latency": seconds, PEAK_MEMORY[cell.device]: size, **of_decoding}


def _declared(record: Record, metric: str) -> str:
    """Declared growth of a time or a size with length, by the mechanism's card in the record."""
    if not isinstance(record.cell, EfficiencyCell) or record.cell.mode == "decode":
        # A card declares the cost of a whole call, not of one more position.
        return ""
    names = {"latency": "declared_time", PEAK_MEMORY[record.cell.device]: "declared_memory"}
    found = record.method.get(names.get(metric, ""), "")
    return escape_controls(found) if isinstance(found, str) else ""


def _cell(measurement: Measurement, setting: str) -> dict[str, Any]:
    """Values that all figures of a record share, by column."""
    record, cell = measurement.record, measurement.cell
    row: dict[str, Any] = {
        name: {"str": "", "bool": False}.get(kind) for name, kind in CELL_COLUMNS.items()
    }
    row |= {
        "origin": measurement.origin,
        "record": record.id,
        "kind": _KINDS[type(cell)],
        "variant": measurement.variant,
        "label": measurement.label,
        "setting": setting,
        "scale": cell.scale,
        "machine": cell.machine.name,
        "threads": cell.threads,
        "torch": cell.torch,
        "measured_by": text(measuring(cell)),
        "started_at": record.started_at,
        "disturbed": measurement.disturbed,
        "parameters": record.parameters,
        "best_step": record.best_step,
        "status": record.status,
        "failure": record.failure.type if record.failure else "",
    }
    if not isinstance(cell, BaselineCell):
        row |= {
            "mechanism": cell.mechanism.name,
            "config": msgspec.json.encode(cell.mechanism.config, order="sorted").decode(),
            "mechanism_version": mechanism(cell),
            "device": cell.device,
        }
    if isinstance(cell, QualityCell | BaselineCell):
        row |= {
            "length": cell.data.length,
            "task": cell.data.task,
            "source": cell.data.source,
            "order": cell.data.order,
            "data_hash": data_hash(cell),
            "protocol": data_hash(cell),
            "rules": cell.data.rules,
            "test_rows": (record.rows or cell.data.rows).test,
        }
    else:
        row |= {
            "length": cell.length,
            "direction": cell.direction,
            "batch": cell.batch,
            "heads": cell.heads,
            "head_width": cell.head_width,
            "dtype": cell.dtype,
        }
    if isinstance(cell, QualityCell):
        devices = record.method.get("devices")
        row |= {
            "track": cell.track,
            "batch": cell.training.batch,
            "heads": cell.model.heads,
            "head_width": cell.model.qkv_width // cell.model.heads,
            "dtype": cell.training.precision,
            "direction": "causal" if cell.model.causal else "bidirectional",
            "devices": devices if isinstance(devices, int) else None,
            "seed": cell.seed,
            "learning_rate": cell.training.learning_rate,
            "rates_tried": ", ".join(f"{rate:g}" for rate in measurement.rates_tried),
            "protocol": protocol_hash(cell),
        }
    if isinstance(cell, ErrorCell):
        row |= {"input_scale": cell.input_scale, "seed": cell.seed}
    if isinstance(cell, EfficiencyCell):
        row |= {
            "task": cell.task,
            "mode": cell.mode,
            "level": cell.level,
            "execution": cell.execution,
            "model": ""
            if cell.model is None
            else msgspec.json.encode(cell.model, order="sorted").decode(),
            "replicate": cell.replicate,
        }
    return row
