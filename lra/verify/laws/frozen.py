"""Frozen parts change no other gradient: inputs, another sequence, projections, a mechanism's own
parameters and a trained bias of positions, a few at a time and all but one.

A backward pass written by hand has to know which gradients are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from random import Random

import msgspec
import torch
from torch import Tensor

from lra.core.findings import Case, DtypeName
from lra.verify.law import Broken, Law, binds_all, projected_gradients, require_same
from lra.verify.mixed_requests import ROUNDED, differentiated, every_request, in_each, trained_bias
from lra.verify.rotation import choices, spread
from lra.verify.subject import Subject, attend

PROJECTIONS = ("query", "key", "value", "output")
TOLERANCE = 1e-9
COUNT = 24
"""Number of cases of the short form."""
LENGTHS = (2, 7, 16, 37, 65)
TYPES: tuple[DtypeName, ...] = ("float64", "float32")


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in both types; the seed says what is frozen, and counts on among those
    with as many parts."""
    first = choices(subject, "frozen").randrange(1000)
    kinds: Counter[tuple[str, bool]] = Counter()
    every = in_each(every_request(subject, LENGTHS), TYPES)
    for case in spread(every, COUNT, subject, "frozen"):
        kind = (case.position, case.m is None)
        yield msgspec.structs.replace(case, seed=first + kinds[kind])
        kinds[kind] += 1


def check(subject: Subject, case: Case) -> None:
    """Compare with the gradients where nothing is frozen; behind the projections too."""
    layer = subject.build(case)
    context = subject.context(case, layer)
    if case.position == "alibi":
        context = replace(context, position=trained_bias(case, layer, subject))
    x_BND, source_BMD = subject.inputs(case)

    def output() -> Tensor:
        y_BND: Tensor = layer(x_BND, context, source_BMD=source_BMD).y_BND
        return y_BND

    leaves = differentiated(layer, context, x_BND, source_BMD)
    _compare(subject, case, leaves, output)
    if not subject.is_attention:
        return
    heads = subject.heads(case, layer, context)
    behind = {
        title: one
        for title, one in zip(("queries", "keys", "values"), heads[:3], strict=True)
        if one is not None
    }
    others = {*leaves} - {"input", "source"}
    behind |= {name: leaves[name] for name in leaves if name in others and not _projects(name)}
    _compare(subject, case, behind, lambda: attend(layer, heads, context))


def _compare(
    subject: Subject, case: Case, leaves: dict[str, Tensor], output: Callable[[], Tensor]
) -> None:
    """Freeze a few parts, then all but one, and compare with the gradients of nothing frozen."""
    rounded = subject.dtype(case) == torch.float32
    allowed = subject.allowed(10 * ROUNDED if rounded else TOLERANCE)
    whole = output()
    wanted = dict(zip(leaves, projected_gradients(whole, leaves.values()), strict=True))
    for frozen in _subsets(leaves, case.seed):
        for name, leaf in leaves.items():
            leaf.requires_grad_(_part(name) not in frozen)
        left = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
        what = f"where {', '.join(frozen)} {'are' if len(frozen) > 1 else 'is'} frozen"
        found = output()
        require_same(found, whole, f"output {what}", allowed)
        if not found.requires_grad and any(bool(wanted[one].any()) for one in left):
            raise Broken(f"{what}, the output has no gradient at all")
        for one, gradient in zip(left, projected_gradients(found, left.values()), strict=True):
            require_same(gradient, wanted[one], f"gradient of {one} {what}", allowed)
    for leaf in leaves.values():
        leaf.requires_grad_()


def _subsets(leaves: Iterable[str], seed: int) -> Iterator[list[str]]:
    """Yield the parts that a seed freezes: about half, then all but one. A trained bias is the one
    wherever there is one, since few requests have it."""
    parts = list(dict.fromkeys(map(_part, leaves)))
    chance = Random(seed)
    some = [part for part in parts if chance.random() < 0.5]
    if 0 < len(some) < len(parts):
        yield some
    biases = [part for part in parts if part.startswith("position's")]
    alone = (biases or parts)[seed % len(biases or parts)]
    yield [part for part in parts if part != alone]


def _part(name: str) -> str:
    """Return the part that a tensor belongs to: weight and bias of a projection are frozen
    together."""
    return name.removesuffix(".weight").removesuffix(".bias")


def _projects(name: str) -> bool:
    return name.partition(".")[0] in PROJECTIONS


LAW = Law(
    name="frozen",
    says="frozen parts change no other gradient",
    claimed=binds_all,
    cases=cases,
    check=check,
)
