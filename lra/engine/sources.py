"""Hashes of the sources behind a cell: those that measure, and those that answer."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from lra.core import peers
from lra.core.cards import AttentionCard
from lra.core.catalogue import Target
from lra.core.errors import UsageError
from lra.core.hashing import source_hash, value_hash
from lra.engine.describe import Description
from lra.engine.provenance import distribution_hash, distribution_of

_LRA = Path(__file__).resolve().parents[1]
_PLAIN = tuple(
    f"lra.core.{name}"
    for name in ("cards", "catalogue", "cells", "errors", "peers", "protocol", "records", "scales")
)
"""Left out of what a measurement hashes: values that a cell holds anyway, names and errors."""

DECLARED = ("operations", "projection_operations", "pair_operations", "pairs_in_parts")
"""What of a mechanism says how much it computes; no result depends on it."""

_LAWS = ("convergence", "predicted_error", "exact_at", "comes_near")
PROOFS = (*DECLARED, *_LAWS, "oracle", "reference", "support")
"""What of a mechanism no training and no timing asks for: the others are for `lra verify`."""


@cache
def measure_hash(kind: str, *files: str, positions: tuple[Target, ...] = ()) -> str:
    """Hash of the sources that measure cells of a kind, as seen from `lra/`, and of position
    schemes'.

    The worker, which calls them, and the server, which sets its threads, count by themselves.
    """
    own = source_hash(*(_LRA / file for file in files), leave_out=_PLAIN)
    callers = [_LRA / "engine" / n for n in ("worker.py", "server.py", f"work/{kind}.py")]
    around = source_hash(*callers, leave_out=("lra",))
    schemes = [scheme.file for scheme in positions]
    return value_hash([own, around, source_hash(*schemes, methods=DECLARED) if schemes else ""])


def mechanism_hash(target: Target, description: Description, *, proofs: bool = False) -> str:
    """Hash of the sources that answer, an adapter's among them where there is one.

    Of one that is unavailable, of the reason: what is missing today may be installed tomorrow.
    """
    if description.unavailable is not None:
        return value_hash(description.unavailable)
    left_out: dict[str, tuple[str, ...]] = {
        "methods": DECLARED if proofs else PROOFS,
        "leave_out": () if proofs else ("attention_impls._oracle",),
    }
    package = _package(target)
    if package:
        # A whole package may be as large as torch: its installer has hashed it.
        left_out["leave_out"] += (target.module.partition(".")[0],)
    own = _file_hash(target, left_out)
    if package:
        own = value_hash([own, distribution_hash(package)])
    if target.is_peer and proofs:
        peer = peers.read(target.name)
        own = value_hash([own, peer.trials, peer.claims])
    card = description.card
    if not isinstance(card, AttentionCard) or not card.assumed:
        return own
    adapters = source_hash(_LRA / "adapters" / "adapt.py", leave_out=_PLAIN)
    return value_hash([own, adapters])


def _file_hash(target: Target, left_out: dict[str, tuple[str, ...]]) -> str:
    """Hash of the file and what it imports; of the name alone where it is compiled into Python."""
    try:
        return source_hash(target.file, **left_out)
    except UsageError:
        return value_hash(target.reference)


def _package(target: Target) -> str:
    """The distribution that a mechanism was installed by; empty for sources that lie open."""
    if target.is_peer:
        return peers.read(target.name).package
    if target.ours:
        return ""
    with suppress(UsageError):
        if not {"site-packages", "dist-packages"}.intersection(target.file.parts):
            return ""
    return distribution_of(target.module)
