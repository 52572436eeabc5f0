"""Errors of approximations pooled over seeds, by mechanism, budget, input scale and length."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import pandas as pd

from lra.core.catalogue import EXACT, NO_MIXING
from lra.report.load.frame import ERRORS
from lra.report.load.measurement import Origin
from lra.report.load.select import Evidence
from lra.report.load.settings import ErrorSetting
from lra.report.load.variants import distinguishing_settings, in_force
from lra.report.rows import Key, row_keys

ROUNDING = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
"""Relative error, by dtype, below which it is rounding: a mechanism with such an error is no
approximation."""
_OUTPUT = ERRORS[0]


class At(NamedTuple):
    """Place of an error: a row at an input scale and a length."""

    key: Key
    scale: float
    length: int


class Error(NamedTuple):
    """One metric at one place, over seeds."""

    mean: float
    """Mean over seeds; NaN where some seed has no figure."""
    spread: float
    n: int
    endings: tuple[tuple[str, str, str], ...]


class BudgetCurve(msgspec.Struct, frozen=True):
    """Error of one mechanism's output at one length and input scale, over its budgets."""

    key: Key
    """Row of the smallest budget."""
    title: str
    """Name of the mechanism, with settings outside of the budget where it has several of them."""
    budget: str
    """Names of the settings whose sum is the budget: `features`, `left + right`."""
    points: tuple[tuple[float, float], ...]
    """Budgets and errors, smallest budget first."""
    rate: float | None
    """Declared exponent: the error falls as budget^-rate; None where nothing is declared."""


class ScaleCurve(msgspec.Struct, frozen=True):
    """Error of one mechanism's output at its largest budget and one length, by input scale."""

    key: Key
    points: tuple[tuple[float, float], ...]
    """Input scales and errors, smallest scale first."""
    law: tuple[tuple[float, float], ...]
    """Input scales and predicted errors, where these are below 1: a first-order law holds no
    further."""


class Errors(msgspec.Struct, frozen=True):
    """The errors of one setting of sizes."""

    setting: ErrorSetting
    keys: tuple[Key, ...]
    """Rows: budgets of a mechanism in order, exact attention and the floor last."""
    scales: tuple[float, ...]
    lengths: tuple[int, ...]
    values: dict[tuple[At, str], Error]
    """Errors by place and metric."""
    own_keys: tuple[str, ...]
    """Mechanisms compared with softmax attention over keys of their own, which is no other
    mechanism's exact result."""
    budgets: tuple[BudgetCurve, ...]
    """Curves at the longest length and the scale shown, for rows measured at two budgets or
    more."""
    by_scale: tuple[ScaleCurve, ...]
    figures: pd.DataFrame

    @property
    def scale(self) -> float:
        """Input scale that stands for all: 1, or the smallest."""
        return min(self.scales, key=lambda scale: (scale != 1.0, scale))

    def output(self, key: Key, scale: float, length: int) -> Error | None:
        """Return the error of the output; None where it was not asked for."""
        return self.values.get((At(key, scale, length), _OUTPUT))


def errors(evidence: Evidence) -> list[Errors]:
    """Return the errors of each setting, the one with the most figures of the run first."""
    frame = evidence.figures
    own = frame[(frame["kind"] == "error") & frame["metric"].isin(ERRORS)]
    found = []
    for id, group in own.groupby("setting", sort=True):
        setting = evidence.settings[str(id)]
        assert isinstance(setting, ErrorSetting), "only error cells have errors"
        found.append(_errors(evidence, setting, group))

    def place(one: Errors) -> tuple[Any, ...]:
        mine = int((one.figures["origin"] == "run").sum())
        sizes = (one.setting.batch, one.setting.heads, one.setting.head_width, one.setting.scale)
        return (-mine, one.setting.direction, *sizes, one.setting.id)

    return sorted(found, key=place)


def _errors(evidence: Evidence, setting: ErrorSetting, group: pd.DataFrame) -> Errors:
    records = group.drop_duplicates(["origin", "variant"])
    configs = {
        (origin, variant): json.loads(config)
        for origin, variant, config in zip(
            records["origin"], records["variant"], records["config"], strict=True
        )
    }
    keys = sorted(row_keys(group), key=lambda key: _place(key, configs[key.origin, key.variant]))
    by_id = {(str(key.origin), key.variant): key for key in keys}
    values: dict[tuple[At, str], Error] = {}
    methods: dict[At, list[Mapping[str, Any]]] = defaultdict(list)
    where = ["origin", "variant", "input_scale", "length", "metric"]
    for place, seeds in group.groupby(where, sort=True):
        origin, variant, scale, length, metric = cast(tuple[str, str, float, int, str], place)
        if (origin, variant) in by_id:
            at = At(by_id[origin, variant], scale, length)
            values[at, metric] = _pooled(seeds)
            if metric == _OUTPUT:
                methods[at] = [evidence.records[origin, id].method for id in seeds["record"]]
    scales, lengths = (tuple(sorted(set(group[name]))) for name in ("input_scale", "length"))
    found = Errors(
        setting=setting,
        keys=tuple(keys),
        scales=scales,
        lengths=lengths,
        values=values,
        own_keys=tuple(
            sorted(
                {
                    at.key.mechanism
                    for at, own in methods.items()
                    if any(method.get("exact_keys") == "of its own" for method in own)
                }
            )
        ),
        budgets=(),
        by_scale=(),
        figures=group,
    )
    return msgspec.structs.replace(
        found,
        budgets=tuple(_budget_curves(found, configs, methods)),
        by_scale=tuple(_scale_curves(found, methods)),
    )


