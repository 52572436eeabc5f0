"""Where a training step's time goes: its parts, its operators, and what a whole training takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lra.core.cells import ProfileCell
from lra.core.escape import escape_controls
from lra.core.profile_metrics import OPERATOR, part_metric, training_seconds
from lra.core.records import Metric, Record
from lra.report.costs.limit import Ceilings
from lra.report.mechanisms.configs import labelled
from lra.report.pictures.profile import profile_figure
from lra.report.select import Selection
from lra.report.table import Cell, Row, Section, Table
from lra.report.words import (
    NO_VALUE,
    about,
    apart,
    count,
    differing,
    duration,
    figures,
    flat,
    listing,
    machine_words,
    numbered,
    quantity,
)

_SHOWN: dict[str, tuple[str, ...]] = {
    "batch": ("rows", "batch"),
    "forward": ("forward",),
    "backward": ("backward",),
    "clip": ("clip",),
    "update": ("update",),
    "other": ("prepare", "after"),
}
"""Parts of a step as a table has them."""
_IN_WORDS = (
    "training.batch",
    "data.length",
    "training.precision",
    "training.execution",
    "training.steps",
)
"""Settings of which each row or the caption tells."""
_PARTS = (
    "batch: which rows, and making them a batch on the device; forward: with the loss; other: the "
    "learning rate, clearing gradients, and what mechanisms do after a step."
)
_LIMIT = (
    "Limit: matrix products, convolutions and fused attention of a step, by count, over what the "
    "machine does in a large matrix product of the same type in that time. Above 100: the machine "
    "was slower when that was measured; or a step does with less than is counted, as a causal "
    "kernel that skips half of the pairs does."
)
_WHOLE = (
    "Training: one seed, its steps at this rate, with all validations and the test; preparing data "
    "is not in it."
)
_WAITED = (
    "On a GPU the parts were timed one by one, the device waited for after each; in a whole step "
    "they overlap."
)
_MUCH_LONGER = 2.0
"""How many times as long a step at a new length takes before that is told."""


class _Profiled(NamedTuple):
    """A profile that ended well."""

    label: str
    """Mechanism, with its settings where several of it differ."""
    cell: ProfileCell
    record: Record

    @property
    def name(self) -> str:
        return f"{self.label} on {escape_controls(self.cell.data.task)}"

    def value(self, metric: str) -> float | None:
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


def profile_sections(selection: Selection) -> list[Section]:
    """Return a section for each scale, machine and device of the run's profiles; none without."""
    ceilings = Ceilings(selection.ceilings)
    sections = []
    for found, place, which in _by_setting(selection.others):
        id, title = f"profile{place}", f"Where a training step's time goes{which}"
        parts = _parts(id, found, ceilings)
        tables = (parts, _called(place, found))
        drawn = (profile_figure(parts, tuple(_SHOWN)),)
        sections.append(Section(id, title, tuple(_whole(found)), tables, drawn))
    return sections


def profile_spoken(selection: Selection) -> tuple[tuple[str, ...], Table | None] | None:
    """Return what to print of a run of profiles, with the table of its first setting; None where
    it has none, not even one that failed."""
    if not any(isinstance(record.cell, ProfileCell) for record in selection.others):
        return None
    settings = _by_setting(selection.others)
    told = [
        sentence
        for found, _, which in settings
        for sentence in (*_whole(found, which), *(_operators(one) for one in found))
    ]
    ceilings = Ceilings(selection.ceilings)
    table = _parts("profile", settings[0][0], ceilings) if settings else None
    return tuple(told), table


def _by_setting(records: Sequence[Record]) -> list[tuple[list[_Profiled], str, str]]:
    """The profiles that ended well by setting, each with what the ids and the titles of its
    section end in."""
    kept = [
        (record, record.cell)
        for record in records
        if isinstance(record.cell, ProfileCell) and record.status == "ok"
    ]
    labels = labelled([cell.mechanism for _, cell in kept])
    found: dict[tuple[str, ...], list[_Profiled]] = defaultdict(list)
    for label, (record, cell) in zip(labels, kept, strict=True):
        found[_setting(cell)].append(_Profiled(label, cell, record))
    settings = sorted(found)
    in_order = [found[setting] for setting in settings]
    return [
        (sorted(own, key=_place), *ending)
        for own, ending in zip(in_order, numbered(apart(settings)), strict=True)
    ]


