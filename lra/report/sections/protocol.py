"""Protocols of trainings: data, model and training of each task, and sizes of the models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from lra.core.catalogue import EXACT
from lra.core.cells import QualityCell
from lra.core.dataset import SPLITS
from lra.core.escape import escape_controls
from lra.report.accuracy import Accuracies, Column, scored
from lra.report.analysis import Analysis
from lra.report.load.measurement import protocol_hash
from lra.report.load.select import Evidence
from lra.report.model import Row, Section, Table, Value, there
from lra.report.rows import missing, of, row_keys
from lra.report.words import NO_VALUE, flat, plain

UNEQUAL = 0.1
"""Parameter counts further than this share from exact attention's are marked."""
_HASH = 12
"""Letters of a hash in the table; the CSV has it whole."""
_RATE = "training.learning_rate"
_GROUPS = {"Model": "model.", "Training": "training."}


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of accuracies and of losses; the first gives model and
    training in full, the others their differences from it."""
    found: list[Section] = []
    first: dict[str, str] = {}
    told: dict[tuple[str, ...], str] = {}
    for scores in analysis.accuracies:
        settings = [_settings(column, analysis.evidence) for column in scores.columns]
        shared = {k: v for k, v in settings[0].items() if all(o.get(k) == v for o in settings)}
        section = present(scores, settings, shared, first, analysis.evidence)
        if section.text in told:
            same = (f"Model and training are those of {told[section.text]}.",)
            section = msgspec.structs.replace(section, text=same)
        elif section.text:
            told[section.text] = section.setting
        found.append(section)
        first = first or shared
    return found


def present(
    scores: Accuracies,
    settings: Sequence[Mapping[str, str]],
    shared: Mapping[str, str],
    first: Mapping[str, str],
    evidence: Evidence,
) -> Section:
    """Return the protocol of each task in tables; the settings that all tasks share are in the
    text."""
    keys = dict.fromkeys(key for one in settings for key in one)
    varying = [key for key in keys if key not in shared]
    said = {key: value for key, value in shared.items() if first.get(key) != value}
    return Section(
        topic="Protocol",
        level="appendix",
        setting=", ".join(scores.parts),
        text=tuple(
            text
            for title, prefix in _GROUPS.items()
            if (text := _shared(title, prefix, said, is_rest=bool(first)))
        ),
        tables=there([_tasks(scores, settings, varying), _parameters(scores, evidence)]),
    )


def _settings(column: Column, evidence: Evidence) -> dict[str, str]:
    found = flat({"model": column.cell.model, "training": column.cell.training})
    if column.cell.track == "tuned":
        tried = sorted(
            {
                rate
                for one in evidence.measurements
                if isinstance(one.cell, QualityCell) and protocol_hash(one.cell) == column.protocol
                for rate in one.rates_tried
            }
        )
        found[_RATE] = f"the best by validation of {', '.join(f'{rate:g}' for rate in tried)}"
    return found


def _shared(title: str, prefix: str, said: Mapping[str, str], *, is_rest: bool) -> str:
    parts = [
        f"{key.removeprefix(prefix).replace('_', ' ')} {text}"
        for key, text in said.items()
        if key.startswith(prefix)
    ]
    start = f"{title}, else as above" if is_rest else title
    return f"{start}: {', '.join(parts)}." if parts else ""


def _tasks(
    scores: Accuracies, settings: Sequence[Mapping[str, str]], varying: Sequence[str]
) -> Table:
    titles = [key.rpartition(".")[2].replace("_", " ") for key in varying]
    rows = []
    for column, one in zip(scores.columns, settings, strict=True):
        given = column.cell.data.parameters
        generator = [
            f"{escape_controls(k)} {plain(v)}" for k, v in sorted(given.items()) if v is not None
        ]
        texts = [
            f"{column.cell.data.length:,}",
            " / ".join(f"{column.rows.of(split):,}" for split in SPLITS),
            column.data[:_HASH],
            *(one.get(key, NO_VALUE) for key in varying),
            ", ".join(generator) or "defaults",
        ]
        if column.cell.data.source != "generated":
            texts[-1] = "none: real data"
        rows.append(Row(column.title, tuple(map(Value, texts))))
    return Table(
        id=f"protocol-{scores.id}",
        title="Tasks",
        caption="",
        corner="task",
        columns=("length", f"rows: {' / '.join(SPLITS)}", "data hash", *titles, "generator"),
        rows=tuple(rows),
        legend=("Rows of each split, and settings in which tasks differ.",),
        numeric=False,
    )


def _parameters(scores: Accuracies, evidence: Evidence) -> Table | None:
    """Table of numbers of parameters over the tasks, where they differ from exact attention's; None
    where none does."""
    pooled = scores.pooled
    exact = pooled[(pooled["mechanism"] == EXACT) & pooled["parameters"].notna()]
    # The run's come last and override others.
    exact = exact.sort_values("origin")
    sizes_of = dict(zip(exact["protocol"], exact["parameters"], strict=True))
    rows = []
    for key in row_keys(scored(evidence, scores)):
        mine = of(pooled, key)
        known = mine[mine["parameters"].notna()]
        if known.empty:
            lost = [one for endings in mine["endings"] for one in endings]
            rows.append(key.row([missing(lost) if lost else Value(NO_VALUE)]))
            continue
        pairs = list(zip(known["protocol"], known["parameters"], strict=True))
        off = [size / sizes_of[protocol] - 1.0 for protocol, size in pairs if protocol in sizes_of]
        if any(off) or not off:
            most = max(off, key=abs, default=0.0)
            note = f"{100 * most:+.0f} %" if abs(most) > UNEQUAL else ""
            sizes = [size for _, size in pairs]
            rows.append(key.row([Value(_ends(sizes), note, float(max(sizes)))]))
    if not rows:
        return None
    others = f"{_ends(sizes_of.values())} of {EXACT} and the others." if sizes_of else ""
    return Table(
        id=f"parameters-{scores.id}",
        title="Trainable parameters",
        caption=others,
        corner="mechanism",
        columns=("parameters",),
        rows=tuple(rows),
        legend=(
            "Whole models over the tasks, unused parts included. The difference from "
            f"{EXACT} is said where above {100 * UNEQUAL:.0f} %.",
        ),
    )


def _ends(sizes: Iterable[float]) -> str:
    known = list(sizes)
    return " to ".join(f"{int(size):,}" for size in sorted({min(known), max(known)}))
