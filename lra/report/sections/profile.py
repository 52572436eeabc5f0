"""Profiles of training steps: their parts, their operators, and the time of a whole training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from lra.core.cells import ProfileCell
from lra.core.hashing import value_hash
from lra.core.profile_metrics import OPERATOR, part_metric, training_seconds
from lra.core.records import Record
from lra.report.analysis import Analysis
from lra.report.ceilings import Ceiling, Place, ceilings
from lra.report.load.measurement import variant_id
from lra.report.load.select import Evidence
from lra.report.load.variants import labelled
from lra.report.load.versions import data_hash
from lra.report.model import Row, Section, Table, Value, drawn
from lra.report.plots.profile import profile_figure
from lra.report.words import (
    NO_VALUE,
    about,
    apart,
    count,
    differing,
    duration,
    figures,
    leaves,
    listing,
    machine_words,
    quantity,
    shortened,
)

TOPIC = "Where a training step goes"
PARTS: dict[str, tuple[str, ...]] = {
    "batch": ("rows", "batch"),
    "forward": ("forward",),
    "backward": ("backward",),
    "clip": ("clip",),
    "update": ("update",),
    "other": ("prepare", "after"),
}
"""Columns of a table for the parts of a step."""
_HOW = (
    "Parts, padding among positions and limit are in percent. Batch: rows made a batch on the "
    "device; forward: with the loss; other: the learning rate, clearing gradients, and what "
    "mechanisms do after a step. Limit: counted operations over those of a large matrix product in "
    "that time; above 100 the machine was slower when that was measured, or a kernel skips some. "
    "Training: one seed with its validations and its test, without preparing data. Most time in: "
    "the operator with most self time, by torch.profiler; _Read or the like is a mechanism's own."
)
_GPU = "On a GPU each part was waited for; in a whole step they overlap."
_LETTERS = 16
"""Letters that a table has room for in an operator's name."""
_MUCH_LONGER = 2.0
"""Factor between a step at a new length and a usual one from which on a note says so."""


class Profile(msgspec.Struct, frozen=True):
    """A profile that ended well."""

    label: str
    """Mechanism, with the settings that set it apart from others of the table."""
    cell: ProfileCell
    record: Record

    def value(self, metric: str) -> float | None:
        """Return a metric's value; None where there is none."""
        found = self.record.metrics.get(metric)
        return None if found is None else found.value

    @property
    def training(self) -> float | None:
        """Seconds of a whole training."""
        step, row = self.value("step_seconds"), self.value("row_seconds")
        if step is None or row is None:
            return None
        rows = self.record.rows or self.cell.data.rows
        return training_seconds(self.cell.training, rows, step=step, row=row)

    @property
    def shares(self) -> dict[str, float]:
        """Share of each part of a step in their sum; empty where nothing was timed."""
        seconds = {
            shown: sum(self.value(part_metric(part)) or 0.0 for part in parts)
            for shown, parts in PARTS.items()
        }
        whole = sum(seconds.values())
        return {part: one / whole for part, one in seconds.items()} if whole else {}

    @property
    def operators(self) -> list[tuple[str, float]]:
        """Operators with their shares of all self time, largest first."""
        whole = self.value("operators_seconds") or 0.0
        seconds = {
            name.removeprefix(OPERATOR): metric.value
            for name, metric in self.record.metrics.items()
            if name.startswith(OPERATOR) and metric.value
        }
        ranked = sorted(seconds.items(), key=lambda item: (-item[1], item[0]))
        return [(name, one / whole) for name, one in ranked if whole]


def analyse(records: Sequence[Record]) -> list[list[Profile]]:
    """Return the profiles that ended well, by task, type, execution and machine; the largest group
    first."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if isinstance(record.cell, ProfileCell) and record.status == "ok":
            found[_setting(record.cell)].append(record)
    groups = [_labelled(own) for _, own in sorted(found.items())]
    return sorted(
        groups,
        key=lambda own: (-len(own), own[0].cell.training.execution != "eager", words(own[0].cell)),
    )


def _setting(cell: ProfileCell) -> str:
    """Hash of the conditions that profiles of one table share."""
    training = cell.training
    how = (training.batch, training.precision, training.execution, training.steps)
    where = (cell.machine, cell.threads, cell.torch, cell.device)
    return value_hash([cell.scale, data_hash(cell), *how, *where])


def words(cell: ProfileCell) -> tuple[str, ...]:
    """Return the conditions that profiles of one table share, in words."""
    training = cell.training
    return (
        cell.data.task,
        training.precision,
        training.execution,
        f"scale {cell.scale}",
        f"length {cell.data.length}",
        f"batch {training.batch}",
        count(training.steps, "step"),
        machine_words(cell.machine),
        *([count(cell.threads, "thread")] if cell.device == "cpu" else []),
        f"torch {cell.torch}",
    )


def _labelled(records: Sequence[Record]) -> list[Profile]:
    """Profiles of one setting, with labels that set those of one mechanism apart by model and
    training."""
    records = sorted(records, key=lambda record: record.id)
    cells = [record.cell for record in records if isinstance(record.cell, ProfileCell)]
    labels = labelled([cell.mechanism for cell in cells])
    alike: dict[str, list[int]] = defaultdict(list)
    for number, label in enumerate(labels):
        alike[label].append(number)
    for label, numbers in alike.items():
        settings = [
            leaves({"model": cells[n].model, "training": cells[n].training}) for n in numbers
        ]
        for n, text in zip(numbers, differing(settings), strict=True):
            labels[n] = f"{label} ({text})" if text else label
    found = [Profile(*own) for own in zip(labels, cells, records, strict=True)]
    return sorted(found, key=lambda one: (one.label, one.record.id))


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting of the run's profiles."""
    evidence = analysis.evidence
    known, found = ceilings(evidence.ceilings), analyse(evidence.others)
    parts = [words(own[0].cell) for own in found]
    names = [", ".join(own) for own in parts[:1]] + apart(parts)[1:]
    return [
        present(number, name, own, known)
        for number, (name, own) in enumerate(zip(names, found, strict=True), start=1)
    ]


