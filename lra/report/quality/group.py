"""What trainings share that stand in one table, and the words for it in every title."""

from __future__ import annotations

from typing import NamedTuple

from lra.core.cells import QualityCell

_SOURCES = {"generated": "generated data", "file": "data from files", "hub": "data from a hub"}


class Group(NamedTuple):
    """What no two figures of one table differ in."""

    scale: str
    rules: str
    track: str
    source: str
    precision: str
    by_token: bool
    """Whether models answered at each token, strictly causal."""

    @property
    def words(self) -> str:
        """The scale, and whatever is not the usual of it: `mini, data from files, tuned track`.

        No two groups have the same words.
        """
        parts = [
            self.scale,
            self.data if self.source != "generated" else "",
            f"{self.rules} rules" if self.rules != "fixed" else "",
            f"{self.track} track" if self.track != "matched" else "",
            self.precision if self.precision != "float32" else "",
            "token by token" if self.by_token else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def data(self) -> str:
        """Where the data is from."""
        return _SOURCES[self.source]

    @property
    def whole(self) -> Group:
        """The group of the same trainings on whole inputs: what is told of both has one table."""
        return self._replace(by_token=False)


def group_of(cell: QualityCell) -> Group:
    """Return the group that a training belongs to."""
    return Group(
        scale=cell.scale,
        rules=cell.data.rules,
        track=cell.track,
        source=cell.data.source,
        precision=cell.training.precision,
        by_token=cell.model.causal,
    )
