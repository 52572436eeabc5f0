"""The whole report as one value: the headline, then sections in reading order."""

from __future__ import annotations

from lra.report.accuracy import accuracies
from lra.report.analysis import Analysis
from lra.report.assumptions import Assumptions
from lra.report.costs import costs
from lra.report.load.select import Evidence
from lra.report.mixing import mean_over_mixing
from lra.report.model import Report, with_legends
from lra.report.plots.style import Looks
from lra.report.sections import SECTIONS
from lra.report.sections.headline import headline
from lra.report.sections.provenance import footer, subtitle


def analyse(evidence: Evidence, assumed: Assumptions | None = None) -> Analysis:
    """Return the values that sections share: pooled accuracies and costs, and the looks of
    mechanisms."""
    figures = evidence.figures
    named = figures[figures["mechanism"] != ""][["mechanism", "variant"]].drop_duplicates()
    return Analysis(
        evidence=evidence,
        accuracies=tuple(mean_over_mixing(evidence, one) for one in accuracies(evidence)),
        costs=costs(evidence),
        looks=Looks(named.itertuples(index=False, name=None)),
        assumed=assumed or Assumptions(),
    )


def assemble(analysis: Analysis, title: str) -> Report:
    """Return the report."""
    return Report(
        title=title,
        subtitle=subtitle(analysis.evidence),
        headline=headline(analysis),
        sections=with_legends(one for sections in SECTIONS for one in sections(analysis)),
        footer=footer(analysis.evidence),
    )
