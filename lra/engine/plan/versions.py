"""Versions of the code that cells use: declared ones of ours, hashes of all other sources.

Cells that cost seconds hold hashes of our sources, too: measuring them again is cheaper than
proving that an edit changes nothing.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

from lra.core import catalogue, peers
from lra.core.cards import AttentionCard
from lra.core.catalogue import Target
from lra.core.errors import UsageError
from lra.core.hashing import source_hash, value_hash
from lra.core.versions import Versions, declared
from lra.engine.machine.provenance import distribution_hash, distribution_of
from lra.engine.plan.describe import Description
from tasks.sources.data_hash import generator_hash, readers_hash

_LRA = Path(__file__).resolve().parents[2]
ORACLE = _LRA.parent / "attention_impls" / "_oracle.py"
"""Softmax attention in float64, the reference of errors."""
PLAIN = tuple(
    f"lra.core.{name}"
    for name in (
        "cards",
        "catalogue",
        "cells",
        "errors",
        "loading",
        "peers",
        "protocol",
        "records",
        "scales",
    )
)
"""Modules left out of a measurement's hash: values that a cell holds anyway, names and errors."""

_DECLARED = ("operations", "projection_operations", "pair_operations", "pairs_in_parts")
"""Methods that count a mechanism's operations: a timing's record repeats them."""
_LAWS = ("convergence", "predicted_error", "exact_at", "comes_near")
"""Methods on its approximation of softmax attention: an error's record repeats them."""
_DENSE = ("reference", "support")
"""Dense forms that it is compared with; trainings ask the oracle, but not these, for weights."""

UNASKED: dict[str, tuple[str, ...]] = {
    "call": (*_DECLARED, *_LAWS, *_DENSE),
    "cost": (*_LAWS, "oracle", *_DENSE),
    "error": (*_DECLARED, "oracle", *_DENSE),
    "verify": _DECLARED,
    "show": (*_DECLARED, *_LAWS),
}
"""Methods that each use does not call: an edit of them makes none of its cells due. call: training
and timing; cost: the declarations that the record of a timing or a profile repeats."""


def mechanism_versions(target: Target, description: Description, *parts: str) -> Versions:
    """Return the versions of a mechanism and of `parts` of it, such as `decode`.

    Other people's mechanism has the hash of its sources; an unavailable one that of the reason; a
    cycle has those of its members.
    """
    found: Versions = {}
    if target.members:
        for member, one in zip(target.members, description.members, strict=True):
            found |= mechanism_versions(member, one, *parts)
        return found
    feature = f"mechanism/{target.name}"
    if target.ours and description.unavailable is None:
        return declared([feature, *(f"{feature}/{part}" for part in parts)])
    found = {feature: mechanism_hash(target, description, "call")}
    if "cost" in parts:
        found[f"{feature}/cost"] = mechanism_hash(target, description, "cost")
    return found


def position_version(reference: str) -> Versions:
    """Return the version of a position scheme, named as in `ModelSpec`."""
    target, feature = catalogue.find("position", reference), f"position/{reference}"
    return declared([feature]) if target.ours else {feature: source_hash(target.file)}


def data_version(task: Target, *, real: bool) -> Versions:
    """Return the version of a task's generator, or of its reader of real data."""
    feature = f"data/{task.name}/read" if real else f"data/{task.name}"
    if task.ours:
        return declared([feature])
    return {feature: readers_hash(task.file) if real else generator_hash(task.file)}


@cache
def measure_hash(kind: str, *files: str, outside: tuple[Path, ...] = ()) -> str:
    """Hash of the sources that measure cells of a kind, by their paths in `lra/`, and of others
    `outside` of it.

    The worker calls them and the launch sets its threads: both count without their imports.
    """
    own = source_hash(*(_LRA / file for file in files), leave_out=PLAIN)
    process, work = ("worker", "launch"), (kind, "data", "mechanism")
    called = (*(f"process/{n}.py" for n in process), *(f"work/{n}.py" for n in work))
    around = source_hash(*(_LRA / "engine" / name for name in called), leave_out=("lra",))
    others = source_hash(*outside, methods=UNASKED.get(kind, ())) if outside else ""
    return value_hash([own, around, others])


def mechanism_hash(target: Target, description: Description, use: str) -> str:
    """Hash of a mechanism's sources for one use, an adapter's included where there is one.

    For an unavailable one the hash of the reason: a package missing today may be installed
    tomorrow.
    """
    if description.unavailable is not None:
        return value_hash(description.unavailable)
    unasked = UNASKED[use]
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
        # A peer's claims decide the requests that it gets, and its padding.
        own = value_hash([own, peer.claims, peer.trials if use == "verify" else ()])
    card = description.card
    if not isinstance(card, AttentionCard) or not card.assumed:
        return own
    adapters = source_hash(_LRA / "adapters" / "adapt.py", leave_out=PLAIN)
    return value_hash([own, adapters])


def _file_hash(target: Target, left_out: dict[str, tuple[str, ...]]) -> str:
    """Hash of the file and its imports; of the name alone for a module compiled into Python."""
    try:
        return source_hash(target.file, **left_out)
    except UsageError:
        return value_hash(target.reference)


def _package(target: Target) -> str:
    """Distribution that installed a mechanism; empty for sources outside of one."""
    if target.is_peer:
        return peers.read(target.name).package
    if target.ours:
        return ""
    with suppress(UsageError):
        if not {"site-packages", "dist-packages"}.intersection(target.file.parts):
            return ""
    return distribution_of(target.module)
