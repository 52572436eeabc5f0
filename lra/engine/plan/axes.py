"""Axes of measurement: their values as asked for, and every combination in the order of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, TypeVar

import msgspec

from lra.core.errors import UsageError
from lra.core.scales import EfficiencyBlock, ErrorBlock, Suite
from lra.engine.plan.spec import AxesSpec

_Block = TypeVar("_Block", EfficiencyBlock, ErrorBlock)


def combinations(axes: Mapping[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of values, by the names of the axes; the last axis varies fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def timing_points(block: EfficiencyBlock, *, generates: bool = False) -> Iterator[dict[str, Any]]:
    """Yield every combination of a block's axes, by the names of a cell's fields.

    Rounds of replicates come one after another, so that a slow spell of the machine does not fall
    on one cell. In a round short inputs come first, so that failures at some length are known
    before longer ones are due. Decoding is timed eagerly, at level `layer` and, where the model
    of the block's task `generates`, at level `model`; raises `UsageError` where the block asks for
    it only in other ways.
    """
    decoded = ("layer", "model") if generates else ("layer",)
    if "decode" in block.modes and not set(decoded) & set(block.levels):
        raise UsageError(
            "decoding is measured at level layer, and at level model for tasks whose answers are "
            f"generated, as those of '{block.task}' are not; add layer to the levels, set another "
            "task in the suite, or leave that mode out"
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
        elif point["level"] in decoded and point["execution"] == "eager":
            # Decoding is always causal.
            yield point | {"direction": "causal"}


def along(suite: Suite, axes: AxesSpec) -> Suite:
    """Return the timings and errors of a suite along the axes asked for.

    Raises `UsageError` for a suite without any, and for an axis that none of its blocks has.
    """
    if not suite.efficiency and not suite.error:
        raise UsageError(
            f"suite '{suite.name}' measures neither time nor errors; give it an [[efficiency]] or "
            "an [[error]] block"
        )
    asked = {name: value for name, value in msgspec.structs.asdict(axes).items() if value}
    _refuse_unknown_axes(asked, [*suite.efficiency, *suite.error], suite.name)
    return msgspec.structs.replace(
        suite,
        quality=(),
        efficiency=tuple(_replace_axes(block, asked) for block in suite.efficiency),
        error=tuple(_replace_axes(block, asked) for block in suite.error),
    )


def _replace_axes(block: _Block, asked: Mapping[str, Any]) -> _Block:
    """Return a block with the values asked for, where it has such a key."""
    own = {key: value for key, value in asked.items() if key in block.__struct_fields__}
    if "batches" in own and isinstance(block, EfficiencyBlock):
        own["tokens"] = None
    return msgspec.structs.replace(block, **own)


def _refuse_unknown_axes(
    asked: Iterable[str], blocks: Iterable[EfficiencyBlock | ErrorBlock], suite: str
) -> None:
    known = {key for block in blocks for key in block.__struct_fields__}
    for key in asked:
        if key not in known:
            raise UsageError(f"suite '{suite}' has no {key}; leave that flag out")
