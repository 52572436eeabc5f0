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
ORACLE = _LRA.parent / "attention_impls" / "_oracle.py"
"""Softmax attention in float64, which errors are measured against."""
PLAIN = tuple(
    f"lra.core.{name}"
    for name in ("cards", "catalogue", "cells", "errors", "peers", "protocol", "records", "scales")
)
"""Left out of what a measurement hashes: values that a cell holds anyway, names and errors."""

_DECLARED = ("operations", "projection_operations", "pair_operations", "pairs_in_parts")
"""What of a mechanism says how much it computes: a timing's record repeats it."""
_LAWS = ("convergence", "predicted_error", "exact_at", "comes_near")
"""What says where and how it comes near softmax attention: an error's record repeats it."""
_ORACLES = ("oracle", "reference", "support")
"""What it is compared with."""

UNASKED: dict[str, tuple[str, ...]] = {
    "quality": (*_DECLARED, *_LAWS, *_ORACLES),
    # As a training's, so that a report sees whether the two are of one version of a mechanism.
    "efficiency": (*_DECLARED, *_LAWS, *_ORACLES),
    "operations": (*_LAWS, *_ORACLES),
    "error": (*_DECLARED, *_ORACLES),
    "verify": _DECLARED,
    "show": (*_DECLARED, *_LAWS),
}
"""By kind of cell, what it asks no mechanism for: an edit of that makes none of them due.
operations: what timings of a forward pass ask for besides, in a hash of its own."""


@cache
def measure_hash(
    kind: str,
    *files: str,
    outside: tuple[Path, ...] = (),
    values: tuple[int, ...] = (),
) -> str:
    """Hash of the sources that measure cells of a kind, as seen from `lra/`, of others `outside`
    of it, and of values that cells depend on and do not hold.

    The worker, which calls them, and the server, which sets its threads, count by themselves.
    """
    own = source_hash(*(_LRA / file for file in files), leave_out=PLAIN)
    called = ("worker.py", "server.py", f"work/{kind}.py", "work/data.py", "work/mechanism.py")
    around = source_hash(*(_LRA / "engine" / name for name in called), leave_out=("lra",))
    others = source_hash(*outside, methods=UNASKED.get(kind, ())) if outside else ""
    return value_hash([own, around, others, values])


def mechanism_hash(target: Target, description: Description, kind: str) -> str:
    """Hash of the sources that answer cells of a kind, an adapter's among them where there is one.

    Of one that is unavailable, of the reason: what is missing today may be installed tomorrow.
    """
    if description.unavailable is not None:
        return value_hash(description.unavailable)
    unasked = UNASKED[kind]
    left_out: dict[str, tuple[str, ...]] = {
        "methods": unasked,
        "leave_out": ("attention_impls._oracle",) if "oracle" in unasked else (),
    }
    package = _package(target)
    if package:
        # A whole package may be as large as torch: its installer has hashed it.
        left_out["leave_out"] += (target.module.partition(".")[0],)
    own = _file_hash(target, left_out)
    if package:
        own = value_hash([own, distribution_hash(package)])
    if target.is_peer:
        peer = peers.read(target.name)
        # What it claims decides what is asked of it, and how it is padded.
        own = value_hash([own, peer.claims, peer.trials if kind == "verify" else ()])
    card = description.card
    if not isinstance(card, AttentionCard) or not card.assumed:
        return own
    adapters = source_hash(_LRA / "adapters" / "adapt.py", leave_out=PLAIN)
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
