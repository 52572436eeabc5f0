"""The metrics that each kind of cell gives: in which unit, which is better, with samples or not.

A record says these too, for whoever reads it alone; here is what they are held against.
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


class Made(NamedTuple):
    """How a metric is made."""

    unit: str
    better: str = "lower"
    sampled: bool = False
    """Whether it is the median of samples, which stand beside it."""


_SHARE = Made("share", "higher")
_SECONDS, _BYTES, _COUNT, _RATIO = Made("s"), Made("B"), Made("count"), Made("ratio")
_TIMED = Made("s", sampled=True)

OPERATORS = _SECONDS
"""Of a profile's operators, whose names are torch's."""
SCORES = (_SHARE, Made("bit"))
"""Of baselines, whose names are the tasks' own: all of a record are the one or the other."""

_MADE: dict[type[Cell], dict[str, Made]] = {
    QualityCell: {
        "test_accuracy": _SHARE,
        "validation_accuracy": _SHARE,
        "decode_agreement": _SHARE,
        "test_loss": Made("nat"),
        "bits_per_byte": Made("bit"),
        "training_seconds": _SECONDS,
        "steps_per_second": Made("1/s", "higher"),
    },
    EfficiencyCell: {
        **dict.fromkeys(
            ("latency", "latency_wall", "prefill", "control_before", "control_after"), _TIMED
        ),
        **dict.fromkeys(("first_call", "compile_time", "energy_seconds"), _SECONDS),
        **dict.fromkeys(
            (
                *(f"peak_{what}_bytes" for what in ("allocated", "device", "reserved", "resident")),
                *("peak_tensor_bytes", "minimum_bytes", "state_bytes"),
            ),
            _BYTES,
        ),
        **dict.fromkeys(("operations", "declared_operations"), _COUNT),
        "decode_error": _RATIO,
        "energy": Made("J"),
        "idle_power": Made("W", "neither"),
    },
    ErrorCell: dict.fromkeys(
        ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v"), _RATIO
    ),
    ProfileCell: {
        "step_seconds": _TIMED,
        "steps_per_second": Made("1/s", "higher", sampled=True),
        **dict.fromkeys(map(part_metric, PARTS), _SECONDS),
        **dict.fromkeys(
            ("step_in_parts_seconds", "row_seconds", "first_step_seconds", "operators_seconds"),
            _SECONDS,
        ),
        **dict.fromkeys(("operations", "kernels"), _COUNT),
        "padding": Made("share"),
    },
    CeilingCell: {
        "product_rate": Made("1/s", "higher"),
        "copy_rate": Made("B/s", "higher"),
    },
    ShowCell: {"pairs": Made("share", "neither")},
}


def made(cell: Cell) -> dict[str, Made]:
    """Return how the metrics of a kind of cell are made, by name. One that is not known, as of a
    later version, may be anything; those of baselines are among `SCORES`, all of a record alike."""
    return _MADE.get(type(cell), {})
