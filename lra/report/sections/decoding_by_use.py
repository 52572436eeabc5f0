"""Decoding of trained models: how often they answer alike in one pass and step by step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import pandas as pd

from lra.report.accuracy import ACCURACY, BITS, Column
from lra.report.analysis import Analysis
from lra.report.doubts import AGREEMENT, UNDECODED, agreement_text
from lra.report.load.select import Evidence
from lra.report.load.settings import QualitySetting
from lra.report.model import Section, Table, Value
from lra.report.rows import Key, of, reference_notes, shown
from lra.report.words import NO_VALUE, listing

_FAILED = "failed"


class Agreement(msgspec.Struct, frozen=True):
    """Shares of equal answers of one setting."""

    setting: QualitySetting
    columns: tuple[Column, ...]
    shares: dict[tuple[Key, str], tuple[float, ...]]
    """By row and protocol, over seeds; NaN where decoding failed."""
    keys: tuple[Key, ...]
    figures: pd.DataFrame


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each setting in which trained models were decoded."""
    return [present(one) for one in analyse(analysis)]


def analyse(analysis: Analysis) -> list[Agreement]:
    """Return the shares by setting, in the order of the accuracies."""
    evidence = analysis.evidence
    decoded = _decoded(evidence)
    frame = evidence.figures
    scored = frame[(frame["kind"] == "quality") & frame["metric"].isin([ACCURACY, BITS])]
    ids = zip(scored["origin"], scored["record"], strict=True)
    scored = scored[[id in decoded for id in ids]]
    found = []
    for setting in dict.fromkeys(one.setting for one in analysis.accuracies):
        own = scored[scored["setting"] == setting.id]
        if own.empty:
            continue
        columns = [
            column
            for one in analysis.accuracies
            if one.setting == setting
            for column in one.columns
            if (own["protocol"] == column.protocol).any()
        ]
        keys = shown(own)
        shares = {
            (key, column.protocol): _shares(of(own, key), column.protocol, decoded)
            for key in keys
            for column in columns
        }
        found.append(Agreement(setting, tuple(columns), shares, tuple(keys), own))
    return found


def _decoded(evidence: Evidence) -> dict[tuple[str, str], float]:
    """The share of each training that was decoded, NaN where that failed."""
    found: dict[tuple[str, str], float] = {}
    for id, record in evidence.records.items():
        metric = record.metrics.get(AGREEMENT)
        if metric is not None and metric.value is not None:
            found[id] = metric.value
        elif UNDECODED in record.method:
            found[id] = math.nan
    return found


def _shares(
    own: pd.DataFrame, protocol: str, decoded: Mapping[tuple[str, str], float]
) -> tuple[float, ...]:
    mine = own[own["protocol"] == protocol]
    return tuple(decoded[id] for id in zip(mine["origin"], mine["record"], strict=True))


def present(one: Agreement) -> Section:
    """Return who always answers alike, and a table of those that do not."""
    shares = {
        key: [share for c in one.columns for share in one.shares[key, c.protocol]]
        for key in one.keys
    }
    alike = [key for key, own in shares.items() if all(share == 1.0 for share in own)]
    rows = [
        key.row([_value(one.shares[key, column.protocol]) for column in one.columns])
        for key in one.keys
        if key not in alike
    ]
    table = Table(
        id=f"decoding-by-use-{one.setting.id}",
        title="Tokens predicted alike in one pass and step by step, %",
        caption="Half of each text is taken in at once. Of several seeds the least.",
        corner="mechanism",
        columns=tuple(column.title for column in one.columns),
        rows=tuple(rows),
        notes=tuple(reference_notes(one.figures, one.keys)),
    )
    names = listing([f"{key.label}{' (reference)' * (key.origin != 'run')}" for key in alike])
    return Section(
        topic="Decoding by use",
        level="appendix",
        setting=", ".join(one.setting.parts),
        text=(f"The same tokens in one pass and step by step: {names}.",) if alike else (),
        tables=(table,) if rows else (),
    )


def _value(shares: Iterable[float]) -> Value:
    every = list(shares)
    known = [share for share in every if not math.isnan(share)]
    if not known:
        return Value(_FAILED if every else NO_VALUE)
    failed = len(every) - len(known)
    note = f"{failed} of {len(every)} {_FAILED}" if failed else ""
    return Value(agreement_text(min(known)), note, min(known))
