"""Second look at a failure of somebody's class: whether it lies in how the class was read or tried.

Three things are looked at: another meaning of its masks, float32 in place of float64, and inputs
that it writes into.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import msgspec
import torch
from torch import Tensor, nn

from lra.adapters.directions import Directions
from lra.core.findings import Case, Finding
from lra.verify import mask_readings
from lra.verify.law import Law
from lra.verify.subject import Subject
from lra.verify.trial import try_case


def look_again(found: Finding, law: Law, subject: Subject) -> Finding:
    """Return the failure with what was found; no failure where masks were read wrongly, and the law
    holds under another reading."""
    case = found.case
    if subject.is_ours or case is None or found.verdict != "failed":
        return found
    if mask_readings.reads_a_mask(subject, case):
        settings = mask_readings.fitting(subject, law)
        other = mask_readings.under(subject, settings)
        if settings and try_case(law, other, None).verdict == "held":
            return _misread(found, subject, settings)
    words = [*_type_alone(law, subject, case), *_writes(subject, case)]
    return msgspec.structs.replace(found, detail="; ".join([found.detail, *words]))


def _misread(found: Finding, subject: Subject, settings: dict[str, Any]) -> Finding:
    advice = " ".join(f"--set {name}={str(value).lower()}" for name, value in settings.items())
    return msgspec.structs.replace(
        found,
        verdict="skipped",
        detail=f"fails with {mask_readings.meaning(subject)}; holds with {advice}",
        advice=advice,
        case=None,
        ending="",
    )


def _type_alone(law: Law, subject: Subject, case: Case) -> Iterator[str]:
    """Say where a failure needs float64: nobody trains in that."""
    if subject.precise != torch.float64 or law.measured:
        return
    single = replace(subject, in_float32=True)
    if all(try_case(law, single, cases).verdict == "held" for cases in ([case], None)):
        yield "in float64 alone: it holds in float32"


def _writes(subject: Subject, case: Case) -> Iterator[str]:
    """Say which of its arguments a call writes into."""
    written: dict[str, None] = {}
    with suppress(Exception), torch.no_grad():
        layer = subject.build(case)
        parts = list(cast(Directions, layer.inner).children())
        for part in parts:
            _watch(part, list(subject.mechanism.stranger.call), written)  # type: ignore[attr-defined]
        x_BND, source_BMD = subject.inputs(case)
        source_BMD = None if source_BMD is None else source_BMD.detach()
        layer(x_BND.detach(), subject.context(case, layer), source_BMD=source_BMD)
    for name in written:
        yield f"it writes into its argument '{name}'"


def _watch(part: nn.Module, names: list[str], written: dict[str, None]) -> None:
    """Note, at each call of a module, the arguments that it changes."""
    before: dict[str, tuple[Tensor, int]] = {}

    def enter(_: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = {**dict(zip(names, positional, strict=False)), **named}
        before.clear()
        before.update(
            {name: (one, one._version) for name, one in given.items() if isinstance(one, Tensor)}
        )

    def leave(*_: Any) -> None:
        written.update({name: None for name, (one, at) in before.items() if one._version != at})

    part.register_forward_pre_hook(enter, with_kwargs=True)
    part.register_forward_hook(leave)
