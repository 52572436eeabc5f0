"""Errors of approximations against exact softmax attention, by length, budget and input scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lra.core.escape import escape_controls
from lra.report.analysis import Analysis
from lra.report.errors import ROUNDING, At, Error, Errors, errors
from lra.report.load.frame import ERRORS
from lra.report.model import Section, Table, Value, drawn, there
from lra.report.plots.error import budget_figure, scale_figure
from lra.report.rows import Key, missing, of_the_run_first, reference_notes
from lra.report.words import NOT_RUN, TIMES, apart, count, figures, listing, percent, span

_NAMED = 3
"""Number of mechanisms that a sentence names, and of settings with a sentence."""


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting of sizes."""
    found = errors(analysis.evidence)
    return [
        section
        for one, title in zip(found, titles(found), strict=True)
        for section in of_the_run_first(present(one, title, analysis))
    ]


def titles(found: Sequence[Errors]) -> list[str]:
    """Return the sizes of each setting, with the scale where two are otherwise the same."""
    parts = [one.setting.parts for one in found]
    return [
        ", ".join((*own, f"scale {one.setting.scale}") if parts.count(own) > 1 else own)
        for own, one in zip(parts, found, strict=True)
    ]


def present(one: Errors, title: str, analysis: Analysis) -> Section:
    """Return the tables of a setting: one input scale at all lengths, the others at the longest."""
    return Section(
        topic="Error",
        setting=title,
        tables=there([_table(one), _scales(one)]),
        figures=drawn([budget_figure(one, analysis.looks), scale_figure(one, analysis.looks)]),
    )


def _table(one: Errors) -> Table:
    longest = one.lengths[-1]
    rows = []
    for key in one.keys:
        outputs = [one.output(key, one.scale, length) for length in one.lengths]
        at = At(key, one.scale, longest)
        gradients = [one.values.get((at, metric)) for metric in ERRORS[1:]]
        if any(found is not None for found in (*outputs, *gradients)):
            values = [_value(found) for found in outputs]
            rows.append(key.row([*values, *(_value(found, brief=True) for found in gradients)]))
    return Table(
        id=f"error-{one.setting.id}",
        title=f"Relative error, inputs {TIMES} {one.scale:g}",
        caption="Norm of the difference from softmax attention in float64 over the norm of its "
        f"result, by length; gradients at length {longest:,}. 1 is as far off as zeros.",
        corner="mechanism",
        columns=(
            *(f"{length:,}" for length in one.lengths),
            *(f"gradient, {metric[-1]}" for metric in ERRORS[1:]),
        ),
        rows=tuple(rows),
        notes=(*_seeds(one), *_own_keys(one), *reference_notes(one.figures, one.keys)),
    )


def _scales(one: Errors) -> Table | None:
    """Table of the output's error at the other input scales."""
    scales, longest = [scale for scale in one.scales if scale != one.scale], one.lengths[-1]
    rows = []
    for key in one.keys:
        outputs = [one.output(key, scale, longest) for scale in scales]
        if any(found is not None for found in outputs):
            rows.append(key.row([_value(found, brief=True) for found in outputs]))
    if not rows:
        return None
    return Table(
        id=f"error-scales-{one.setting.id}",
        title=f"Relative error of the output at length {longest:,}, by input scale",
        caption="Queries and keys are N(0, 1) times the factor above.",
        corner="mechanism",
        columns=tuple(f"{TIMES} {scale:g}" for scale in scales),
        rows=tuple(rows),
    )


def _value(found: Error | None, *, brief: bool = False) -> Value:
    """Mean over seeds with the digits that their spread supports."""
    if found is None:
        return Value(NOT_RUN)
    if math.isnan(found.mean):
        return missing(found.endings)
    spread = None if brief or math.isnan(found.spread) else found.spread
    return Value(ratio_text(found.mean, spread), "", found.mean)


def ratio_text(value: float, spread: float | None = None) -> str:
    """Return a relative error with two digits, or three where its spread supports them; far from 1
    as a power: `0.123`, `1.3e-07`."""
    if 0 < value < 1e-3 or value >= 1e4:
        return f"{value:.1e}"
    return figures(value, spread, most=2 if spread is None else 3)


def _seeds(one: Errors) -> list[str]:
    own = [
        error
        for (at, metric), error in one.values.items()
        if at.scale == one.scale and metric == ERRORS[0]
    ]
    numbers = {error.n for error in own if error.n} or {0}
    if max(numbers) < 2:
        return ["One seed each."]
    spreads = [e.spread / e.mean for e in own if e.mean > 0 and not math.isnan(e.spread)]
    far = f", up to {percent(max(spreads), 1)} % of the mean apart" if spreads else ""
    return [f"Means of {span(numbers)} seeds{far}."]


def _own_keys(one: Errors) -> list[str]:
    if not one.own_keys:
        return []
    verb = "is" if len(one.own_keys) == 1 else "are"
    names = listing([escape_controls(name) for name in one.own_keys])
    return [f"{names} {verb} compared with softmax attention over own keys and pairs."]


def sentences(analysis: Analysis) -> list[str]:
    """Return the run's mechanisms nearest to softmax attention, with their budgets, in
    sentences."""
    found = errors(analysis.evidence)
    found = [one for one in found if (one.figures["origin"] == "run").any()]
    if len(found) > _NAMED:
        return [f"Errors against exact softmax attention at {len(found)} settings: see Error."]
    names = apart([(*one.setting.parts, f"scale {one.setting.scale}") for one in found])
    told = []
    for one, name in zip(found, names, strict=True):
        best: dict[str, tuple[float, Key]] = {}
        for key in one.keys:
            error = one.output(key, one.scale, one.lengths[-1])
            if key.origin != "run" or key.mechanism in one.own_keys or error is None:
                continue
            if error.mean > ROUNDING[one.setting.dtype]:
                own = (error.mean, key)
                best[key.mechanism] = min(own, best.get(key.mechanism, own))
        if best:
            start = f"{name}: r" if name else "R"
            nearest = _nearest(sorted(best.values()))
            told.append(
                f"{start}elative error against exact softmax attention at length "
                f"{one.lengths[-1]:,}, inputs {TIMES} {one.scale:g}: {nearest}."
            )
    return told


def _nearest(ranked: Sequence[tuple[float, Key]]) -> str:
    """Words for approximations nearer than an output of zeros, whose error is 1: to be nearest
    beyond that is no merit."""
    named = [f"{key.label} {ratio_text(error)}" for error, key in ranked]
    near = sum(error < 1.0 for error, _ in ranked)
    if near == len(ranked) <= _NAMED:
        return listing(named)
    told = (
        f"{near} of {count(len(ranked), 'approximation')} nearer than an output of zeros (error 1)"
    )
    return f"{told}, nearest {listing(named[: max(1, min(near, _NAMED))])}"
