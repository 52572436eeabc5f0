"""Learning curves: validation accuracy by step, a figure for each table of accuracies."""

from __future__ import annotations

import pandas as pd

from lra.report.accuracy import Accuracies, scored
from lra.report.analysis import Analysis
from lra.report.model import Section
from lra.report.plots.learning import learning_figure
from lra.report.rows import Key, row_keys


def sections(analysis: Analysis) -> list[Section]:
    """Return a section for each table of accuracies or losses whose trainings have a curve."""
    found = []
    for scores in analysis.accuracies:
        points = analyse(analysis, scores)
        if not points.empty:
            found.append(present(points, scores, analysis))
    return found


def analyse(analysis: Analysis, scores: Accuracies) -> pd.DataFrame:
    """Return one row for each validation of the shown mechanisms: key, protocol, seed, step,
    accuracy."""
    evidence = analysis.evidence
    own = scored(evidence, scores)
    by_id = {(str(key.origin), key.variant): key for key in row_keys(own)}
    names = [own[name] for name in ("origin", "variant", "record", "protocol", "seed")]
    found = [
        (by_id[origin, variant], protocol, seed, point.step, 100 * point.validation_accuracy)
        for origin, variant, record, protocol, seed in zip(*names, strict=True)
        if (origin, variant) in by_id
        for point in evidence.records[origin, record].curve
    ]
    points = pd.DataFrame(index=range(len(found)))
    for place, name in enumerate(("key", "protocol", "seed", "step", "accuracy")):
        points[name] = pd.Series([row[place] for row in found], dtype=object)
    return points.astype({"seed": float, "step": int, "accuracy": float})


def present(points: pd.DataFrame, scores: Accuracies, analysis: Analysis) -> Section:
    """Return the figure."""
    known = set(points["protocol"])
    titles = {c.protocol: c.title for c in scores.columns if c.protocol in known}
    keys: list[Key] = sorted(set(points["key"]), key=lambda key: (key.origin != "run", key))
    return Section(
        topic="Learning curves",
        level="appendix",
        setting=", ".join(scores.parts),
        figures=(learning_figure(f"learning-{scores.id}", points, keys, titles, analysis.looks),),
    )
