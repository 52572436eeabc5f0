"""Units of the metrics that each kind of cell gives, with the better direction and whether they
have samples.

A record says these too, for readers of it alone; here is the reference for them.
"""

from __future__ import annotations

from typing import NamedTuple

from lra.core.cells import (
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    ProfileCell,
    QualityCell,
    ShowCell,
)
from lra.core.profile_metrics import PARTS, part_metric


class MetricKind(NamedTuple):
    """Unit, better direction and sampling of a metric."""

    unit: str
    better: str = "lower"
    sampled: bool = False
    """Whether it is the median of samples, kept beside it."""


_SHARE = MetricKind("share", "higher")
_SECONDS, _BYTES, _COUNT, _RATIO = (
    MetricKind("s"),
    MetricKind("B"),
    MetricKind("count"),
    MetricKind("ratio"),
)
_TIMED = MetricKind("s", sampled=True)

OPERATORS = _SECONDS
"""Metrics of a profile's operators, named by torch."""
SCORES = (_SHARE, MetricKind("bit"), MetricKind("nat"))
"""Metrics of simple baselines, named by their tasks: all of one record are of the same of these."""

_KINDS: dict[type[Cell], dict[str, MetricKind]] = {
    QualityCell: {
        "test_accuracy": _SHARE,
        "validation_accuracy": _SHARE,
        "decode_agreement": _SHARE,
        "test_loss": MetricKind("nat"),
        "bits_per_byte": MetricKind("bit"),
        "nat": MetricKind("nat"),
        "training_seconds": _SECONDS,
        "steps_per_second": MetricKind("1/s", "higher"),
    },
    EfficiencyCell: {
        **dict.fromkeys(
            ("latency", "latency_wall", "prefill", "control_before", "control_after"), _TIMED
        ),
        **dict.fromkeys(("first_call", "compile_time", "energy_seconds"), _SECONDS),
        **dict.fromkeys(
            (
                *(f"peak_{what}_bytes" for what in ("allocated", "device", "reserved", "resident")),
                *("peak_tensor_bytes", "minimum_bytes", "state_bytes", "self_state_bytes"),
                "cross_state_bytes",
            ),
            _BYTES,
        ),
        **dict.fromkeys(("operations", "declared_operations"), _COUNT),
        "decode_error": _RATIO,
        "energy": MetricKind("J"),
        "idle_power": MetricKind("W", "neither"),
    },
    ErrorCell: dict.fromkeys(
        ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v"), _RATIO
    ),
    ProfileCell: {
        "step_seconds": _TIMED,
        "steps_per_second": MetricKind("1/s", "higher", sampled=True),
        **dict.fromkeys(map(part_metric, PARTS), _SECONDS),
        **dict.fromkeys(
            ("step_in_parts_seconds", "row_seconds", "first_step_seconds", "operators_seconds"),
            _SECONDS,
        ),
        **dict.fromkeys(("operations", "kernels"), _COUNT),
        "padding": MetricKind("share"),
    },
    CeilingCell: {
        "product_rate": MetricKind("1/s", "higher"),
        "copy_rate": MetricKind("B/s", "higher"),
    },
    ShowCell: {"pairs": MetricKind("share", "neither")},
}


def metric_kinds(cell: Cell) -> dict[str, MetricKind]:
    """Return the units of a kind of cell's metrics, by name. An unknown metric, as of a later
    version, may be anything; those of baselines are among `SCORES`."""
    return _KINDS.get(type(cell), {})
