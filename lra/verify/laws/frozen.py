"""Frozen parts change no other gradient: inputs, another sequence, and each subset of the
projections to queries, keys, values and output.

A backward pass written by hand has to know which gradients are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import torch
from torch import Tensor, nn

from attention_impls.contract import Attention, Layer
from lra.core.findings import Case
from lra.verify.law import Broken, Law, binds_all, projected_gradients, require_same
from lra.verify.mixture import ROUNDED, every_request, trained
from lra.verify.rotation import choices, rotate
from lra.verify.subject import Subject, attend

TOLERANCE = 1e-9
COUNT = 24
"""Number of cases of the short form."""
LENGTHS = (2, 7, 16, 37, 65)
PROJECTIONS = ("query", "key", "value", "output")
SUBSETS = 2 ** len(PROJECTIONS)
INPUT, SOURCE = SUBSETS, 2 * SUBSETS
"""Bits of a seed beyond the subset: a frozen input, and a frozen source."""


def cases(subject: Subject) -> Iterator[Case]:
    """Every kind of request in turn, pairs of them in float32; the seed's bits say what is
    frozen."""
    every = 2 * SOURCE
    first = choices(subject, "frozen").randrange(1000)
    own = rotate(every_request(subject, LENGTHS), COUNT, subject, "frozen")
    for place, case in enumerate(own):
        # A step without a divisor in common with the number of subsets reaches them all.
        dtype = "float32" if (first + place // 2) % 2 else "float64"
        seed = (first + 37 * place) % every
        yield msgspec.structs.replace(case, seed=seed, dtype=dtype)


def check(subject: Subject, case: Case) -> None:
    """Compare with the gradients where nothing is frozen; behind the projections too."""
    rounded = subject.dtype(case) == torch.float32
    allowed = subject.allowed(10 * ROUNDED if rounded else TOLERANCE)
    layer = subject.build(case)
    context = subject.context(case, layer)
    x_BND, source_BMD = subject.inputs(case)
    leaves = {"input": x_BND, **trained(layer)}
    if source_BMD is not None:
        leaves["source"] = source_BMD
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    wanted = dict(zip(leaves, projected_gradients(y_BND, leaves.values()), strict=True))
    for leaf in _frozen(layer, case, x_BND, source_BMD):
        leaf.requires_grad_(False)
    left = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    what = f"where {_describe(leaves)}"
    found = layer(x_BND, context, source_BMD=source_BMD).y_BND
    require_same(found, y_BND, f"output {what}", allowed)
    if not left:
        return
    if not found.requires_grad and any(bool(wanted[one].any()) for one in left):
        raise Broken(f"{what}, the output has no gradient at all")
    for one, gradient in zip(left, projected_gradients(found, left.values()), strict=True):
        require_same(gradient, wanted[one], f"gradient of {one} {what}", allowed)
    if subject.is_attention and case.m is None:
        _behind_projections(subject, case, layer, allowed)


def _behind_projections(subject: Subject, case: Case, layer: Layer, allowed: float) -> None:
    context = subject.context(case, layer)
    heads = subject.heads(case, layer, context)
    leaves = {
        title: one
        for title, one in zip(("queries", "keys", "values"), heads[:3], strict=True)
        if one is not None
    }
    wanted = _gradients(attend(layer, heads, context), leaves)
    for place, leaf in enumerate(leaves.values()):
        leaf.requires_grad_(not case.seed >> place & 1)
    left = {title: leaf for title, leaf in leaves.items() if leaf.requires_grad}
    found = _gradients(attend(layer, heads, context), left)
    for title, gradient in found.items():
        what = f"gradient of {title} where {_describe(leaves)}"
        require_same(gradient, wanted[title], what, allowed)


def _gradients(out: Tensor, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    reached = projected_gradients(out, leaves.values()) if leaves else []
    return dict(zip(leaves, reached, strict=True))


def _frozen(layer: Layer, case: Case, x_BND: Tensor, source_BMD: Tensor | None) -> Iterator[Tensor]:
    """Yield what a seed freezes; without projections of the contract, each parameter by its
    place."""
    if case.seed & INPUT:
        yield x_BND
    if case.seed & SOURCE and source_BMD is not None:
        yield source_BMD
    ours = isinstance(layer, Attention)
    for place, (name, parameter) in enumerate(trained(layer).items()):
        owner = name.partition(".")[0]
        bit = PROJECTIONS.index(owner) if ours and owner in PROJECTIONS else place % 4
        if case.seed >> bit & 1 and (owner in PROJECTIONS or not ours):
            yield parameter


def _describe(leaves: dict[str, Tensor] | dict[str, nn.Parameter]) -> str:
    """Name the frozen parts, in words."""
    frozen = [name for name, leaf in leaves.items() if not leaf.requires_grad]
    owners = dict.fromkeys(name.removesuffix(".weight").removesuffix(".bias") for name in frozen)
    return (
        f"{', '.join(owners)} {'are' if len(owners) > 1 else 'is'} frozen"
        if owners
        else ("nothing is frozen")
    )


LAW = Law(
    name="frozen",
    says="frozen parts change no other gradient",
    claimed=binds_all,
    cases=cases,
    check=check,
)
