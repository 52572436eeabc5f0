"""Cells of an [[error]] block: approximations, at each of their budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from lra.core import catalogue
from lra.core.cards import AttentionCard
from lra.core.catalogue import Target
from lra.core.cells import Device, ErrorCell
from lra.core.protocol import Machine, Mechanism
from lra.core.scales import ErrorBlock, load_scale
from lra.engine.plan.axes import combinations
from lra.engine.plan.describe import Describer
from lra.engine.plan.versions import ORACLE, measure_hash


def softmax_approximations(targets: Iterable[Target], describer: Describer) -> list[Target]:
    """Return the mechanisms that approximate softmax attention, or equal it, by their cards.

    One that cannot be imported has no card; it stays, so that its cells give the reason.
    """
    cards = ((target, describer.describe(target).card) for target in targets)
    return [
        target
        for target, card in cards
        if not (isinstance(card, AttentionCard) and card.softmax == "never")
    ]


def error_cells(
    block: ErrorBlock,
    targets: Sequence[Target],
    configure: Callable[[Target, Mapping[str, Any]], Mechanism],
    *,
    hash_of: Callable[[Target], str],
    machine: Machine,
    torch: str,
    device: Device,
) -> Iterator[tuple[Target, ErrorCell]]:
    """Yield cells with their targets, short inputs first.

    `configure` turns the settings of a budget into a whole configuration; `hash_of` returns the
    hash of a mechanism's sources. Raises `UsageError` for budgets of a mechanism that does not
    exist.
    """
    scale = load_scale(block.scale).name
    for name in block.budgets:
        catalogue.find("mechanism", name)
    mechanisms = [
        (target, configure(target, settings))
        for target in targets
        for settings in block.budgets.get(target.name, ({},))
    ]
    measured = measure_hash("error", "measure/error.py", outside=(ORACLE,))
    for point, (target, mechanism) in product(combinations(_axes(block)), mechanisms):
        cell = ErrorCell(
            scale=scale,
            machine=machine,
            torch=torch,
            threads=block.threads,
            versions={"error": measured, f"mechanism/{target.name}": hash_of(target)},
            mechanism=mechanism,
            device=device,
            **point,
        )
        yield target, cell


def _axes(block: ErrorBlock) -> dict[str, Iterable[Any]]:
    """Axes of a block, by the names of a cell's fields."""
    return {
        "length": sorted(block.lengths),
        "direction": block.directions,
        "batch": block.batches,
        "heads": block.heads,
        "head_width": block.head_widths,
        "dtype": block.dtypes,
        "input_scale": block.input_scales,
        "seed": range(block.seeds),
    }
