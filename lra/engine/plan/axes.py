"""Every combination of the axes along which cells are measured, in the order of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from lra.core.errors import UsageError
from lra.core.scales import EfficiencyBlock


def combinations(axes: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of values, by the names of the axes; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def timing_points(block: EfficiencyBlock) -> Iterator[dict[str, Any]]:
    """Yield every combination of a block's axes, by the names of a cell's fields.

    Rounds of replicates come one after the other, so that a slow spell of the machine does not
    fall on one cell; in a round short inputs come first, so that what ends at some length is known
    before longer ones are due. Decoding is timed at level `layer` and eagerly alone; raises
    `UsageError` where it is asked for in other ways alone.
    """
    if "decode" in block.modes and "layer" not in block.levels:
        raise UsageError(
            "decoding is measured at level layer; add it to the levels, or leave that mode out"
        )
    if "decode" in block.modes and "eager" not in block.executions:
        raise UsageError(
            "decoding is measured eagerly; add eager to the executions, or leave that mode out"
        )
    directions = block.directions or ("bidirectional",)
    if "decode" in block.modes and block.directions and "causal" not in directions:
        raise UsageError("decoding is causal; add causal to the directions, or leave that mode out")
    axes = {
        "replicate": range(block.replicates),
        "length": sorted(block.lengths),
        "direction": directions,
        "mode": block.modes,
        "level": block.levels,
        "batch": block.batches if block.tokens is None else (1,),
        "heads": block.heads,
        "head_width": block.head_widths,
        "dtype": block.dtypes,
        "execution": block.executions,
    }
    for point in combinations(axes):
        if block.tokens is not None:
            point["batch"] = max(1, block.tokens // point["length"])
        if point["mode"] != "decode":
            yield point
        elif point["level"] == "layer" and point["execution"] == "eager":
            # Decoding is causal by its nature.
            yield point | {"direction": "causal"}
