"""The table model: one measured quantity of one cell per entry, in long form.

Every table, plot, sentence and the CSV are made of these and of nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import msgspec

from lra.core.cells import BaselineCell, EfficiencyCell, ErrorCell, MeasuredCell, QualityCell
from lra.core.escape import escape_controls
from lra.core.hashing import value_hash
from lra.core.records import Metric, Record
from lra.report.versions import Pairs, data_hash, measuring, mechanism
from lra.report.words import STATUS, ending, machine_words

Origin = Literal["run", "reference"]
"""run: the store being reported. reference: the committed rows put beside it."""
Busy = Collection[tuple[Origin, str]]
"""Origins and ids of timings taken while the machine was busy."""

ERRORS = ("output_error", "gradient_error_q", "gradient_error_k", "gradient_error_v")
TIMES_OF_CALLS = ("latency", "prefill")
"""Metrics of which nothing truly takes no time."""
PEAK_MEMORY = {"cpu": "peak_resident_bytes", "cuda": "peak_allocated_bytes"}


_OfData = QualityCell | BaselineCell
"""Cells that have data, and its length; others have a length of their own."""
_KINDS: dict[type[MeasuredCell], Literal["quality", "efficiency", "error"]] = {
    QualityCell: "quality",
    EfficiencyCell: "efficiency",
    ErrorCell: "error",
}


class Kept(msgspec.Struct, frozen=True):
    """A record that takes part in the report."""

    origin: Origin
    label: str
    """Mechanism with what sets it apart from others of that name; "" for simple baselines."""
    record: Record
    rates_tried: tuple[float, ...] = ()
    """Of the tuned track: the learning rates that its own was chosen among."""
    disturbed: bool = False
    """Whether the machine was busy at a timing."""

    @property
    def cell(self) -> MeasuredCell:
        """What was measured."""
        return measured(self.record)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity of one cell: what was asked, what answered, and the figure or why there is none.

    What does not apply to the kind of cell is None or "".
    """

    origin: Origin
    kind: Literal["quality", "baseline", "efficiency", "error"]
    label: str
    """Row of a table: the mechanism, or the simple baseline."""
    mechanism: str = ""
    config: str = ""
    """Of the mechanism, as JSON."""
    scale: str
    rules: str = ""
    track: str = ""
    task: str = ""
    source: str = ""
    order: str = ""
    """Of the tokens of each sequence; shuffled ones are a control, and no column of accuracies."""
    data_hash: str = ""
    """Hash of all that was asked of the data, and of the version that made or read it."""
    length: int
    test_rows: int | None = None
    mode: str = ""
    level: str = ""
    direction: str = ""
    batch: int | None = None
    heads: int | None = None
    head_width: int | None = None
    dtype: str = ""
    execution: str = ""
    model: str = ""
    """Settings of a whole model that was timed, as JSON."""
    input_scale: float | None = None
    device: str = ""
    devices: int | None = None
    """GPUs, or processes on a CPU, that shared a training; None where its record does not say."""
    seed: int | None = None
    learning_rate: float | None = None
    rates_tried: str = ""
    """Of the tuned track: those that this one was chosen among, a comma between them."""
    replicate: int | None = None
    machine: str
    threads: int
    torch: str
    status: str
    metric: str
    value: float | None
    unit: str
    better: str
    disturbed: bool | None = None
    """Whether a timing was taken while the machine was busy: not to be trusted."""
    samples: int = 0
    q1: float | None = None
    q3: float | None = None
    minimum: float | None = None
    word: str = ""
    """What stands in a table where there is no value: `OOM`, `not measured`."""
    reason: str = ""
    """Why there is no value, where the word alone does not say it."""
    declared: str = ""
    """How a time or a size grows with length, as the mechanism's card has it."""
    parameters: int | None = None
    best_step: int | None = None
    protocol: str = ""
    """Hash of scale, track, data, model and training: accuracies of one protocol share a column.
    For simple baselines of the data alone."""
    mechanism_version: str = ""
    """Hash of the sources of other people's, and of cells that cost seconds."""
    measured_by: Pairs
    """Versions of all else that the figure rests on."""
    started_at: str
    record: str


def measured(record: Record) -> MeasuredCell:
    """Return the cell of a record that measured something."""
    assert isinstance(record.cell, MeasuredCell), "checks and pictures have sections of their own"
    return record.cell


def protocol_hash(cell: QualityCell) -> str:
    """Return the hash of what cells must share for their accuracies to be compared: of tuned ones
    all but the learning rate."""
    training: object = cell.training
    if cell.track == "tuned":
        training = {**msgspec.to_builtins(cell.training), "learning_rate": "tuned"}
    return value_hash([cell.scale, cell.track, data_hash(cell), cell.model, training])


def entries(kept: Kept) -> Iterator[Entry]:
    """Yield a record's entries: its metrics, and those a cell of its kind should have but has not.

    A cell that is not ok has no headline figure, whatever its record holds.
    """
    record = kept.record
    # Which baselines a task has is known once there are some.
    known = isinstance(kept.cell, BaselineCell) and record.status == "ok"
    expected = {} if known else _expected(kept.cell)
    whole = _whole(kept)
    for name, metric in sorted({**dict.fromkeys(expected), **record.metrics}.items()):
        if record.status != "ok" and name in expected:
            metric = None
        yield _entry(whole, kept, name, metric)


