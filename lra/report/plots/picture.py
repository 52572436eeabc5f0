"""A picture of a mechanism's pattern, and its content in words."""

from __future__ import annotations

import msgspec

from lra.core.cells import ShowCell
from lra.core.pattern import Pattern
from lra.report.load.variants import chosen
from lra.report.words import TIMES, count, figures, percent


class Picture(msgspec.Struct, frozen=True):
    """A drawable record of `lra show`."""

    label: str
    """Mechanism, with the settings that set it apart from others of that name."""
    cell: ShowCell
    pattern: Pattern

    @property
    def title(self) -> str:
        """Title in a few words."""
        causal = ", causal" if self.cell.direction == "causal" else ""
        return f"{self.label}, {count(self.cell.length, 'position')}{causal}"

    @property
    def pairs(self) -> str:
        """Share of pairs in words: `12.4 % of 64 x 64 pairs may interact`."""
        share = percent(self.pattern.share)
        what = "do interact on this input" if self.pattern.measured else "may interact"
        return f"{share} % of {self.cell.length} {TIMES} {self.cell.length} pairs {what}"

    @property
    def values(self) -> str:
        """Words for the weights or the dependence beside the support."""
        if self.pattern.kind == "dependence":
            return "no weights to draw, so dependence |∂y / ∂x| measured by gradients"
        sign = "±" if self.pattern.scale == "signed" else ""
        top = figures(self.pattern.top, most=2)
        return f"weights of {count(self.pattern.heads, 'head')}, up to {sign}{top}"

    @property
    def settings(self) -> str:
        """Hyper-parameters of the mechanism: `window 8, leading 2`."""
        fields = chosen(self.cell.mechanism.config).items()
        return ", ".join(f"{name} {value}" for name, value in fields)
