"""Mixed requests to one layer.

B batch   N positions   M keys of another sequence   D model width
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor, nn

from attention_impls.contract import Context, Layer, Position
from lra.core.findings import Case, DtypeName, MaskKind
from lra.verify.law import projected_gradients
from lra.verify.learned_bias import LearnedBias
from lra.verify.requests import (
    cross_directions,
    crossed_requests,
    directions,
    masks,
    position_schemes,
    requests,
)
from lra.verify.subject import Subject, seed_torch

Mode = Literal["grad", "no_grad", "inference"]
MODES: tuple[Mode, ...] = ("grad", "no_grad", "inference")

LENGTHS = (1, 2, 5, 7, 16, 31, 37, 65)
"""Lengths of requests before the one that is asked about."""
SOURCES = (1, 5, 13, 37)
"""Lengths of another sequence."""
MANY = 48
"""Length of a request before which each shorter length is asked twice: a table with room for some
of them has to let others go."""
PADDED: tuple[MaskKind, ...] = ("scattered", "behind", "front")
THINGS = ("causal", "mask", "position", "training")
"""Things in which the first request differs from the one that is asked about, by its seed."""
ROUNDED = 1e-4
"""Tolerance for float32: sums of up to a few hundred terms, each rounded by 6e-8, through the few
products and the softmax of a layer."""


@dataclass(frozen=True)
class Ask:
    """One request, and the gradient mode that it comes in."""

    case: Case
    mode: Mode = "grad"

    def __str__(self) -> str:
        """Return the case and, unless gradients are asked for, the mode."""
        return f"'{self.case}'" + ("" if self.mode == "grad" else f" under {self.mode}")


def every_request(
    subject: Subject, lengths: Sequence[int], *, training: bool | None = None, **fixed: Any
) -> list[Case]:
    """Return requests of all kinds that the card claims, with other sequences among them, shortest
    first; `training` None leaves it to every other case."""
    shapes = list(
        requests(
            subject,
            lengths=lengths,
            masks=masks(subject, "scattered", "behind", "front"),
            training=training is None,
            **fixed,
        )
    )
    if subject.card.capabilities.cross:
        shapes += [msgspec.structs.replace(case, **fixed) for case in crossed_requests(subject)]
    if training is not None:
        shapes = [msgspec.structs.replace(case, training=training) for case in shapes]
    return sorted(shapes, key=lambda case: case.n)


def in_each(cases: Iterable[Case], dtypes: Sequence[DtypeName]) -> list[Case]:
    """Return each case in each of these types."""
    return [msgspec.structs.replace(case, dtype=dtype) for case in cases for dtype in dtypes]


def earlier(subject: Subject, case: Case) -> list[Ask]:
    """Return one to three other requests, by a case's seed, that come before it: the first differs
    in one thing alone, half of the others are of the same shape, where what is kept by shape
    shows. Before one of `MANY` positions come all lengths."""
    if case.n == MANY:
        return _each_length_twice(subject, case)
    chance = random.Random(case.seed)
    asks = [Ask(_with_one_other(subject, case, chance), chance.choice(MODES))]
    for _ in range(case.seed % 3):
        alike = chance.random() < 0.5
        crossed = subject.card.capabilities.cross and chance.random() < 0.25
        crossed = case.m is not None if alike else crossed
        ways = cross_directions(subject) if crossed else directions(subject)
        shape = {
            "n": chance.choice(LENGTHS),
            "m": chance.choice(SOURCES) if crossed else None,
            "batch": chance.choice((1, 2, 3)),
        }
        other = msgspec.structs.replace(
            case,
            **({} if alike else shape),
            causal=chance.choice(ways),
            mask=chance.choice(masks(subject, *PADDED)),
            position=chance.choice(_schemes(subject, case)),
            training=subject.trains_quietly and chance.random() < 0.5,
            seed=chance.randrange(1000),
        )
        asks.append(Ask(other, chance.choice(MODES)))
    return asks


def _each_length_twice(subject: Subject, case: Case) -> list[Ask]:
    """Return a request of each length up, then down in another direction and mask, where the card
    claims more than one."""
    ways, kinds = directions(subject), masks(subject, *PADDED)
    up = [(n, ways[n % len(ways)], kinds[n % len(kinds)]) for n in range(1, MANY)]
    down = [
        (n, ways[(n + 1) % len(ways)], kinds[(n + 1) % len(kinds)]) for n in range(MANY - 1, 0, -1)
    ]
    return [
        Ask(msgspec.structs.replace(case, n=n, causal=causal, mask=mask), "no_grad")
        for n, causal, mask in (*up, *down)
    ]


def _with_one_other(subject: Subject, case: Case, chance: random.Random) -> Case:
    """Return a request that differs from another in what its seed says, and in its numbers."""
    ways = cross_directions(subject) if case.m is not None else directions(subject)
    every: dict[str, Sequence[Any]] = {
        "causal": ways,
        "mask": masks(subject, *PADDED),
        "position": _schemes(subject, case),
        "training": (False, True) if subject.trains_quietly else (False,),
    }
    name = THINGS[case.seed % len(THINGS)]
    other = [one for one in every[name] if one != getattr(case, name)]
    changed = {name: chance.choice(other)} if other else {}
    return msgspec.structs.replace(case, seed=chance.randrange(1000), **changed)


def _schemes(subject: Subject, case: Case) -> list[str]:
    """Return the positions that a request may have: rotary ones turn pairs of features."""
    odd = case.head_width % 2 == 1
    return [one for one in position_schemes(subject) if one != "rope" or not odd]


def longest(asks: Sequence[Ask]) -> int:
    """Return the length that one layer is built for, to be asked all of these."""
    return max(max(ask.case.n, ask.case.m or 0) for ask in asks)


def answer(subject: Subject, layer: Layer, ask: Ask) -> dict[str, Tensor]:
    """Return a layer's answer to a request: its output and, where asked for, its gradients."""
    case = ask.case
    layer.train(case.training)
    dtype = next((one.dtype for one in layer.parameters()), subject.precise)
    x_BND, source_BMD = subject.inputs(case, dtype=dtype)
    context = biased(subject.context(case, layer), case, layer, subject)
    if ask.mode != "grad":
        with under(ask.mode):
            source = None if source_BMD is None else source_BMD.detach()
            return {"output": layer(x_BND.detach(), context, source_BMD=source).y_BND}
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    leaves = differentiated(layer, context, x_BND, source_BMD)
    found = projected_gradients(y_BND, leaves.values())
    named = (f"gradient of {name}" for name in leaves)
    return {"output": y_BND, **dict(zip(named, found, strict=True))}


