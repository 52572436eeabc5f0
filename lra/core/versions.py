"""Versions of the features that figures depend on: the part of a cell that stands for our code.

A feature is a behaviour that only some cells use, such as dropout in training. Its version is 1
until its behaviour changes: a bump is an entry of `lra/versions.json` with a reason. `lra identity
check` proves that code still behaves as its versions say. A feature without a declared version,
such as other people's code, has the hash of its sources in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
from msgspec import UNSET

from lra.core.errors import LraError, system_reason
from lra.core.protocol import Frozen, ModelSpec, Rules, TrainSpec

JOURNAL = Path(__file__).resolve().parents[1] / "versions.json"

EDITS = "edits"
"""Feature of code with edits that no check has looked at; all other code is without it."""
Versions = dict[str, int | str]
"""Declared version, or hash of sources without one, by feature."""


class Bump(Frozen, frozen=True, kw_only=True):
    """A change of behaviour, and its reason."""

    feature: str
    version: int
    """Version from this bump on."""
    date: str
    cases: tuple[str, ...]
    """Cases of the probe whose figures moved; () where a person knew of the change otherwise."""
    reason: str


def journal(file: Path = JOURNAL) -> list[Bump]:
    """Return all bumps, the oldest first; raises `LraError` for a file that cannot be read, and
    where two branches have bumped one feature to the same version."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=list[Bump])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LraError(
            f"'{file.name}', the journal of versions, cannot be read: {error}; "
            "restore it with git checkout, or install again"
        ) from error
    last: dict[str, int] = {}
    for bump in found:
        due = last.get(bump.feature, 1) + 1
        if bump.version != due:
            raise LraError(
                f"'{file.name}' bumps {bump.feature} to {bump.version} where {due} is next "
                f"('{bump.reason}'); give each bump its own version, in order"
            )
        last[bump.feature] = due
    return found


def current() -> dict[str, int]:
    """Return the versions of all features that were ever bumped."""
    return dict(_bumped())


def declared(features: Iterable[str]) -> Versions:
    """Return the version that each feature has today."""
    bumped = _bumped()
    return {feature: bumped.get(feature, 1) for feature in features}


def bump(feature: str, cases: Iterable[str], why: str, file: Path = JOURNAL) -> int:
    """Give a feature its next version, and return it; raises `LraError` where the journal cannot
    be read or written."""
    known = journal(file)
    number = 1 + max((b.version for b in known if b.feature == feature), default=1)
    today = datetime.now(UTC).date().isoformat()
    known.append(Bump(feature=feature, version=number, date=today, cases=tuple(cases), reason=why))
    try:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(known), indent=1) + b"\n")
    except OSError as error:
        raise LraError(
            f"cannot write '{file.name}': {system_reason(error)}; mend its permissions"
        ) from error
    _bumped.cache_clear()
    return number


def of_model(model: ModelSpec, *, inputs: int) -> list[str]:
    """Return the features of a network around its mechanism."""
    used = {
        "causal": model.causal,
        "classifier_widths": bool(model.classifier_widths),
        "cls": model.pooling == "cls",
        "dropout": model.dropout > 0 or model.attention_dropout > 0,
        "encoder_decoder": model.body == "encoder_decoder",
        "first": model.pooling == "first",
        "form": model.form is not UNSET,
        "no_biases": not model.projection_biases,
        "pairs": inputs > 1 and model.body != "encoder_decoder",
        "tokens": model.pooling == "none",
    }
    return [f"train/{name}" for name, is_used in used.items() if is_used]


def of_training(
    model: ModelSpec, training: TrainSpec, *, rules: Rules, inputs: int, device: str
) -> list[str]:
    """Return the features that a training uses, the mechanism's and the data's apart."""
    used = {
        "bfloat16": training.precision == "bfloat16",
        "compiled": training.execution == "compiled",
        "cuda": device == "cuda",
        "graphed": training.execution == "graphed",
        "last": training.tested == "last",
        "lra2021": rules == "lra2021",
        "micro_batches": training.micro_batches > 1,
        "recompute": training.recompute,
        "tied": model.query_key_start == "tied",
        "unbucketed": not training.bucketed,
        training.schedule: training.schedule != "cosine",
    }
    choices = [f"train/{name}" for name, is_used in used.items() if is_used]
    return ["train", *of_model(model, inputs=inputs), *choices, f"position/{model.position}"]


def of_timing(*, mode: str, level: str, execution: str, device: str) -> list[str]:
    """Return the features that a timing uses, the mechanism's and the model's apart."""
    used = {
        "compiled": execution == "compiled",
        "cuda": device == "cuda",
        mode: mode != "forward",
        level: level != "layer",
        "model_decode": (level, mode) == ("model", "decode"),
    }
    return ["time", *sorted(f"time/{name}" for name, is_used in used.items() if is_used)]


@cache
def _bumped() -> dict[str, int]:
    return {bump.feature: bump.version for bump in journal()}