def present(
    number: int, title: str, found: Sequence[Profile], known: Mapping[Place, Ceiling]
) -> Section:
    """Return the section of a setting. The method is only in the first, and so is a picture, since
    a table has the same figures."""
    on_gpu = found[0].cell.device == "cuda"
    how = [" ".join([_HOW, *([_GPU] if on_gpu else [])])] if number == 1 else []
    bars = [(one.label, one.shares) for one in found] if number == 1 else []
    return Section(
        topic=TOPIC,
        setting=title,
        text=(*_whole(found, ""), *how),
        tables=(table(number, found, known),),
        figures=drawn([profile_figure(f"profile-{number}", bars, tuple(PARTS))]),
    )


def terminal_summary(evidence: Evidence) -> tuple[tuple[str, ...], Table | None] | None:
    """Return sentences on a run of profiles, and the table of its first setting; None without any
    profile, even a failed one."""
    if not any(isinstance(record.cell, ProfileCell) for record in evidence.others):
        return None
    found = analyse(evidence.others)
    names = apart([words(own[0].cell) for own in found])
    sentences = [
        sentence
        for own, name in zip(found, names, strict=True)
        for sentence in (
            *_whole(own, f" on {name or own[0].cell.data.task}"),
            *map(_operators, own),
        )
    ]
    first = table(1, found[0], ceilings(evidence.ceilings)) if found else None
    return tuple(sentences), first


def _whole(found: Sequence[Profile], where: str) -> list[str]:
    """Sentence on the time of one seed of all trainings."""
    known = [one.training for one in found if one.training is not None]
    if not known:
        return []
    whole = about(sum(known))
    if len(known) == 1:
        return [f"One seed of {found[0].label}{where} takes {whole}."]
    return [f"One seed of each of {len(known)} trainings{where} takes {whole} one after the other."]


def _operators(one: Profile) -> str:
    kernels = one.value("kernels")
    launched = f"; {kernels:,.0f} kernels a step" if kernels else ""
    shares = [f"{name} {figures(100 * share, most=2)} %" for name, share in one.operators]
    most = listing(shares) or "no operator that torch sees"
    return f"{one.label} on {one.cell.data.task}: most self time in {most}{launched}."


def table(number: int, found: Sequence[Profile], known: Mapping[Place, Ceiling]) -> Table:
    """Return a table of the time of a step, the shares of its parts, and its operators."""
    cell, training = found[0].cell, found[0].cell.training
    place = Place(cell.machine, cell.threads, cell.torch, training.precision, cell.device)
    return Table(
        id=f"profile-{number}",
        title="A training step and its parts",
        caption=f"On {cell.data.task}, in {training.precision}, {training.execution}.",
        corner="mechanism",
        columns=("steps/s", *PARTS, "padding", "limit", "training", "most time in"),
        rows=tuple(
            Row(
                one.label,
                (
                    _rate(one),
                    *(_percent(one.shares.get(part)) for part in PARTS),
                    _percent(one.value("padding")),
                    _limit(one, known.get(place)),
                    _training(one),
                    _operator(one),
                ),
                one.cell.mechanism.name,
                variant_id(one.cell.mechanism.name, one.cell.mechanism.config),
            )
            for one in found
        ),
        notes=tuple(_new_lengths(found)),
    )


def _new_lengths(found: Sequence[Profile]) -> list[str]:
    """Note on steps that take much longer at a length that the training has not met yet."""
    slow = []
    for one in found:
        first, step = one.value("first_step_seconds"), one.value("step_seconds")
        if first and step and first >= _MUCH_LONGER * step:
            slow.append(f"{one.label} {quantity(first, 's')}")
    return [f"Not counted, a step at a new length takes longer: {listing(slow)}."] if slow else []


def _rate(one: Profile) -> Value:
    rate, step = one.record.metrics.get("steps_per_second"), one.value("step_seconds")
    if rate is None or rate.value is None or not step:
        return Value(NO_VALUE)
    spread = (rate.q3 or rate.value) - (rate.q1 or rate.value)
    # For an even number of stretches the median of the rates is not one over that of the times.
    return Value(figures(1 / step, spread), quantity(step, "s"), 1 / step)


def _percent(share: float | None) -> Value:
    return Value(NO_VALUE) if share is None else Value(figures(100 * share, most=2), number=share)


def _limit(one: Profile, ceiling: Ceiling | None) -> Value:
    operations, step = one.value("operations"), one.value("step_seconds")
    if ceiling is None or not step:
        return Value("not known")
    if not operations:
        return Value("not counted")
    return _percent(operations / step / ceiling.operations)


def _operator(one: Profile) -> Value:
    """Operator with the most self time, below its share."""
    if not one.operators:
        return Value(NO_VALUE)
    (name, share), *_ = one.operators
    # A long name would push the column off the page; a terminal has it whole.
    return Value(figures(100 * share, most=2), shortened([name], _LETTERS)[0], share)


def _training(one: Profile) -> Value:
    seconds = one.training
    if seconds is None:
        return Value(NO_VALUE)
    return Value("< 1 s" if seconds < 1 else duration(seconds), number=seconds)