def _setting(cell: ProfileCell) -> tuple[str, ...]:
    threads = (count(cell.threads, "thread"),) if cell.device == "cpu" else ()
    scale = f"scale {escape_controls(cell.scale)}"
    return scale, machine_words(cell.machine), *threads, f"torch {escape_controls(cell.torch)}"


def _place(one: _Profiled) -> tuple[str, str, bool, bool, str]:
    """By which rows are sorted: of one name, the usual type and execution first."""
    return one.cell.data.task, one.label, *_unusual(_how(one.cell)), one.record.id


def _how(cell: ProfileCell) -> tuple[str, str]:
    """`float32` and `eager`."""
    return cell.training.precision, cell.training.execution


def _unusual(how: tuple[str, str]) -> tuple[bool, bool]:
    precision, execution = how
    return execution != "eager", precision != "float32"


def _whole(found: Sequence[_Profiled], which: str = "") -> Iterator[str]:
    """How long one seed of each takes in all; in each type and execution, where a training was
    profiled in more than one."""
    known = [one for one in found if one.training is not None]
    which = which.replace(":", ",", 1)
    ways = sorted({_how(one.cell) for one in known}, key=_unusual)
    if len(ways) == 1 or len({one.name for one in known}) == len(known):
        yield from _takes(known, which)
        return
    for how in ways:
        own = [one for one in known if _how(one.cell) == how]
        yield from _takes(own, f"{which}, in {', '.join(how)},")


def _takes(known: Sequence[_Profiled], which: str) -> Iterator[str]:
    if known:
        whole = about(sum(one.training or 0.0 for one in known))
        of = known[0].name if len(known) == 1 else f"each of {len(known)} trainings"
        turns = "" if len(known) == 1 else " in all, one after the other"
        yield f"One seed of {of}{which} takes {whole}{turns}."


def _parts(id: str, found: Sequence[_Profiled], ceilings: Ceilings) -> Table:
    """What a step takes, and which shares its parts have."""
    first = found[0].cell
    shared, told = _told(found)
    rows = [
        Row(
            one.name,
            (
                _rate(one),
                *_shares(one),
                _percent(one.value("padding")),
                _limit(one, ceilings),
                _whole_training(one),
            ),
            note=note,
            mechanism=one.cell.mechanism.name,
            variant=one.label,
        )
        for one, note in zip(found, told, strict=True)
    ]
    return Table(
        id=id,
        title="A training step and its parts",
        caption=f"At {', '.join((*_setting(first), *shared))}. Steps a second over batches of all "
        "lengths, and the time of a step as the smaller figure or in brackets; its parts, padding "
        "among positions, and the share of the machine's limit, in percent. Training: how long one "
        "seed would take.",
        corner="mechanism and task",
        columns=("steps/s", *_SHOWN, "padding", "limit", "training"),
        rows=tuple(rows),
        notes=(
            _PARTS,
            _LIMIT,
            _WHOLE,
            *([_WAITED] if first.device == "cuda" else []),
            *_of_new_lengths(found),
        ),
    )


def _of_new_lengths(found: Sequence[_Profiled]) -> Iterator[str]:
    """Which steps take much longer at a length that the training has not met yet."""
    names = [one.name for one in found]
    slow = []
    for one in found:
        first, step = one.value("first_step_seconds"), one.value("step_seconds")
        if first and step and first >= _MUCH_LONGER * step:
            how = f" in {', '.join(_how(one.cell))}" if names.count(one.name) > 1 else ""
            slow.append(f"{one.name}{how} {quantity(first, 's')}")
    if slow:
        yield (
            "A step at a length that is new takes longer, which neither rate nor training counts: "
            f"{listing(slow)}."
        )


def _rate(one: _Profiled) -> Cell:
    rate, step = one.record.metrics.get("steps_per_second"), one.value("step_seconds")
    if rate is None or rate.value is None or not step:
        return Cell(NO_VALUE)
    low, high = rate.q1 or rate.value, rate.q3 or rate.value
    # Of an even number of stretches the median of the rates is not one over that of the times.
    return Cell(figures(1 / step, high - low), quantity(step, "s"), 1 / step, high - low)


