"""Every setting changes something: an output, a draw after a step, or the memory of a pass.

A setting is felt where one other value of it is felt in one of the mechanism's configurations:
some have an effect beside certain others only. Any two values of a setting that names them are
felt. A number is felt near the length of a long input too, where it is near that of a short one: a
window is not cut down in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from typing import Any

import msgspec
import torch
from msgspec import inspect
from torch import Tensor

from attention_impls.contract import Context, Dims, Layer, MechanismConfig
from lra.adapters.masks import MaskedConfig
from lra.core.errors import LraError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, Partly, Reported, binds_all, is_not_empty
from lra.verify.live_bytes import LiveBytes
from lra.verify.requests import directions
from lra.verify.subject import Subject, seed_torch

LENGTH = 37
SHORT, LONG = 40, 400
"""Lengths of which three quarters and all are compared as values of a setting."""
OF_THE_ADAPTER = MaskedConfig.__struct_fields__
"""Settings of ours that say how somebody's own class is to be called."""
STEPS = (1, 2, 3)
"""Optimiser steps after which draws are looked at."""


def cases(subject: Subject) -> Iterator[Case]:
    """One length, which blocks of the paper's size do not fill and those of the trials do."""
    if subject.config.__struct_fields__:
        for causal in directions(subject)[-1:]:
            yield Case(n=LENGTH, causal=causal)


def check(subject: Subject, case: Case) -> None:
    """Give each setting other values, in each configuration and direction."""
    dims, outcomes = subject.build(case).dims, _Outcomes(subject, case)
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for field in inspect.multi_type_info([subject.mechanism.Config])[0].fields:  # type: ignore[attr-defined]
        if field.name not in (*subject.card.without_effect, *OF_THE_ADAPTER):
            found[_is_felt(outcomes, dims, field)].append(field.name)
            found[False] += _alike_values(outcomes, dims, field)
            found[False] += _cut_down(subject, case, field)
    unfelt, untried = found[False], found[None]
    words = [f"no effect was seen of {', '.join(unfelt)}"] if unfelt else []
    words += [f"no other value to try of {', '.join(untried)}"] if untried else []
    if unfelt and subject.is_ours:
        raise Broken(f"nothing feels the setting {unfelt[0]}, and the card does not say so")
    if unfelt:
        raise Reported("; ".join(words))
    if untried:
        raise Partly(words[0])


def _is_felt(outcomes: _Outcomes, dims: Dims, field: inspect.Field) -> bool | None:
    """Whether a value of a setting is felt; None where it takes no other value that can be made
    up."""
    tried = False
    for config in outcomes.subject.configs:
        plain = outcomes.of(dims, config)
        for value in _others(field.type, getattr(config, field.name)):
            try:
                changed = msgspec.convert(
                    {**msgspec.structs.asdict(config), field.name: value}, type(config)
                )
                other = outcomes.of(dims, changed)
            except (LraError, msgspec.ValidationError):
                continue
            except Exception:
                # Somebody's class refuses a value that was made up by errors of its own.
                if outcomes.subject.is_ours:
                    raise
                continue
            tried = True
            if not _is_alike(plain, other):
                return True
    return False if tried else None


def _alike_values(outcomes: _Outcomes, dims: Dims, field: inspect.Field) -> list[str]:
    """Return pairs of a setting's named values, in words, that no configuration tells apart."""
    if not isinstance(field.type, inspect.LiteralType):
        return []
    felt: dict[tuple[Any, Any], bool] = {}
    for config in outcomes.subject.configs:
        known: dict[Any, list[Tensor]] = {}
        for value in field.type.values:
            changed = msgspec.structs.replace(config, **{field.name: value})
            with suppress(LraError):
                known[value] = outcomes.of(dims, changed)
        for one, other in combinations(known, 2):
            is_felt = not _is_alike(known[one], known[other])
            felt[one, other] = felt.get((one, other), False) or is_felt
    return [
        f"{field.name}, {one!r} or {other!r}"
        for (one, other), is_felt in felt.items()
        if not is_felt
    ]