def _expected(cell: MeasuredCell) -> dict[str, Metric]:
    """The headline metrics of a kind of cell, as they stand where nothing was measured."""
    if isinstance(cell, QualityCell):
        if cell.metric == "bits_per_byte":
            return {"bits_per_byte": Metric(value=None, unit="bit")}
        return {"test_accuracy": Metric(value=None, unit="share", better="higher")}
    if isinstance(cell, BaselineCell):
        share = Metric(value=None, unit="share", better="higher")
        return {"majority": share, "bag_of_tokens": share}
    if isinstance(cell, ErrorCell):
        return dict.fromkeys(ERRORS, Metric(value=None, unit="ratio"))
    seconds, size = Metric(value=None, unit="s"), Metric(value=None, unit="B")
    of_decoding = {"prefill": seconds, "state_bytes": size} if cell.mode == "decode" else {}
    return {"latency": seconds, PEAK_MEMORY[cell.device]: size, **of_decoding}


def _entry(whole: Entry, kept: Kept, name: str, metric: Metric | None) -> Entry:
    """Put one metric into what a record's entries share."""
    record = kept.record
    word, reason = "", ""
    if metric is None:
        metric = _expected(kept.cell)[name]
        word = ending(record.status, record.failure)
        reason = escape_controls(record.failure.message) if record.failure else ""
        if record.status == "ok":
            word, reason = "not measured", "not in the record"
    elif metric.value is None:
        word, reason = "not measured", escape_controls(metric.why_null or "no reason given")
    elif name in TIMES_OF_CALLS and metric.value <= 0:
        word, reason = "not measured", f"{metric.value:g} s by a clock that is too coarse"
    return msgspec.structs.replace(
        whole,
        label=kept.label or escape_controls(name.replace("_", " ")),
        metric=name,
        value=None if word else metric.value,
        unit=metric.unit,
        better=metric.better,
        samples=len(metric.samples),
        q1=metric.q1,
        q3=metric.q3,
        minimum=metric.minimum,
        word=word,
        reason=reason,
        declared=_declared(record, name),
    )


def _whole(kept: Kept) -> Entry:
    """Return what the entries of a record share, without a metric."""
    record, cell = kept.record, kept.cell
    common = Entry(
        origin=kept.origin,
        kind="baseline",
        label=kept.label,
        scale=cell.scale,
        length=cell.data.length if isinstance(cell, _OfData) else cell.length,
        machine=machine_words(cell.machine),
        threads=cell.threads,
        torch=cell.torch,
        status=STATUS[record.status],
        metric="",
        value=None,
        unit="",
        better="",
        parameters=record.parameters,
        best_step=record.best_step,
        measured_by=measuring(cell),
        started_at=record.started_at,
        record=record.id,
    )
    return _with_cell(common, kept)


def _declared(record: Record, metric: str) -> str:
    """What the record says that the card says; empty where it does not."""
    if not isinstance(record.cell, EfficiencyCell) or record.cell.mode == "decode":
        # A card speaks of a whole call, not of one position more.
        return ""
    names = {"latency": "declared_time", PEAK_MEMORY[record.cell.device]: "declared_memory"}
    found = record.method.get(names.get(metric, ""), "")
    return escape_controls(found) if isinstance(found, str) else ""


def _with_cell(entry: Entry, kept: Kept) -> Entry:
    cell, replace = kept.cell, msgspec.structs.replace
    if not isinstance(cell, BaselineCell):
        entry = replace(
            entry,
            kind=_KINDS[type(cell)],
            mechanism=cell.mechanism.name,
            config=config_text(cell.mechanism.config),
            mechanism_version=mechanism(cell),
            device=cell.device,
        )
    if isinstance(cell, _OfData):
        entry = replace(
            entry,
            task=cell.data.task,
            source=cell.data.source,
            order=cell.data.order,
            data_hash=data_hash(cell),
            rules=cell.data.rules,
            test_rows=(kept.record.rows or cell.data.rows).test,
        )
    if isinstance(cell, QualityCell):
        return replace(
            entry,
            track=cell.track,
            batch=cell.training.batch,
            heads=cell.model.heads,
            head_width=cell.model.qkv_width // cell.model.heads,
            dtype=cell.training.precision,
            direction="causal" if cell.model.causal else "bidirectional",
            devices=_number(kept.record, "devices"),
            seed=cell.seed,
            learning_rate=cell.training.learning_rate,
            rates_tried=", ".join(f"{rate:g}" for rate in kept.rates_tried),
            protocol=protocol_hash(cell),
        )
    if isinstance(cell, BaselineCell):
        return replace(entry, protocol=data_hash(cell))
    entry = replace(
        entry,
        direction=cell.direction,
        batch=cell.batch,
        heads=cell.heads,
        head_width=cell.head_width,
        dtype=cell.dtype,
    )
    if isinstance(cell, ErrorCell):
        return replace(entry, input_scale=cell.input_scale, seed=cell.seed)
    return replace(
        entry,
        task=cell.task,
        mode=cell.mode,
        level=cell.level,
        execution=cell.execution,
        model="" if cell.model is None else config_text(msgspec.to_builtins(cell.model)),
        replicate=cell.replicate,
        disturbed=kept.disturbed,
    )


def _number(record: Record, name: str) -> int | None:
    """Return a number that a record says of its method; None where it does not."""
    found = record.method.get(name)
    return found if isinstance(found, int) else None


def config_text(config: Mapping[str, Any]) -> str:
    """Return settings, of a mechanism or a model, as JSON with sorted keys."""
    return msgspec.json.encode(config, order="sorted").decode()
