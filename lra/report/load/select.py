"""Selection of records: the newest of each question, and the reference records that fit the run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import msgspec
import pandas as pd

from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.cells import (
    BaselineCell,
    CeilingCell,
    Cell,
    EfficiencyCell,
    ErrorCell,
    MeasuredCell,
    QualityCell,
    ShowCell,
    VerifyCell,
)
from lra.core.escape import escape_controls
from lra.core.hashing import value_hash
from lra.core.migrate import EARLIER
from lra.core.protocol import Machine
from lra.core.records import Record
from lra.report.load.disturbed import disturbed
from lra.report.load.frame import frame
from lra.report.load.measurement import Measurement, Origin, measured, protocol_hash, variant_of
from lra.report.load.protocol_mismatch import ProtocolMismatch, protocol_mismatches
from lra.report.load.settings import Setting, settings_of
from lra.report.load.tuned import chosen, rates_tried
from lra.report.load.variants import distinguishing_settings
from lra.report.load.versions import Pairs, data_hash, pairs, with_edits

_Rates = Mapping[str, tuple[float, ...]]
"""Learning rates that each tuned training's was chosen from, by its id."""


class Evidence(msgspec.Struct, frozen=True, dict=True):
    """Selected records of a report."""

    measurements: tuple[Measurement, ...]
    """Records of trainings, simple baselines, timings and errors, in the report's order."""
    checks: tuple[Record, ...]
    """The run's conformance checks."""
    reference_checks: tuple[Record, ...]
    """Committed checks of mechanisms in this report that the run did not check."""
    shown: tuple[Record, ...]
    """Pictures of the run, and committed ones of mechanisms that it measured and did not
    picture."""
    busy: frozenset[tuple[Origin, str]]
    """Origins and ids of timings taken while the machine was busy."""
    ceilings: tuple[Record, ...]
    """Records of machines' best rates."""
    superseded: int
    """Number of the run's records left out because a newer one answers the same question."""
    superseded_reference: int
    """Number of reference records left out for the same reason."""
    unrelated: int
    """Number of reference records left out because nothing in the run shares their protocol."""
    mismatches: tuple[ProtocolMismatch, ...] = ()
    """Protocols of the run for whose tasks the reference has only other protocols."""
    others: tuple[Record, ...] = ()
    """Newest checks, pictures, profiles and ceilings of the run."""

    @cached_property
    def figures(self) -> pd.DataFrame:
        """One tidy frame of all measurements: see `lra.report.load.frame`."""
        return frame(self.measurements)

    @cached_property
    def baselines(self) -> pd.DataFrame:
        """Rows of simple baselines in the frame."""
        return self.figures[self.figures["kind"] == "baseline"]

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Settings by their id in the column `setting`."""
        return {setting.id: setting for setting in settings_of(self.measurements)}

    @cached_property
    def records(self) -> dict[tuple[str, str], Record]:
        """Records by origin and id, for content that is no figure: curves, methods, protocols."""
        return {(one.origin, one.record.id): one.record for one in self.measurements}

    @property
    def own(self) -> list[Measurement]:
        """Records of the run itself."""
        return [one for one in self.measurements if one.origin == "run"]


def join(
    records: Sequence[Record],
    reference: Sequence[Record],
    *,
    store: Sequence[Record] | None = None,
) -> Evidence:
    """Join the run's records and the comparable ones of the reference.

    Whether a timing was disturbed is judged against the whole `store`, not just `records`; the
    reference is judged on its own.

    A comparable record shares with the run data, model and training (quality), data (simple
    baselines), or sizes and length with the mode (efficiency) or the input scale (error). Any order
    of the records gives the same evidence.
    """
    known = records if store is None else store
    ceilings = [r for r in (*reference, *known) if isinstance(r.cell, CeilingCell)]
    checks = [record for record in records if isinstance(record.cell, VerifyCell)]
    shown = [record for record in records if isinstance(record.cell, ShowCell)]
    rest = [record for record in records if not isinstance(record.cell, MeasuredCell)]
    records = [record for record in records if isinstance(record.cell, MeasuredCell)]
    newest = _newest(records)
    run = chosen(newest)
    own_keys = {(record.id, record.started_at) for record in records}
    candidates = [
        r
        for r in reference
        if (r.id, r.started_at) not in own_keys and isinstance(r.cell, MeasuredCell)
    ]
    newest_other = _newest(candidates)
    other = chosen(newest_other)
    cells = [measured(record) for record in run]
    asked = {_question(cell) for cell in cells}
    asked |= {_data_question(cell) for cell in cells if isinstance(cell, QualityCell)}
    fitting = [record for record in other if _question(measured(record)) in asked]
    judged: list[tuple[Origin, set[str]]] = [
        ("run", disturbed(known, reference)),
        ("reference", disturbed(reference)),
    ]
    busy = frozenset((origin, id) for origin, ids in judged for id in ids)
    rates: dict[Origin, _Rates] = {
        "run": rates_tried(newest),
        "reference": rates_tried(newest_other),
    }
    kept = _kept(run, fitting, busy, rates)
    names_in_report = {
        one.cell.mechanism.name for one in kept if not isinstance(one.cell, BaselineCell)
    }
    measured_here = {cell.mechanism.name for cell in cells if not isinstance(cell, BaselineCell)}
    return Evidence(
        measurements=tuple(kept),
        checks=tuple(checks),
        reference_checks=_of(VerifyCell, reference, names_in_report, checks),
        shown=(*shown, *_of(ShowCell, reference, measured_here, shown)),
        busy=busy,
        ceilings=tuple(ceilings),
        superseded=len(own_keys) - len(newest),
        superseded_reference=len(candidates) - len(newest_other),
        unrelated=len(other) - len(fitting),
        mismatches=protocol_mismatches(
            _trained(cells), _trained(map(measured, other)), {EXACT, NO_MIXING}
        ),
        others=tuple(_latest(rest, lambda record: _whatever_code(record.cell)).values()),
    )


def _kept(
    run: Sequence[Record],
    fitting: Sequence[Record],
    busy: Collection[tuple[Origin, str]],
    rates: Mapping[Origin, _Rates],
) -> list[Measurement]:
    """Records of the run and fitting ones of the reference, with their labels, in the report's
    order."""
    # A budget distinguishes errors; it is no reason to name settings elsewhere.
    errors = [r for r in (*run, *fitting) if isinstance(r.cell, ErrorCell)]
    not_errors = [r for r in (*run, *fitting) if not isinstance(r.cell, ErrorCell)]
    labels = _labels(errors) | _labels(not_errors)
    origins: list[tuple[Origin, Sequence[Record]]] = [("run", run), ("reference", fitting)]
    kept = [
        Measurement(
            origin,
            variant_of(measured(record)),
            labels[_named(measured(record))],
            record,
            rates[origin].get(record.id, ()),
            disturbed=(origin, record.id) in busy,
        )
        for origin, records in origins
        for record in records
    ]
    return sorted(kept, key=_order)


def _trained(cells: Iterable[MeasuredCell]) -> list[QualityCell]:
    return [cell for cell in cells if isinstance(cell, QualityCell)]


def _of(
    kind: type[VerifyCell] | type[ShowCell],
    reference: Iterable[Record],
    wanted: Collection[str],
    own: Iterable[Record],
) -> tuple[Record, ...]:
    """Committed records of a kind, for the wanted mechanisms without one of their own."""
    known = {_shows(record) for record in own}
    return tuple(
        record
        for record in reference
        if isinstance(record.cell, kind)
        and record.cell.mechanism.name in wanted
        and _shows(record) not in known
    )


def _shows(record: Record) -> tuple[str, str]:
    """Mechanism and device of a check; mechanism of a picture."""
    cell = cast(VerifyCell | ShowCell, record.cell)
    return (cell.mechanism.name, getattr(cell, "device", ""))


def _newest(records: Iterable[Record]) -> list[Record]:
    """Newest record of each slot, unless its lineage has moved on to newer code."""
    by_slot = _latest(records, lambda record: _slot(measured(record)))
    lineages: dict[Hashable, list[Record]] = defaultdict(list)
    for record in sorted(by_slot.values(), key=_age):
        lineages[_lineage(measured(record))].append(record)
    return [record for own in lineages.values() for record in _of_the_newest(own)]


def _of_the_newest(own: Sequence[Record]) -> list[Record]:
    """Records of a lineage, oldest first, that used the newest version of each feature."""
    code = [with_edits(_code(record)) for record in own]
    newest = dict(pair for one in code for pair in one)
    is_old = [any(feature.startswith(EARLIER) for feature, _ in one) for one in code]
    return [
        record
        for record, one, old in zip(own, code, is_old, strict=True)
        if old == is_old[-1] and all(newest[feature] == version for feature, version in one)
    ]


def _latest(records: Iterable[Record], key: Callable[[Record], Hashable]) -> dict[Hashable, Record]:
    found: dict[Hashable, Record] = {}
    for record in sorted(records, key=_age):
        found[key(record)] = record
    return found


def _age(record: Record) -> tuple[str, str]:
    return record.started_at, record.id


def _whatever_code(cell: Cell) -> str:
    """Subject of a check, a picture, a profile or a ceiling, without the version of the code; for a
    check and a picture also without torch and processor: the newest counts."""
    cell = msgspec.structs.replace(cell, versions={})
    if isinstance(cell, VerifyCell | ShowCell):
        somewhere = Machine(processor="", cores=1)
        cell = msgspec.structs.replace(cell, machine=somewhere, threads=1, torch="")
    return value_hash(cell)


def _code(record: Record) -> Pairs:
    """Code versions of a record. Errors hardly depend on the machine, but a mean has one version of
    torch."""
    torch = (("torch", record.cell.torch),) if isinstance(record.cell, ErrorCell) else ()
    return (*pairs(record.cell), *torch)


def _named(cell: MeasuredCell) -> tuple[str, str]:
    """Key of a label: kind and scale of a cell, and its variant."""
    return (f"{type(cell).__name__} {cell.scale}", variant_of(cell))


def _question(cell: MeasuredCell) -> Hashable:
    """Key that a run's cell and a reference's must share to be compared."""
    if isinstance(cell, QualityCell):
        return ("quality", protocol_hash(cell))
    if isinstance(cell, BaselineCell):
        return _data_question(cell)
    sizes = _sizes(cell)
    if isinstance(cell, ErrorCell):
        return ("error", *sizes, cell.input_scale, cell.length)
    return ("efficiency", *_called(cell), *sizes, cell.mode, cell.length)


def _called(cell: EfficiencyCell) -> tuple[Hashable, ...]:
    """Timed call without its sizes: a layer, or which model."""
    return (cell.level, cell.task, cell.execution, value_hash(cell.model))


def _sizes(cell: EfficiencyCell | ErrorCell) -> tuple[Hashable, ...]:
    """Request to a layer without the length."""
    sizes = (cell.batch, cell.heads, cell.head_width, cell.dtype, cell.device)
    return (cell.scale, cell.direction, *sizes)


def _data_question(cell: QualityCell | BaselineCell) -> Hashable:
    return ("baseline", cell.scale, data_hash(cell))


def _slot(cell: MeasuredCell) -> Hashable:
    """Question of a record; a newer record of the same slot replaces an older one."""
    if isinstance(cell, QualityCell):
        return (_question(cell), cell.training.learning_rate, variant_of(cell), cell.seed)
    if isinstance(cell, BaselineCell):
        return _question(cell)
    if isinstance(cell, ErrorCell):
        return (_lineage(cell), cell.input_scale, cell.length, cell.seed)
    return (_lineage(cell), cell.mode, cell.length, cell.replicate)


def _lineage(cell: MeasuredCell) -> Hashable:
    """Cells behind one figure or one row: they must come from the same code."""
    if isinstance(cell, ErrorCell):
        return (type(cell), variant_of(cell), *_sizes(cell))
    if isinstance(cell, EfficiencyCell):
        place = (cell.machine.name, cell.threads, cell.torch)
        return (type(cell), variant_of(cell), place, *_called(cell), *_sizes(cell))
    return (_question(cell), variant_of(cell))


def _labels(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """Labels of variants: the mechanism, and its settings where a scale has several variants of
    it."""
    configs: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    by_kind: dict[tuple[str, str], set[str]] = defaultdict(set)
    names: dict[tuple[str, str], str] = {}
    for record in records:
        cell = measured(record)
        kind, variant = _named(cell)
        names[kind, variant] = "" if isinstance(cell, BaselineCell) else cell.mechanism.name
        if not isinstance(cell, BaselineCell):
            configs[cell.mechanism.name][variant] = cell.mechanism.config
            by_kind[kind, cell.mechanism.name].add(variant)
    several = {name for (_, name), found in by_kind.items() if len(found) > 1}
    settings: dict[str, str] = {}
    for name in several:
        ordered = sorted(configs[name])
        found = [configs[name][variant] for variant in ordered]
        differences = distinguishing_settings(found, name)
        settings.update(zip(ordered, differences, strict=True))
    return {
        (kind, variant): escape_controls(
            f"{name} ({own})" if (own := settings.get(variant)) else name
        )
        for (kind, variant), name in names.items()
    }


def _order(measurement: Measurement) -> tuple[object, ...]:
    cell = measurement.cell
    place: tuple[object, ...]
    if isinstance(cell, EfficiencyCell):
        place = (cell.mode, cell.length, cell.replicate)
    elif isinstance(cell, ErrorCell):
        place = (cell.input_scale, cell.length, cell.seed)
    else:
        place = (cell.data.task, 0 if isinstance(cell, BaselineCell) else cell.seed, 0)
    return (
        measurement.origin != "run",
        type(cell).__name__,
        measurement.label,
        *place,
        measurement.record.id,
    )