def _place(key: Key, config: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort key of rows: the run's first, exact attention and the floor last, budgets as numbers."""
    numbers = [
        (name, 0, float(value), "") if type(value) in (int, float) else (name, 1, 0.0, str(value))
        for name, value in sorted(config.items())
    ]
    anchor = {EXACT: 1, NO_MIXING: 2}.get(key.mechanism, 0)
    return (key.origin != "run", anchor, key.mechanism, numbers, key.variant)


def _pooled(seeds: pd.DataFrame) -> Error:
    lost = seeds[seeds["value"].isna()]
    endings = zip(lost["status"], lost["failure"], lost["reason"], strict=True)
    values = seeds["value"].dropna()
    mean = float(values.mean()) if lost.empty else math.nan
    spread = float(values.max() - values.min()) if len(values) > 1 else math.nan
    return Error(mean, spread, len(values), tuple(sorted(endings)))


def _point(one: Errors, key: Key, scale: float, length: int) -> float | None:
    """Mean error where it has a logarithm; else None."""
    found = one.output(key, scale, length)
    return found.mean if found is not None and found.mean > 0 else None


def _budget_curves(
    one: Errors,
    configs: Mapping[tuple[str, str], Mapping[str, Any]],
    methods: Mapping[At, Sequence[Mapping[str, Any]]],
) -> Iterable[BudgetCurve]:
    """Yield a curve for each group of settings outside of the budget. The budget is all
    whole-number settings with several measured values."""
    length = one.lengths[-1]
    groups: dict[tuple[Origin, str], dict[str, list[Key]]] = defaultdict(lambda: defaultdict(list))
    for key in one.keys:
        if one.output(key, one.scale, length) is not None:
            config = in_force(configs[key.origin, key.variant])
            rest = {name: value for name, value in config.items() if type(value) is not int}
            groups[key.origin, key.mechanism][json.dumps(rest, sort_keys=True)].append(key)
    for by_rest in groups.values():
        apart = distinguishing_settings([json.loads(rest) for rest in by_rest])
        for other, keys in zip(apart, by_rest.values(), strict=True):
            own = [configs[key.origin, key.variant] for key in keys]
            numbers = [name for name in own[0] if all(type(c.get(name)) is int for c in own)]
            budget = [name for name in numbers if len({c[name] for c in own}) > 1]
            sizes = [float(sum(c[name] for name in budget)) for c in own]
            points = [
                (size, error)
                for key, size in zip(keys, sizes, strict=True)
                if size > 0 and (error := _point(one, key, one.scale, length)) is not None
            ]
            if len(points) < 2:
                continue
            said = [m for key in keys for m in methods[At(key, one.scale, length)]]
            # A law holds for its own budget alone: not where another setting varies with it.
            lawful = all(set(budget) == set(m.get("predicted_budget", ())) for m in said)
            rates = {m.get("predicted_rate") for m in said} if lawful else {None}
            rate = rates.pop() if len(rates) == 1 else None
            yield BudgetCurve(
                key=keys[0],
                title=f"{keys[0].name} ({other})" if other else keys[0].name,
                budget=" + ".join(sorted(budget)),
                points=tuple(sorted(points)),
                rate=rate if isinstance(rate, float) else None,
            )


def _scale_curves(
    one: Errors, methods: Mapping[At, Sequence[Mapping[str, Any]]]
) -> Iterable[ScaleCurve]:
    """Yield a curve for each mechanism at its largest budget. A figure at a single scale is no
    curve, and rounding errors are none."""
    length = one.lengths[-1]
    for key in {(key.origin, key.mechanism): key for key in one.keys}.values():
        points, law = [], []
        for scale in one.scales:
            if (value := _point(one, key, scale, length)) is not None:
                points.append((scale, value))
            said = {m.get("predicted_error") for m in methods.get(At(key, scale, length), ())}
            predicted = said.pop() if len(said) == 1 else None
            if isinstance(predicted, float) and predicted < 1.0:
                law.append((scale, predicted))
        if len(points) > 1 and max(value for _, value in points) > ROUNDING[one.setting.dtype]:
            yield ScaleCurve(key, tuple(points), tuple(law))
