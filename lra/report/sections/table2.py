"""LRA's Table 2 and own figures: speed and memory of a training step of its text model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import pandas as pd

from lra.core import published
from lra.core.catalogue import EXACT
from lra.core.published import Efficiency, Figure
from lra.report.analysis import Analysis
from lra.report.costs import Costs
from lra.report.load.frame import PEAK_MEMORY
from lra.report.load.settings import CostSetting
from lra.report.model import Section, Table, Value
from lra.report.rows import Key, missing, of, reference_notes, row_keys
from lra.report.words import NO_VALUE, TIMES, apart, figures, listing, scale_of

_TASK, _SCALE = "text", "paper"


class OwnFigures(msgspec.Struct, frozen=True):
    """Our figures of one setting at LRA's lengths."""

    setting: CostSetting
    keys: tuple[Key, ...]
    lengths: tuple[int, ...]
    places: pd.DataFrame
    """Pooled costs of training steps."""
    figures: pd.DataFrame


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting with steps of the text model at LRA's lengths."""
    paper = published.efficiency("lra_table2")
    found = analyse(analysis.costs, paper)
    names = apart([one.setting.parts for one in found])
    return [
        present(one, name or ", ".join(one.setting.where), paper)
        for one, name in zip(found, names, strict=True)
    ]


def analyse(costs: Costs, paper: Efficiency) -> list[OwnFigures]:
    """Return our figures by setting, for those in which the run has some."""
    found = []
    for setting in costs.settings:
        asked = (setting.scale, setting.level, setting.task, setting.direction)
        if asked != (_SCALE, "model", _TASK, "bidirectional"):
            continue
        sides = []
        for frame in (costs.pooled, costs.figures):
            own = frame[(frame["setting"] == setting.id) & (frame["mode"] == "train")]
            sides.append(own[own["length"].isin(paper.lengths)])
        places, own = sides
        if (own["origin"] == "run").any():
            lengths = tuple(sorted(set(own["length"])))
            timed = own[own["metric"] == "latency"]
            found.append(OwnFigures(setting, tuple(row_keys(timed)), lengths, places, own))
    return found


def present(one: OwnFigures, name: str, paper: Efficiency) -> Section:
    """Return the tables of a setting's speeds and memory, with LRA's."""
    dropout = one.setting.model is not None and one.setting.model.attention_dropout > 0
    unfused = one.setting.device == "cpu" and dropout
    fused = "also unfused, on a CPU with dropout on its weights" if unfused else "fused"
    return Section(
        topic="LRA's Table 2",
        level="appendix",
        setting=name,
        text=(
            f"There: {paper.source}: {paper.protocol}.",
            "Hardware, framework, size of the model and settings of mechanisms are others there; "
            f"its Transformer was unfused, {EXACT} here is {fused}. Its memory is one device's, "
            "ours the whole batch's above what is held before.",
        ),
        tables=(_speed(one, paper), _memory(one, paper)),
    )


def _speed(one: OwnFigures, paper: Efficiency) -> Table:
    def value(key: Key, place: pd.Series | None, length: int) -> Value:
        theirs = _published(paper, key.mechanism, length, "steps")
        if place is None or pd.isna(place.value):
            return Value(_word(place), theirs)
        if key.mechanism == paper.exact:
            steps = f"{figures(1 / place.value, most=2)} a second"
            return Value("1", _joined(steps, theirs), 1.0, disturbed=place.disturbed)
        if pd.isna(place.ratio):
            return Value(NO_VALUE, theirs)
        faster = 1 / place.ratio
        spread = faster * place.ratio_spread / place.ratio
        text = figures(faster, spread)
        return Value(text, theirs, faster, disturbed=place.ratio_disturbed)

    return _table(
        one, "latency", value,
        id=f"table-2-speed-{one.setting.id}",
        title=f"Training steps a second, over those of {EXACT}",
        caption="More is faster. Below ours LRA's, against its own Transformer.",
        notes=[*_suspects(paper, one, "steps"), *_unknown(paper, one)],
    )  # fmt: skip


def _memory(one: OwnFigures, paper: Efficiency) -> Table:
    metric = PEAK_MEMORY[one.setting.device]
    known = one.places[one.places["metric"] == metric]["value"].dropna()
    size, symbol = scale_of(list(known), "B")

    def value(key: Key, place: pd.Series | None, length: int) -> Value:
        theirs = _published(paper, key.mechanism, length, "gigabytes")
        if place is None or pd.isna(place.value):
            return Value(_word(place), theirs)
        is_base = key.mechanism == paper.exact or pd.isna(place.ratio)
        beside = "" if is_base else f"{figures(place.ratio, most=2)}{TIMES}"
        text = figures(place.value / size, (place.high - place.low) / size)
        return Value(text, _joined(beside, theirs), place.value)

    return _table(
        one, metric, value,
        id=f"table-2-memory-{one.setting.id}",
        title=f"Peak memory of a training step, in {symbol}",
        caption=f"With its ratio to {EXACT}; then LRA's, with that to its Transformer.",
        notes=_suspects(paper, one, "gigabytes"),
    )  # fmt: skip


def _table(
    one: OwnFigures,
    metric: str,
    value: Callable[[Key, pd.Series | None, int], Value],
    *,
    id: str,
    title: str,
    caption: str,
    notes: Iterable[str],
) -> Table:
    own = one.places[one.places["metric"] == metric]
    rows = []
    for key in one.keys:
        places = {int(place.length): place for _, place in of(own, key).iterrows()}
        rows.append(key.row([value(key, places.get(n), n) for n in one.lengths]))
    return Table(
        id=id,
        title=title,
        caption=caption,
        corner="mechanism",
        columns=tuple(f"{length:,}" for length in one.lengths),
        rows=tuple(rows),
        notes=(*notes, *reference_notes(one.figures, one.keys)),
    )


def _word(place: pd.Series | None) -> str:
    return missing(place.endings if place is not None else (), asked=place is not None).text


def _published(paper: Efficiency, mechanism: str, length: int, figure: Figure) -> str:
    """Published figure: `1.7`, `0.42 GB 0.49x`, `LRA 8.1` steps a second; one that may be a
    misprint is marked."""
    if mechanism not in paper.rows:
        return ""
    own, base, place = paper.rows[mechanism], paper.rows[paper.exact], paper.lengths.index(length)
    if figure == "gigabytes":
        share = own.gigabytes[place] / base.gigabytes[place]
        text = f"{own.gigabytes[place]:.2f} GB"
        text += "" if own is base else f" {share:.2f}{TIMES}"
    else:
        text = f"LRA {own.steps[place]:.1f}" if own is base else f"{own.ratios[place]:.1f}"
    return text + ("?" if paper.suspect(mechanism, length, figure) else "")


def _suspects(paper: Efficiency, one: OwnFigures, figure: Figure) -> list[str]:
    here = {key.mechanism for key in one.keys}
    why = [
        suspect.why
        for suspect in paper.suspects
        if suspect.figure == figure and suspect.row in here and suspect.length in one.lengths
    ]
    return [f"?: perhaps a slip in the publication: {listing(why)}."] if why else []


def _unknown(paper: Efficiency, one: OwnFigures) -> list[str]:
    """Sentence on LRA's rows that were not measured."""
    lacking: Sequence[str] = [n for n in paper.rows if n not in {key.mechanism for key in one.keys}]
    return [f"Rows of LRA's not run here: {listing(lacking)}."] if lacking else []


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
