"""The audit: records measured once more, to the last bit, which bounds the changes that no case
sees."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from lra.core.cells import EfficiencyCell, QualityCell
from lra.core.errors import LraError
from lra.core.protocol import Frozen
from lra.core.records import Record
from lra.core.versions import declared
from lra.engine.jobs import Job
from lra.engine.machine.host import cache_folder, default_device, machine, machine_facts
from lra.engine.machine.provenance import provenance
from lra.engine.process.launch import ForkServer
from lra.engine.process.pool import Pool
from lra.engine.process.temporary import temporary_folder
from lra.store import Store

LONGEST = 600.0
"""Longest time in seconds of a record that is measured again."""
TOOLS = ("python", "torch", "numpy", "numba")
"""Libraries that bits depend on, besides the class of machine."""
COUNTED = ("operations", "declared_operations", "peak_tensor_bytes", "state_bytes")
"""Metrics of a timing that have no noise."""


class Comparison(Frozen, frozen=True):
    """One record, measured again."""

    record: str
    cell: str
    """Name of the cell in words."""
    differs: tuple[str, ...]
    """Names of figures that differ from the record's."""


def draw_records(records: Iterable[Record], number: int, seed: int) -> list[Record]:
    """Return `number` records that can be measured again here by today's code, of each kind in
    turn.

    Raises `LraError` where there is none.
    """
    able = [record for record in records if _is_able(record)]
    if not able:
        raise LraError(
            "no record can be measured again here: none is of this class of machine, of these "
            "libraries and of today's versions; run some cells first, or audit where they are from"
        )
    random.Random(seed).shuffle(able)
    kinds = [
        [r for r in able if isinstance(r.cell, kind)] for kind in (QualityCell, EfficiencyCell)
    ]
    drawn: list[Record] = []
    while len(drawn) < number and any(kinds):
        drawn += [kind.pop() for kind in kinds if kind][: number - len(drawn)]
    return drawn


def audit(records: Sequence[Record]) -> Iterator[Comparison]:
    """Measure records again, and yield the figures of each that differ."""
    with temporary_folder("lra-audit-") as folder, ForkServer() as server:
        store = Store(folder)
        then = {record.id: record for record in records}
        with store.locked():
            for now in Pool(store, server, slots=1).run([_job(r) for r in records]):
                before, after = (dict(_figures(r)) for r in (then[now.id], now))
                names = sorted(before.keys() | after.keys())
                differs = tuple(n for n in names if before.get(n) != after.get(n))
                yield Comparison(now.id, _job(now).label, differs)


def _is_able(record: Record) -> bool:
    cell = record.cell
    if not isinstance(cell, QualityCell | EfficiencyCell) or record.status != "ok":
        return False
    if cell.device != default_device():
        return False
    here = provenance(machine_facts()).libraries
    ours = {name for name in cell.versions if not name.startswith("sizes/")}
    return (
        declared(ours).items() <= cell.versions.items()
        and cell.machine == machine(cell.device)
        and record.seconds <= LONGEST
        and (isinstance(cell, EfficiencyCell) or cell.data.source == "generated")
        and all(record.provenance.libraries.get(tool) == here.get(tool) for tool in TOOLS)
    )


def _job(record: Record) -> Job:
    return Job(cell=record.cell, cache=str(cache_folder()))


def _figures(record: Record) -> Iterator[tuple[str, object]]:
    """Figures of a record without noise."""
    yield "status", record.status
    yield "parameters", record.parameters
    if isinstance(record.cell, EfficiencyCell):
        for name in COUNTED:
            if name in record.metrics:
                yield name, record.metrics[name].value
        return
    yield "best_step", record.best_step
    yield "attended", record.attended
    for point in record.curve:
        yield f"step {point.step}", (point.train_loss, point.validation_loss)
    for name, metric in record.metrics.items():
        if metric.unit not in ("s", "1/s"):
            yield name, metric.value
