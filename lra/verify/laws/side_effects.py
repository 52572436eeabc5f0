"""A call changes no argument, no earlier result, no mode of the layer and no setting of the
process, and prints nothing; construction changes no setting either. Calls that ask the same leave
nothing behind.

Behind the projections too, where an argument written to is a temporary one of the layer's; and in
the backward pass, whose argument is the gradient that comes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import fields
from io import StringIO
from typing import Any

import msgspec
import torch
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case
from lra.verify.kept_by_calls import kept_by_calls
from lra.verify.law import Broken, Law, binds_all, gradients, is_not_empty
from lra.verify.laws.determinism import random_states
from lra.verify.mixed_requests import every_request, state_tensors, trained
from lra.verify.process import FILTERS, settings, unusual
from lra.verify.rotation import rotate
from lra.verify.subject import Subject, attend

FEW, COUNT = 2, 10
"""Number of small cases of the short form, and of longer ones."""
LENGTHS = (5, 16)
SMALL = 2
"""Longest input that is also tried under unusual settings and many times: one setting is a number
of threads, which a larger input would really use."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn, two of them small."""
    small = [case for case in every_request(subject, (SMALL,)) if case.n <= SMALL]
    yield from rotate(small, FEW, subject, "side_effects")
    longer = [case for case in every_request(subject, LENGTHS) if case.n > SMALL]
    yield from rotate(longer, COUNT, subject, "side_effects")


def check(subject: Subject, case: Case) -> None:
    """Try as it is, then under settings that nobody would set, then many times."""
    _check(subject, case)
    if case.n <= SMALL:
        with unusual(double=subject.precise == torch.float64):
            _check(subject, case, again=True)
        for training in (False, True)[: 1 + subject.trains_quietly]:
            _call_often(subject, msgspec.structs.replace(case, training=training))


def _check(subject: Subject, case: Case, *, again: bool = False) -> None:
    before = settings()
    if not again:
        # A library that is imported inside of a first call may add filters of its own.
        del before[FILTERS]
    layer = subject.build(case)
    _require_settings(before, "its construction")
    x_BND, source_BMD = subject.inputs(case)
    context = subject.context(case, layer)
    arguments = {"input": x_BND, **_tensors_of(context)}
    if source_BMD is not None:
        arguments["source"] = source_BMD
    copies = _copies(arguments)
    modes = _modes(layer)
    state = {name: one.detach().clone() for name, one in state_tensors(layer)}
    drawn = random_states()
    with redirect_stdout(StringIO()) as printed:
        y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    if printed.getvalue():
        raise Broken(f"a call prints: {printed.getvalue().splitlines()[0]}")
    first = y_BND.detach().clone()
    _require_settings(before, "a call")
    _require_unchanged(arguments, copies, "a call")
    upstream = torch.linspace(-1, 1, first.numel(), dtype=first.dtype, device=first.device)
    upstream = upstream.view(first.shape)
    given = upstream.clone()
    leaves = [x_BND, *([] if source_BMD is None else [source_BMD]), *trained(layer).values()]
    gradients(y_BND, leaves, upstream, kept=True)
    _require_settings(before, "a backward pass")
    _require_unchanged(arguments, copies, "a backward pass")
    _require_unchanged({"incoming gradient": upstream}, {"incoming gradient": given}, "a backward")
    layer((0.5 - x_BND).detach(), context, source_BMD=source_BMD)
    _require_unchanged({"earlier result": y_BND}, {"earlier result": first}, "another call")
    if _modes(layer) != modes:
        raise Broken("a call changes what is in training, or what requires gradients")
    for name, one in state_tensors(layer):
        if name in state and not _is_same(one, state[name]):
            raise Broken(f"a call changes {name}")
    if subject.is_ours and random_states() != drawn:
        raise Broken("a call without dropout moves a global random state")
    if subject.is_attention and source_BMD is None:
        _behind_projections(subject, case, layer, context)


def _call_often(subject: Subject, case: Case) -> None:
    """Require that calls leave nothing behind; in training, those with a backward pass."""
    layer = subject.build(case)

    def call() -> None:
        x_BND, source_BMD = subject.inputs(case)
        with torch.set_grad_enabled(case.training):
            y_BND = layer(x_BND, subject.context(case, layer), source_BMD=source_BMD).y_BND
            if y_BND.requires_grad:
                gradients(y_BND, [x_BND, *trained(layer).values()], torch.ones_like(y_BND))

    kept = kept_by_calls(layer, call)
    if kept:
        mode = "training" if case.training else "evaluation"
        raise Broken(f"calls in {mode} leave something behind: {kept}")


def _behind_projections(subject: Subject, case: Case, layer: Layer, context: Context) -> None:
    heads = subject.heads(case, layer, context)
    arguments = {
        name: one
        for name, one in zip(("queries", "keys", "values"), heads[:3], strict=True)
        if one is not None
    }
    arguments |= {name: one for name, one in heads.extra.items() if isinstance(one, Tensor)}
    copies = _copies(arguments)
    with torch.no_grad():
        attend(layer, heads, context)
    _require_unchanged(arguments, copies, "attention without gradients")
    out_BHNV = attend(layer, heads, context)
    _require_unchanged(arguments, copies, "attention")
    if not out_BHNV.requires_grad:
        return
    upstream = torch.linspace(-1, 1, out_BHNV.numel()).to(out_BHNV).view(out_BHNV.shape)
    given, result = upstream.clone(), out_BHNV.detach().clone()
    gradients(out_BHNV, [one for one in heads[:3] if one is not None], upstream)
    found = {**arguments, "incoming gradient": upstream, "result": out_BHNV}
    wanted = {**copies, "incoming gradient": given, "result": result}
    _require_unchanged(found, wanted, "the attention's backward pass")


def _tensors_of(context: Context) -> dict[str, Tensor]:
    named = ((one.name, getattr(context, one.name)) for one in fields(context))
    return {name: value for name, value in named if isinstance(value, Tensor)}


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: one.detach().clone() for name, one in tensors.items()}


def _is_same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one.detach().nan_to_num(), other.nan_to_num())


def _require_unchanged(
    found: Mapping[str, Tensor], wanted: Mapping[str, Tensor], what: str
) -> None:
    for name, value in wanted.items():
        if not _is_same(found[name], value):
            raise Broken(f"{what} writes into its {name}")


def _require_settings(before: dict[str, object], what: str) -> None:
    now = settings()
    for name, value in before.items():
        if now[name] != value:
            raise Broken(f"{what} changes {name} of the process")


def _modes(layer: Layer) -> dict[str, Any]:
    modes: dict[str, Any] = {f"{name}, mode": part.training for name, part in layer.named_modules()}
    return {**modes, **{name: one.requires_grad for name, one in layer.named_parameters()}}


LAW = Law(
    name="side_effects",
    says="a call changes no argument, result or process and leaves nothing behind",
    claimed=binds_all,
    cases=cases,
    check=check,
    takes=is_not_empty,
)
