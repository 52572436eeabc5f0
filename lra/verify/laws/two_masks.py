"""Padded queries and padding of another sequence are two questions, asked at once.

The queries' mask follows from the case: the kind of the source's, its examples in reverse order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product

import msgspec
from torch import Tensor

from attention_impls.contract import Context, Layer
from lra.core.findings import Case, DtypeName, MaskKind
from lra.verify.inputs import real_positions
from lra.verify.law import Broken, Law, is_not_empty, projected_gradients, require_same
from lra.verify.laws import oracle
from lra.verify.requests import cross_directions, position_schemes
from lra.verify.rotation import rotate
from lra.verify.subject import Subject

TOLERANCE = 1e-9
SIZES = ((2, 1), (3, 5), (9, 5), (7, 7), (12, 30))
"""As many queries as keys, too: then each mask would fit in the place of the other."""
KINDS: tuple[MaskKind, ...] = ("ragged", "mixed", "scattered")
MOST = 24
"""Number of cases in the short form."""


def cases(subject: Subject) -> Iterator[Case]:
    """Fewer queries than keys, as many and more, of all configurations in turn, in float32 too."""
    trials = cycle(range(len(subject.configs)))
    types: Iterator[DtypeName] = cycle(("float64", "float64", "float32"))
    every = [
        Case(
            n=n, m=m, causal=causal, mask=mask, position=scheme, batch=3, trial=next(trials),
            dtype=next(types),
        )
        for (n, m), causal, mask, scheme in product(
            SIZES, cross_directions(subject), KINDS, position_schemes(subject)
        )
    ]  # fmt: skip
    yield from rotate(every, MOST, subject, LAW.name)


def check(subject: Subject, case: Case) -> None:
    """Compare with the source's mask alone, with other contents of padding, and with the oracle."""
    layer = subject.build(case)
    x_BND, source_BMD = subject.inputs(case)
    assert source_BMD is not None
    queries_BN = real_positions(msgspec.structs.replace(case, m=None))
    assert queries_BN is not None
    queries_BN = queries_BN.flip(0).to(x_BND.device)
    one = subject.context(case, layer)
    both = replace(one, query_mask_BN=queries_BN)
    found = _outcome(layer, both, x_BND, source_BMD)
    if bool(found["the output"][~queries_BN].any()):
        raise Broken("outputs of padded queries are not zero where the source has padding too")
    for name, mask in (("input", queries_BN), ("source", one.key_mask_BM)):
        if mask is not None and bool(found[f"gradient of the {name}"][~mask].any()):
            raise Broken(f"padding of the {name} gets a gradient")
    if not subject.mechanism.mixes_queries:
        plain = layer(x_BND, one, source_BMD=source_BMD).y_BND
        wanted = plain.masked_fill(~queries_BN.unsqueeze(-1), 0.0)
        what = "real outputs with padded queries, against the source's mask alone"
        require_same(found["the output"], wanted, what, subject.allowed(TOLERANCE, case))
    assert one.key_mask_BM is not None
    for garbage in (1e4, *((math.nan,) if subject.is_ours else ())):
        other = _outcome(
            layer,
            both,
            _filled(x_BND, queries_BN, garbage),
            _filled(source_BMD, one.key_mask_BM, garbage),
        )
        for name, value in found.items():
            what = f"{name} when padding of queries and source holds {garbage:g}"
            require_same(other[name], value, what, subject.allowed(TOLERANCE, case))
    if subject.has_oracle:
        oracle.compare(subject, case, layer, both)


def _filled(x_BND: Tensor, real_BN: Tensor, garbage: float) -> Tensor:
    return x_BND.detach().masked_fill(~real_BN.unsqueeze(-1), garbage).requires_grad_()


def _outcome(
    layer: Layer, context: Context, x_BND: Tensor, source_BMD: Tensor
) -> dict[str, Tensor]:
    leaves = {"the input": x_BND, "the source": source_BMD, **dict(layer.named_parameters())}
    y_BND = layer(x_BND, context, source_BMD=source_BMD).y_BND
    reached = projected_gradients(y_BND, leaves.values())
    named = {f"gradient of {name}": grad for name, grad in zip(leaves, reached, strict=True)}
    return {"the output": y_BND.detach(), **named}


LAW = Law(
    name="two_masks",
    says="padded queries and a padded source do not get in each other's way",
    claimed=lambda card: card.capabilities.cross and card.capabilities.padding != "none",
    cases=cases,
    check=check,
    takes=lambda case: is_not_empty(case) and case.m is not None,
)
