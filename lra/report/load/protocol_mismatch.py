"""Reasons why reference accuracies cannot be compared with the run's, in a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from lra.core.cells import QualityCell
from lra.report.load.measurement import protocol_hash
from lra.report.load.versions import data_pairs
from lra.report.words import leaves, listing, listing_of

_NAMED = 5
"""Largest number of settings that a sentence names."""


class ProtocolMismatch(msgspec.Struct, frozen=True):
    """Protocols of the run whose tasks the reference has with other settings."""

    protocols: frozenset[str]
    settings: tuple[str, ...]
    """Names of the settings that differ: `training.steps`."""
    anchored: bool
    """Whether the run has trained exact attention and no mixing itself."""

    def sentence(self, titles: Sequence[str]) -> str:
        """Return the sentence for below a table whose columns of these titles have the
        protocols."""
        told = (
            "Reference rows are not shown on "
            f"{listing(titles)}: they were trained with "
            f"other settings ({listing_of(self.settings, _NAMED)})"
        )
        add = "; add --baselines to train exact attention and no mixing with this run's settings"
        return f"{told}{'' if self.anchored else add}."


def protocol_mismatches(
    run: Iterable[QualityCell], reference: Iterable[QualityCell], anchors: Iterable[str]
) -> tuple[ProtocolMismatch, ...]:
    """Return the run's protocols for which the reference has the scale, track and task, but nothing
    of the protocol.

    `anchors` are the names of exact attention and of no mixing. Among several reference protocols
    the one that differs least is named.
    """
    there: dict[tuple[str, ...], dict[str, QualityCell]] = defaultdict(dict)
    for cell in reference:
        there[_place(cell)][protocol_hash(cell)] = cell
    names: dict[str, set[str]] = defaultdict(set)
    cells: dict[str, QualityCell] = {}
    for cell in run:
        protocol = protocol_hash(cell)
        cells[protocol] = cell
        names[protocol].add(cell.mechanism.name)
    wanted = frozenset(anchors)
    found: dict[tuple[tuple[str, ...], bool], set[str]] = defaultdict(set)
    for protocol, cell in cells.items():
        others = there.get(_place(cell), {})
        if others and protocol not in others:
            differences = [_differing(cell, other) for other in others.values()]
            closest = min(differences, key=lambda keys: (len(keys), keys))
            found[closest, wanted <= names[protocol]].add(protocol)
    return tuple(
        ProtocolMismatch(frozenset(protocols), settings, anchored)
        for (settings, anchored), protocols in sorted(found.items(), key=lambda item: item[0])
    )


def _place(cell: QualityCell) -> tuple[str, ...]:
    return (cell.scale, cell.track, cell.data.task, cell.data.source, cell.data.rules)


def _differing(cell: QualityCell, other: QualityCell) -> tuple[str, ...]:
    """Names of the settings in which two protocols of a task differ."""
    here, there = _settings(cell), _settings(other)
    keys = sorted(
        key
        for key in {*here, *there}
        if here.get(key, msgspec.UNSET) != there.get(key, msgspec.UNSET)
    )
    return tuple(key for key in keys if key not in ("data.hash", "data.version")) or tuple(keys)


def _settings(cell: QualityCell) -> dict[str, Any]:
    found = leaves({"data": cell.data, "model": cell.model, "training": cell.training})
    return {**found, "data.version": data_pairs(cell)}