def _cut_down(subject: Subject, case: Case, field: inspect.Field) -> list[str]:
    """Return two values of a number, in words, that a long input does not tell apart, in the first
    configuration where a short one tells such values apart."""
    kinds = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    is_number = any(isinstance(kind, inspect.IntType) for kind in kinds)
    if not (is_number and subject.far):
        return []
    for config in subject.configs:
        if _tells_apart(subject, case, config, field.name, SHORT):
            if _tells_apart(subject, case, config, field.name, LONG) is not False:
                return []
            return [f"{field.name}, {3 * LONG // 4} or {LONG} at {LONG} positions"]
    return []


def _tells_apart(
    subject: Subject, case: Case, config: MechanismConfig, name: str, length: int
) -> bool | None:
    """Whether an input tells a number of three quarters of its length from one of all; None where
    either is refused."""
    small = msgspec.structs.replace(case, n=length, batch=1, heads=1)
    dims = subject.build(small, max_length=length).dims
    found = []
    for value in (3 * length // 4, length):
        try:
            changed = msgspec.convert({**msgspec.structs.asdict(config), name: value}, type(config))
            layer, x_BND = _drawn(subject, small, dims, changed)
            found.append(
                _passed(layer, x_BND, Context(small.causal and not subject.called_plainly))
            )
        except (LraError, msgspec.ValidationError):
            return None
        except Exception:
            # Somebody's class refuses a value that was made up by errors of its own.
            if subject.is_ours:
                raise
            return None
    return not _is_alike(*found)


def _others(kind: Any, value: Any) -> list[Any]:
    """Return other values of a setting's type."""
    if isinstance(kind, inspect.UnionType):
        found = [one for part in kind.types for one in _others(part, value)]
    elif isinstance(kind, inspect.NoneType):
        found = [None]
    elif isinstance(kind, inspect.BoolType):
        found = [not value]
    elif isinstance(kind, inspect.LiteralType):
        found = list(kind.values)
    elif isinstance(kind, inspect.IntType):
        near = [value // 2, value + 1, 2 * value] if isinstance(value, int) else []
        found = [1, 2, 3, *near]
    elif isinstance(kind, inspect.FloatType):
        found = [value / 2, 2 * value, value + 0.1] if isinstance(value, float) else []
    else:
        found = []
    return [one for one in found if one != value]


class _Outcomes:
    """All that a configuration gives, remembered by it."""

    def __init__(self, subject: Subject, case: Case) -> None:
        self.subject = subject
        self._case = case
        self._known: dict[str, list[Tensor]] = {}

    def of(self, dims: Dims, config: MechanismConfig) -> list[Tensor]:
        """Return outputs and peaks in evaluation and training, and after a few steps.

        The layer is as it was drawn: settings of the draws are felt too.
        """
        key = repr(config)
        if key not in self._known:
            self._known[key] = self._measure(dims, config)
        return self._known[key]

    @torch.no_grad()
    def _measure(self, dims: Dims, config: MechanismConfig) -> list[Tensor]:
        subject, found = self.subject, []
        layer, x_BND = _drawn(subject, self._case, dims, config)
        for causal in directions(subject):
            context = Context(causal and not subject.called_plainly)
            for training in (False, True):
                seed_torch(1)
                layer.train(training)
                found += _passed(layer, x_BND, context)
        layer.eval()
        for step in STEPS:
            layer.after_step(step)
            found.append(layer(x_BND, context).y_BND)
        return found


def _drawn(
    subject: Subject, case: Case, dims: Dims, config: MechanismConfig
) -> tuple[Layer, Tensor]:
    """Return a layer as it is drawn, and its input."""
    mechanism = subject.mechanism
    seed_torch(0)
    layer = mechanism(dims, config, shared=mechanism.build_shared(dims, config))
    return layer.to(subject.device, subject.precise).eval(), subject.inputs(case)[0].detach()


@torch.no_grad()
def _passed(layer: Layer, x_BND: Tensor, context: Context) -> list[Tensor]:
    """Return the output of a pass, and its peak of memory."""
    with LiveBytes() as live:
        y_BND: Tensor = layer(x_BND, context).y_BND
    return [y_BND, torch.tensor(live.peak)]


def _is_alike(found: list[Tensor], wanted: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


LAW = Law(
    name="setting_felt",
    says="every setting is felt, or the card says that it is not",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=is_not_empty,
    measured=True,
)
