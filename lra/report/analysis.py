"""Evidence and pooled values that the sections of a report are made of."""

from __future__ import annotations

import msgspec

from lra.report.accuracy import ACCURACY, Accuracies
from lra.report.assumptions import Assumptions
from lra.report.costs import Costs
from lra.report.load.select import Evidence
from lra.report.plots.style import Looks


class Analysis(msgspec.Struct, frozen=True):
    """Records as evidence, with the pooled values that several sections need."""

    evidence: Evidence
    accuracies: tuple[Accuracies, ...]
    """Accuracies before losses; the setting of the headline first."""
    costs: Costs
    looks: Looks
    assumed: Assumptions = Assumptions()

    @property
    def main(self) -> Accuracies | None:
        """Accuracies of the headline."""
        return next((one for one in self.accuracies if one.metric == ACCURACY), None)
