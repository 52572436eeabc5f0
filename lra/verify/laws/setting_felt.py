"""Every setting changes something: an output, a draw after a step, or the memory of a pass.

A setting is felt where one other value of it is felt in one of the mechanism's configurations:
some have an effect beside certain others only. Any two values of a setting that names them are
felt.
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

from attention_impls.contract import Context, Dims, MechanismConfig
from lra.adapters.masks import MaskedConfig
from lra.core.errors import LraError
from lra.core.findings import Case
from lra.verify.law import Broken, Law, Partly, Reported, binds_all, is_not_empty
from lra.verify.live_bytes import LiveBytes
from lra.verify.requests import directions
from lra.verify.subject import Subject, seed_torch

LENGTH = 37
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
        subject, mechanism = self.subject, self.subject.mechanism
        seed_torch(0)
        shared = mechanism.build_shared(dims, config)
        layer = mechanism(dims, config, shared=shared).to(subject.device, subject.precise)
        x_BND = subject.inputs(self._case)[0].detach()
        found = []
        for causal in directions(subject):
            context = Context(causal and not subject.called_plainly)
            for training in (False, True):
                seed_torch(1)
                layer.train(training)
                with LiveBytes() as live:
                    found.append(layer(x_BND, context).y_BND)
                found.append(torch.tensor(live.peak))
        layer.eval()
        for step in STEPS:
            layer.after_step(step)
            found.append(layer(x_BND, context).y_BND)
        return found


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