def _shares(one: _Profiled) -> list[Cell]:
    """Of the sum of all parts, each."""
    seconds = {
        shown: sum(one.value(part_metric(part)) or 0.0 for part in parts)
        for shown, parts in _SHOWN.items()
    }
    whole = sum(seconds.values())
    return [_percent(part / whole if whole else None) for part in seconds.values()]


def _limit(one: _Profiled, ceilings: Ceilings) -> Cell:
    cell, step = one.cell, one.value("step_seconds")
    operations = one.value("operations")
    place = (machine_words(cell.machine), cell.threads, cell.torch, cell.training.precision)
    rates = ceilings.at((*place, cell.device))
    if rates is None or not step:
        return Cell("not known")
    return _percent(operations / step / rates[0]) if operations else Cell("not counted")


def _whole_training(one: _Profiled) -> Cell:
    seconds = one.training
    if seconds is None:
        return Cell(NO_VALUE)
    return Cell("< 1 s" if seconds < 1 else duration(seconds), value=seconds)


def _percent(share: float | None) -> Cell:
    return Cell(NO_VALUE) if share is None else Cell(figures(100 * share, most=2), value=share)


def _called(place: str, found: Sequence[_Profiled]) -> Table:
    """The operators that take most self time."""
    ranked = [_ranked(one) for one in found]
    most = max(map(len, ranked), default=0)
    rows = [
        Row(
            one.name,
            tuple(Cell(text) for text in (*own, *[""] * (most - len(own)))),
            note,
            mechanism=one.cell.mechanism.name,
            variant=one.label,
        )
        for one, own, note in zip(found, ranked, _told(found)[1], strict=True)
    ]
    where = "GPU" if found[0].cell.device == "cuda" else "CPU"
    return Table(
        id=f"operators{place}",
        title="Operators that take most self time",
        caption=f"Time of their own on the {where}, in percent of all operators', by "
        "torch.profiler. A name that torch does not have, such as _Read, is an autograd function "
        "of a mechanism's own.",
        corner="mechanism and task",
        columns=tuple(str(number) for number in range(1, most + 1)),
        rows=tuple(rows),
        numeric=False,
    )


def _ranked(one: _Profiled) -> list[str]:
    """`addmm 31 %`, the one with the most first."""
    whole = one.value("operators_seconds") or 0.0
    own: Mapping[str, Metric] = {
        escape_controls(name.removeprefix(OPERATOR)): metric
        for name, metric in one.record.metrics.items()
        if name.startswith(OPERATOR)
    }
    seconds = {name: metric.value for name, metric in own.items() if metric.value}
    return [
        f"{name} {figures(100 * seconds[name] / whole, most=2)} %"
        for name in sorted(seconds, key=lambda name: -(seconds[name] or 0.0))
        if whole
    ]


def _operators(one: _Profiled) -> str:
    kernels = one.value("kernels")
    launched = f"; {kernels:,.0f} kernels a step" if kernels else ""
    ranked = _ranked(one)
    most = listing(ranked) if ranked else "no operator that torch sees"
    return f"{one.name}: most self time in {most}{launched}."


def _told(found: Sequence[_Profiled]) -> tuple[list[str], list[str]]:
    """How steps were made: what all share, and of each what not all do."""
    every = [_step_words(one.cell) for one in found]
    shared = [word for word in every[0] if all(word in words for words in every)]
    own = [[word for word in words if word not in shared] for words in every]
    told = [
        ", ".join([*words, *([further] if further else [])])
        for words, further in zip(own, _differences(found), strict=True)
    ]
    return shared, told


def _step_words(cell: ProfileCell) -> list[str]:
    training = cell.training
    return [
        f"batch {training.batch}",
        f"length {cell.data.length}",
        training.precision,
        training.execution,
        count(training.steps, "step"),
    ]


def _differences(found: Sequence[_Profiled]) -> list[str]:
    """What else tells profiles of one name apart, for each."""
    alike: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(found):
        alike[one.name].append(number)
    told = [""] * len(found)
    for numbers in alike.values():
        cells = [found[n].cell for n in numbers]
        fields = [flat({"data": c.data, "model": c.model, "training": c.training}) for c in cells]
        further = [{k: v for k, v in own.items() if k not in _IN_WORDS} for own in fields]
        for number, words in zip(numbers, differing(further), strict=True):
            told[number] = words
    return told
