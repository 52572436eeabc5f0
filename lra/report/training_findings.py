"""Findings about single trainings by setting, row and task: decoding, and trained attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
import pandas as pd

from lra.report.accuracy import SCORED, Accuracies, Column
from lra.report.analysis import Analysis
from lra.report.load.settings import QualitySetting
from lra.report.rows import Key, row_keys

Finding = TypeVar("Finding")


class Trainings(msgspec.Struct, Generic[Finding], frozen=True):
    """Trainings of one setting with a finding."""

    setting: QualitySetting
    """Setting of whole inputs, shared with answers token by token."""
    columns: tuple[Column, ...]
    keys: tuple[Key, ...]
    found: dict[tuple[str, str, str], tuple[Finding, ...]]
    """Findings by origin, variant and protocol, over seeds."""
    figures: pd.DataFrame

    def of(self, key: Key, column: Column) -> tuple[Finding, ...]:
        """Return the findings of a row on a task."""
        return self.found.get((key.origin, key.variant, column.protocol), ())


def whole_setting(scores: Accuracies) -> QualitySetting:
    """Return the setting of the same trainings on whole inputs."""
    return msgspec.structs.replace(scores.setting, by_token=False)


def trainings(
    analysis: Analysis, findings: Mapping[tuple[str, str], Finding]
) -> list[Trainings[Finding]]:
    """Return the trainings with a finding, by origin and record, on input in its own order."""
    frame = analysis.evidence.figures
    own = frame[(frame["kind"] == "quality") & (frame["order"] == "given")]
    own = own[own["metric"].isin(SCORED)]
    own = own[[id in findings for id in zip(own["origin"], own["record"], strict=True)]]
    made = []
    for setting in dict.fromkeys(map(whole_setting, analysis.accuracies)):
        columns = [
            column
            for scores in analysis.accuracies
            if whole_setting(scores) == setting
            for column in scores.columns
            if (own["protocol"] == column.protocol).any()
        ]
        mine = own[own["protocol"].isin([column.protocol for column in columns])]
        found: dict[tuple[str, str, str], tuple[Finding, ...]] = {}
        names = [mine[name] for name in ("origin", "variant", "protocol", "record")]
        for origin, variant, protocol, record in zip(*names, strict=True):
            key = (origin, variant, protocol)
            found[key] = (*found.get(key, ()), findings[origin, record])
        if columns:
            made.append(Trainings(setting, tuple(columns), tuple(row_keys(mine)), found, mine))
    return made