def biased(context: Context, case: Case, layer: Layer, subject: Subject) -> Context:
    """Return the context, with a trained bias of the seed's own in place of every other ALiBi: one
    that is kept from an earlier request shows, and so does one that is taken for a constant."""
    if case.position != "alibi" or (case.seed + case.n) % 2 == 0:
        return context
    return replace(context, position=trained_bias(case, layer, subject))


def trained_bias(case: Case, layer: Layer, subject: Subject) -> Position:
    """Return a trained bias, drawn by a case's seed, in a layer's type."""
    seed_torch(case.seed)
    scheme: Position = LearnedBias(layer.dims)
    dtype = next((one.dtype for one in layer.parameters()), subject.dtype(case))
    return scheme.to(subject.device, dtype)


def differentiated(
    layer: Layer, context: Context, x_BND: Tensor, source_BMD: Tensor | None
) -> dict[str, Tensor]:
    """Return all that a request may get gradients for, by name: the input, what is trained, another
    sequence, and a bias of positions that is trained."""
    leaves: dict[str, Tensor] = {"input": x_BND, **trained(layer)}
    if source_BMD is not None:
        leaves["source"] = source_BMD
    if context.position is not None:
        leaves |= {f"position's {name}": one for name, one in trained(context.position).items()}
    return leaves


def under(mode: Mode) -> AbstractContextManager[Any]:
    """Return the gradient mode by its name."""
    if mode == "inference":
        return torch.inference_mode()
    return torch.no_grad() if mode == "no_grad" else nullcontext()


def trained(layer: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that require gradients, by name."""
    return {name: one for name, one in layer.named_parameters() if one.requires_grad}


@torch.no_grad()
def step(layer: nn.Module) -> None:
    """Change all parameters in place, each element by another amount, as an optimiser does."""
    for parameter in trained(layer).values():
        moved = torch.linspace(-0.1, 0.1, parameter.numel(), dtype=torch.float64)
        parameter.add_(moved.view(parameter.shape).to(parameter))


def state_tensors(layer: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield parameters and buffers, also those that are not saved."""
    yield from layer.named_parameters()
    yield from layer.named_buffers()
